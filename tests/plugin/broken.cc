// A small healthy plugin, written against the plain tables, that BREAK_<n> breaks in one place. mutants.h lists the
// numbers with the rule that each one breaks. OLDER and NEWER build it for another minor version: with tables that lack
// their last fields, followed by garbage, or with fields unknown to the core.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/plugin.h"

#ifndef WEIR_SANITIZER_KIND
#define WEIR_SANITIZER_KIND 0
#endif
#ifndef BROKEN_NAME
#define BROKEN_NAME "broken"
#endif

// From 59 on, the device declares memory that the CPU can access only through copy.
#if defined(BREAK_59) || defined(BREAK_60) || defined(BREAK_61) || defined(BREAK_62) || defined(BREAK_63)
#define APART 1
#else
#define APART 0
#endif

namespace {

constexpr weir_str S(const char* text) { return {text, __builtin_strlen(text)}; }

const weir_host* g_host = nullptr;
std::atomic<int> g_opened{0};

int32_t Fail(weir_error* error, int32_t code, const char* text) {
#if defined(BREAK_15)
  error->code = code;  // a null record is legal
#endif
  if (error == nullptr) return code;
  error->code = code;
  error->length = 0;
  if (error->message == nullptr) return code;
  uint64_t size = __builtin_strlen(text);
#if !defined(BREAK_16)
  if (size > error->capacity) size = error->capacity;
#endif
  std::memcpy(error->message, text, size);
  error->length = size;
  return code;
}

#if defined(NEWER)
constexpr uint32_t kLaterFields = 4;
constexpr uint16_t kBuiltMinor = WEIR_ABI_MINOR + 1;
#else
constexpr uint32_t kLaterFields = 0;
constexpr uint16_t kBuiltMinor = WEIR_ABI_MINOR;
#endif

// A table or record, extended as in a later minor version.
template <class T>
struct Sized {
  T table;
  uint64_t later[kLaterFields + 1];

