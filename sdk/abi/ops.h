/* ops/1: ops that weir does not have. A definition is text in TensorFlow's notation; a pure shape function gives the
 * shapes of the outputs; the gradient is written as other ops. Kernels come by kernels/1, of this plugin or another.
 *
 * The ops are declared when the file is loaded, for the life of the process, and before graphs are imported. An op
 * whose name exists is refused and listed by `weir plugins --why`, and so is a faulty definition. All functions may be
 * called from any thread, several at once, and call of the host table only node_name, node_op, attr, constant_input,
 * log and enabled. */
#ifndef WEIR_SDK_ABI_OPS_H_
#define WEIR_SDK_ABI_OPS_H_

#include "sdk/abi/host.h"
#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_OPS_INTERFACE "ops/1"

/* What the shape function is given; borrowed for the call. */
typedef struct weir_shape_args {
  uint32_t struct_size;
  uint32_t input_count;  /* flattened: a list argument counts once per element */
  uint32_t output_count; /* flattened */
  uint32_t reserved;
  const weir_node* node;    /* for attr, and constant_input: the value of an input that is known; never null */
  const weir_shape* inputs; /* input_count shapes: extents may be -1, ranks WEIR_UNKNOWN_RANK */
} weir_shape_args;

/* The graph in which a gradient is written. A value is a number above 0 that is valid for the call; 0 means none, and
 * may be passed on: a function that is given it returns 0. The first error of a call is reported after the gradient
 * function has returned, so a gradient reads as a formula. Used by the calling thread only. */
typedef struct weir_gradient {
  uint32_t struct_size;
  uint32_t input_count; /* flattened, with inputs that have no gradient, such as indices */
  uint32_t output_count;
  uint32_t reserved;
  const weir_node* node; /* the forward node; never null */
  void* graph;           /* first argument of the functions below; owned by the core */
  /* Input i and output i of the forward node, and the gradient of output i: zeros of its shape if nothing uses it. */
  uint64_t (*x)(void* graph, uint32_t i);
  uint64_t (*y)(void* graph, uint32_t i);
  uint64_t (*dy)(void* graph, uint32_t i);
  /* Adds a node and returns its first output; further outputs have the numbers behind it. Attributes have the types
   * int, float, bool, string and dtype; those that follow from the inputs may be left out. */
  uint64_t (*apply)(void* graph, weir_str op, const uint64_t* inputs, uint32_t input_count, const weir_opt* attrs,
                    uint32_t attr_count);
  /* A scalar constant of the element type of `like`. */
  uint64_t (*constant_like)(void* graph, uint64_t like, double value);
  /* A vector of int32, for shapes and axes. */
  uint64_t (*constant_ints)(void* graph, const int32_t* values, uint32_t count);
  /* The gradient of input i; inputs that are not set have none. */
  void (*set)(void* graph, uint32_t i, uint64_t gradient);
} weir_gradient;

/* Flags of an op. */
enum {
  WEIR_OP_STATEFUL = 1u << 0,   /* equal calls may have different results or effects: never merged, never dropped */
  WEIR_OP_COMMUTATIVE = 1u << 1 /* two inputs that may be exchanged */
};

/* The definition of an op; the plugin's, for the life of the process. */
typedef struct weir_op {
  uint32_t struct_size;
  uint32_t flags; /* WEIR_OP_* */
  weir_str name;  /* CamelCase: an upper-case letter, then letters and digits */
  /* Arguments ("x: T", "values: N * T", "indices: int32") and attributes ("T: {float, double} = DT_FLOAT",
   * "limit: float", "N: int >= 1"). */
  const weir_str* inputs;
  const weir_str* outputs;
  const weir_str* attrs;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attr_count;
  uint32_t reserved;
  weir_str doc;       /* one sentence for `weir ops`; may be empty */
  const void* user;   /* passed to the functions; may be null */
  /* Calls `set` for each output with a known shape; an output that is not set has an unknown one. Pure and fast.
   * Never null. An error refuses the node. Its code is INVALID_ARGUMENT, its text names the wanted and the given. */
  int32_t (*shape)(const void* user, const weir_shape_args* args,
                   void (*set)(void* ctx, uint32_t output, const weir_shape* shape), void* ctx, weir_error* error);
  /* Null: the op has no gradient, for the reason `no_gradient`. */
  int32_t (*gradient)(const void* user, const weir_gradient* gradient, weir_error* error);
  weir_str no_gradient; /* empty if there is a gradient */
} weir_op;

typedef struct weir_ops_api {
  uint32_t struct_size;
  uint32_t reserved;
  const weir_op* const* ops; /* op_count pointers */
  uint64_t op_count;
} weir_ops_api;

#ifdef __cplusplus
}
#endif
#endif
