#include "tests/ops/case_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/launch.h"
#include "core/kernel/operand_args.h"
#include "core/runtime/node_resources.h"
#include "core/session/session.h"
#include "core/tensor/buffer.h"
#include "tests/ops/case_values.h"
#include "tests/ops/references.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using kernel::Masked;
using kernel::OperandSpec;

/// Memory that holds no zeros by chance, where the host can write it.
class UncleanMemory final : public Allocator {
 public:
  explicit UncleanMemory(Allocator& from) : from_(from) {}
  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
    WEIR_ASSIGN(std::shared_ptr<Buffer> made, from_.Allocate(bytes));
    if (made->host() != nullptr) std::memset(made->host(), 0xa5, bytes);
    return made;
  }

 private:
  Allocator& from_;
};

/// The reference of a case that is run several times in a row.
Result<Tensor> Reference(const OpCase& c, const Shape& shape) {
  static const OpCase* of = nullptr;
  static Tensor last;
  if (of == &c && last.shape() == shape) return last;
  WEIR_ASSIGN(last, ReferenceOf(c, shape));
  of = &c;
  return last;
}

/// A stream of the device while it is alive; null for a device without.
class StreamLoan {
 public:
  explicit StreamLoan(device::Streams* streams) : streams_(streams) {}
  ~StreamLoan() {
    if (stream_ != nullptr) streams_->Release(std::move(stream_));
  }
  Status Take() {
    if (streams_ == nullptr) return {};
    WEIR_ASSIGN(stream_, streams_->Acquire());
    return {};
  }
  device::Stream* get() const { return stream_.get(); }
  Status Done() { return stream_ == nullptr ? Status() : stream_->Sync(); }

 private:
  device::Streams* streams_;
  std::unique_ptr<device::Stream> stream_;
};

/// One kernel and one case.
class KernelRun {
 public:
  KernelRun(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device)
      : entry_(entry), record_(*entry.record), c_(c), device_(device), memory_(device.allocator()) {}

  Status Run(CallMode mode) {
    WEIR_TRY(Begin());
    const Status status = mode == CallMode::kDynamic ? RunDynamic() : RunPrepared(mode);
    if (!c_.fails || status.code() == Code::kUnimplemented) return status;
    const bool refused = !status.ok() && status.code() != Code::kInternal;
    if (refused && status.message().find(c_.error) != std::string::npos) return {};
    return Internal("'{}' instead of '{}'", status.ToString(), c_.error);
  }

