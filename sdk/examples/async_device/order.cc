#include "order.h"

#include <algorithm>
#include <utility>

namespace async_device {
namespace {

constexpr size_t kManySegments = 4096;

std::string Conflict(std::string_view name, std::string_view does, uint64_t block, uint64_t begin, uint64_t end,
                     std::string_view other, std::string_view did) {
  return "'" + std::string(name) + "' " + std::string(does) + " bytes " + std::to_string(begin) + " to " +
         std::to_string(end) + " of " + (block == 0 ? "host memory" : "block " + std::to_string(block)) + ", which '" +
         std::string(other) + "' " + std::string(did) + ", and nothing orders the two";
}

}  // namespace

Order& Order::Get() {
  static auto* const order = new Order;  // streams may outlive static destruction
  return *order;
}

uint32_t Order::AddStream() {
  const std::lock_guard lock(mutex_);
  if (!unused_.empty()) {
    const uint32_t stream = unused_.back();
    unused_.pop_back();
    return stream;
  }
  clocks_.emplace_back();
  return static_cast<uint32_t>(clocks_.size()) - 1;
}

void Order::RemoveStream(uint32_t stream) {
  const std::lock_guard lock(mutex_);
  host_.Join(clocks_[stream]);
  unused_.push_back(stream);
}

std::string Order::Enqueue(uint32_t stream, std::string_view name, std::span<const Access> accesses) {
  const std::lock_guard lock(mutex_);
  Clock& clock = clocks_[stream];
  clock.Join(host_);
  const Stamp stamp{stream, clock.At(stream) + 1, std::make_shared<const std::string>(name)};
  clock.Set(stream, stamp.tick);
  return Apply(clock, stamp, accesses);
}

std::string Order::OnHost(std::string_view name, std::span<const Access> accesses) {
  const std::lock_guard lock(mutex_);
  return Apply(host_, {0, 0, std::make_shared<const std::string>(name)}, accesses);
}

std::string Order::Apply(const Clock& clock, const Stamp& stamp, std::span<const Access> accesses) {
  std::string wrong;
  for (const Access& access : accesses) {
    if (wrong.empty()) wrong = Check(blocks_[access.block], access, clock, *stamp.name);
  }
  if (!wrong.empty()) return wrong;  // the operation will not run
  for (const bool writes : {false, true}) {  // a range both read and written counts as written
    for (const Access& access : accesses) {
      if (access.writes == writes) Remember(blocks_[access.block], access, stamp);
    }
  }
  for (const Access& access : accesses) Forget(blocks_[access.block]);
  return {};
}

Clock Order::Now(uint32_t stream) {
  const std::lock_guard lock(mutex_);
  Clock clock = clocks_[stream];
  clock.Join(host_);
  return clock;
}

void Order::Wait(uint32_t stream, const Clock& clock) {
  const std::lock_guard lock(mutex_);
  clocks_[stream].Join(clock);
}

void Order::HostKnows(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  host_.Join(clock);
}

std::string Order::Free(uint64_t block) {
  const std::lock_guard lock(mutex_);
  return CheckAll(block, host_, "free");
}

std::string Order::FreeOn(uint32_t stream, uint64_t block) {
  const std::lock_guard lock(mutex_);
  clocks_[stream].Join(host_);
  return CheckAll(block, clocks_[stream], "free on a stream");
}

std::string Order::CheckAll(uint64_t block, const Clock& clock, std::string_view name) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {};
  std::string wrong = Check(found->second, {block, 0, UINT64_MAX, true}, clock, name);
  blocks_.erase(found);
  return wrong;
}

void Order::Cut(Segments& segments, uint64_t at) {
  auto after = segments.upper_bound(at);
  if (after == segments.begin()) return;
  const auto holder = std::prev(after);
  if (holder->first == at || holder->second.end <= at) return;
  Segment right = holder->second;
  holder->second.end = at;
  segments.emplace_hint(after, at, std::move(right));
}

std::string Order::Check(Segments& segments, const Access& access, const Clock& clock, std::string_view name) {
  const auto ordered = [&](const Stamp& stamp) { return clock.At(stamp.stream) >= stamp.tick; };
  auto at = segments.upper_bound(access.begin);
  if (at != segments.begin() && std::prev(at)->second.end > access.begin) --at;
  for (; at != segments.end() && at->first < access.end; ++at) {
    const uint64_t begin = std::max(at->first, access.begin), end = std::min(at->second.end, access.end);
    const std::string_view does = access.writes ? "writes" : "reads";
    if (!ordered(at->second.writer))
      return Conflict(name, does, access.block, begin, end, *at->second.writer.name, "wrote");
    if (!access.writes) continue;
    for (const Stamp& reader : at->second.readers) {
      if (!ordered(reader)) return Conflict(name, does, access.block, begin, end, *reader.name, "reads");
    }
  }
  return {};
}

void Order::Remember(Segments& segments, const Access& access, const Stamp& stamp) {
  if (access.begin >= access.end || (stamp.tick == 0 && !access.writes)) return;
  Cut(segments, access.begin);
  Cut(segments, access.end);
  auto at = segments.lower_bound(access.begin);
  if (access.writes) {
    while (at != segments.end() && at->first < access.end) at = segments.erase(at);
    segments.emplace_hint(at, access.begin, Segment{access.end, stamp, {}});
    return;
  }
  uint64_t begin = access.begin;
  while (begin < access.end) {
    if (at == segments.end() || at->first > begin) {  // a gap
      const uint64_t end = at == segments.end() ? access.end : std::min(at->first, access.end);
      at = segments.emplace_hint(at, begin, Segment{end, {}, {}});
    }
    std::vector<Stamp>& readers = at->second.readers;
    std::erase_if(readers, [&](const Stamp& reader) { return reader.stream == stamp.stream; });
    readers.push_back(stamp);
    begin = at->second.end;
    ++at;
  }
}

void Order::Forget(Segments& segments) const {
  if (segments.size() < kManySegments) return;
  const auto known = [&](const Stamp& stamp) { return host_.At(stamp.stream) >= stamp.tick; };
  std::erase_if(segments, [&](const auto& entry) {
    const Segment& segment = entry.second;
    return known(segment.writer) && std::all_of(segment.readers.begin(), segment.readers.end(), known);
  });
}

}  // namespace async_device