  constexpr explicit Sized(const T& from) : table(from), later{} {
    for (uint64_t& field : later) field = 0xeeeeeeeeeeeeeeee;
    table.struct_size += kLaterFields * 8;
  }
};

// ---- device/1 ----

int32_t Enumerate(const weir_opt*, uint64_t, void (*emit)(void*, const weir_device_record*), void* ctx, weir_error*) {
#if defined(BREAK_18)
  for (;;) pause();
#elif defined(BREAK_70)
  std::raise(SIGSEGV);
#elif defined(BREAK_71)
  std::exit(3);
#endif
#if !defined(BREAK_30)
  weir_device_record record{};
  record.struct_size = sizeof(record);
  record.flags = WEIR_DEVICE_SYNC_ONLY | (APART ? 0 : WEIR_DEVICE_UNIFIED_MEMORY);
#if !defined(BREAK_19)
  record.uid = S(BROKEN_NAME "-0");
#endif
  record.class_id = S(BROKEN_NAME);
  record.kind = S("TOY");
  record.platform = S(BROKEN_NAME "/1");
  record.name = S("a toy");
#if defined(BREAK_66)
  record.name = S("a toy\n\033[31m");
#endif
  record.numa_node = -1;
  record.memory_bytes = 1 << 28;
  record.alignment = 64;
#if defined(OLDER)
  record.struct_size = offsetof(weir_device_record, memory_bytes);
#endif
  const Sized<weir_device_record> sized(record);
#if defined(BREAK_67)
  for (char uid[] = "aaaa"; uid[0] <= 'z'; ++uid[0]) {  // 26 * 26 * 26 of them
    for (uid[1] = 'a'; uid[1] <= 'z'; ++uid[1]) {
      for (uid[2] = 'a'; uid[2] <= 'z'; ++uid[2]) {
        weir_device_record other = record;
        other.uid = {uid, 4};
        emit(ctx, &other);
      }
    }
  }
#endif
  emit(ctx, &sized.table);
#if defined(BREAK_20)
  emit(ctx, &sized.table);
#endif
#endif
  return WEIR_OK;
}

int32_t Open(weir_str uid, const weir_opt*, uint64_t, weir_device** device, weir_error* error) {
#if !defined(BREAK_31)
  if (uid.size != __builtin_strlen(BROKEN_NAME "-0") || std::memcmp(uid.data, BROKEN_NAME "-0", uid.size) != 0) {
    return Fail(error, WEIR_NOT_FOUND, "there is no such device on this machine");
  }
#endif
#if defined(BREAK_55)
  return Fail(error, WEIR_UNAVAILABLE, "the card has fallen off the bus");
#endif
#if defined(BREAK_21)
  if (g_opened >= 100) return Fail(error, WEIR_RESOURCE_EXHAUSTED, "too many contexts");
#endif
  ++g_opened;
  *device = reinterpret_cast<weir_device*>(new int(0));
  return WEIR_OK;
}

void Close(weir_device* device) {
#if !defined(BREAK_21)
  --g_opened;
#endif
  delete reinterpret_cast<int*>(device);
}

int32_t Alloc(weir_device*, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error) {
  if (bytes > (uint64_t{1} << 28)) {
#if defined(BREAK_24)
    buf->handle = 0;
    buf->host = nullptr;
    buf->bytes = bytes;
    return WEIR_OK;
#else
    return Fail(error, WEIR_RESOURCE_EXHAUSTED, "the toy has 256 MiB");
#endif
  }
#if defined(BREAK_23)
  auto* block = static_cast<char*>(::operator new(bytes + 64, std::align_val_t(64))) + 8;
#else
  void* block = ::operator new(bytes, std::align_val_t(64), std::nothrow);
#endif
  if (block == nullptr) return Fail(error, WEIR_RESOURCE_EXHAUSTED, "out of memory");
  buf->space = space;
  buf->handle = reinterpret_cast<uint64_t>(block);
  buf->offset = 0;
  buf->bytes = bytes;
  buf->host = APART ? nullptr : block;
  return WEIR_OK;
}

void Free(weir_device*, const weir_buf* buf) {
#if defined(BREAK_23)
  ::operator delete(reinterpret_cast<char*>(buf->handle) - 8, std::align_val_t(64));
#else
  ::operator delete(reinterpret_cast<void*>(buf->handle), std::align_val_t(64));
#endif
}

char* Address(const weir_buf* buf) {
  return buf->host != nullptr ? static_cast<char*>(buf->host) : reinterpret_cast<char*>(buf->handle + buf->offset);
}

int32_t Copy(weir_device*, weir_stream*, const weir_buf* to, const weir_buf* from, uint64_t bytes, weir_error*) {
#if defined(BREAK_25)
  bytes &= ~uint64_t{3};
#endif
#if defined(BREAK_26)
  std::memmove(Address(to) - to->offset, Address(from) - from->offset, bytes);
#else
  std::memmove(Address(to), Address(from), bytes);
#endif
  return WEIR_OK;
}

int32_t MemSet(weir_device*, weir_stream*, const weir_buf* buf, uint8_t value, uint64_t bytes, weir_error*) {
#if defined(BREAK_27)
  bytes += 1;
#endif
  std::memset(Address(buf), value, bytes);
  return WEIR_OK;
}

constexpr Sized<weir_device_api> kDevices = [] {
  weir_device_api api{};
  api.struct_size = sizeof(api);
  api.enumerate = Enumerate;
  api.open = Open;
#if !defined(BREAK_14)
  api.close = Close;
#endif
  api.alloc = Alloc;
  api.free = Free;
  api.memset = MemSet;
  api.copy = Copy;
#if defined(OLDER)
  api.struct_size = offsetof(weir_device_api, health);
  api.health = [](weir_device*) -> int32_t { std::abort(); };
#endif
  return Sized<weir_device_api>(api);
}();

// ---- kernels/1: Square, prepared; Neg, dynamic ----

struct SquareState {
  int64_t n;
  int64_t calls;
};

int32_t Square(void* state, const weir_reg* regs, [[maybe_unused]] const weir_env* env) {
#if defined(BREAK_60)
  return Fail(env->error, WEIR_INTERNAL, "the unit is not powered");
#endif
  auto* square = static_cast<SquareState*>(state);
  const auto* x = reinterpret_cast<const float*>(regs[0].data + (APART ? regs[0].handle : 0));
  auto* y = reinterpret_cast<float*>(regs[1].data + (APART ? regs[1].handle : 0));
  const int64_t n = square->n;
#if defined(BREAK_32)
  for (int64_t i = 0; i <= n; ++i) y[i] = i < n ? x[i] * x[i] : 0;
#elif defined(BREAK_33) || defined(BREAK_59)
  ++square->calls;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] + static_cast<float>(square->calls);
#elif defined(BREAK_34)
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[n - 1 - i];
#elif defined(BREAK_35)
  auto* scratch = reinterpret_cast<char*>(regs[2].data);
  std::memset(scratch, 7, 80);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
#elif defined(BREAK_36)
  void* block = g_host->host_alloc(64, 64);
  g_host->host_free(block);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
#elif defined(BREAK_37)
  for (int64_t i = 0; i < n; ++i) const_cast<float*>(x)[i] = y[i] = x[i] * x[i];
#elif defined(BREAK_38)
  for (int64_t i = 0; i + 1 < n; ++i) y[i] = x[i] * x[i];
#elif defined(BREAK_39)
  y[0] = x[0] * x[0];
  for (int64_t i = 1; i != n; ++i) y[i] = x[i] * x[i];  // empty tensors run away
#else
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
#endif
  return WEIR_OK;
}

