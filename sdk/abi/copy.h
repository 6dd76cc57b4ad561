/* copy/1: direct copies between two devices of this plugin's platform. Without this table, or where it says no, the
 * core stages chunks through pinned host memory, also between devices of different plugins. */
#ifndef WEIR_SDK_ABI_COPY_H_
#define WEIR_SDK_ABI_COPY_H_

#include "sdk/abi/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_COPY_INTERFACE "copy/1"

enum {
  WEIR_COPY_NO = 0,
  WEIR_COPY_DIRECT = 1, /* copy_peer takes the source's buffer as it is */
  WEIR_COPY_IMPORT = 2  /* after memory/1 export_handle and import_handle */
};

typedef struct weir_copy_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* WEIR_COPY_*. Pure; any thread. Directed: the answer for the opposite direction may differ. */
  int32_t (*can_copy)(weir_device* from, weir_device* to);
  /* Enqueues the copy on `stream` (of the device `to`; null = done when the call returns) and records `done` after it
   * when it is not null. The ranges do not overlap. */
  int32_t (*copy_peer)(weir_device* to, const weir_buf* to_buf, weir_device* from, const weir_buf* from_buf,
                       uint64_t bytes, weir_stream* stream, weir_event* done, weir_error* error);
} weir_copy_api;

#ifdef __cplusplus
}
#endif
#endif
