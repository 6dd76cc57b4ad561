/* Platform "async/1": the interface for kernels of the example's devices, beyond weir's own headers. A buffer has no
 * address: operands are a handle and an offset, and only work that runs on a stream gets addresses. */
#ifndef WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ASYNC_PLATFORM_H_
#define WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ASYNC_PLATFORM_H_

#include "sdk/abi/device.h"
#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ASYNC_PLATFORM "async/1"

enum { WEIR_ASYNC_READ = 1u, WEIR_ASYNC_WRITE = 2u };

/* Device memory that a piece of work touches. */
typedef struct weir_async_range {
  uint64_t handle;
  uint64_t offset;
  uint64_t bytes;
  uint32_t access; /* WEIR_ASYNC_*, or-ed */
  uint32_t reserved;
} weir_async_range;

/* A piece of work. `run` is called once on the stream's thread, with the address of each range in order; it returns
 * a code and may fill the record; an error poisons the stream. `drop` is called once, after `run` or instead of it
 * if the work does not run. Only `arg` is kept after launch returns. */
typedef struct weir_async_launch {
  uint32_t struct_size;
  uint32_t range_count;
  const weir_async_range* ranges;
  weir_str name;
  int32_t (*run)(void* arg, void* const* addresses, weir_error* error);
  void (*drop)(void* arg);
  void* arg;
} weir_async_launch;

/* The object behind WEIR_NATIVE_STREAM of native/1 and weir_env.native_stream on these devices. */
typedef struct weir_async_queue {
  uint32_t struct_size;
  uint32_t reserved;
  weir_stream* stream;
  int32_t (*launch)(weir_stream* stream, const weir_async_launch* launch, weir_error* error);
  /* Blocks until everything launched so far has run. */
  int32_t (*finish)(weir_stream* stream, weir_error* error);
} weir_async_queue;

/* Configures the devices of this process and reads their counters; for tests. */
#define WEIR_ASYNC_CONTROL_INTERFACE "x-async-control/1"

typedef struct weir_async_counts {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations; /* begun on streams */
  uint64_t waits;      /* between streams */
  uint64_t races;      /* unordered accesses, uses of freed memory, memory freed while in use */
  uint64_t misuses;    /* unrecorded waits, blocking calls in callbacks, a stream used by two threads at once */
  uint64_t allocated;  /* bytes of device memory allocated now */
} weir_async_counts;

typedef struct weir_async_control {
  uint32_t struct_size;
  uint32_t reserved;
  /* Sets options of the plugin for the device `uid`, or for all devices if it is empty; at any time. */
  int32_t (*configure)(weir_str uid, const weir_opt* options, uint64_t count, weir_error* error);
  /* Counts since the last reset, summed over all devices. */
  void (*counts)(weir_async_counts* counts);
  /* The text of the first race or misuse since the last reset; returns its length, which may exceed `capacity`. */
  uint64_t (*first_fault)(char* text, uint64_t capacity);
  void (*reset)(void);
} weir_async_control;

#ifdef __cplusplus
}
#endif
#endif
