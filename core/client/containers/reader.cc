#include "core/client/containers/reader.h"

#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"

namespace weir {
namespace {

/// A reader is made outside of conds, loops and what they wait for.
Output MakeReader(std::string_view op, const op::AttrList& attrs, std::string_view name, const Where& where) {
  Graph& graph = Graph::Default();
  const ControlDependencies outside(std::nullopt, graph);
  return BuildOp(op, {}, attrs, name, where).output(0);
}

Operation OnReader(std::string_view op, const std::vector<Operand>& inputs, std::string_view name,
                   const Where& where) {
  return BuildOp(op, inputs, {}, name, where);
}

}  // namespace

ReaderBase::Records ReaderBase::Read(const QueueBase& queue, std::string_view name, Where where) const {
  const Operation read = OnReader("ReaderReadV2", {handle_, queue.queue_ref()}, name, where);
  return {read.output(0), read.output(1)};
}
ReaderBase::Records ReaderBase::ReadUpTo(const QueueBase& queue, const Operand& num_records, std::string_view name,
                                         Where where) const {
  const Operation read = OnReader("ReaderReadUpToV2", {handle_, queue.queue_ref(), num_records}, name, where);
  return {read.output(0), read.output(1)};
}
Output ReaderBase::NumRecordsProduced(std::string_view name, Where where) const {
  return OnReader("ReaderNumRecordsProducedV2", {handle_}, name, where).output(0);
}
Output ReaderBase::NumWorkUnitsCompleted(std::string_view name, Where where) const {
  return OnReader("ReaderNumWorkUnitsCompletedV2", {handle_}, name, where).output(0);
}
Output ReaderBase::SerializeState(std::string_view name, Where where) const {
  return OnReader("ReaderSerializeStateV2", {handle_}, name, where).output(0);
}
Operation ReaderBase::RestoreState(const Operand& state, std::string_view name, Where where) const {
  return OnReader("ReaderRestoreStateV2", {handle_, state}, name, where);
}
Operation ReaderBase::Reset(std::string_view name, Where where) const {
  return OnReader("ReaderResetV2", {handle_}, name, where);
}

IdentityReader::IdentityReader(std::string_view name, Where where)
    : ReaderBase(MakeReader("IdentityReaderV2", {}, name, where), /*supports_serialize=*/true) {}
WholeFileReader::WholeFileReader(std::string_view name, Where where)
    : ReaderBase(MakeReader("WholeFileReaderV2", {}, name, where), /*supports_serialize=*/true) {}
TextLineReader::TextLineReader(int64_t skip_header_lines, std::string_view name, Where where)
    : ReaderBase(MakeReader("TextLineReaderV2", {{"skip_header_lines", skip_header_lines}}, name, where)) {}
TFRecordReader::TFRecordReader(const std::string& compression_type, std::string_view name, Where where)
    : ReaderBase(MakeReader("TFRecordReaderV2", {{"compression_type", compression_type}}, name, where)) {}
FixedLengthRecordReader::FixedLengthRecordReader(int64_t record_bytes, const FixedLengthRecordReaderOptions& options,
                                                 Where where)
    : ReaderBase(MakeReader("FixedLengthRecordReaderV2",
                            {{"header_bytes", options.header_bytes},
                             {"record_bytes", record_bytes},
                             {"footer_bytes", options.footer_bytes},
                             {"hop_bytes", options.hop_bytes},
                             {"encoding", options.encoding}},
                            options.name, where)) {}

}  // namespace weir
