/* Error codes and the caller-owned error record. Every fallible call returns one of the codes and fills the record
 * unless it is null. */
#ifndef WEIR_SDK_ABI_STATUS_H_
#define WEIR_SDK_ABI_STATUS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's canonical codes. */
enum {
  WEIR_OK = 0,
  WEIR_CANCELLED = 1,
  WEIR_UNKNOWN = 2,
  WEIR_INVALID_ARGUMENT = 3,
  WEIR_DEADLINE_EXCEEDED = 4,
  WEIR_NOT_FOUND = 5,
  WEIR_ALREADY_EXISTS = 6,
  WEIR_PERMISSION_DENIED = 7,
  WEIR_RESOURCE_EXHAUSTED = 8,
  WEIR_FAILED_PRECONDITION = 9,
  WEIR_ABORTED = 10,
  WEIR_OUT_OF_RANGE = 11,
  WEIR_UNIMPLEMENTED = 12,
  WEIR_INTERNAL = 13,
  WEIR_UNAVAILABLE = 14,
  WEIR_DATA_LOSS = 15,
  WEIR_UNAUTHENTICATED = 16
};

/* Flags of an error. */
enum {
  WEIR_ERROR_RETRYABLE = 1u,       /* reserved */
  WEIR_ERROR_DEVICE_LOST = 2u,     /* the device is lost; fails all sessions that use it */
  WEIR_ERROR_STREAM_POISONED = 4u, /* no later work on the stream will run */
  WEIR_ERROR_OOM_MAY_GROW = 8u     /* reserved */
};

/* Allocated by the caller, which sets struct_size, message and capacity. The callee writes at most `capacity` bytes
 * of UTF-8 (no terminating NUL needed) and sets `length` to the number of bytes written. A null record, or a null
 * message, is legal. */
typedef struct weir_error {
  uint32_t struct_size;
  int32_t code;        /* WEIR_*; the function's result counts if they differ */
  int64_t vendor_code; /* the driver's number, shown behind the message; 0 = none */
  uint32_t flags;      /* WEIR_ERROR_* */
  uint32_t reserved;
  char* message;     /* the caller's, for the call; may be null */
  uint64_t capacity; /* bytes of message */
  uint64_t length;   /* bytes written; 0 = no text */
} weir_error;

#ifdef __cplusplus
}
#endif
#endif
