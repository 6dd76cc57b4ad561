#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/trace/rows_internal.h"
#include "core/trace/writer.h"

namespace weir::trace {
namespace {

// Numbers of fields in Perfetto's messages.
enum TracePacketField : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kSequenceFlags = 13,
  kTrackDescriptor = 60
};
enum DescriptorField : uint32_t { kUuid = 1, kTrackName = 2, kProcess = 3, kParent = 5, kCounter = 8 };
enum EventField : uint32_t {
  kAnnotation = 4,
  kType = 9,
  kTrackUuid = 11,
  kCategory = 22,
  kEventName = 23,
  kCounterValue = 30,
  kFlow = 47,
  kFlowEnd = 48
};
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounterEvent = 4;
constexpr uint64_t kUnitBytes = 3;
constexpr uint64_t kSequence = 1;

/// A message in protobuf's wire format.
class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  Message& Fixed(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3 | 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xff);
    return *this;
  }
  Message& Text(uint32_t field, std::string_view text) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  Message& Sub(uint32_t field, const Message& message) { return Text(field, message.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// Bytes that are no UTF-8 become '?': protobuf's readers refuse them in strings.
std::string Legal(std::string_view text) {
  std::string legal(text);
  for (char& c : legal) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return legal;
}

class PerfettoWriter final : public TraceWriter {
 public:
  explicit PerfettoWriter(int64_t origin_us) : origin_us_(origin_us) {}

  std::string Begin() const override { return {}; }
  std::string Add(const StepTrace& step) override;
  std::string Memory(int64_t until_us) override;
  std::string End(const Summary&) const override { return {}; }

 private:
  void Packet(int64_t at_ns, uint32_t field, const Message& content) {
    Message packet;
    packet.Number(kTimestamp, static_cast<uint64_t>(std::max<int64_t>(at_ns, 0)));
    packet.Number(kSequenceId, kSequence).Sub(field, content);
    if (!std::exchange(begun_, true)) packet.Number(kSequenceFlags, 1);  // nothing before it counts
    bytes_ += Message().Sub(1, packet).bytes();
  }
  uint64_t TrackOf(const std::string& device);
  uint64_t CounterOf(const std::string& memory);

  const int64_t origin_us_;
  TraceRows rows_;
  HeldBytes held_;
  std::map<std::string, std::pair<int, uint64_t>> processes_;                  // by device: its number and track
  std::map<std::string, uint64_t> counters_;                                   // by memory: the track
  std::map<std::pair<uint64_t, std::tuple<int, int, int>>, uint64_t> tracks_;  // by process, thread, row and lane
  uint64_t next_uuid_ = 1;
  uint64_t next_flow_ = 1;
  bool begun_ = false;
  std::string bytes_;  // of the call that is under way
};

uint64_t PerfettoWriter::TrackOf(const std::string& device) {
  const auto [found, added] = processes_.try_emplace(device, static_cast<int>(processes_.size()) + 1, next_uuid_);
  if (added) {
    ++next_uuid_;
    Message process;
    process.Number(1, static_cast<uint64_t>(found->second.first)).Text(6, Legal(DeviceText(device)) + " Compute");
    Packet(0, kTrackDescriptor, Message().Number(kUuid, found->second.second).Sub(kProcess, process));
  }
  return found->second.second;
}

uint64_t PerfettoWriter::CounterOf(const std::string& memory) {
  const auto [found, added] = counters_.try_emplace(memory, next_uuid_);
  if (added) {
    ++next_uuid_;
    Packet(0, kTrackDescriptor,
           Message()
               .Number(kUuid, found->second)
               .Text(kTrackName, "memory of " + Legal(memory))
               .Sub(kCounter, Message().Number(3, kUnitBytes)));
  }
  return found->second;
}

std::string PerfettoWriter::Add(const StepTrace& step) {
  const std::vector<const Span*> spans = InOrder(step);
  const int64_t begin_ns = (step.start_us - origin_us_) * 1000;
  const int lane = rows_.LaneOf(step);
  std::vector<std::vector<uint64_t>> flows(spans.size()), ends(spans.size());
  std::vector<int64_t> freed_ns;
  for (const Span* span : spans) freed_ns.push_back(span->end_ns);
  for (const auto& [from, to] : FlowsOf(spans)) {
    flows[from].push_back(next_flow_);
    ends[to].push_back(next_flow_++);
    freed_ns[from] = std::max(freed_ns[from], spans[to]->end_ns);
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& span = *spans[i];
    const uint64_t process = TrackOf(span.device);
    const int64_t start_ns = begin_ns + span.start_ns, end_ns = begin_ns + span.end_ns;
    const auto [row, added] = rows_.RowOf(static_cast<int>(process), lane, span.thread, start_ns, end_ns);
    uint64_t& track = tracks_[{process, {span.thread, row, lane}}];
    if (added) {
      track = next_uuid_++;
      Packet(0, kTrackDescriptor,
             Message().Number(kUuid, track).Text(kTrackName, RowName(span.thread, row, lane)).Number(kParent, process));
    }
    const auto note = [](const char* name, const std::string& text) {
      return Message().Text(10, name).Text(6, Legal(text));
    };
    Message begin;
    begin.Number(kType, kSliceBegin).Number(kTrackUuid, track).Text(kCategory, "op").Text(kEventName, Legal(span.op));
    begin.Sub(kAnnotation, note("name", span.node));
    begin.Sub(kAnnotation, Message().Text(10, "step").Number(4, static_cast<uint64_t>(step.step_id)));
    begin.Sub(kAnnotation, Message().Text(10, "output_bytes").Number(4, span.bytes));
    if (!span.kernel.empty()) begin.Sub(kAnnotation, note("kernel", span.kernel));
    if (!span.layout.empty()) begin.Sub(kAnnotation, note("layout", span.layout));
    for (const uint64_t flow : flows[i]) begin.Fixed(kFlow, flow);
    for (const uint64_t flow : ends[i]) begin.Fixed(kFlowEnd, flow);
    Packet(start_ns, kTrackEvent, begin);
    Packet(end_ns, kTrackEvent, Message().Number(kType, kSliceEnd).Number(kTrackUuid, track));
    for (const SpanOutput& output : span.outputs) held_.Add(span, output, end_ns, begin_ns + freed_ns[i]);
  }
  return std::exchange(bytes_, {});
}

std::string PerfettoWriter::Memory(int64_t until_us) {
  const int64_t most_us = INT64_MAX / 1000 - std::abs(origin_us_);
  for (const HeldBytes::Sample& sample : held_.Take((std::min(until_us, most_us) - origin_us_) * 1000)) {
    const uint64_t track = CounterOf(sample.memory);
    Packet(sample.at_ns, kTrackEvent,
           Message()
               .Number(kType, kCounterEvent)
               .Number(kTrackUuid, track)
               .Number(kCounterValue, static_cast<uint64_t>(sample.bytes)));
  }
  return std::exchange(bytes_, {});
}

}  // namespace

std::unique_ptr<TraceWriter> MakePerfettoWriter(int64_t origin_us) {
  return std::make_unique<PerfettoWriter>(origin_us);
}

}  // namespace weir::trace
