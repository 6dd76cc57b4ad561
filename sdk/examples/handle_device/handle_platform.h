/* Platform "handle/1": what kernels of the example's devices need beyond weir's own headers. Memory has no address: an
 * operand is the handle of an allocation and an offset in it, and only work that runs on a queue gets addresses. */
#ifndef WEIR_SDK_EXAMPLES_HANDLE_DEVICE_HANDLE_PLATFORM_H_
#define WEIR_SDK_EXAMPLES_HANDLE_DEVICE_HANDLE_PLATFORM_H_

#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_HANDLE_PLATFORM "handle/1"

/* A range of device memory that a piece of work touches. */
typedef struct weir_handle_operand {
  uint64_t handle;
  uint64_t offset;
  uint64_t bytes;
} weir_handle_operand;

/* A piece of work. `run` is called once on the queue's thread with the address of each operand in order (null for an
 * empty one). It returns a code and may fill the record; an error poisons the queue. `drop` is called once, after `run`
 * or instead of it if the work does not run. submit copies the operands and the name, and owns `arg` in any case. */
typedef struct weir_handle_work {
  uint32_t struct_size;
  uint32_t operand_count;
  const weir_handle_operand* operands;
  weir_str name;
  int32_t (*run)(void* arg, void* const* addresses, weir_error* error);
  void (*drop)(void* arg);
  void* arg;
} weir_handle_work;

/* The object behind WEIR_NATIVE_STREAM and weir_env.native_stream. The device owns it; it lives as long as the stream.
 * The native value of a buffer is its handle, that of a device its number, counted from 1. */
typedef struct weir_handle_queue {
  uint32_t struct_size;
  uint32_t reserved;
  void* queue;
  /* INVALID_ARGUMENT for a handle that is not the device's and for a range beyond its block. */
  int32_t (*submit)(void* queue, const weir_handle_work* work, weir_error* error);
  /* Blocks until everything submitted so far has run; returns the failure that poisoned the queue, if any. */
  int32_t (*finish)(void* queue, weir_error* error);
} weir_handle_queue;

#ifdef __cplusplus
}
#endif
#endif