int32_t PrepareSquare(const void*, const weir_prep_args* args, weir_prepared* prepared,
                      [[maybe_unused]] weir_error* error) {
#if defined(BREAK_63)
  return Fail(error, WEIR_UNIMPLEMENTED, "not today");
#endif
  [[maybe_unused]] static const weir_alias in_place = {0, 0, WEIR_ALIAS_MAY, 0};
  const weir_shape& shape = args->outputs[0]->shape;
  auto* state = new SquareState{1, 0};
  for (uint32_t i = 0; i < shape.rank; ++i) state->n *= shape.dims[i];
  prepared->fn = Square;
  prepared->state = state;
#if !defined(BREAK_37)
  prepared->aliases = &in_place;
  prepared->alias_count = 1;
#endif
#if defined(BREAK_35)
  prepared->scratch_bytes = 64;
  prepared->scratch_alignment = 64;
#endif
  return WEIR_OK;
}

void UnprepareSquare(weir_prepared* prepared) { delete static_cast<SquareState*>(prepared->state); }

int32_t ComputeNeg(void*, weir_ctx* ctx, weir_error* error) {
  weir_tensor x{}, y{};
  x.struct_size = y.struct_size = sizeof(weir_tensor);
  if (const int32_t code = g_host->input(ctx, 0, &x); code != WEIR_OK) return code;
#if defined(BREAK_63)
  return Fail(error, WEIR_INVALID_ARGUMENT, "nor tomorrow");
#elif defined(BREAK_61)
  const int64_t seven = 7;
  const weir_shape other = {1, 0, &seven};
  return g_host->output(ctx, 0, &other, &y, error);
#endif
  const weir_shape shape = {x.rank, 0, x.dims};
  if (const int32_t code = g_host->output(ctx, 0, &shape, &y, error); code != WEIR_OK) return code;
  int64_t n = 1;
  for (uint32_t i = 0; i < x.rank; ++i) n *= x.dims[i];
  const auto* from = reinterpret_cast<const float*>(Address(&x.buf));
  auto* to = reinterpret_cast<float*>(Address(&y.buf));
  for (int64_t i = 0; i < n; ++i) to[i] = -from[i];
  return WEIR_OK;
}

constexpr weir_type_constraint kFloat = {S("T"), WEIR_DTYPE_BIT(WEIR_FLOAT32)};

constexpr weir_kernel Record(const char* op) {
  weir_kernel record{};
  record.struct_size = sizeof(record);
  record.flags = WEIR_KERNEL_DETERMINISTIC;
  record.op = S(op);
  record.platform = S(BROKEN_NAME "/1");
  record.types = &kFloat;
  record.type_count = 1;
  return record;
}

constexpr Sized<weir_kernel> kSquare = [] {
  weir_kernel record = Record("Square");
#if defined(BREAK_72)
  record.flops_per_element = -3;
#endif
  record.prepare = PrepareSquare;
  record.unprepare = UnprepareSquare;
#if defined(BREAK_57)
  record.compute = ComputeNeg;
#endif
#if defined(OLDER)
  record.struct_size = offsetof(weir_kernel, create);
  record.create = [](const void*, const weir_node*, weir_device*, void**, weir_error*) -> int32_t { std::abort(); };
  record.compute = [](void*, weir_ctx*, weir_error*) -> int32_t { std::abort(); };
#endif
  return Sized<weir_kernel>(record);
}();

