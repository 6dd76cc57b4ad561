#include "core/compile/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace weir::compile {
namespace {

std::string TypeAndShape(const RegionValue& value) {
  return fmt::format("{} {}", static_cast<uint32_t>(value.dtype), value.shape.ToString());
}

std::string BytesOf(const Tensor& constant) {
  std::string text;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(constant.raw());
  for (uint64_t i = 0; i < constant.bytes(); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace

std::string ToString(const Region& region) {
  std::string text = region.deterministic ? "deterministic\n" : "";
  const auto name = [&](uint32_t value) {
    return value < region.inputs.size() ? fmt::format("i{}", value) : fmt::format("n{}", value - region.inputs.size());
  };
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const RegionValue& input = region.inputs[i];
    text += fmt::format("i{} {}", i, TypeAndShape(input));
    if (input.constant.valid()) text += " = " + BytesOf(input.constant);
    text += "\n";
  }
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const RegionOp& node = region.nodes[i];
    text += fmt::format("n{} {}(", i, node.op);
    for (size_t j = 0; j < node.operands.size(); ++j) text += (j == 0 ? "" : ", ") + name(node.operands[j]);
    text += ")";
    for (const auto& [key, value] : node.attrs) text += fmt::format(" {}={}", key, value.ToString());
    if (!node.axes.empty()) text += fmt::format(" axes={}", fmt::join(node.axes, ","));
    text += " -> " + TypeAndShape(node.result) + "\n";
  }
  text += "outputs";
  for (const uint32_t output : region.outputs) text += " " + name(output);
  text += "\n";
  if (!region.loop) return text;
  text += "loop while " + name(region.loop->condition) + ":";
  for (const uint32_t next : region.loop->next) text += " " + name(next);
  return text + fmt::format(", {} times at most\n", region.loop->most_iterations);
}

bool IsConvex(const Region& region, std::span<const uint32_t> chosen) {
  // `behind`: the node is not chosen and depends on a chosen one.
  std::vector<bool> is_chosen(region.nodes.size(), false), behind(region.nodes.size(), false);
  for (const uint32_t node : chosen) is_chosen[node] = true;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    bool after_other = false, after_chosen = false;
    for (const uint32_t operand : region.nodes[i].operands) {
      if (operand < region.inputs.size()) continue;
      const size_t from = operand - region.inputs.size();
      after_other = after_other || behind[from];
      after_chosen = after_chosen || is_chosen[from];
    }
    if (is_chosen[i] && after_other) return false;
    behind[i] = !is_chosen[i] && (after_other || after_chosen);
  }
  return true;
}

Part Choose(const Region& whole, std::span<const uint32_t> chosen) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  Part part;
  part.region.deterministic = whole.deterministic;
  std::vector<uint32_t> position(whole.nodes.size(), kNone);
  for (size_t i = 0; i < chosen.size(); ++i) position[chosen[i]] = static_cast<uint32_t>(i);
  const auto inside = [&](uint32_t value) {
    return value >= whole.inputs.size() && position[value - whole.inputs.size()] != kNone;
  };
  std::vector<uint32_t> number(whole.inputs.size() + whole.nodes.size(), kNone);  // in the part
  for (const uint32_t node : chosen) {
    for (const uint32_t operand : whole.nodes[node].operands) {
      if (inside(operand) || number[operand] != kNone) continue;
      number[operand] = static_cast<uint32_t>(part.inputs.size());
      part.inputs.push_back(operand);
      part.region.inputs.push_back(whole.value(operand));
    }
  }
  for (const uint32_t node : chosen) {
    const uint32_t value = whole.ValueOf(node);
    number[value] = part.region.ValueOf(part.region.nodes.size());
    part.region.nodes.push_back(whole.nodes[node]);
    for (uint32_t& operand : part.region.nodes.back().operands) operand = number[operand];
  }
  std::vector<bool> used(whole.nodes.size(), false);
  for (const uint32_t output : whole.outputs) used[output - whole.inputs.size()] = true;
  for (size_t i = 0; i < whole.nodes.size(); ++i) {
    if (position[i] != kNone) continue;
    for (const uint32_t operand : whole.nodes[i].operands) {
      if (operand >= whole.inputs.size()) used[operand - whole.inputs.size()] = true;
    }
  }
  for (const uint32_t node : chosen) {
    if (used[node]) part.region.outputs.push_back(number[whole.ValueOf(node)]);
  }
  return part;
}

double KernelNanoseconds(const Region& region, std::span<const uint32_t> chosen) {
  double ns = 0;
  for (const uint32_t node : chosen) {
    const double kernel = region.nodes[node].kernel_ns;
    if (std::isfinite(kernel) && kernel > 0) ns += kernel;
  }
  return ns;
}

}  // namespace weir::compile
