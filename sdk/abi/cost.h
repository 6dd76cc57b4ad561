/* cost/1: costs of work on an otherwise idle device. Times are ns, rates are per ns. NaN means unknown; values are
 * never 0 or negative. */
#ifndef WEIR_SDK_ABI_COST_H_
#define WEIR_SDK_ABI_COST_H_

#include "sdk/abi/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_COST_INTERFACE "cost/1"

enum {
  WEIR_CLASS_GEMM = 0,
  WEIR_CLASS_CONV = 1,
  WEIR_CLASS_ELEMENTWISE = 2,
  WEIR_CLASS_REDUCE = 3,
  WEIR_CLASS_GATHER = 4,
  WEIR_CLASS_SORT = 5,
  WEIR_CLASS_RNG = 6,
  WEIR_CLASS_FFT = 7,
  WEIR_CLASS_CONTROL = 8,
  WEIR_CLASS_COUNT = 9
};

enum {
  WEIR_PROVENANCE_UNKNOWN = 0,
  WEIR_PROVENANCE_DATASHEET = 1,
  WEIR_PROVENANCE_MEASURED = 2,
  WEIR_PROVENANCE_CALIBRATED = 3
};

/* Roofline record of a device: time = launch + max(flops / (peak * eff), bytes / (bandwidth * eff)). */
typedef struct weir_profile {
  uint32_t struct_size; /* set by the core, which also fills all figures with NaN before the call */
  uint32_t provenance;  /* WEIR_PROVENANCE_* */
  double peak_flops_per_ns[32];        /* by dtype number */
  double bandwidth_bytes_per_ns;       /* of the device's memory */
  double cache_bytes;                  /* of the last cache */
  double cache_bandwidth_bytes_per_ns; /* for working sets that fit the cache */
  double launch_ns;                    /* from the call of a kernel to its begin on an idle device */
  double issue_gap_ns;                 /* between two kernels that are enqueued back to back */
  double sync_wake_ns;                 /* from the end of work to the return of a thread that waits for it */
  double half_saturation_flops;        /* work of a kernel that runs at half of the peak */
  double half_saturation_bytes;        /* the same for bytes */
  double compute_efficiency[16];       /* by class (WEIR_CLASS_*), of the peak, 0 to 1 */
  double memory_efficiency[16];        /* by class, of the bandwidth, 0 to 1 */
  uint32_t queues;                     /* kernels that may run at once; 0 and 1 both mean one */
  uint32_t copy_engines;               /* copies that may run beside kernels; 0: none */
} weir_profile;

/* One direction between two memory spaces. */
typedef struct weir_link {
  uint32_t struct_size;
  uint32_t flags; /* 1 direct, 2 zero-copy; reserved */
  double latency_ns;
  double bandwidth_pageable_bytes_per_ns; /* from or to ordinary host memory */
  double bandwidth_pinned_bytes_per_ns;   /* from or to page-locked host memory */
  uint32_t max_concurrent;                /* copies at once; 0 unknown; reserved */
  uint32_t provenance;                    /* WEIR_PROVENANCE_* */
} weir_link;

/* A kernel's estimate for one node. Either `whole_ns` is the total time, or the profile's formula computes it from
 * flops, bytes, class and fixed_ns; NaN means unknown. */
typedef struct weir_cost {
  uint32_t struct_size; /* set by the core, as all figures to NaN */
  uint32_t cost_class;  /* WEIR_CLASS_* */
  double whole_ns;
  double flops;
  double bytes;    /* read and written */
  double fixed_ns; /* added to the formula's time */
  uint64_t scratch_bytes;
} weir_cost;

typedef struct weir_cost_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Called once for an open device, by one thread at a time, as all of this table. */
  int32_t (*profile)(weir_device* device, weir_profile* profile, weir_error* error);
  /* Spaces are WEIR_SPACE_*. A null peer means host memory. May be null. */
  int32_t (*link)(weir_device* device, uint32_t space, weir_device* peer, uint32_t peer_space, weir_link* link,
                  weir_error* error);
  /* Reserved: not called. `weir profile calibrate` measures by the device's own kernels and copies. */
  int32_t (*calibrate)(weir_device* device, uint64_t budget_ms, void (*emit)(void* ctx, const weir_profile* profile),
                       void* ctx, weir_error* error);
} weir_cost_api;

#ifdef __cplusplus
}
#endif
#endif
