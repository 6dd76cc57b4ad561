/* profiler/1: when work of a device's streams really ran. A trace then shows the device's own times instead of those of
 * enqueueing.
 *
 * The core marks each piece of work that it enqueues (mark of stream/1) and gets the mark back with two timestamps:
 * when the device began the work and when it ended it. Without a mark slot there is nothing to
 * tell pieces apart, and the table is not used. Only between start and stop is anything recorded. */
#ifndef WEIR_SDK_ABI_PROFILER_H_
#define WEIR_SDK_ABI_PROFILER_H_

#include "sdk/abi/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PROFILER_INTERFACE "profiler/1"

/* Kinds of work; bits of start's mask. */
enum { WEIR_ACTIVITY_KERNEL = 1u, WEIR_ACTIVITY_COPY = 2u, WEIR_ACTIVITY_FILL = 4u };

/* Work that has ended. A mark that covers several pieces may come in several records, also of different kinds. */
typedef struct weir_activity {
  uint32_t struct_size;
  uint32_t kind;       /* one of WEIR_ACTIVITY_* */
  weir_stream* stream; /* may be destroyed by now: only its number counts */
  uint64_t mark;       /* the stream's mark when the work was enqueued; 0 = none */
  uint64_t begin_ns;   /* of the device's clock */
  uint64_t end_ns;     /* not below begin_ns */
  uint64_t bytes;      /* moved by a copy or fill; 0 if unknown */
  weir_str name;       /* the plugin's name of the work, borrowed until emit returns; may be empty */
} weir_activity;

typedef struct weir_profiler_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Begins to record work of these kinds that is enqueued from now on. Calls are not nested: the core counts. */
  int32_t (*start)(weir_device* device, uint32_t kinds, weir_error* error);
  /* Work enqueued later is not recorded. What was recorded may still be drained. */
  int32_t (*stop)(weir_device* device, weir_error* error);
  /* Emits what has ended since the last drain, in any order, and adds to `lost` the number of records that were dropped
   * for lack of room. Does not wait for work. One thread at a time; emit calls nothing of the plugin. */
  int32_t (*drain)(weir_device* device, void (*emit)(void* ctx, const weir_activity* activity), void* ctx,
                   uint64_t* lost, weir_error* error);
  /* The device's clock and CLOCK_MONOTONIC at one moment, both in ns. The clocks run at the same speed for the seconds
   * of a trace. */
  int32_t (*clock)(weir_device* device, uint64_t* device_ns, uint64_t* host_ns, weir_error* error);
} weir_profiler_api;

#ifdef __cplusplus
}
#endif
#endif
