/* kernels/1: one record per op and platform, with a prepared form (the fast path), a dynamic form, or both. */
#ifndef WEIR_SDK_ABI_KERNEL_H_
#define WEIR_SDK_ABI_KERNEL_H_

#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_KERNELS_INTERFACE "kernels/1"

/* Flags of a kernel. Those marked reserved change nothing yet. */
enum {
  WEIR_KERNEL_ASYNC = 1u << 0,        /* dynamic form: a call ends with `done`, which may come after compute returns */
  WEIR_KERNEL_INLINE_CHEAP = 1u << 1, /* the cost is negligible; no estimate is needed */
  /* Calls on one state are serialized and may change it; nodes do not share the state; no tiles run in parallel. */
  WEIR_KERNEL_STATEFUL = 1u << 2,
  WEIR_KERNEL_CAPTURABLE = 1u << 3,    /* what fn enqueues depends on registers and state alone: see stream.h */
  WEIR_KERNEL_DETERMINISTIC = 1u << 4, /* reserved: weir_prep_args.deterministic asks instead */
  WEIR_KERNEL_SHAPE_GENERIC = 1u << 5, /* reserved: prepare always gets concrete shapes, and again for each new shape */
  /* The dynamic form on a device with streams: compute only enqueues work on the stream of its call, and operands in
   * device memory are ready in the order of that stream. Without the flag, the core waits for the stream before
   * compute, and the work must be complete when the call completes. */
  WEIR_KERNEL_STREAM = 1u << 6
};

/* CONSTANT: `value` is set. VARIABLE: the value of a variable, passed under its lock. */
enum { WEIR_OPERAND_CONSTANT = 1u, WEIR_OPERAND_VARIABLE = 2u };

/* One operand of a node being prepared. `value` is set if the input is a constant in memory that the host can read. */
typedef struct weir_operand {
  uint32_t struct_size;
  uint32_t dtype;
  uint32_t space;           /* WEIR_SPACE_DEVICE or WEIR_SPACE_HOST */
  uint32_t flags;           /* WEIR_OPERAND_* */
  weir_shape shape;         /* borrowed for the call; concrete in prepare */
  uint64_t alignment;       /* bytes: of the offset in an allocation, of the address if there is one; a power of two */
  const weir_tensor* value; /* borrowed for the call; null if not known */
} weir_operand;

/* A node with all information known before it runs. The operands are the flattened inputs, then the outputs. The
 * op's shape function sets the shapes of the outputs; the kernel cannot change them. */
typedef struct weir_prep_args {
  uint32_t struct_size;
  uint32_t must; /* feature bits; a callee that does not know one returns UNIMPLEMENTED */
  const weir_node* node; /* borrowed for the call */
  weir_device* device;   /* null in supports and estimate if the device is not open yet */
  uint32_t input_count;
  uint32_t output_count;
  const weir_operand* const* inputs; /* input_count pointers, borrowed for the call, as outputs */
  const weir_operand* const* outputs;
  uint64_t max_tiles;     /* highest allowed weir_prepared.tiles */
  uint32_t deterministic; /* not 0: a kernel that cannot guarantee equal bits returns UNIMPLEMENTED */
  uint32_t reserved;
} weir_prep_args;

enum { WEIR_ALIAS_MAY = 0, WEIR_ALIAS_MUST = 1 };

/* Output `output` may share (the core decides) or must share the buffer of input `input`. */
typedef struct weir_alias {
  uint32_t input;
  uint32_t output;
  uint32_t kind;
  uint32_t reserved;
} weir_alias;

/* What a call of a prepared kernel gets beside its registers; borrowed for the call. */
typedef struct weir_env {
  uint32_t struct_size;
  uint32_t flags;         /* 0 */
  uint64_t tile_begin;    /* the call does the tiles [tile_begin, tile_end) */
  uint64_t tile_end;
  weir_stream* stream;    /* takes the work; null on a device without streams */
  uint64_t native_stream; /* its value of native/1; 0 without one */
  weir_error* error;      /* may be null */
} weir_env;