  Result<double> Time() {
    WEIR_TRY(Begin());
    WEIR_ASSIGN(const std::shared_ptr<const kernel::PreparedKernel> kernel, Prepared(false, 1));
    WEIR_TRY(MoveInputs());
    kernel::Launch launch(kernel, {.device = &device_, .stream = stream_->get(), .allocator = &memory_});
    WEIR_TRY(launch.Bind(inputs_, out_));
    using Clock = std::chrono::steady_clock;
    double best = std::numeric_limits<double>::infinity();
    for (int calls = 1, round = 0; round < 12; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < calls; ++i) WEIR_TRY(launch.Run());
      WEIR_TRY(stream_->Done());
      const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
      best = std::min(best, ns / calls);
      if (ns < 2e5) calls *= 4;
    }
    return best;
  }

 private:
  Status Begin() {
    const std::vector<int> in_args = kernel::ArgOfOperand(c_.signature.input_counts),
                           out_args = kernel::ArgOfOperand(c_.signature.output_counts);
    for (size_t i = 0; i < c_.inputs.size(); ++i) {
      const bool steers = Masked(record_.host_inputs, in_args[i]);
      in_.push_back({c_.inputs[i].dtype(), c_.inputs[i].shape(), steers ? &c_.inputs[i] : nullptr,
                     Masked(record_.variable_reads | record_.variable_writes, in_args[i]),
                     steers || device_.host_memory()});
    }
    const Result<std::vector<PartialShape>> inferred = InferCase(c_);
    if (!inferred.ok() && !c_.fails) return inferred.status();
    for (size_t i = 0; i < c_.signature.outputs.size(); ++i) {
      const bool reference = IsRef(c_.signature.outputs[i]);
      Result<Shape> shape = inferred.ok()                ? (*inferred)[i].ToShape()
                            : c_.refused.fully_defined() ? c_.refused.ToShape()
                                                         : Result<Shape>(Shape());
      if (reference) shape = c_.inputs[0].shape();
      known_ = known_ && shape.ok();
      out_.push_back({BaseType(c_.signature.outputs[i]), shape.ok() ? *shape : Shape(), nullptr, reference,
                      device_.host_memory() || Masked(record_.host_outputs, out_args[i])});
    }
    node_.constant_input = [this](int i) { return in_[static_cast<size_t>(i)].value; };
    WEIR_ASSIGN(handle_, device_.Open());
    if (WEIR_HAS(&record_, supports) && known_) {
      WEIR_TRY(kernel::Supports(entry_, node_, in_, out_, handle_));
    }
    WEIR_ASSIGN(device::Streams* const streams, device_.streams());
    stream_ = std::make_unique<StreamLoan>(streams);
    return stream_->Take();
  }

  Result<std::shared_ptr<const kernel::PreparedKernel>> Prepared(bool constants, uint64_t tiles) {
    const auto fixed = [](const OperandSpec& spec) { return HasFixedSize(spec.dtype); };
    if (!WEIR_HAS(&record_, prepare) || !known_ || !std::ranges::all_of(in_, fixed) ||
        !std::ranges::all_of(out_, fixed)) {
      return Unimplemented("it is not called in prepared form");
    }
    for (size_t i = 0; constants && i < in_.size(); ++i) {
      if (!in_[i].variable) in_[i].value = &c_.inputs[i];
    }
    WEIR_ASSIGN(std::shared_ptr<const kernel::PreparedKernel> made,
                kernel::PreparedKernel::Make(entry_, node_, in_, out_, handle_, tiles));
    return made;
  }

  /// Fresh copies, where the kernel wants them.
  Status MoveInputs() {
    inputs_.clear();
    for (size_t i = 0; i < c_.inputs.size(); ++i) {
      WEIR_ASSIGN(Tensor copy, c_.inputs[i].Clone());
      if (!in_[i].host && HasFixedSize(in_[i].dtype)) {
        WEIR_ASSIGN(copy, device_.FromHost(copy));
      }
      inputs_.push_back(std::move(copy));
    }
    return {};
  }

  Status RunPrepared(CallMode mode) {
    WEIR_ASSIGN(const std::shared_ptr<const kernel::PreparedKernel> kernel,
                Prepared(mode == CallMode::kConstants, mode == CallMode::kTiled ? 4 : 1));
    if (mode == CallMode::kTiled && kernel->tiles() == 1) return Unimplemented("it is one tile");
    const auto tiling =
        mode == CallMode::kTiled ? kernel::Launch::Tiling::kTileByTile : kernel::Launch::Tiling::kOneCall;
    if (mode != CallMode::kInPlace) return Call(kernel, nullptr, tiling);
    Status status = Unimplemented("it allows no alias");
    for (const weir_alias& alias : kernel->aliases()) {
      if (alias.kind != WEIR_ALIAS_MAY) continue;
      status = Call(kernel, &alias, tiling);
      if (!status.ok()) break;
    }
    return status;
  }

  Status Call(const std::shared_ptr<const kernel::PreparedKernel>& kernel, const weir_alias* alias,
              kernel::Launch::Tiling tiling) {
    WEIR_TRY(MoveInputs());
    kernel::Launch launch(kernel, {.device = &device_, .stream = stream_->get(), .allocator = &memory_});
    if (alias != nullptr) launch.InPlace(*alias);
    WEIR_TRY(launch.Bind(inputs_, out_));
    const Status status = launch.Run(tiling);
    const Status done = stream_->Done();
    WEIR_TRY(status);
    WEIR_TRY(done);
    return Compare(launch.outputs());
  }

  Status RunDynamic() {
    WEIR_ASSIGN(const std::unique_ptr<kernel::DynamicKernel> kernel,
                kernel::DynamicKernel::Make(entry_, node_, handle_));
    WEIR_TRY(MoveInputs());
    std::vector<DType> types;
    for (const OperandSpec& output : out_) types.push_back(output.dtype);
    Result<std::vector<Tensor>> outputs =
        kernel::LaunchDynamic(*kernel, inputs_, types, {.device = &device_, .stream = stream_->get(), .step_id = 1});
    const Status done = stream_->Done();
    WEIR_TRY(outputs.status());
    WEIR_TRY(done);
    return Compare(*outputs);
  }

  Status Compare(const std::vector<Tensor>& outputs) {
    if (c_.fails || c_.any) return {};
    for (size_t i = 0; i < outputs.size(); ++i) {
      WEIR_ASSIGN(const Tensor got, device_.ToHost(outputs[i]));
      if (c_.by_reference && i > 0) break;
      WEIR_ASSIGN(const Tensor wanted, c_.by_reference ? Reference(c_, got.shape()) : Result<Tensor>(c_.outputs[i]));
      const Status same = SameCaseValue(got, wanted, c_.tolerance);
      if (!same.ok()) return Internal("output {}: {}", i, same.message());
    }
    for (size_t i = 0; i < c_.after.size(); ++i) {
      WEIR_ASSIGN(const Tensor got, device_.ToHost(inputs_[i]));
      const Status same = SameCaseValue(got, c_.after[i], c_.tolerance);
      if (!same.ok()) return Internal("variable {}: {}", i, same.message());
    }
    return {};
  }

  const kernel::KernelEntry& entry_;
  const weir_kernel& record_;
  const OpCase& c_;
  device::Device& device_;
  UncleanMemory memory_;
  runtime::NodeResources resources_;
  weir_node node_{"case", c_.view(), {}, &resources_, {}};
  weir_device* handle_ = nullptr;
  std::vector<OperandSpec> in_, out_;
  bool known_ = true;  // all output shapes
  std::unique_ptr<StreamLoan> stream_;
  std::vector<Tensor> inputs_;
};

}  // namespace

