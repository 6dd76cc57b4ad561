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
  uint32_t struct_size;
  uint32_t provenance;
  double peak_flops_per_ns[32]; /* by dtype number */
  double bandwidth_bytes_per_ns;
  double cache_bytes;
  double cache_bandwidth_bytes_per_ns;
  double launch_ns;
  double issue_gap_ns;
  double sync_wake_ns;
  double half_saturation_flops;
  double half_saturation_bytes;
  double compute_efficiency[16]; /* by class */
  double memory_efficiency[16];
  uint32_t queues;
  uint32_t copy_engines;
} weir_profile;

/* One direction between two memory spaces. */
typedef struct weir_link {
  uint32_t struct_size;
  uint32_t flags; /* 1 direct, 2 zero-copy */
  double latency_ns;
  double bandwidth_pageable_bytes_per_ns;
  double bandwidth_pinned_bytes_per_ns;
  uint32_t max_concurrent;
  uint32_t provenance;
} weir_link;

/* A kernel's estimate for one node. Either `whole_ns` is the total time, or the profile's formula computes it from
 * flops, bytes, class and fixed_ns; NaN means unknown. */
typedef struct weir_cost {
  uint32_t struct_size;
  uint32_t cost_class;
  double whole_ns;
  double flops;
  double bytes;
  double fixed_ns;
  uint64_t scratch_bytes;
} weir_cost;

typedef struct weir_cost_api {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*profile)(weir_device* device, weir_profile* profile, weir_error* error);
  /* A null peer means host memory. */
  int32_t (*link)(weir_device* device, uint32_t space, weir_device* peer, uint32_t peer_space, weir_link* link,
                  weir_error* error);
  int32_t (*calibrate)(weir_device* device, uint64_t budget_ms, void (*emit)(void* ctx, const weir_profile* profile),
                       void* ctx, weir_error* error);
} weir_cost_api;

#ifdef __cplusplus
}
#endif
#endif