/* One call of a prepared kernel. It must not allocate, lock, log, call the host, look up attributes or check shapes;
 * what the driver's own enqueueing does in that respect is not counted.
 * `regs`: the inputs, the outputs, then one scratch register if scratch_bytes > 0. Called concurrently with one
 * state and different registers, unless the kernel is STATEFUL. */
typedef int32_t (*weir_kernel_fn)(void* state, const weir_reg* regs, const weir_env* env);

typedef struct weir_prepared {
  uint32_t struct_size; /* set by the core */
  uint32_t flags;       /* WEIR_KERNEL_*, or-ed to the record's */
  weir_kernel_fn fn;    /* null if every output is a MUST alias: no instruction is emitted */
  void* state;                /* the plugin's, until unprepare; may be null */
  uint64_t scratch_bytes;     /* of one tile */
  uint64_t scratch_alignment; /* a power of two; 0 means 64 */
  const weir_alias* aliases;  /* alias_count entries, live until unprepare */
  uint32_t alias_count;
  uint32_t reserved;
  uint64_t tiles; /* number of tiles; 0 and 1 both mean one */
} weir_prepared;

/* Allowed element types of one type attribute. */
typedef struct weir_type_constraint {
  weir_str attr;   /* name of a type attribute of the op */
  uint64_t dtypes; /* WEIR_DTYPE_BIT of each */
} weir_type_constraint;

/* One kernel. Argument masks: bit i is the i-th input or output argument of the op definition (a list counts once). */
typedef struct weir_kernel {
  uint32_t struct_size;
  uint32_t flags; /* WEIR_KERNEL_* */
  weir_str op;    /* name of an op of the core or of ops/1 */
  weir_str platform; /* weir_device_record.platform of the devices that it serves */
  const weir_type_constraint* types; /* type_count entries; unlisted attributes accept any type */
  uint32_t type_count;
  int32_t priority; /* of kernels with equal cost the higher one runs */
  uint64_t host_inputs; /* arguments in host memory on every platform */
  uint64_t host_outputs;
  uint64_t variable_reads;  /* variable inputs, passed by value under a shared lock */
  uint64_t variable_writes; /* variable inputs, passed by value under an exclusive lock */
  uint32_t cost_class; /* WEIR_CLASS_* */
  uint32_t reserved;
  double flops_per_element; /* per element of the largest operand; used if `estimate` is null */

  /* Pure functions; may be null. supports returns OK, or UNIMPLEMENTED with a reason. */
  int32_t (*supports)(const weir_prep_args* args, weir_error* error);
  int32_t (*estimate)(const weir_prep_args* args, const weir_profile* profile, weir_cost* cost, weir_error* error);

  /* Prepared form. `user` is the record's own pointer. */
  const void* user;
  /* Once for a node and each combination of shapes; may be slow. Any thread, several at once. */
  int32_t (*prepare)(const void* user, const weir_prep_args* args, weir_prepared* prepared, weir_error* error);
  void (*unprepare)(weir_prepared* prepared);

  /* Dynamic form. `state` is the plugin's, until destroy; may be null. */
  int32_t (*create)(const void* user, const weir_node* node, weir_device* device, void** state, weir_error* error);
  int32_t (*compute)(void* state, weir_ctx* ctx, weir_error* error);
  void (*destroy)(void* state);
  /* For ASYNC kernels: the step was cancelled, and the kernel should call `done` soon. Must not block. May be null;
   * may be called while compute still runs. */
  void (*cancel)(void* state, weir_ctx* ctx);
} weir_kernel;

typedef struct weir_kernels_api {
  uint32_t struct_size;
  uint32_t reserved;
  const weir_kernel* const* kernels; /* kernel_count pointers; records and texts live until shutdown */
  uint64_t kernel_count;
} weir_kernels_api;

#ifdef __cplusplus
}
#endif
#endif
