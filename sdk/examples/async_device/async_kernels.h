// Runs host kernels as kernels of platform "async/1": their work is launched on the stream of the call. Kernel sources
// stay unchanged; only the plugin's entry names AsyncKernels<…> instead of Kernels<…>.
//
// A launch copies registers, shapes and host operands, since the caller may reuse them when fn returns. The state lives
// until its last launch has run. A call that writes host memory waits for its stream. Calls without device operands run
// at once. Kernels with only the dynamic form work on host memory.
#ifndef WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ASYNC_KERNELS_H_
#define WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ASYNC_KERNELS_H_

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"
#include "async_platform.h"

namespace async_device {

/// A host kernel bound to a node, and the access modes of its operands.
struct BoundKernel {
  struct Operand {
    bool host = false;
    uint32_t access = 0;  // WEIR_ASYNC_*
    uint64_t bytes = 0;   // 0 = computed from shape and type
  };

  const weir_kernel* kernel = nullptr;
  weir_prepared prepared{};
  std::string name;
  std::vector<Operand> operands;
  bool stateful = false;
  std::mutex running;  // serializes calls of a stateful kernel

  ~BoundKernel() {
    if (prepared.state != nullptr) kernel->unprepare(&prepared);
  }
};

/// One launch: all data the kernel reads, except device memory.
struct KernelCall {
  std::shared_ptr<BoundKernel> bound;
  std::vector<weir_reg> regs;
  std::deque<weir_shape> shapes;
  std::deque<std::vector<int64_t>> dims;
  std::deque<std::vector<uint64_t>> host;
  std::vector<uint32_t> on_device;  // registers, in the order of the launch's ranges
  uint64_t tile_begin = 0;
  uint64_t tile_end = 1;

  static int32_t Run(void* arg, void* const* addresses, weir_error* record) noexcept {
    auto& call = *static_cast<KernelCall*>(arg);
    for (size_t i = 0; i < call.on_device.size(); ++i) {
      call.regs[call.on_device[i]].data = reinterpret_cast<uint64_t>(addresses[i]);
    }
    weir_env env{};
    env.struct_size = sizeof env;
    env.tile_begin = call.tile_begin;
    env.tile_end = call.tile_end;
    env.error = record;
    std::unique_lock lock(call.bound->running, std::defer_lock);
    if (call.bound->stateful) lock.lock();
    return call.bound->prepared.fn(call.bound->prepared.state, call.regs.data(), &env);
  }
  static void Drop(void* arg) noexcept { delete static_cast<KernelCall*>(arg); }
};

/// "kernels/1" from functions that register host kernels.
template <void (*... kAdd)(weir::sdk::KernelTable&)>
struct AsyncKernels {
  static constexpr uint32_t kKind = WEIR_KIND_KERNELS;

  static const void* Interface(std::string_view id, std::string_view targets) {
    if (id != WEIR_KERNELS_INTERFACE) return nullptr;
    static weir::sdk::KernelTable table(targets);
    static const weir_kernels_api* const api = Wrap(*(kAdd(table), ..., table.Finish()));
    return api;
  }

 private:
  using Error = weir::sdk::Error;

  static const weir_kernels_api* Wrap(const weir_kernels_api& host) {
    static std::deque<weir_kernel> records;
    static std::vector<const weir_kernel*> pointers;
    static weir_kernels_api api{};
    for (uint64_t i = 0; i < host.kernel_count; ++i) {
      weir_kernel& record = records.emplace_back(*host.kernels[i]);
      record.user = host.kernels[i];
      if (record.prepare != nullptr) {
        record.prepare = &Prepare;
        record.unprepare = &Unprepare;
        record.create = nullptr;
        record.compute = nullptr;
        record.destroy = nullptr;
      } else {
        record.create = &Create;
        record.host_inputs = record.host_outputs = UINT64_MAX;
      }
      pointers.push_back(&record);
    }
    api = {sizeof api, 0, pointers.data(), pointers.size()};
    return &api;
  }

  static int32_t Create(const void* user, const weir_node* node, weir_device* device, void** state,
                        weir_error* record) noexcept {
    const auto* inner = static_cast<const weir_kernel*>(user);
    return inner->create(inner->user, node, device, state, record);
  }

  static int32_t Prepare(const void* user, const weir_prep_args* args, weir_prepared* prepared,
                         weir_error* record) noexcept {
    return weir::sdk::Guard(record, [&]() -> int32_t {
      auto bound = std::make_shared<BoundKernel>();
      bound->kernel = static_cast<const weir_kernel*>(user);
      bound->prepared.struct_size = sizeof bound->prepared;
      const int32_t code = bound->kernel->prepare(bound->kernel->user, args, &bound->prepared, record);
      if (code != WEIR_OK) return code;
      bound->name =
          std::string(weir::sdk::ToView(bound->kernel->op)) + " " + std::string(weir::sdk::Node(args->node).name());
      bound->stateful = ((bound->kernel->flags | bound->prepared.flags) & WEIR_KERNEL_STATEFUL) != 0;
      Describe(*args, *bound);
      *prepared = bound->prepared;
      prepared->struct_size = sizeof *prepared;
      if (prepared->fn != nullptr) prepared->fn = &Fn;
      prepared->state = new std::shared_ptr<BoundKernel>(std::move(bound));
      return WEIR_OK;
    });
  }
  static void Unprepare(weir_prepared* prepared) noexcept {
    delete static_cast<std::shared_ptr<BoundKernel>*>(prepared->state);
    prepared->state = nullptr;
  }

