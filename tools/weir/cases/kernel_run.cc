#include "tools/weir/cases/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/launch.h"
#include "core/kernel/operand_args.h"
#include "core/kernel/roofline.h"
#include "core/runtime/node_resources.h"
#include "core/tensor/buffer.h"
#include "tools/weir/cases/case_values.h"
#include "tools/weir/cases/references.h"

namespace weir::cases {
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

constexpr int kLeastRounds = 3;
constexpr double kMostNs = 2e8;

double NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

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

  Result<std::vector<Tensor>> Outputs() {
    WEIR_TRY(Begin());
    Result<std::vector<Tensor>> outputs = CallPrepared();
    if (outputs.status().code() == Code::kUnimplemented && WEIR_HAS(&record_, compute)) outputs = CallDynamic();
    WEIR_TRY(outputs.status());
    for (Tensor& output : *outputs) {
      WEIR_ASSIGN(output, device_.ToHost(output));
    }
    return outputs;
  }

  Status RunOnStreams(CallMode mode, int count, const Sender& send) {
    WEIR_TRY(Begin());
    if (!device_.has_streams()) return Unimplemented("the device has no streams");
    if (mode == CallMode::kDynamic && !WEIR_HAS(&record_, compute)) return Unimplemented("it has no dynamic form");
    const bool stateful = (record_.flags & WEIR_KERNEL_STATEFUL) != 0;
    if (count > 1 && stateful) return Unimplemented("calls of one state are serialized");
    WEIR_ASSIGN(device::Streams* const streams, device_.streams());
    std::vector<Lane> lanes(static_cast<size_t>(count));
    for (Lane& lane : lanes) {
      lane.stream = std::make_unique<StreamLoan>(streams);
      WEIR_TRY(lane.stream->Take());
    }
    Status status;
    for (size_t i = 0; i < lanes.size() && status.ok(); ++i) {
      status = SendTo(lanes[i], *lanes[(i + 1) % lanes.size()].stream->get(), send);
    }
    if (status.ok()) status = StartAll(mode, lanes);
    for (Lane& lane : lanes) {
      const Status done = lane.stream->Done();
      if (status.ok()) status = done;
    }
    for (size_t i = 0; i < lanes.size() && status.ok(); ++i) {
      inputs_ = lanes[i].inputs;
      status = Compare(lanes[i].outputs);
      if (!status.ok() && count > 1) status = status.Prepend(fmt::format("call {} of {}: ", i + 1, count));
    }
    return status;
  }

