/* A device and a kernel in C11, by the plain tables. */
#include <stdlib.h>
#include <string.h>

#include "sdk/abi/device.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/plugin.h"

#ifndef WEIR_SANITIZER_KIND
#define WEIR_SANITIZER_KIND 0
#endif

static int initialised = 0;

static weir_str text(const char* from) {
  const weir_str view = {from, strlen(from)};
  return view;
}

static int is(weir_str name, const char* wanted) {
  return name.size == strlen(wanted) && memcmp(name.data, wanted, name.size) == 0;
}

static int32_t fail(weir_error* error, int32_t code, const char* why) {
  if (error == NULL) return code;
  error->code = code;
  error->length = 0;
  if (error->message == NULL) return code;
  error->length = strlen(why) < error->capacity ? strlen(why) : error->capacity;
  memcpy(error->message, why, error->length);
  return code;
}

static int32_t enumerate(const weir_opt* options, uint64_t count, void (*emit)(void*, const weir_device_record*),
                         void* ctx, weir_error* error) {
  weir_device_record record = {.struct_size = sizeof record,
                               .flags = WEIR_DEVICE_SYNC_ONLY | WEIR_DEVICE_UNIFIED_MEMORY | WEIR_DEVICE_OPT_IN,
                               .numa_node = -1,
                               .memory_bytes = 1 << 28,
                               .alignment = 64};
  (void)options, (void)count, (void)error;
  record.uid = text("plain-0");
  record.class_id = record.name = text("plain");
  record.kind = text("PLAIN");
  record.platform = text("plain/1");
  emit(ctx, &record);
  return WEIR_OK;
}

static int32_t open_device(weir_str uid, const weir_opt* options, uint64_t count, weir_device** device,
                           weir_error* error) {
  (void)options, (void)count;
  if (!is(uid, "plain-0")) return fail(error, WEIR_NOT_FOUND, "there is no such device");
  *device = malloc(1);
  return *device == NULL ? fail(error, WEIR_RESOURCE_EXHAUSTED, "out of memory") : WEIR_OK;
}

static void close_device(weir_device* device) { free(device); }

static int32_t allocate(weir_device* device, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error) {
  void* const block = bytes > 1 << 28 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
  (void)device;
  if (block == NULL) return fail(error, WEIR_RESOURCE_EXHAUSTED, "out of memory");
  buf->space = space;
  buf->handle = (uint64_t)(uintptr_t)block;
  buf->offset = 0;
  buf->bytes = bytes;
  buf->host = block;
  return WEIR_OK;
}

static void release(weir_device* device, const weir_buf* buf) {
  (void)device;
  free((void*)(uintptr_t)buf->handle);
}

static int32_t copy(weir_device* device, weir_stream* stream, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                    weir_error* error) {
  (void)device, (void)stream, (void)error;
  memmove(to->host, from->host, bytes);
  return WEIR_OK;
}

static const weir_device_api devices = {.struct_size = sizeof devices,
                                        .enumerate = enumerate,
                                        .open = open_device,
                                        .close = close_device,
                                        .alloc = allocate,
                                        .free = release,
                                        .copy = copy};

static int32_t square(void* state, const weir_reg* regs, const weir_env* env) {
  const int64_t n = *(const int64_t*)state;
  const float* const x = (const float*)(uintptr_t)regs[0].data;
  float* const y = (float*)(uintptr_t)regs[1].data;
  (void)env;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  return WEIR_OK;
}

static int32_t prepare(const void* user, const weir_prep_args* args, weir_prepared* prepared, weir_error* error) {
  const weir_shape* const shape = &args->outputs[0]->shape;
  int64_t* const n = malloc(sizeof *n);
  (void)user;
  if (n == NULL) return fail(error, WEIR_RESOURCE_EXHAUSTED, "out of memory");
  *n = 1;
  for (uint32_t i = 0; i < shape->rank; ++i) *n *= shape->dims[i];
  prepared->fn = square;
  prepared->state = n;
  return WEIR_OK;
}

static void unprepare(weir_prepared* prepared) { free(prepared->state); }

static weir_type_constraint types = {{"T", 1}, WEIR_DTYPE_BIT(WEIR_FLOAT32)};
static const weir_kernel record = {.struct_size = sizeof record,
                                   .flags = WEIR_KERNEL_DETERMINISTIC,
                                   .op = {"Square", 6},
                                   .platform = {"plain/1", 7},
                                   .types = &types,
                                   .type_count = 1,
                                   .cost_class = WEIR_CLASS_ELEMENTWISE,
                                   .flops_per_element = 1,
                                   .prepare = prepare,
                                   .unprepare = unprepare};
static const weir_kernel* const records[] = {&record};
static const weir_kernels_api kernels = {.struct_size = sizeof kernels, .kernels = records, .kernel_count = 1};

static int32_t init(const weir_host* host, const weir_opt* options, uint64_t count, weir_error* error) {
  (void)options, (void)count;
  if (host == NULL || initialised) return fail(error, WEIR_FAILED_PRECONDITION, "init was called before");
  initialised = 1;
  return WEIR_OK;
}

static void shutdown(void) {}

static const void* get_interface(weir_str id) {
  if (is(id, WEIR_DEVICE_INTERFACE)) return &devices;
  return is(id, WEIR_KERNELS_INTERFACE) ? &kernels : NULL;
}

static const weir_plugin plugin = {.struct_size = sizeof plugin,
                                   .built_minor = WEIR_ABI_MINOR,
                                   .name = {"plain", 5},
                                   .version = {"1.0.0", 5},
                                   .init = init,
                                   .shutdown = shutdown,
                                   .get_interface = get_interface};

__attribute__((section(WEIR_NOTE_SECTION), used, aligned(4))) static const weir_note note = {
    .name_size = sizeof WEIR_NOTE_OWNER,
    .desc_size = sizeof(weir_note_desc),
    .type = WEIR_NOTE_DESCRIPTION,
    .owner = WEIR_NOTE_OWNER,
    .desc = {.magic = WEIR_NOTE_MAGIC,
             .record_format = 1,
             .abi_major = WEIR_ABI_MAJOR,
             .built_minor = WEIR_ABI_MINOR,
             .kinds = WEIR_KIND_DEVICE | WEIR_KIND_KERNELS,
#if defined(__aarch64__)
             .machine = WEIR_MACHINE_AARCH64,
#else
             .machine = WEIR_MACHINE_X86_64,
#endif
             .sanitizer = WEIR_SANITIZER_KIND,
             .name = "plain",
             .version = "1.0.0",
             .targets = "plain/1"}};

__attribute__((visibility("default"))) const weir_plugin* weir_plugin_query_v1(uint32_t host_major,
                                                                               uint32_t host_minor) {
  (void)host_minor;
  return host_major == WEIR_ABI_MAJOR ? &plugin : NULL;
}
