// Perfetto's format, read by the rules of protobuf's wire format.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/writer.h"

namespace weir::trace {
namespace {

/// The fields of a message: numbers by value, texts and messages by their bytes.
struct Fields {
  std::multimap<uint32_t, uint64_t> numbers;
  std::multimap<uint32_t, std::string> texts;
  bool whole = true;

  uint64_t number(uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  std::string text(uint32_t field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? std::string() : found->second;
  }
};

Fields Read(std::string_view bytes) {
  Fields fields;
  const auto varint = [&]() -> uint64_t {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[0]);
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fields.whole = false;
    return 0;
  };
  while (!bytes.empty() && fields.whole) {
    const uint64_t key = varint();
    const auto field = static_cast<uint32_t>(key >> 3);
    if ((key & 7) == 0) {
      fields.numbers.emplace(field, varint());
    } else if ((key & 7) == 1 && bytes.size() >= 8) {
      uint64_t value = 0;
      for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      fields.numbers.emplace(field, value);
      bytes.remove_prefix(8);
    } else if (const uint64_t size = (key & 7) == 2 ? varint() : UINT64_MAX; size <= bytes.size()) {
      fields.texts.emplace(field, bytes.substr(0, size));
      bytes.remove_prefix(size);
    } else {
      fields.whole = false;
    }
  }
  return fields;
}

struct Event {
  uint64_t at_ns = 0, type = 0, track = 0;
  std::string name, node;
  int64_t value = 0;
  std::vector<uint64_t> flows, flow_ends;
};

/// A trace as Perfetto's tools see it.
struct Parsed {
  std::map<uint64_t, std::string> tracks;  // name, of a process its own
  std::map<uint64_t, uint64_t> parents;
  std::vector<Event> events;

  explicit Parsed(const std::string& bytes) {
    const Fields trace = Read(bytes);
    EXPECT_TRUE(trace.whole);
    for (const auto& [field, packet_bytes] : trace.texts) {
      EXPECT_EQ(field, 1u);
      const Fields packet = Read(packet_bytes);
      EXPECT_TRUE(packet.whole);
      EXPECT_NE(packet.number(10), 0u) << "the sequence of the packet";
      if (packet.texts.contains(60)) AddTrack(Read(packet.text(60)));
      if (packet.texts.contains(11)) AddEvent(packet.number(8), Read(packet.text(11)));
    }
  }
  void AddTrack(const Fields& track) {
    const uint64_t uuid = track.number(1);
    EXPECT_FALSE(tracks.contains(uuid));
    tracks[uuid] = track.texts.contains(3) ? Read(track.text(3)).text(6) : track.text(2);
    if (track.numbers.contains(5)) parents[uuid] = track.number(5);
  }
  void AddEvent(uint64_t at_ns, const Fields& fields) {
    Event event{at_ns, fields.number(9), fields.number(11), fields.text(23), {}, {}, {}, {}};
    EXPECT_TRUE(tracks.contains(event.track)) << "described before its first event";
    event.value = static_cast<int64_t>(fields.number(30));
    for (const auto& [field, annotation] : fields.texts) {
      if (field != 4) continue;
      const Fields note = Read(annotation);
      if (note.text(10) == "name") event.node = note.text(6);
    }
    for (const auto& [field, flow] : fields.numbers) {
      if (field == 47) event.flows.push_back(flow);
      if (field == 48) event.flow_ends.push_back(flow);
    }
    events.push_back(event);
  }
};

std::string Written(const std::vector<StepTrace>& steps) {
  const std::unique_ptr<TraceWriter> writer = MakePerfettoWriter(1000);
  std::string text = writer->Begin();
  for (const StepTrace& step : steps) text += writer->Add(step);
  return text + writer->Memory(INT64_MAX) + writer->End({});
}

StepTrace TwoSpans() {
  StepTrace step;
  step.step_id = 3;
  step.start_us = 1010;
  step.total_ns = 10000;
  step.spans = {{"a", "Square", "/device:GPU:0", 1000, 4000, 0, 8, {{0, 1, {2}, 8}}},
                {"b", "Neg", "/device:GPU:0", 5000, 9000, 1, 4, {{0, 1, {}, 4}}, {"a"}}};
  return step;
}

TEST(Perfetto, F339_SlicesAreOnRowsOfTheirDevice) {
  const Parsed trace(Written({TwoSpans()}));
  std::vector<std::string> begins;
  std::map<uint64_t, int> open;
  for (const Event& event : trace.events) {
    if (event.type == 1) {
      begins.push_back(event.name + " " + event.node + " at " + std::to_string(event.at_ns) + " on " +
                       trace.tracks.at(event.track) + " of " + trace.tracks.at(trace.parents.at(event.track)));
      ++open[event.track];
    }
    if (event.type == 2) {
      EXPECT_GE(--open[event.track], 0);
    }
  }
  EXPECT_EQ(begins, (std::vector<std::string>{"Square a at 11000 on caller of /device:GPU:0 Compute",
                                              "Neg b at 15000 on thread 1 of /device:GPU:0 Compute"}));
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0) << track;
}

TEST(Perfetto, F339_FlowsLeadFromWritersToReaders) {
  const Parsed trace(Written({TwoSpans()}));
  std::vector<uint64_t> from, to;
  for (const Event& event : trace.events) {
    if (event.node == "a") from = event.flows;
    if (event.node == "b") to = event.flow_ends;
  }
  ASSERT_EQ(from.size(), 1u);
  EXPECT_EQ(from, to);
}

TEST(Perfetto, F337_MemoryIsACounter) {
  const Parsed trace(Written({TwoSpans()}));
  std::vector<std::pair<uint64_t, int64_t>> held;
  for (const Event& event : trace.events) {
    if (event.type != 4) continue;
    EXPECT_EQ(trace.tracks.at(event.track), "memory of /device:GPU:0");
    held.emplace_back(event.at_ns, event.value);
  }
  EXPECT_EQ(held, (std::vector<std::pair<uint64_t, int64_t>>{{14000, 8}, {19000, 0}, {19000, 4}, {19000, 0}}));
}

TEST(Perfetto, F336_RunsBesideEachOtherHaveLanes) {
  StepTrace other = TwoSpans();
  other.start_us += 2;
  const Parsed trace(Written({TwoSpans(), other}));
  std::map<std::string, int> rows;
  for (const Event& event : trace.events) {
    if (event.type == 1) ++rows[trace.tracks.at(event.track)];
  }
  EXPECT_EQ(rows["caller"], 1);
  EXPECT_EQ(rows["caller of run lane 1"], 1);
  EXPECT_EQ(rows["thread 1 of run lane 1"], 1);
}

TEST(Perfetto, F339_NamesAreTextThatReadersAccept) {
  StepTrace step = TwoSpans();
  step.spans[0].node = "odd \xff\xc3";
  const std::string bytes = Written({step});
  EXPECT_TRUE(std::ranges::all_of(Parsed(bytes).events, [](const Event& event) {
    return std::ranges::all_of(event.node, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }));
}

}  // namespace
}  // namespace weir::trace