constexpr Sized<weir_kernel> kNeg = [] {
#if defined(BREAK_40)
  weir_kernel record = Record("Identity");  // the core's own
#else
  weir_kernel record = Record("Neg");
#endif
  record.compute = ComputeNeg;
#if defined(OLDER)
  record.struct_size = offsetof(weir_kernel, destroy);
  record.destroy = [](void*) { std::abort(); };
  record.cancel = [](void*, weir_ctx*) { std::abort(); };
#endif
  return Sized<weir_kernel>(record);
}();

constexpr const weir_kernel* kKernels[] = {&kSquare.table, &kNeg.table};
constexpr Sized<weir_kernels_api> kKernelTable(weir_kernels_api{sizeof(weir_kernels_api), 0, kKernels, 2});

// ---- the plugin ----

constexpr Sized<weir_option_spec> kLevel = [] {
  weir_option_spec spec{};
  spec.struct_size = sizeof(spec);
  spec.type = WEIR_VALUE_INT;
  spec.has_range = 1;
#if defined(BREAK_68)
  spec.key = S("le\nvel");
#else
  spec.key = S("level");
#endif
  spec.doc = S("how hard to try");
  spec.default_value.key = spec.key;
  spec.default_value.type = WEIR_VALUE_INT;
#if defined(BREAK_22)
  spec.default_value.value.i = 11;
#else
  spec.default_value.value.i = 3;
#endif
#if defined(BREAK_69)
  spec.minimum = __builtin_nan("");
#else
  spec.minimum = 0;
#endif
  spec.maximum = 10;
  return Sized<weir_option_spec>(spec);
}();
constexpr const weir_option_spec* kOptions[] = {&kLevel.table};

#if defined(BREAK_28)
pthread_t g_thread;
#endif

int32_t Init(const weir_host* host, const weir_opt* options, uint64_t count, weir_error* error) {
#if defined(BREAK_17)
  throw std::runtime_error("the card is on fire");
#endif
#if defined(BREAK_29)
  for (;;) pause();
#endif
#if defined(BREAK_41) || defined(BREAK_56)
  return Fail(error, WEIR_UNAVAILABLE, "the driver is too old");
#endif
#if defined(BREAK_42)
  for (uint64_t i = 0; i < count; ++i) {
    if (options[i].value.i > 5) return Fail(error, WEIR_INVALID_ARGUMENT, "more than 5 is too much");
  }
#endif
#if defined(BREAK_54)
  if (host->struct_size != sizeof(weir_host)) return Fail(error, WEIR_FAILED_PRECONDITION, "not the host I know");
#endif
  if (host == nullptr) return Fail(error, WEIR_INVALID_ARGUMENT, "no host table");
#if !defined(BREAK_58)
  if (g_host != nullptr) return Fail(error, WEIR_FAILED_PRECONDITION, "init was called before");
#endif
  static_cast<void>(options);
  static_cast<void>(count);
  g_host = host;
#if defined(BREAK_28)
  pthread_create(
      &g_thread, nullptr,
      [](void*) -> void* {
        for (;;) pause();
      },
      nullptr);
#endif
  return WEIR_OK;
}

void Shutdown() {}

bool Is(weir_str id, const char* name) {
  return id.size == __builtin_strlen(name) && std::memcmp(id.data, name, id.size) == 0;
}

const void* GetInterface(weir_str id) {
#if defined(BREAK_64)
  throw std::runtime_error("no interface today");
#elif defined(BREAK_65)
  for (;;) pause();
#endif
#if !defined(BREAK_13)
  if (Is(id, WEIR_DEVICE_INTERFACE)) return &kDevices.table;
#endif
  if (Is(id, WEIR_KERNELS_INTERFACE)) return &kKernelTable.table;
#if defined(BREAK_12)
  return &kDevices.table;
#else
  return nullptr;
#endif
}

constexpr Sized<weir_plugin> kPlugin(weir_plugin {
  sizeof(weir_plugin), kBuiltMinor, 0,
#if defined(BREAK_11)
      S("somebody_else"),
#else
    S(BROKEN_NAME),
#endif
      S("1.0.0"), kOptions, 1, Init, Shutdown, GetInterface,
});

