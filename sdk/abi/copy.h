/* copy/1: direct copies between two devices of this plugin's platform. Without this table, or if can_copy returns
 * WEIR_COPY_NO, the core stages chunks through pinned host memory, as it does between devices of different plugins. */
#ifndef WEIR_SDK_ABI_COPY_H_
#define WEIR_SDK_ABI_COPY_H_

#include "sdk/abi/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_COPY_INTERFACE "copy/1"

enum {
  WEIR_COPY_NO = 0,
  WEIR_COPY_DIRECT = 1, /* copy_peer accepts the source's buffer unchanged */
  WEIR_COPY_IMPORT = 2  /* reserved, taken as NO: after memory/1 export_handle and import_handle */
};

typedef struct weir_copy_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* WEIR_COPY_*. Pure; any thread. Not symmetric: the result for the opposite direction may differ. DIRECT also means
   * that streams of either device may wait for events of the other. */
  int32_t (*can_copy)(weir_device* from, weir_device* to);
  /* Enqueues the copy on `stream`, a stream of the device `to`, and then records `done` if it is not null. With a
   * null stream the copy is complete when the call returns. The ranges do not overlap. */
  int32_t (*copy_peer)(weir_device* to, const weir_buf* to_buf, weir_device* from, const weir_buf* from_buf,
                       uint64_t bytes, weir_stream* stream, weir_event* done, weir_error* error);
} weir_copy_api;

#ifdef __cplusplus
}
#endif
#endif
