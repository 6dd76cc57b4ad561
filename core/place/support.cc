#include "core/place/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/place/operands.h"

namespace weir::place {
namespace {

/// The core itself moves and compares strings, on any device.
bool HasString(const graph::Node& node) {
  const auto is_string = [](DType t) { return BaseType(t) == DType::kString; };
  if (std::ranges::any_of(node.output_types(), is_string)) return true;
  const bool of_inputs = node.num_outputs() == 0 || node.op().traits.moves_elements;
  return of_inputs && std::ranges::any_of(node.signature().inputs, is_string);
}

bool NamesAttr(const std::vector<op::ArgDef>& args, const std::string& attr) {
  return std::any_of(args.begin(), args.end(),
                     [&](const op::ArgDef& arg) { return arg.type_attr == attr || arg.type_list_attr == attr; });
}

}  // namespace

Support::Support(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels)
    : devices_(devices), kernels_(kernels) {
  for (const auto& device : devices.all()) {
    const std::string& platform = device->info().platform;
    const auto known = std::find(platforms_.begin(), platforms_.end(), platform);
    platform_of_.push_back(static_cast<int>(known - platforms_.begin()));
    if (known == platforms_.end()) platforms_.push_back(platform);
  }
  may_refuse_ = devices.all().size() > 1 &&
                kernels.AnyRecord([](const weir_kernel* record) { return WEIR_HAS(record, supports); });
}

DeviceMask Support::Of(const graph::Node& node) { return Find(node).mask; }

DeviceMask Support::And(DeviceMask a, DeviceMask b) {
  if (a == b) return a;
  const auto [found, fresh] = ands_.emplace(std::minmax(a, b), 0);
  if (fresh) {
    std::vector<bool> both = sets_[a];
    for (size_t d = 0; d < both.size(); ++d) both[d] = both[d] && sets_[b][d];
    found->second = Intern(std::move(both));
  }
  return found->second;
}

bool Support::Empty(DeviceMask mask) const {
  const std::vector<bool>& set = sets_[mask];
  return std::find(set.begin(), set.end(), true) == set.end();
}

std::vector<int> Support::Allowed(DeviceMask mask, const device::DeviceName& spec) const {
  const auto& all = devices_.all();
  const auto opt_in = [](const auto& device) { return (device->info().flags & WEIR_DEVICE_OPT_IN) != 0; };
  const bool only = std::all_of(all.begin(), all.end(), opt_in);
  const auto named = [&](const auto& device) {
    return device->info().elsewhere.empty() ? spec.type.has_value() : spec.job.has_value();
  };
  std::vector<int> allowed;
  for (size_t d = 0; d < all.size(); ++d) {
    if ((only || !opt_in(all[d]) || named(all[d])) && Has(mask, static_cast<int>(d)) &&
        device::Matches(spec, all[d]->info().name)) {
      allowed.push_back(static_cast<int>(d));
    }
  }
  return allowed;
}

std::span<const kernel::KernelEntry* const> Support::Kernels(const graph::Node& node, int device) {
  const Known& known = Find(node);
  if (known.kernels.empty()) return {};
  return known.kernels[platform_of_[device]];
}

std::string Support::Refusal(const graph::StepGraph& step, const graph::StepNode& node, int device) {
  const std::span<const kernel::KernelEntry* const> kernels = Kernels(*node.source, device);
  const auto asks = [](const kernel::KernelEntry* entry) { return WEIR_HAS(entry->record, supports); };
  if (kernels.empty() || !std::ranges::all_of(kernels, asks) || HasString(*node.source)) return {};
  const Operands operands = OperandsOf(step, node, 1);
  if (!operands.known) return {};
  const Result<weir_device*> open = kernel::HandleToAsk(*devices_.all()[device]);
  if (!open.ok()) return {};
  const weir_node asked{
      node.name(), node.source->attrs(), [&](int i) { return operands.inputs[i].value; }, nullptr, {}};
  std::string refusal;
  for (const kernel::KernelEntry* entry : kernels) {
    const Status supported = kernel::Supports(*entry, asked, operands.inputs, operands.outputs, *open);
    if (supported.code() != Code::kUnimplemented) return {};
    refusal += fmt::format("{}kernel {} of {}: {}", refusal.empty() ? "" : "; ", node.source->op().name, entry->plugin,
                           supported.message());
  }
  return refusal;
}

DeviceMask Support::Without(DeviceMask mask, int device) {
  std::vector<bool> set = sets_[mask];
  set[device] = false;
  return Intern(std::move(set));
}

const Support::Known& Support::Find(const graph::Node& node) {
  const op::OpDef& op = node.op();
  if (!TypesTellKernels(op)) {
    last_ = Ask(node);
    return last_;
  }
  const auto [found, fresh] = known_.try_emplace(Key{&op, &node.signature()});
  if (fresh) found->second = Ask(node);
  return found->second;
}

Support::Known Support::Ask(const graph::Node& node) {
  Known known;
  std::vector<bool> set(devices_.all().size(), true);
  if (node.op().run_by == op::RunBy::kKernel) {
    const bool on_host = kernels_.FindHost(node.op().name) != nullptr;
    for (const std::string& platform : platforms_) {
      known.kernels.push_back(kernels_.Find(node.attrs(), platform));
    }
    for (size_t d = 0; d < set.size(); ++d) {
      set[d] = !known.kernels[platform_of_[d]].empty() || on_host || HasString(node);
    }
  }
  known.mask = Intern(std::move(set));
  const auto none = [](const auto& kernels) { return kernels.empty(); };
  known.on_host_only = kernels_.FindHost(node.op().name) != nullptr && std::ranges::all_of(known.kernels, none);
  return known;
}

DeviceMask Support::Intern(std::vector<bool> set) {
  const auto [found, fresh] = interned_.emplace(std::move(set), static_cast<DeviceMask>(sets_.size()));
  if (fresh) sets_.push_back(found->first);
  return found->second;
}

bool Support::TypesTellKernels(const op::OpDef& op) {
  const auto [found, fresh] = types_tell_.try_emplace(&op, true);
  if (fresh) {
    for (const op::AttrDef& attr : op.attrs) {
      const bool is_type = attr.type == "type" || attr.type == "list(type)";
      if (is_type && !NamesAttr(op.inputs, attr.name) && !NamesAttr(op.outputs, attr.name)) found->second = false;
    }
  }
  return found->second;
}

bool MakesState(const graph::StepNode& node) {
  return node.kind == graph::StepNode::Kind::kOp && node.source->op().MakesState();
}

std::vector<std::string_view> ColocatedWith(const graph::Node& node) {
  constexpr std::string_view kPrefix = "loc:@";
  std::vector<std::string_view> nodes;
  const op::AttrValue* const attr = node.attrs().Find("_class");
  const auto* const names = attr == nullptr ? nullptr : attr->get<std::vector<std::string>>();
  if (names == nullptr) return nodes;
  for (const std::string& name : *names) {
    if (name.starts_with(kPrefix)) nodes.push_back(std::string_view(name).substr(kPrefix.size()));
  }
  return nodes;
}

graph::FrameId OutermostFrame(const graph::StepGraph& step, const graph::StepNode& node) {
  graph::FrameId frame = node.frame;
  while (frame > graph::kStepFrame && step.ParentOf(frame) > graph::kStepFrame) frame = step.ParentOf(frame);
  return std::max(frame, graph::kStepFrame);
}

}  // namespace weir::place