#if !defined(BREAK_1)
__attribute__((section(WEIR_NOTE_SECTION), used, aligned(4))) constinit const weir_note kNote = [] {
  weir_note note{};
  note.name_size = sizeof(WEIR_NOTE_OWNER);
  note.desc_size = sizeof(weir_note_desc);
  note.type = WEIR_NOTE_DESCRIPTION;
  for (size_t i = 0; i < sizeof(WEIR_NOTE_OWNER); ++i) note.owner[i] = WEIR_NOTE_OWNER[i];
  for (size_t i = 0; i < sizeof(WEIR_NOTE_MAGIC); ++i) note.desc.magic[i] = WEIR_NOTE_MAGIC[i];
  note.desc.record_format = 1;
  note.desc.abi_major = WEIR_ABI_MAJOR;
  note.desc.built_minor = kBuiltMinor;
#if defined(BREAK_47)
  note.desc.kinds = WEIR_KIND_KERNELS;
#else
  note.desc.kinds = WEIR_KIND_DEVICE | WEIR_KIND_KERNELS;
#endif
#if defined(__aarch64__)
  note.desc.machine = WEIR_MACHINE_AARCH64;
#else
  note.desc.machine = WEIR_MACHINE_X86_64;
#endif
  note.desc.sanitizer = WEIR_SANITIZER_KIND;
  const char name[] = BROKEN_NAME;
#if defined(BREAK_48)
  const char targets[] = "";
#else
  const char targets[] = BROKEN_NAME "/1";
#endif
  for (size_t i = 0; i < sizeof(name); ++i) note.desc.name[i] = name[i];
  for (size_t i = 0; i < 5; ++i) note.desc.version[i] = "1.0.0"[i];
  for (size_t i = 0; i < sizeof(targets); ++i) note.desc.targets[i] = targets[i];
#if defined(BREAK_2)
  note.desc.magic[0] = 'X';
#elif defined(BREAK_3)
  note.desc.abi_major = 2;
#elif defined(BREAK_4)
  note.desc.sanitizer = WEIR_SANITIZER_KIND == 0 ? 1 : 0;
#elif defined(BREAK_43)
  note.desc.must_understand = 4;
#elif defined(BREAK_44)
  for (char& c : note.desc.name) c = 'n';
#endif
  return note;
}();
#endif

#if defined(BREAK_49)
extern "C" __attribute__((weak)) void weir_function_of_the_core();
void (*volatile g_core)() = weir_function_of_the_core;
#endif

#if defined(BREAK_45)
void UseNewer() {
  WEIR_USE(7);
  g_host = nullptr;
}
void (*volatile g_newer)() = UseNewer;
#endif

#if defined(BREAK_7)
__attribute__((constructor)) void Constructor() { setenv("WEIR_BROKEN_WAS_HERE", "1", 1); }
#elif defined(BREAK_8) || defined(BREAK_47)
__attribute__((constructor)) void Constructor() { std::abort(); }
#elif defined(BREAK_9)
__attribute__((constructor)) void Constructor() { std::puts("hello from a plugin"); }
#elif defined(BREAK_46)
__attribute__((constructor)) void Constructor() { static_cast<void>(open("/dev/null", O_RDONLY)); }
#endif

}  // namespace

#if defined(BREAK_5)
extern "C" __attribute__((visibility("default"))) int broken_second_export() { return 1; }
#endif

#if defined(BREAK_50)
template <class T>
struct __attribute__((visibility("default"))) Shared {
  static int value;
};
template <class T>
int Shared<T>::value = 0;
template struct Shared<int>;
#endif

#if defined(BREAK_6)
extern "C" __attribute__((visibility("hidden"), used)) const weir_plugin* weir_plugin_query_v1(uint32_t host_major,
                                                                                               uint32_t) {
#else
extern "C" __attribute__((visibility("default"))) const weir_plugin* weir_plugin_query_v1(uint32_t host_major,
                                                                                          uint32_t) {
#endif
#if defined(BREAK_10)
  static_cast<void>(host_major);
#else
  if (host_major != WEIR_ABI_MAJOR) return nullptr;
#endif
  return &kPlugin.table;
}
