/* device_tables/1: a feature of the host, from get_interface of the host table. It gives kernel sets the tables of the
 * plugin whose device they serve: native/1 to translate weir's handles, device/1 and memory/1 for memory of their own.
 *
 * A kernel set compares weir_native_api.platform_abi with the ABI that it was written for before it uses native values,
 * and calls no function that the core relies on to know the state of the device: close, free of memory that it did not
 * allocate, stream_destroy, event_destroy of foreign events. */
#ifndef WEIR_SDK_ABI_DEVICE_TABLES_H_
#define WEIR_SDK_ABI_DEVICE_TABLES_H_

#include "sdk/abi/device.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DEVICE_TABLES_INTERFACE "device_tables/1"

typedef struct weir_device_tables {
  uint32_t struct_size;
  uint32_t reserved;
  /* Table `id` ("device/1", "stream/1", "memory/1", "copy/1", "native/1", "cost/1") of the plugin that opened `device`.
   * Null if the plugin has no such table, or if the device is not open: null, closed, or not the core's. The table is
   * the plugin's and lives as long as the process. Any thread; takes a lock, so not from weir_kernel_fn. */
  const void* (*table)(weir_device* device, weir_str id);
} weir_device_tables;

#ifdef __cplusplus
}
#endif
#endif
