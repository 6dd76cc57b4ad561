#include "core/kernel/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/device/open_devices.h"
#include "core/kernel/call.h"
#include "core/kernel/node_attr.h"
#include "core/kernel/pending_calls.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/compute_pool.h"
#include "core/tensor/buffer.h"
#include "sdk/abi/device_tables.h"
#include "sdk/abi/plugin.h"

namespace weir::kernel {
namespace {

std::atomic<int32_t> log_level{WEIR_LOG_WARNING};
std::atomic<uint64_t> plugin_host_bytes{0};

// Runs the body of a host function and converts exceptions to error codes, since none may cross the ABI.
template <class Body>
int32_t Guard(weir_error* error, Body&& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? WEIR_OK : device::Report(error, status);
  } catch (const std::exception& e) {
    return device::Report(error, WEIR_INTERNAL, e.what());
  } catch (...) {
    return device::Report(error, WEIR_INTERNAL, "unknown exception");
  }
}

int32_t Enabled(int32_t level) noexcept { return level >= log_level.load(std::memory_order_relaxed) ? 1 : 0; }

void Log(int32_t level, const char* file, int32_t line, weir_str text) noexcept {
  if (Enabled(level) == 0) return;
  static constexpr char kLetters[] = {'D', 'I', 'W', 'E'};
  Guard(nullptr, [&]() -> Status {
    const std::string_view path = file != nullptr ? file : "?";
    const std::string entry = fmt::format("weir: {} {}:{}] {}\n", kLetters[std::clamp(level, 0, 3)],
                                          path.substr(path.find_last_of('/') + 1), line, Text(text));
    WarnOnStderr(entry);
    return {};
  });
}

int32_t Schedule(void (*fn)(void*), void* arg, uint64_t hint) noexcept {
  if (fn == nullptr) return WEIR_INVALID_ARGUMENT;
  return Guard(nullptr, [&]() -> Status {
    // Work that may block never queues: it could wait for work that it schedules itself.
    if ((hint & WEIR_SCHEDULE_MAY_BLOCK) == 0 && runtime::ComputePool::Get().TrySubmit(fn, arg)) return {};
    return runtime::RunBlocking(fn, arg);
  });
}

/// The call behind a plugin's handle: a call in progress, or a pending one identified by its number.
class Called {
 public:
  explicit Called(weir_ctx* handle) : call_(handle) {
    if (!PendingCalls::IsNumber(handle)) return;
    pending_ = PendingCalls::Get().Find(handle);
    call_ = pending_ ? &pending_->ctx : nullptr;
  }
  weir_ctx* get() const { return call_; }

