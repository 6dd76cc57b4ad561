/* memory/1: kinds of memory that only some devices support. Every function may be null. Those marked reserved are not
 * called yet. */
#ifndef WEIR_SDK_ABI_MEMORY_H_
#define WEIR_SDK_ABI_MEMORY_H_

#include "sdk/abi/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MEMORY_INTERFACE "memory/1"

enum {
  WEIR_HANDLE_FD = 1, /* a file descriptor, owned by the receiver */
  WEIR_HANDLE_IPC = 2 /* opaque bytes for another process on this machine */
};

/* A range of device memory in a form that another device or process can open. */
typedef struct weir_export {
  uint32_t struct_size;
  uint32_t kind; /* WEIR_HANDLE_* */
  int64_t fd;      /* of WEIR_HANDLE_FD */
  uint64_t bytes;  /* of the range */
  uint8_t ipc[64]; /* of WEIR_HANDLE_IPC */
} weir_export;

typedef struct weir_memory_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Page-locked host memory with fast access from the device; `buf` has space PINNED and `host` set. The core keeps
   * blocks between steps: sizes are powers of two of at least 4 KiB. */
  int32_t (*pinned_alloc)(weir_device* device, uint64_t bytes, weir_buf* buf, weir_error* error);
  void (*pinned_free)(weir_device* device, const weir_buf* buf);
  /* Reserved. Page-locks host memory owned by the caller, until it is unregistered. */
  int32_t (*register_host)(weir_device* device, void* host, uint64_t bytes, weir_error* error);
  void (*unregister_host)(weir_device* device, void* host);
  /* With WEIR_DEVICE_ORDERED_ALLOC, for scratch memory of calls. Stream-ordered allocation: the memory is valid from
   * this point of the stream to the matching free. */
  int32_t (*alloc_async)(weir_device* device, weir_stream* stream, uint64_t bytes, weir_buf* buf, weir_error* error);
  int32_t (*free_async)(weir_device* device, weir_stream* stream, const weir_buf* buf, weir_error* error);
  /* Reserved. export_handle fills `out`, whose struct_size the caller sets. free of device/1 releases an imported
   * buffer. */
  int32_t (*export_handle)(weir_device* device, const weir_buf* buf, uint32_t kind, weir_export* out,
                           weir_error* error);
  int32_t (*import_handle)(weir_device* device, const weir_export* in, weir_buf* buf, weir_error* error);
  /* Reserved. The smallest unit that alloc allocates in a space, and the alignment that it guarantees; both in bytes,
   * powers of two. */
  int32_t (*granularity)(weir_device* device, uint32_t space, uint64_t* unit, uint64_t* alignment);
} weir_memory_api;

#ifdef __cplusplus
}
#endif
#endif
