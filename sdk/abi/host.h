/* The host table: functions of the core for plugins. It is passed to init and valid until shutdown returns. Every
 * function may be called from any thread, including the plugin's own, but never while the plugin holds a lock.
 * Context handles are valid during their call. */
#ifndef WEIR_SDK_ABI_HOST_H_
#define WEIR_SDK_ABI_HOST_H_

#include "sdk/abi/device.h"
#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_node weir_node; /* a node being prepared: name, attributes, constant inputs */
typedef struct weir_ctx weir_ctx;   /* one call of a dynamic kernel */

enum { WEIR_LOG_DEBUG = 0, WEIR_LOG_INFO = 1, WEIR_LOG_WARNING = 2, WEIR_LOG_ERROR = 3 };

enum { WEIR_SCHEDULE_MAY_BLOCK = 1 };

typedef struct weir_host {
  uint32_t struct_size;
  uint32_t abi_minor;

  /* Logging. Plugins never write to standard output or standard error. */
  void (*log)(int32_t level, const char* file, int32_t line, weir_str text);
  int32_t (*enabled)(int32_t level);

  /* The core's threads. schedule runs fn later on another thread; with the hint WEIR_SCHEDULE_MAY_BLOCK, on a thread
   * of the blocking pool. parallel_for splits [0, n) into ranges of at least `grain` and returns when all have run.
   * Both may be nested. A plugin has no CPU thread pool of its own. */
  int32_t (*schedule)(void (*fn)(void* arg), void* arg, uint64_t hint);
  void (*parallel_for)(weir_ctx* ctx, uint64_t n, uint64_t grain, void (*fn)(void* arg, uint64_t begin, uint64_t end),
                       void* arg);

  /* Tracked CPU memory; alignment is a power of two; null if memory is exhausted. */
  void* (*host_alloc)(uint64_t bytes, uint64_t alignment);
  void (*host_free)(void* block);

  /* Node views, for prepare, create, supports, estimate. attr fills `value`, whose struct_size the caller sets; its
   * data lives as long as the node. It returns NOT_FOUND if the node lacks the attribute and the op has no default.
   * constant_input returns OK and the value if input i is a constant in host memory, else NOT_FOUND. */
  weir_str (*node_name)(const weir_node* node);
  weir_str (*node_op)(const weir_node* node);
  int32_t (*attr)(const weir_node* node, weir_str name, weir_attr* value);
  int32_t (*constant_input)(const weir_node* node, uint32_t i, weir_tensor* value);

  /* Dynamic kernels only. Tensors of input and input_range are borrowed for the call. output allocates output i with
   * `shape`; set_output makes it alias a tensor of this call. forward gives input `in`'s buffer to output `out` if
   * nothing else uses it, and then returns 1. temp allocates scratch memory that lives until the call ends; with
   * WEIR_KERNEL_STREAM, until the work that the call enqueued is done. It serves WEIR_SPACE_DEVICE and
   * WEIR_SPACE_HOST. */
  int32_t (*input)(weir_ctx* ctx, uint32_t i, weir_tensor* tensor);
  int32_t (*input_range)(weir_ctx* ctx, weir_str arg, uint32_t* first, uint32_t* count);
  int32_t (*output)(weir_ctx* ctx, uint32_t i, const weir_shape* shape, weir_tensor* tensor, weir_error* error);
  int32_t (*set_output)(weir_ctx* ctx, uint32_t i, const weir_tensor* tensor, weir_error* error);
  int32_t (*forward)(weir_ctx* ctx, uint32_t in, uint32_t out);
  int32_t (*temp)(weir_ctx* ctx, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error);
  int64_t (*step_id)(weir_ctx* ctx);
  int32_t (*cancelled)(weir_ctx* ctx);

  /* String tensors are host-only. string_visit calls fn for every element in row-major order until fn returns non-zero;
   * string_set copies into element i of an output tensor. */
  int32_t (*string_visit)(const weir_tensor* tensor, int32_t (*fn)(void* arg, uint64_t i, weir_str text), void* arg);
  int32_t (*string_set)(const weir_tensor* tensor, uint64_t i, weir_str text);

  /* Host features of later minor versions, by name; null if unknown: "device_tables/1" (device_tables.h, since 1.1). */
  const void* (*get_interface)(weir_str id);

  /* For prepare and create: an object that lives as long as the session, such as the counter of a random op. All
   * preparations of this node under `key` share it. make(arg) creates it on first use. Null if make returned null. */
  void* (*node_resource)(const weir_node* node, weir_str key, void* (*make)(void* arg), void (*destroy)(void* object),
                         void* arg);

  /* Completes the call of an ASYNC kernel: called exactly once, from any thread, before or after compute returns
   * WEIR_OK. A code other than WEIR_OK fails the node with the message. `ctx` is invalid afterwards. */
  void (*done)(weir_ctx* ctx, int32_t code, weir_str message);
  /* Time left for the step in ns; INT64_MAX without a deadline. */
  int64_t (*time_left)(weir_ctx* ctx);

  /* The device of a call; the step's stream on that device, null if it has none; and the native value of that stream
   * (native/1), 0 if it has none. A kernel with WEIR_KERNEL_STREAM enqueues its work on that stream. */
  weir_device* (*device)(weir_ctx* ctx);
  weir_stream* (*stream)(weir_ctx* ctx);
  uint64_t (*native_stream)(weir_ctx* ctx);
} weir_host;

#ifdef __cplusplus
}
#endif
#endif