 private:
  std::shared_ptr<PendingCall> pending_;
  weir_ctx* call_;
};

void ParallelFor(weir_ctx* ctx, uint64_t n, uint64_t grain, void (*fn)(void*, uint64_t, uint64_t), void* arg) noexcept {
  Guard(nullptr, [&]() -> Status {
    const Called call(ctx);
    const int cap = call.get() != nullptr ? call.get()->threads : 0;
    const int threads = cap > 0 ? cap : runtime::ComputePool::Get().parallelism();
    runtime::ComputePool::Get().ParallelFor(n, grain, threads, fn, arg);
    return {};
  });
}

// Header in front of a block: its origin and size.
struct BlockHeader {
  void* base;
  uint64_t bytes;
};

void* HostAlloc(uint64_t bytes, uint64_t alignment) noexcept {
  if (!std::has_single_bit(alignment) || alignment > (uint64_t{1} << 30) || !FitsHostMemory(bytes)) return nullptr;
  alignment = std::max<uint64_t>(alignment, alignof(BlockHeader));
  const uint64_t lead = (sizeof(BlockHeader) + alignment - 1) & ~(alignment - 1);
  void* base = nullptr;
  if (posix_memalign(&base, std::max<uint64_t>(alignment, sizeof(void*)), lead + bytes) != 0) return nullptr;
  std::byte* block = static_cast<std::byte*>(base) + lead;
  const BlockHeader header{base, bytes};
  std::memcpy(block - sizeof(header), &header, sizeof(header));
  plugin_host_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

void HostFree(void* block) noexcept {
  if (block == nullptr) return;
  BlockHeader header;
  std::memcpy(&header, static_cast<std::byte*>(block) - sizeof(header), sizeof(header));
  plugin_host_bytes.fetch_sub(header.bytes, std::memory_order_relaxed);
  std::free(header.base);
}

weir_str NodeName(const weir_node* node) noexcept { return node != nullptr ? ViewOf(node->name) : weir_str{}; }
weir_str NodeOp(const weir_node* node) noexcept {
  return node != nullptr ? ViewOf(std::string_view(node->attrs.def().name)) : weir_str{};
}

int32_t Attr(const weir_node* node, weir_str name, weir_attr* value) noexcept {
  return Guard(nullptr, [&]() -> Status {
    if (node == nullptr) return InvalidArgument("no node");
    WEIR_ASSIGN(const weir_attr found, FindAttr(*node, Text(name)));
    return WriteOut(found, value);
  });
}

int32_t ConstantInput(const weir_node* node, uint32_t i, weir_tensor* value) noexcept {
  return Guard(nullptr, [&]() -> Status {
    if (node == nullptr) return InvalidArgument("no node");
    const Tensor* known = node->constant_input ? node->constant_input(static_cast<int>(i)) : nullptr;
    if (known == nullptr || !known->on_host()) return NotFound("input {} is no known constant", i);
    return WriteOut(ViewOf(*known), value);
  });
}

void* NodeResource(const weir_node* node, weir_str key, void* (*make)(void*), void (*destroy)(void*),
                   void* arg) noexcept {
  void* object = nullptr;
  Guard(nullptr, [&]() -> Status {
    if (node != nullptr && node->resources != nullptr && make != nullptr) {
      object = node->resources->GetOrCreate(node->name, Text(key), make, destroy, arg);
    }
    return {};
  });
  return object;
}

/// As Guard, for a body that takes the call.
template <class Body>
int32_t OfCall(weir_ctx* handle, weir_error* error, Body&& body) noexcept {
  return Guard(error, [&]() -> Status {
    const Called call(handle);
    if (call.get() == nullptr) return FailedPrecondition("the call has completed");
    return body(*call.get());
  });
}

int32_t Input(weir_ctx* ctx, uint32_t i, weir_tensor* tensor) noexcept {
  return OfCall(ctx, nullptr, [&](weir_ctx& call) { return call.Input(i, tensor); });
}

int32_t RangeOf(weir_ctx* ctx, weir_str arg, uint32_t* first, uint32_t* count) noexcept {
  return OfCall(ctx, nullptr, [&](weir_ctx& call) { return call.Range(Text(arg), first, count); });
}

int32_t Output(weir_ctx* ctx, uint32_t i, const weir_shape* shape, weir_tensor* tensor, weir_error* error) noexcept {
  return OfCall(ctx, error, [&](weir_ctx& call) { return call.Output(i, shape, tensor); });
}

int32_t SetOutput(weir_ctx* ctx, uint32_t i, const weir_tensor* tensor, weir_error* error) noexcept {
  return OfCall(ctx, error, [&](weir_ctx& call) { return call.SetOutput(i, tensor); });
}

int32_t Forward(weir_ctx* ctx, uint32_t in, uint32_t out) noexcept {
  bool done = false;
  OfCall(ctx, nullptr, [&](weir_ctx& call) -> Status {
    done = call.Forward(in, out);
    return {};
  });
  return done ? 1 : 0;
}

int32_t Temp(weir_ctx* ctx, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error) noexcept {
  return OfCall(ctx, error, [&](weir_ctx& call) { return call.Temp(bytes, space, buf); });
}

int64_t StepId(weir_ctx* ctx) noexcept {
  const Called call(ctx);
  return call.get() != nullptr ? call.get()->step_id : -1;
}

int32_t IsCancelled(weir_ctx* ctx) noexcept {
  const Called call(ctx);
  if (call.get() == nullptr) return 1;
  const runtime::Cancellation* const step = call.get()->cancellation;
  return step != nullptr && step->cancelled() ? 1 : 0;
}

void Done(weir_ctx* ctx, int32_t code, weir_str message) noexcept {
  Guard(nullptr, [&]() -> Status {
    if (!PendingCalls::IsNumber(ctx)) return FailedPrecondition("the kernel is not ASYNC");
    CompletePending(ctx, code == WEIR_OK ? Status() : Status(static_cast<Code>(code), std::string(Text(message))));
    return {};
  });
}

int64_t TimeLeft(weir_ctx* ctx) noexcept {
  using Clock = runtime::Cancellation::Clock;
  const Called call(ctx);
  if (call.get() == nullptr) return 0;
  const runtime::Cancellation* const step = call.get()->cancellation;
  const Clock::time_point deadline = step == nullptr ? Clock::time_point::max() : step->deadline();
  if (deadline == Clock::time_point::max()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, std::chrono::nanoseconds(deadline - Clock::now()).count());
}

weir_device* DeviceOf(weir_ctx* ctx) noexcept {
  const Called call(ctx);
  return call.get() != nullptr ? call.get()->device : nullptr;
}

weir_stream* StreamOf(weir_ctx* ctx) noexcept {
  const Called call(ctx);
  return call.get() != nullptr ? call.get()->stream : nullptr;
}

uint64_t NativeStreamOf(weir_ctx* ctx) noexcept {
  const Called call(ctx);
  return call.get() != nullptr ? call.get()->native_stream : 0;
}

// Elements of a string tensor, or InvalidArgument. Its handle is the address of the first element.
Result<std::span<std::string>> Strings(const weir_tensor* tensor) {
  if (tensor == nullptr || tensor->dtype != WEIR_STRING || (tensor->rank != 0 && tensor->dims == nullptr)) {
    return InvalidArgument("wanted a string tensor");
  }
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= static_cast<uint64_t>(tensor->dims[i]);
  auto* first = reinterpret_cast<std::string*>(tensor->buf.handle);
  return std::span<std::string>(first, first != nullptr ? count : 0);
}

int32_t StringVisit(const weir_tensor* tensor, int32_t (*fn)(void*, uint64_t, weir_str), void* arg) noexcept {
  int32_t answer = WEIR_OK;
  const int32_t code = Guard(nullptr, [&]() -> Status {
    WEIR_ASSIGN(const std::span<std::string> strings, Strings(tensor));
    for (size_t i = 0; i < strings.size() && answer == 0; ++i) answer = fn(arg, i, ViewOf(strings[i]));
    return {};
  });
  return code != WEIR_OK ? code : answer;
}

int32_t StringSet(const weir_tensor* tensor, uint64_t i, weir_str text) noexcept {
  return Guard(nullptr, [&]() -> Status {
    WEIR_ASSIGN(const std::span<std::string> strings, Strings(tensor));
    if ((tensor->flags & WEIR_TENSOR_READ_ONLY) != 0) return FailedPrecondition("the tensor is read-only");
    if (i >= strings.size()) return OutOfRange("element {} of {}", i, strings.size());
    strings[i] = Text(text);
    return {};
  });
}

const void* DeviceTable(weir_device* device, weir_str id) noexcept {
  const void* table = nullptr;
  Guard(nullptr, [&]() -> Status {
    table = device::TableOfOpenDevice(device, Text(id));
    return {};
  });
  return table;
}

const void* GetInterface(weir_str id) noexcept {
  static const weir_device_tables device_tables = {sizeof(weir_device_tables), 0, DeviceTable};
  return Text(id) == WEIR_DEVICE_TABLES_INTERFACE ? &device_tables : nullptr;
}

}  // namespace

const weir_host& HostTable() {
  static const weir_host table = [] {
    weir_host host{};
    host.struct_size = sizeof(host);
    host.abi_minor = WEIR_ABI_MINOR;
    host.log = Log;
    host.enabled = Enabled;
    host.schedule = Schedule;
    host.parallel_for = ParallelFor;
    host.host_alloc = HostAlloc;
    host.host_free = HostFree;
    host.node_name = NodeName;
    host.node_op = NodeOp;
    host.attr = Attr;
    host.constant_input = ConstantInput;
    host.input = Input;
    host.input_range = RangeOf;
    host.output = Output;
    host.set_output = SetOutput;
    host.forward = Forward;
    host.temp = Temp;
    host.step_id = StepId;
    host.cancelled = IsCancelled;
    host.string_visit = StringVisit;
    host.string_set = StringSet;
    host.get_interface = GetInterface;
    host.node_resource = NodeResource;
    host.done = Done;
    host.time_left = TimeLeft;
    host.device = DeviceOf;
    host.stream = StreamOf;
    host.native_stream = NativeStreamOf;
    return host;
  }();
  return table;
}

void SetLogLevel(int32_t level) { log_level.store(level, std::memory_order_relaxed); }
uint64_t PluginHostBytes() { return plugin_host_bytes.load(std::memory_order_relaxed); }

weir_shape ViewOf(const Shape& shape) { return {static_cast<uint32_t>(shape.rank()), 0, shape.dims().data()}; }

weir_tensor ViewOf(const Tensor& tensor) {
  weir_tensor view{};
  view.struct_size = sizeof(view);
  view.dtype = static_cast<uint32_t>(tensor.dtype());
  view.flags = WEIR_TENSOR_READ_ONLY;
  view.rank = static_cast<uint32_t>(tensor.shape().rank());
  view.dims = tensor.shape().dims().data();
  view.buf.struct_size = sizeof(view.buf);
  view.buf.space = WEIR_SPACE_HOST;
  if (!tensor.buffer()) return view;
  if (!HasFixedSize(tensor.dtype())) {
    view.buf.handle = reinterpret_cast<uint64_t>(tensor.raw());
    return view;
  }
  view.buf = tensor.buffer()->memory();
  view.buf.struct_size = sizeof(view.buf);
  view.buf.offset += tensor.offset();
  view.buf.bytes = tensor.bytes();
  if (view.buf.host != nullptr) view.buf.host = static_cast<std::byte*>(view.buf.host) + tensor.offset();
  return view;
}

}  // namespace weir::kernel
