/* compiler/1: turns regions of a graph into executables, which the plan calls like prepared kernels.
 *
 * A region is plain data: inputs, nodes in topological order, and outputs. A value is numbered: input i is i, the
 * result of node j is input_count + j. All shapes are known. The core shows a candidate region to `claim`, which
 * proposes sets of its nodes; it makes a region of each set that it accepts and calls `compile` once, when the plan is
 * made. No region crosses control flow, devices or state; a region may be a whole loop (weir_region_loop), which the
 * core shows to `claim_loop`.
 *
 * Every function may be called from any thread, several at once. `compile` and `deserialize` may take long and are
 * abandoned after the core's deadline; a compiler loads what is expensive there and not in `init`. Of the host table it
 * calls only `log`, `enabled`, `host_alloc` and `host_free`. */
#ifndef WEIR_SDK_ABI_COMPILER_H_
#define WEIR_SDK_ABI_COMPILER_H_

#include "sdk/abi/cost.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_COMPILER_INTERFACE "compiler/1"

/* Type and shape of a value. The elements are dense and row-major. */
typedef struct weir_region_value {
  uint32_t struct_size;
  uint32_t dtype;
  weir_shape shape; /* concrete */
  /* Inputs only: the elements of a constant of at most WEIR_REGION_CONSTANT_BYTES, else null. The register of such an
   * input is passed too and holds the same elements. */
  const void* constant;
} weir_region_value;

#define WEIR_REGION_CONSTANT_BYTES 64

/* An op with one result. Names and meaning are TensorFlow's; operands of different shapes are broadcast as there, from
 * the last dimension on. `Select` has a condition of the shape of its result. A reduction (Sum, Mean, Max, Min, Prod,
 * All, Any) has one operand: its axes are a field, always the last ones of the operand, so that every element of the
 * result is made of one contiguous run of elements. No node is an op that fails for some elements, such as a division
 * of integers. The numbers of a compiled float op differ from the kernel's by at most 4 units in the last place; sums
 * may be added up in any order that does not depend on tiles; integers and bools are equal. */
typedef struct weir_region_node {
  uint32_t struct_size;
  uint32_t operand_count;
  weir_str op;
  const uint32_t* operands; /* numbers of values below input_count + the number of this node */
  /* The node's attributes of the types int, float, bool, string and dtype (in value.i), sorted by key. Of lists, shapes
   * and functions none: the core shows no op that has them. */
  const weir_opt* attrs;
  uint64_t attr_count;
  const int64_t* axes; /* of a reduction, ascending, not negative; else null */
  uint64_t axis_count;
  weir_region_value result;
  /* In a candidate: declared time of the kernel that runs the node otherwise, in ns; NaN if unknown. */
  double kernel_ns;
} weir_region_node;

/* Flags of a region. */
enum {
  /* The executable is called from a session that wants equal bits in every run and on every number of threads. A
   * compiler that cannot guarantee them returns UNIMPLEMENTED. */
  WEIR_REGION_DETERMINISTIC = 1u
};

/* The region is a loop: its nodes are computed again and again. The first `variable_count` inputs are the loop's
 * variables; the outputs are the same numbers, 0 to variable_count - 1, and mean the variables at the end. The caller
 * has seen that the condition holds for the inputs. An execution does
 *   do { every variable gets its next value } while (the condition holds for the new values, and fewer than
 *                                                    most_iterations were made)
 * where all next values are those of the old variables. It is called again if it ended by number, so that the core
 * learns in between whether the step goes on. */
typedef struct weir_region_loop {
  uint32_t struct_size;
  uint32_t variable_count;
  const uint32_t* next; /* by variable: the number of its next value, of the variable's type and shape */
  uint32_t condition;   /* number of a value: a bool of one element */
  uint32_t reserved;
  uint64_t most_iterations; /* at least 1 */
} weir_region_loop;

typedef struct weir_region {
  uint32_t struct_size;
  uint32_t flags; /* WEIR_REGION_* */
  uint32_t input_count;
  uint32_t node_count;
  uint32_t output_count;
  uint32_t reserved;
  const weir_region_value* const* inputs;
  const weir_region_node* const* nodes;
  const uint32_t* outputs;      /* numbers of values, each a node's result, ascending; in a candidate: those with uses
                                   outside it */
  const weir_region_loop* loop; /* null: the nodes are computed once. Only shown to a compiler with `claim_loop` */
} weir_region;

/* The processor for which code is made. */
typedef struct weir_compile_target {
  uint32_t struct_size;
  uint32_t reserved;
  weir_str platform; /* of the device: "cpu" */
  weir_str isa;      /* "x86-64", "x86-64-v2", "x86-64-v3" or "x86-64-v4": code must not use instructions above it */
  weir_str cpu;      /* vendor, family, model and features, one word each; equal texts: equal processors */
  const weir_profile* profile; /* rates of the device; null if unknown */
} weir_compile_target;