std::string_view Name(CallMode mode) {
  switch (mode) {
    case CallMode::kPrepared:
      return "prepared";
    case CallMode::kConstants:
      return "with constants";
    case CallMode::kInPlace:
      return "in place";
    case CallMode::kTiled:
      return "in tiles";
    case CallMode::kDynamic:
      break;
  }
  return "dynamic";
}

std::string_view Name(GraphMode mode) {
  return mode == GraphMode::kKnownShapes ? "known" : mode == GraphMode::kUnknownShapes ? "unknown" : "compiled";
}

Status RunKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, CallMode mode) {
  return KernelRun(entry, c, device).Run(mode);
}

Result<double> TimeKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device) {
  return KernelRun(entry, c, device).Time();
}

Status RunNode(const OpCase& c, const std::shared_ptr<session::Runtime>& runtime, const std::string& device,
               GraphMode mode) {
  const auto variable = [](DType t) { return IsRef(t) || t == DType::kResource; };
  if (std::ranges::any_of(c.signature.inputs, variable)) return Unimplemented("its inputs are variables");
  const bool known = mode != GraphMode::kUnknownShapes;
  const std::vector<int> args = kernel::ArgOfOperand(c.signature.input_counts);
  const auto kernels = runtime->plugins->kernels().ForOp(c.def->name);
  std::vector<NodeLine> nodes;
  std::vector<session::Feed> feeds;
  NodeLine y{"y", c.def->name, {}, c.attrs};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    y.inputs.push_back(name);
    const bool steers = std::ranges::any_of(
        kernels, [&](const kernel::KernelEntry* entry) { return Masked(entry->record->host_inputs, args[i]); });
    if (known && (steers || (kernels.empty() && i > 0))) {
      nodes.push_back(Const(name, c.inputs[i]));
      continue;
    }
    nodes.push_back(Placeholder(name, known ? PartialShape(c.inputs[i].shape()) : PartialShape(), c.inputs[i].dtype()));
    feeds.emplace_back(name + ":0", c.inputs[i]);
  }
  nodes.push_back(std::move(y));
  WEIR_ASSIGN(const graph::Definition graph, MakeGraph(nodes));
  session::SessionOptions options;
  options.default_device = device;
  options.constant_folding = false;
  if (mode == GraphMode::kCompiled) options.compile_regions = session::CompileRegions::kOn;
  options.keep_compiled_regions = false;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  std::vector<std::string> fetches, targets;
  for (size_t i = 0; i < c.signature.outputs.size(); ++i) fetches.push_back("y:" + std::to_string(i));
  if (fetches.empty()) targets.push_back("y");
  WEIR_ASSIGN(const std::vector<Tensor> outputs, session->Run(feeds, fetches, targets));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (c.any || (c.by_reference && i > 0)) break;
    WEIR_ASSIGN(const Tensor wanted, c.by_reference ? Reference(c, outputs[i].shape()) : Result<Tensor>(c.outputs[i]));
    const Status same = SameCaseValue(outputs[i], wanted, c.tolerance);
    if (!same.ok()) return Internal("output {}: {}", i, same.message());
  }
  return {};
}

}  // namespace weir::testing
