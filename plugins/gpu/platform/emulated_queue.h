/* Platform "gpu_emulated/1": the object behind WEIR_NATIVE_STREAM of native/1 and weir_env.native_stream on emulated
 * devices, through which kernel sets launch work. */
#ifndef WEIR_PLUGINS_GPU_PLATFORM_EMULATED_QUEUE_H_
#define WEIR_PLUGINS_GPU_PLATFORM_EMULATED_QUEUE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory at address a is readable and writable, for work on a queue only, at a + this distance. */
#define WEIR_EMULATED_DISTANCE (UINT64_C(1) << 35)

/* Errors of the emulated driver. */
enum {
  WEIR_EMULATED_OK = 0,
  WEIR_EMULATED_NO_MEMORY = 1,
  WEIR_EMULATED_INVALID = 2,
  WEIR_EMULATED_LOST = 3,
  WEIR_EMULATED_NO_DEVICE = 4,
  WEIR_EMULATED_NOT_READY = 5,
  WEIR_EMULATED_ELSEWHERE = 6 /* work on another card failed, and this stream waited for it */
};

typedef struct weir_emulated_queue {
  uint32_t struct_size;
  uint32_t reserved;
  /* Enqueues a piece of work. On the queue's thread, `run` is called once, unless the device is lost; then `drop` is
   * called once in any case. Returns WEIR_EMULATED_*; after an error neither is called. Never blocks. */
  int32_t (*enqueue)(struct weir_emulated_queue* queue, void (*run)(void* arg), void (*drop)(void* arg), void* arg);
} weir_emulated_queue;

/* Interface of the emulated device's plugin, for tests: what all its cards have done so far. */
#define WEIR_EMULATED_COUNTS_INTERFACE "x-gpu_emulated/1"
typedef struct weir_emulated_counts {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t (*captures)(void); /* that were recorded */
  uint64_t (*replays)(void);  /* launches of them */
} weir_emulated_counts;

#ifdef __cplusplus
}
#endif
#endif
