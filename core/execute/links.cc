#include "core/execute/links.h"

#include <string_view>
#include <unordered_map>

namespace weir::execute {

Occurrence OccurrenceOf(std::span<const int64_t> numbers) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  Occurrence occurrence;
  if (numbers.empty()) return occurrence;
  occurrence.number = numbers.back();
  for (const int64_t number : numbers.first(numbers.size() - 1)) {
    occurrence.around = (occurrence.around ^ (static_cast<uint64_t>(number) + kFactor)) * kFactor;
    occurrence.around ^= occurrence.around >> 32;
  }
  return occurrence;
}

Links::Links(std::span<const plan::ExecutionPlan* const> plans) {
  struct Ends {
    Link link{};
    int sends = 0, receives = 0;
  };
  std::unordered_map<std::string_view, Ends> ends;
  for (uint32_t part = 0; part < plans.size(); ++part) {
    of_.emplace_back(plans[part]->transfers.size(), kNone);
    for (const plan::Instruction& instruction : plans[part]->instructions) {
      const bool sends = instruction.opcode == plan::Opcode::kSend;
      if (!sends && instruction.opcode != plan::Opcode::kRecv) continue;
      Ends& of = ends[plans[part]->transfers[instruction.detail].key];
      ++(sends ? of.sends : of.receives);
      (sends ? of.link.send_part : of.link.recv_part) = part;
      (sends ? of.link.send_transfer : of.link.recv_transfer) = instruction.detail;
    }
  }
  for (const auto& [key, of] : ends) {
    if (of.sends != 1 || of.receives != 1) continue;
    const Link& link = of.link;
    const plan::Transfer& from = plans[link.send_part]->transfers[link.send_transfer];
    if (from.frames != plans[link.recv_part]->transfers[link.recv_transfer].frames) continue;
    const auto number = static_cast<uint32_t>(links_.size());
    of_[link.send_part][link.send_transfer] = of_[link.recv_part][link.recv_transfer] = number;
    links_.push_back(link);
  }
}

}  // namespace weir::execute
