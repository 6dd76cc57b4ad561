// Text that stands for numbers, bytes or code points.
#include <algorithm>

#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;

Status DecodeRawShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, Join(c.input(0), VectorOf(-1)));
  c.set_output(0, std::move(shape));
  return Status();
}

Status DecodePaddedRawShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_ASSIGN(const DType type, c.attrs().Type("out_type"));
  const std::optional<int64_t> length = c.scalar_int(1);
  int64_t count = -1;
  if (length) {
    const auto width = std::max<int64_t>(1, static_cast<int64_t>(SizeOf(type)));
    if (*length <= 0) return InvalidArgument("fixed_length ({}) must be greater than zero.", *length);
    if (*length % width != 0) {
      return InvalidArgument("fixed_length ({}) must be a multiple of the size of out_type ({})", *length, width);
    }
    count = *length / width;
  }
  WEIR_ASSIGN(PartialShape shape, Join(c.input(0), VectorOf(count)));
  c.set_output(0, std::move(shape));
  return Status();
}

/// Every output has the shape of the records.
Status DecodeCsvShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(const PartialShape value, ToRankAtMost(c.input(i), 1));
    if (value.has_rank() && value.rank() == 1 && value.dim(0) > 1) {
      return InvalidArgument("Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return Status();
}

/// Splits [strings + 1], code points, and their offsets.
Status UnicodeDecodeShape(ShapeContext& c) {
  const int64_t strings = c.input(0).elements();
  WEIR_ASSIGN(const int64_t splits, AddDims(strings, 1));
  c.set_output(0, VectorOf(splits));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, VectorOf(-1));
  return Status();
}

Status UnicodeEncodeShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_ASSIGN(const PartialShape splits, c.WithRank(1, 1));
  WEIR_ASSIGN(const int64_t strings, SubtractDims(splits.dim(0), 1));
  c.set_output(0, VectorOf(strings));
  return Status();
}

OpBuilder Numeral(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareNumerals(OpRegistry& ops) {
  Numeral(ops, "AsString")
      .In("input: T")
      .Out("output: string")
      .Attr("fill: string = ''")
      .Attr("precision: int = -1")
      .Attr("scientific: bool = false")
      .Attr("shortest: bool = false")
      .Attr("width: int = -1")
      .Attr(
          "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
          "complex128, bool, string, variant}")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc(
          "Each number, bool or string as text: integers as decimals, others as printf's %f, %e (scientific) or %g "
          "(shortest), with precision, width and fill.");
  Numeral(ops, "StringToNumber")
      .In("string_tensor: string")
      .Out("output: out_type")
      .Attr("out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT")
      .Shape(SameAs(0))
      .NoGradient(kDiscrete)
      .Doc("Each string as a number.");
  Numeral(ops, "DecodeRaw")
      .In("bytes: string")
      .Out("output: out_type")
      .Attr("little_endian: bool = true")
      .Attr(
          "out_type: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, complex64, complex128, "
          "bool}")
      .Shape(DecodeRawShape)
      .NoGradient(kDiscrete)
      .Doc("The bytes of the strings, all of one length, as numbers along a new last axis.");
  Numeral(ops, "DecodePaddedRaw")
      .In("input_bytes: string")
      .In("fixed_length: int32")
      .Out("output: out_type")
      .Attr("little_endian: bool = true")
      .Attr("out_type: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16}")
      .Shape(DecodePaddedRawShape)
      .NoGradient(kDiscrete)
      .Doc("The bytes of the strings, cut or padded with zeros to fixed_length, as numbers along a new last axis.");
  Numeral(ops, "DecodeCSV")
      .In("records: string")
      .In("record_defaults: [OUT_TYPE]")
      .Out("output: [OUT_TYPE]")
      .Attr("field_delim: string = ','")
      .Attr("na_value: string = ''")
      .Attr("select_cols: list(int) = []")
      .Attr("use_quote_delim: bool = true")
      .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
      .Shape(DecodeCsvShape)
      .NoGradient(kDiscrete)
      .Doc(
          "The fields of records of comma-separated values, one output per column; an empty field takes its default, "
          "and a default without elements demands a value.");
}

void DeclareBytes(OpRegistry& ops) {
  Numeral(ops, "EncodeBase64")
      .In("input: string")
      .Out("output: string")
      .Attr("pad: bool = false")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("Each string in web-safe base64, padded with = if `pad` is set.");
  Numeral(ops, "DecodeBase64")
      .In("input: string")
      .Out("output: string")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("The bytes of each string in web-safe base64, with or without padding.");
  Numeral(ops, "ParseTensor")
      .In("serialized: string")
      .Out("output: out_type")
      .Attr("out_type: type")
      .Shape(op::Unknown())
      .NoGradient(kDiscrete)
      .Doc("The tensor in a serialized TensorProto.");
  Numeral(ops, "SerializeTensor")
      .In("tensor: T")
      .Out("serialized: string")
      .Attr("T: type")
      .Shape(op::Scalar())
      .NoGradient("text has none")
      .Doc("The tensor as a serialized TensorProto.");
}

void DeclareUnicode(OpRegistry& ops) {
  Numeral(ops, "UnicodeTranscode")
      .In("input: string")
      .Out("output: string")
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("input_encoding: string")
      .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
      .Attr("replace_control_characters: bool = false")
      .Attr("replacement_char: int = 65533")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc(
          "Each string in another encoding. `errors` says what becomes of text that cannot be read: an error, "
          "replacement_char, or nothing.");
  Numeral(ops, "UnicodeDecode")
      .In("input: string")
      .Out("row_splits: Tsplits")
      .Out("char_values: int32")
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("input_encoding: string")
      .Attr("replace_control_characters: bool = false")
      .Attr("replacement_char: int = 65533")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(UnicodeDecodeShape)
      .NoGradient(kDiscrete)
      .Doc("The code points of all strings, and the places at which each string begins.");
  Numeral(ops, "UnicodeDecodeWithOffsets")
      .In("input: string")
      .Out("row_splits: Tsplits")
      .Out("char_values: int32")
      .Out("char_to_byte_starts: int64")
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("input_encoding: string")
      .Attr("replace_control_characters: bool = false")
      .Attr("replacement_char: int = 65533")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(UnicodeDecodeShape)
      .NoGradient(kDiscrete)
      .Doc(
          "The code points of all strings, the places at which each string begins, and the byte at which each code "
          "point begins.");
  Numeral(ops, "UnicodeEncode")
      .In("input_values: int32")
      .In("input_splits: Tsplits")
      .Out("output: string")
      .Attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
      .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
      .Attr("replacement_char: int = 65533")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(UnicodeEncodeShape)
      .NoGradient("text has none")
      .Doc("The strings of code points between consecutive splits.");
  Numeral(ops, "Timestamp")
      .Out("ts: double")
      .Stateful()
      .Shape(op::Scalar())
      .NoGradient(kDiscrete)
      .Doc("Seconds since 1970 when the op runs.");
}

}  // namespace

void DeclareText(OpRegistry& ops) {
  DeclareNumerals(ops);
  DeclareBytes(ops);
  DeclareUnicode(ops);
}

}  // namespace weir::ops
