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

enum {
  WEIR_KERNEL_ASYNC = 1u << 0,
  WEIR_KERNEL_INLINE_CHEAP = 1u << 1,
  WEIR_KERNEL_STATEFUL = 1u << 2, /* calls on one state are serialized and may change it */
  WEIR_KERNEL_CAPTURABLE = 1u << 3,
  WEIR_KERNEL_DETERMINISTIC = 1u << 4,
  WEIR_KERNEL_SHAPE_GENERIC = 1u << 5
};

enum { WEIR_OPERAND_CONSTANT = 1u, WEIR_OPERAND_VARIABLE = 2u };

/* One operand of a node being prepared. `value` is set when the input is a constant that the host can read. */
typedef struct weir_operand {
  uint32_t struct_size;
  uint32_t dtype;
  uint32_t space; /* WEIR_SPACE_* */
  uint32_t flags;
  weir_shape shape;
  uint64_t alignment;
  const weir_tensor* value;
} weir_operand;

/* A node with everything known before it runs. Operands: flattened inputs, then outputs, whose shapes come from the
 * op's shape function and cannot be changed by the kernel. */
typedef struct weir_prep_args {
  uint32_t struct_size;
  uint32_t must; /* bits the callee has to understand, else UNIMPLEMENTED */
  const weir_node* node;
  weir_device* device;
  uint32_t input_count;
  uint32_t output_count;
  const weir_operand* const* inputs;
  const weir_operand* const* outputs;
  uint64_t max_tiles;
  uint32_t deterministic;
  uint32_t reserved;
} weir_prep_args;

enum { WEIR_ALIAS_MAY = 0, WEIR_ALIAS_MUST = 1 };

/* Output `output` may (the core decides) or must share the buffer of input `input`. */
typedef struct weir_alias {
  uint32_t input;
  uint32_t output;
  uint32_t kind;
  uint32_t reserved;
} weir_alias;

typedef struct weir_env {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t tile_begin;
  uint64_t tile_end;
  weir_stream* stream;
  uint64_t native_stream;
  weir_error* error;
} weir_env;

/* No allocation, lock, log, host call, attribute look-up or shape check inside. `regs`: inputs, outputs, then one
 * scratch register if scratch_bytes > 0. Concurrent on one state with other registers, unless STATEFUL. */
typedef int32_t (*weir_kernel_fn)(void* state, const weir_reg* regs, const weir_env* env);

typedef struct weir_prepared {
  uint32_t struct_size;
  uint32_t flags;
  weir_kernel_fn fn; /* null with only MUST outputs: no instruction is emitted */
  void* state;
  uint64_t scratch_bytes;
  uint64_t scratch_alignment;
  const weir_alias* aliases; /* alias_count entries, live until unprepare */
  uint32_t alias_count;
  uint32_t reserved;
  uint64_t tiles; /* 0 and 1 both mean one */
} weir_prepared;

/* Allowed element types of one type attribute. */
typedef struct weir_type_constraint {
  weir_str attr;
  uint64_t dtypes;
} weir_type_constraint;

/* One kernel. Argument masks: bit i is the i-th input or output argument of the op definition (a list counts once). */
typedef struct weir_kernel {
  uint32_t struct_size;
  uint32_t flags;
  weir_str op;
  weir_str platform;
  const weir_type_constraint* types; /* type_count entries; attributes not listed take anything */
  uint32_t type_count;
  int32_t priority;
  uint64_t host_inputs;
  uint64_t host_outputs;
  uint64_t variable_reads;  /* inputs that are variables, passed as their value under a shared lock */
  uint64_t variable_writes; /* the same under an exclusive lock */
  uint32_t cost_class;
  uint32_t reserved;
  double flops_per_element; /* of the largest operand; used without estimate */

  /* Pure questions; may be null. supports: OK, or UNIMPLEMENTED with a reason. */
  int32_t (*supports)(const weir_prep_args* args, weir_error* error);
  int32_t (*estimate)(const weir_prep_args* args, const weir_profile* profile, weir_cost* cost, weir_error* error);

  /* Prepared form. `user` is the record's own pointer. */
  const void* user;
  int32_t (*prepare)(const void* user, const weir_prep_args* args, weir_prepared* prepared, weir_error* error);
  void (*unprepare)(weir_prepared* prepared);

  /* Dynamic form. */
  int32_t (*create)(const void* user, const weir_node* node, weir_device* device, void** state, weir_error* error);
  int32_t (*compute)(void* state, weir_ctx* ctx, weir_error* error);
  void (*destroy)(void* state);
  /* ASYNC kernels: the step has ended, `done` is wanted soon. May be null; may come while compute still runs. */
  void (*cancel)(void* state, weir_ctx* ctx);
} weir_kernel;

typedef struct weir_kernels_api {
  uint32_t struct_size;
  uint32_t reserved;
  const weir_kernel* const* kernels;
  uint64_t kernel_count;
} weir_kernels_api;

#ifdef __cplusplus
}
#endif
#endif
