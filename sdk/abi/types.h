/* Plain data that crosses the plugin boundary: strings, shapes, buffers, tensors, option values and registers. C11,
 * fixed-width fields, little-endian. The five structs marked "frozen" are elements of dense arrays and never grow. */
#ifndef WEIR_SDK_ABI_TYPES_H_
#define WEIR_SDK_ABI_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* UTF-8 text, not NUL-terminated unless said; `data` may be null when `size` is 0. Frozen. */
typedef struct weir_str {
  const char* data;
  uint64_t size;
} weir_str;

/* Element types: the numbers of TensorFlow's DataType. */
enum {
  WEIR_INVALID = 0,
  WEIR_FLOAT32 = 1,
  WEIR_FLOAT64 = 2,
  WEIR_INT32 = 3,
  WEIR_UINT8 = 4,
  WEIR_INT16 = 5,
  WEIR_INT8 = 6,
  WEIR_STRING = 7,
  WEIR_COMPLEX64 = 8,
  WEIR_INT64 = 9,
  WEIR_BOOL = 10,
  WEIR_QINT8 = 11,
  WEIR_QUINT8 = 12,
  WEIR_QINT32 = 13,
  WEIR_BFLOAT16 = 14,
  WEIR_QINT16 = 15,
  WEIR_QUINT16 = 16,
  WEIR_UINT16 = 17,
  WEIR_COMPLEX128 = 18,
  WEIR_FLOAT16 = 19,
  WEIR_RESOURCE = 20,
  WEIR_VARIANT = 21,
  WEIR_UINT32 = 22,
  WEIR_UINT64 = 23,
  WEIR_FLOAT8_E5M2 = 24,
  WEIR_FLOAT8_E4M3FN = 25,
  WEIR_FLOAT8_E4M3FNUZ = 26,
  WEIR_FLOAT8_E4M3B11FNUZ = 27,
  WEIR_FLOAT8_E5M2FNUZ = 28,
  WEIR_INT4 = 29,
  WEIR_UINT4 = 30,
  WEIR_INT2 = 31,
  WEIR_UINT2 = 32
};

/* Set of element types: bit d stands for type number d. */
#define WEIR_DTYPE_BIT(dtype) (UINT64_C(1) << (dtype))
#define WEIR_ANY_DTYPE UINT64_MAX

#define WEIR_UNKNOWN_RANK UINT32_C(0xFFFFFFFF)
#define WEIR_UNKNOWN_DIM INT64_C(-1)

/* A shape. `dims` holds `rank` extents; -1 is an unknown extent. With rank WEIR_UNKNOWN_RANK nothing is known.
 * Frozen. */
typedef struct weir_shape {
  uint32_t rank;
  uint32_t reserved;
  const int64_t* dims;
} weir_shape;

/* A range of memory. For a part of an allocation the core keeps `handle` and adds to `offset` and, if it is not null,
 * to `host`; it never computes with `handle` and never reads memory by it. */
typedef struct weir_buf {
  uint32_t struct_size;
  uint32_t space;  /* WEIR_SPACE_* */
  uint64_t handle; /* of the allocation, given by alloc: an address, an index, a driver's object; the plugin's own
                      meaning. In WEIR_SPACE_HOST 0, or an address of the core's. */
  uint64_t offset; /* of the range's first byte, in bytes; counted as alloc did, which usually gave 0 */
  uint64_t bytes;
  void* host; /* address of the range's first byte if the CPU can access it, else null */
} weir_buf;

enum { WEIR_TENSOR_READ_ONLY = 1u }; /* flag of a tensor */

/* A borrowed dense row-major tensor: `dims` and the memory are the core's, for as long as the call says. The layout of
 * string tensors is never exposed: see string_visit in host.h. */
typedef struct weir_tensor {
  uint32_t struct_size;
  uint32_t dtype; /* WEIR_FLOAT32 … */
  uint32_t flags; /* WEIR_TENSOR_* */
  uint32_t rank;
  const int64_t* dims; /* `rank` extents, none negative; may be null if rank is 0 */
  weir_buf buf;
} weir_tensor;

/* One operand of a prepared kernel. `data` depends on the buffer that alloc of device/1 gave:
 *   `host` was set:   the address of the first element, with all offsets. Also for every operand in host memory.
 *   `host` was null:  the offset of the first element in bytes, counted as weir_buf.offset of the same `handle`.
 * So a device whose handles are addresses that the CPU cannot use, as of CUDA, adds: handle + data. One whose handles
 * are objects, as of OpenCL, gives both to its driver. Without elements both may be 0. Frozen, 32 bytes. */
typedef struct weir_reg {
  uint64_t data;
  uint64_t handle;         /* weir_buf.handle of the allocation */
  const weir_shape* shape; /* concrete; lives until fn returns, so enqueued work copies what it needs of it */
  uint32_t dtype;          /* WEIR_FLOAT32 …; of scratch memory WEIR_UINT8 */
  uint32_t flags;          /* 0 */
} weir_reg;

/* Types of an option or attribute value. */
enum {
  WEIR_VALUE_NONE = 0,
  WEIR_VALUE_INT = 1,
  WEIR_VALUE_FLOAT = 2,
  WEIR_VALUE_BOOL = 3,
  WEIR_VALUE_STRING = 4,
  WEIR_VALUE_DTYPE = 5,
  WEIR_VALUE_SHAPE = 6,
  WEIR_VALUE_TENSOR = 7,
  WEIR_VALUE_FUNC = 8,
  WEIR_VALUE_LIST = 16 /* or-ed with the element type */
};

/* One option: a key and a tagged value in 16 bytes. Frozen. */
typedef struct weir_opt {
  weir_str key;
  uint32_t type;  /* WEIR_VALUE_INT, FLOAT, BOOL, STRING or DTYPE */
  uint32_t flags; /* 0 */
  union {
    int64_t i;  /* INT; BOOL: 0 or 1; DTYPE: WEIR_FLOAT32 … */
    double f;   /* FLOAT */
    weir_str s; /* STRING */
  } value;
} weir_opt;

/* A tagged attribute value, borrowed from the node. Lists have `count` elements behind the pointer for their element
 * type: ints, floats, bools (one byte each), dtypes, strings (also function names), shapes or tensors. */
typedef struct weir_attr {
  uint32_t struct_size;
  uint32_t type;             /* WEIR_VALUE_*; selects the fields that are set, all others are 0 */
  uint64_t count;            /* of a list */
  int64_t i;                 /* INT, BOOL (0 or 1), DTYPE */
  double f;                  /* FLOAT */
  weir_str s;                /* STRING; FUNC: the name */
  weir_shape shape;          /* SHAPE */
  const weir_tensor* tensor; /* TENSOR, in host memory */
  const int64_t* ints;
  const double* floats;
  const uint8_t* bools;
  const uint32_t* dtypes;
  const weir_str* strings;
  const weir_shape* shapes;
  const weir_tensor* tensors;
} weir_attr;

/* True if `table` is not null, its struct_size includes `field`, and the field is not null. */
#define WEIR_HAS(table, field)                                                                                      \
  ((table) != 0 && (table)->struct_size >= (uint32_t)((const char*)(&(table)->field + 1) - (const char*)(table)) && \
   (table)->field != 0)

#ifdef __cplusplus
}
#endif
#endif