/* Asked by a long `compile`; not 0: the caller no longer wants the result, and `compile` returns CANCELLED soon. */
typedef struct weir_cancel {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*cancelled)(const struct weir_cancel* cancel);
  void* arg;
} weir_cancel;

typedef struct weir_compile_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t max_tiles; /* highest allowed weir_executable_spec.tiles; at least 1 */
} weir_compile_options;

/* A proposal of `claim`: a set of the candidate's nodes. Sets may overlap; the core takes those that gain most. A set
 * must be convex: no path between two of its nodes leads through a node outside it. */
typedef struct weir_claim {
  uint32_t struct_size;
  uint32_t node_count;
  const uint32_t* nodes;  /* numbers of nodes (not of values), ascending */
  double predicted_ns;    /* of one execution on one thread */
  double compile_ns;      /* expected time of `compile`; NaN if unknown */
  uint64_t scratch_bytes; /* expected */
  weir_str reason;        /* for `weir explain`: why this set, or why nodes beside it were left out; may be empty */
} weir_claim;

typedef struct weir_executable weir_executable; /* owned by the plugin */

/* What an executable takes, gives and needs. Live until destroy. */
typedef struct weir_executable_spec {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t alias_count;
  const weir_region_value* const* inputs; /* as in the region; constants need not be repeated */
  const weir_region_value* const* outputs;
  const weir_alias* aliases; /* WEIR_ALIAS_MAY only: the output may be written over the input */
  uint64_t scratch_bytes;    /* of one tile */
  uint64_t scratch_alignment;
  uint64_t tiles; /* 0 and 1 both mean one; the results have the same bits however they are split over calls */
} weir_executable_spec;

enum { WEIR_COMPAT_SAME = 0, WEIR_COMPAT_RECOMPILE = 1, WEIR_COMPAT_INCOMPATIBLE = 2 };

typedef struct weir_compiler_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Emits zero or more proposals for the candidate. OK without any: nothing here is worth compiling. Pure and fast. */
  int32_t (*claim)(const weir_compile_target* target, const weir_region* candidate,
                   void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error);
  /* Everything that the region points to is borrowed for the call. UNIMPLEMENTED: the nodes run as kernels. */
  int32_t (*compile)(const weir_compile_target* target, const weir_region* region, const weir_compile_options* options,
                     const weir_cancel* cancel, weir_executable** executable, weir_error* error);
  /* Fills `spec`, whose struct_size the caller sets. */
  int32_t (*io_spec)(const weir_executable* executable, weir_executable_spec* spec, weir_error* error);
  /* A weir_kernel_fn whose state is the executable. Registers: inputs, outputs, then scratch if scratch_bytes > 0, a
   * piece per call. Runs the tiles [env->tile_begin, env->tile_end). Must not allocate, lock, log or call the host.
   * Several calls at once. Its errors end the step. */
  weir_kernel_fn execute;
  void (*destroy)(weir_executable* executable);

  /* Optional; all of serialize, deserialize, compat and key, or none. Without them nothing is kept between processes.
   * serialize passes pieces of the bytes in order; sink returns WEIR_OK, or a code that serialize returns. Bytes
   * given to deserialize and compat may be damaged or come from another version, and must be checked. deserialize
   * gives an executable equal to the serialized one, with the same bits as results, or an error. */
  int32_t (*serialize)(const weir_executable* executable, int32_t (*sink)(void* ctx, const void* data, uint64_t bytes),
                       void* ctx, weir_error* error);
  int32_t (*deserialize)(const weir_compile_target* target, const void* data, uint64_t bytes,
                         weir_executable** executable, weir_error* error);
  /* WEIR_COMPAT_*. SAME: deserialize will take the bytes. Fast. */
  int32_t (*compat)(const weir_compile_target* target, const void* data, uint64_t bytes);
  /* Passes to `emit` once everything beside region and target on which the code depends: versions of the plugin and of
   * its libraries, options. Printable, at most 1,024 bytes. Fast: loads nothing. */
  void (*key)(const weir_compile_target* target, void (*emit)(void* ctx, weir_str text), void* ctx);

  /* Since 1.1; optional. Like claim, for a candidate that is a loop. Emits at most one proposal, of all nodes; its
   * predicted_ns is the time of an iteration. most_iterations is 1 here, and chosen by the core from that time. A
   * compiler without it is shown no loops. */
  int32_t (*claim_loop)(const weir_compile_target* target, const weir_region* candidate,
                        void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error);
} weir_compiler_api;

#ifdef __cplusplus
}
#endif
#endif
