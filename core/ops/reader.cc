// Readers: they make records of the files whose names a queue gives.
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;

constexpr std::string_view kRead = "what a reader gives depends on its files, not on the inputs";

OpBuilder ReaderOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kFiles).Stateful().NoGradient(kRead);
}

OpBuilder MadeReader(OpRegistry& ops, std::string_view name) {
  return ReaderOp(ops, name)
      .Out("reader_handle: resource")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Shape(Scalar());
}

/// Scalar handles; the outputs are scalars.
Status ScalarsShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape(Shape()));
  return Status();
}

Status ReadUpToShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  WEIR_ASSIGN(const PartialShape some, PartialShape::Make(std::vector<int64_t>{-1}));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, some);
  return Status();
}

void DeclareMakers(OpRegistry& ops) {
  MadeReader(ops, "IdentityReaderV2").Doc("A handle of a reader whose records are the names themselves.");
  MadeReader(ops, "WholeFileReaderV2").Doc("A handle of a reader of whole files. The key is the file's name.");
  MadeReader(ops, "TextLineReaderV2")
      .Attr("skip_header_lines: int = 0")
      .Doc("A handle of a reader of lines. The key is the file's name with the number of the line, from 1.");
  MadeReader(ops, "TFRecordReaderV2")
      .Attr("compression_type: string = ''")
      .Doc(
          "A handle of a reader of TFRecord files, compressed by '', 'ZLIB' or 'GZIP'. The key is the file's name with "
          "the offset of the record.");
  MadeReader(ops, "FixedLengthRecordReaderV2")
      .Attr("header_bytes: int = 0")
      .Attr("record_bytes: int")
      .Attr("footer_bytes: int = 0")
      .Attr("hop_bytes: int = 0")
      .Attr("encoding: string = ''")
      .Doc(
          "A handle of a reader of records of record_bytes. They begin after the header, hop_bytes apart (0: one after "
          "the other), and end before the footer. The key is the file's name with the number of the record, from 0.");
}

}  // namespace

void DeclareReader(OpRegistry& ops) {
  DeclareMakers(ops);
  ReaderOp(ops, "ReaderReadV2")
      .In("reader_handle: resource")
      .In("queue_handle: resource")
      .Out("key: string")
      .Out("value: string")
      .Shape(ScalarsShape)
      .Doc("The next record. Waits for the name of a file if the last file has ended.");
  ReaderOp(ops, "ReaderReadUpToV2")
      .In("reader_handle: resource")
      .In("queue_handle: resource")
      .In("num_records: int64")
      .Out("keys: string")
      .Out("values: string")
      .Shape(ReadUpToShape)
      .Doc("The next records of one file, num_records at most and one at least.");
  ReaderOp(ops, "ReaderNumRecordsProducedV2")
      .In("reader_handle: resource")
      .Out("records_produced: int64")
      .Shape(ScalarsShape)
      .Doc("How many records the reader gave.");
  ReaderOp(ops, "ReaderNumWorkUnitsCompletedV2")
      .In("reader_handle: resource")
      .Out("units_completed: int64")
      .Shape(ScalarsShape)
      .Doc("How many files the reader has read to their ends.");
  ReaderOp(ops, "ReaderSerializeStateV2")
      .In("reader_handle: resource")
      .Out("state: string")
      .Shape(ScalarsShape)
      .Doc("The reader's state, for readers whose records are whole files or names.");
  ReaderOp(ops, "ReaderRestoreStateV2")
      .In("reader_handle: resource")
      .In("state: string")
      .Shape(ScalarsShape)
      .Doc("Gives the reader a state of ReaderSerializeStateV2.");
  ReaderOp(ops, "ReaderResetV2")
      .In("reader_handle: resource")
      .Shape(ScalarsShape)
      .Doc("Forgets the file under way and the counts.");
}

}  // namespace weir::ops