  Result<CallTime> Time(int rounds) {
    WEIR_TRY(Begin());
    WEIR_ASSIGN(const std::shared_ptr<const kernel::PreparedKernel> kernel, Prepared(false, 1));
    WEIR_TRY(MoveInputs());
    kernel::Launch launch(kernel, {.device = &device_, .stream = stream_->get(), .allocator = &memory_});
    WEIR_TRY(launch.Bind(inputs_, out_));
    CallTime best{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    double spent = 0;
    for (int calls = 1, round = 0; round < rounds && (round < kLeastRounds || spent < kMostNs); ++round) {
      const double begin = NowNs(CLOCK_MONOTONIC), used = NowNs(CLOCK_PROCESS_CPUTIME_ID);
      for (int i = 0; i < calls; ++i) WEIR_TRY(launch.Run());
      WEIR_TRY(stream_->Done());
      const double ns = NowNs(CLOCK_MONOTONIC) - begin;
      best.wall_ns = std::min(best.wall_ns, ns / calls);
      best.cpu_ns = std::min(best.cpu_ns, (NowNs(CLOCK_PROCESS_CPUTIME_ID) - used) / calls);
      spent += ns;
      if (ns < 2e5) calls *= 4;
    }
    return best;
  }

  Result<double> Declared() {
    WEIR_TRY(Begin());
    if (!known_) return Unimplemented("the shapes of its outputs are not known before it runs");
    const weir_profile* const profile = device_.profile();
    Result<weir_cost> cost = kernel::Estimate(entry_, node_, in_, out_, handle_, profile);
    if (cost.status().code() == Code::kUnimplemented) cost = kernel::DeclaredWork(record_, in_, out_);
    WEIR_TRY(cost.status());
    return kernel::RooflineNs(*cost, profile, in_.empty() ? DType::kFloat : in_[0].dtype);
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

  Result<std::vector<Tensor>> CallPrepared() {
    WEIR_ASSIGN(const std::shared_ptr<const kernel::PreparedKernel> kernel, Prepared(false, 1));
    WEIR_TRY(MoveInputs());
    kernel::Launch launch(kernel, {.device = &device_, .stream = stream_->get(), .allocator = &memory_});
    WEIR_TRY(launch.Bind(inputs_, out_));
    const Status called = launch.Run(), done = stream_->Done();
    WEIR_TRY(called);
    WEIR_TRY(done);
    return launch.TakeOutputs();
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

  std::vector<DType> OutputTypes() const {
    std::vector<DType> types;
    for (const OperandSpec& output : out_) types.push_back(output.dtype);
    return types;
  }

  Result<std::vector<Tensor>> CallDynamic() {
    WEIR_ASSIGN(const std::unique_ptr<kernel::DynamicKernel> kernel,
                kernel::DynamicKernel::Make(entry_, node_, handle_));
    WEIR_TRY(MoveInputs());
    const std::vector<DType> types = OutputTypes();
    Result<std::vector<Tensor>> outputs =
        kernel::LaunchDynamic(*kernel, inputs_, types, {.device = &device_, .stream = stream_->get(), .step_id = 1});
    const Status done = stream_->Done();
    WEIR_TRY(outputs.status());
    WEIR_TRY(done);
    return outputs;
  }

  Status RunDynamic() {
    WEIR_ASSIGN(const std::vector<Tensor> outputs, CallDynamic());
    return Compare(outputs);
  }

  /// One of the calls of RunOnStreams.
  struct Lane {
    std::unique_ptr<StreamLoan> stream;
    std::vector<Tensor> inputs, outputs;
    std::unique_ptr<kernel::Launch> launch;
  };

  Status SendTo(Lane& lane, device::Stream& from, const Sender& send) {
    for (size_t i = 0; i < c_.inputs.size(); ++i) {
      const bool stays = in_[i].host || !HasFixedSize(in_[i].dtype);
      WEIR_ASSIGN(Tensor copy, stays ? c_.inputs[i].Clone() : send(c_.inputs[i], device_, from));
      lane.inputs.push_back(std::move(copy));
    }
    if (&from == lane.stream->get()) return {};
    WEIR_ASSIGN(const device::Event sent, from.Record());
    return lane.stream->get()->Wait(sent);
  }

  Status StartPrepared(Lane& lane, const std::shared_ptr<const kernel::PreparedKernel>& kernel) {
    lane.launch = std::make_unique<kernel::Launch>(
        kernel, kernel::LaunchArgs{.device = &device_, .stream = lane.stream->get(), .allocator = &memory_});
    WEIR_TRY(lane.launch->Bind(lane.inputs, out_));
    const Status called = lane.launch->Run();
    lane.outputs = lane.launch->outputs();
    return called;
  }

  Status StartDynamic(Lane& lane, kernel::DynamicKernel& kernel) {
    WEIR_ASSIGN(lane.outputs, kernel::LaunchDynamic(kernel, lane.inputs, OutputTypes(),
                                                    {.device = &device_, .stream = lane.stream->get(), .step_id = 1}));
    return {};
  }

  Status StartAll(CallMode mode, std::vector<Lane>& lanes) {
    if (mode == CallMode::kDynamic) {
      WEIR_ASSIGN(dynamic_, kernel::DynamicKernel::Make(entry_, node_, handle_));
      for (Lane& lane : lanes) WEIR_TRY(StartDynamic(lane, *dynamic_));
      return {};
    }
    WEIR_ASSIGN(prepared_, Prepared(false, 1));
    if (lanes.size() > 1 && (prepared_->flags() & WEIR_KERNEL_STATEFUL) != 0) {
      return Unimplemented("calls of one state are serialized");
    }
    for (Lane& lane : lanes) WEIR_TRY(StartPrepared(lane, prepared_));
    return {};
  }

  Status Compare(const std::vector<Tensor>& outputs) {
    if (c_.fails || c_.any) return {};
    for (size_t i = 0; i < outputs.size(); ++i) {
      WEIR_ASSIGN(const Tensor got, device_.ToHost(outputs[i]));
      if (c_.by_reference && i > 0) break;
      WEIR_ASSIGN(const Tensor wanted, WantedOutput(c_, i, got.shape()));
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
  std::shared_ptr<const kernel::PreparedKernel> prepared_;  // of RunOnStreams
  std::unique_ptr<kernel::DynamicKernel> dynamic_;
};

}  // namespace

Result<Tensor> WantedOutput(const OpCase& c, size_t i, const Shape& shape) {
  static const OpCase* of = nullptr;
  static Tensor last;
  if (!c.by_reference) return c.outputs[i];
  if (of == &c && last.shape() == shape) return last;
  WEIR_ASSIGN(last, ReferenceOf(c, shape));
  of = &c;
  return last;
}

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

Status RunKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, CallMode mode) {
  return KernelRun(entry, c, device).Run(mode);
}

Result<std::vector<Tensor>> KernelOutputs(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device) {
  return KernelRun(entry, c, device).Outputs();
}

Status RunKernelOnStreams(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, CallMode mode,
                          int streams, const Sender& send) {
  return KernelRun(entry, c, device).RunOnStreams(mode, streams, send);
}

Result<CallTime> TimeCalls(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, int rounds) {
  return KernelRun(entry, c, device).Time(rounds);
}

Result<double> TimeKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device) {
  WEIR_ASSIGN(const CallTime time, TimeCalls(entry, c, device, 12));
  return time.wall_ns;
}

Result<double> DeclaredTime(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device) {
  return KernelRun(entry, c, device).Declared();
}

}  // namespace weir::cases