  static void Describe(const weir_prep_args& args, BoundKernel& bound) {
    for (uint32_t i = 0; i < args.input_count; ++i) {
      const bool written = i < 64 && (bound.kernel->variable_writes >> i & 1) != 0;
      const uint32_t access = written ? uint32_t{WEIR_ASYNC_READ} | WEIR_ASYNC_WRITE : uint32_t{WEIR_ASYNC_READ};
      bound.operands.push_back({args.inputs[i]->space == WEIR_SPACE_HOST, access, 0});
    }
    for (uint32_t i = 0; i < args.output_count; ++i) {
      bool is_input = false;
      for (uint32_t a = 0; a < bound.prepared.alias_count; ++a) {
        const weir_alias& alias = bound.prepared.aliases[a];
        is_input = is_input || (alias.kind == WEIR_ALIAS_MUST && alias.output == i);
      }
      bound.operands.push_back(
          {args.outputs[i]->space == WEIR_SPACE_HOST, is_input ? 0u : uint32_t{WEIR_ASYNC_WRITE}, 0});
    }
    if (bound.prepared.scratch_bytes != 0) {
      bound.operands.push_back({false, WEIR_ASYNC_WRITE, bound.prepared.scratch_bytes});
    }
  }

  static int32_t Fn(void* state, const weir_reg* regs, const weir_env* env) noexcept {
    const auto& bound = *static_cast<std::shared_ptr<BoundKernel>*>(state);
    return weir::sdk::Guard(env->error, [&]() -> int32_t {
      bool any_on_device = false;
      for (const BoundKernel::Operand& operand : bound->operands) any_on_device |= !operand.host;
      if (!any_on_device) return OnHost(*bound, regs, *env);
      if (env->native_stream == 0) {
        return Error(env->error).Fail(WEIR_FAILED_PRECONDITION, "kernel ", bound->name, " needs a stream");
      }
      return Launch(bound, regs, *env);
    });
  }

  static int32_t OnHost(BoundKernel& bound, const weir_reg* regs, const weir_env& env) {
    std::unique_lock lock(bound.running, std::defer_lock);
    if (bound.stateful) lock.lock();
    return bound.prepared.fn(bound.prepared.state, regs, &env);
  }

  static int32_t Launch(const std::shared_ptr<BoundKernel>& bound, const weir_reg* regs, const weir_env& env) {
    auto call = std::make_unique<KernelCall>();
    call->bound = bound;
    call->tile_begin = env.tile_begin;
    call->tile_end = env.tile_end;
    std::vector<weir_async_range> ranges;
    bool writes_host = false;
    for (uint32_t i = 0; i < bound->operands.size(); ++i) {
      const BoundKernel::Operand& operand = bound->operands[i];
      weir_reg reg = regs[i];
      const auto& dims = call->dims.emplace_back(reg.shape->dims, reg.shape->dims + reg.shape->rank);
      reg.shape = &call->shapes.emplace_back(weir_shape{reg.shape->rank, 0, dims.data()});
      const uint64_t bytes = operand.bytes != 0
                                 ? operand.bytes
                                 : static_cast<uint64_t>(weir::sdk::SizeOf(*reg.shape)) * weir::sdk::SizeOf(reg.dtype);
      if (operand.host && (operand.access & WEIR_ASYNC_WRITE) != 0) {
        writes_host = true;
      } else if (operand.host && bytes != 0) {
        auto& copy = call->host.emplace_back((bytes + 7) / 8);
        std::memcpy(copy.data(), reinterpret_cast<const void*>(reg.data), bytes);
        reg.data = reinterpret_cast<uint64_t>(copy.data());
      } else if (!operand.host && bytes != 0) {
        ranges.push_back({reg.handle, reg.data, bytes, operand.access, 0});
        call->on_device.push_back(i);
      }
      call->regs.push_back(reg);
    }
    const auto* queue = reinterpret_cast<const weir_async_queue*>(env.native_stream);
    weir_async_launch launch{};
    launch.struct_size = sizeof launch;
    launch.range_count = static_cast<uint32_t>(ranges.size());
    launch.ranges = ranges.data();
    launch.name = weir::sdk::Str(bound->name);
    launch.run = &KernelCall::Run;
    launch.drop = &KernelCall::Drop;
    launch.arg = call.release();
    const int32_t code = queue->launch(queue->stream, &launch, env.error);
    return code != WEIR_OK || !writes_host ? code : queue->finish(queue->stream, env.error);
  }
};

}  // namespace async_device

#endif  // WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ASYNC_KERNELS_H_
