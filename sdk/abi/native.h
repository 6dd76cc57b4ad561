/* native/1: the platform's own objects behind weir's handles, for kernel sets that serve another plugin's device. They
 * get the table by device_tables/1 (device_tables.h), and compare platform_abi with the one that they were written for;
 * a header of each platform defines the meaning of the numbers. The core itself asks only for streams, to fill
 * weir_env.native_stream. */
#ifndef WEIR_SDK_ABI_NATIVE_H_
#define WEIR_SDK_ABI_NATIVE_H_

#include "sdk/abi/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NATIVE_INTERFACE "native/1"

enum {
  WEIR_NATIVE_DEVICE = 0,
  WEIR_NATIVE_CONTEXT = 1,
  WEIR_NATIVE_STREAM = 2,
  WEIR_NATIVE_EVENT = 3,
  WEIR_NATIVE_BUFFER = 4
};

typedef struct weir_native_api {
  uint32_t struct_size;
  uint32_t reserved;
  weir_str platform_abi; /* "cuda/13"; lives as long as the process */
  /* Returns the native value of `object`: a weir_device* for DEVICE and CONTEXT, a weir_stream*, a weir_event*, or a
   * const weir_buf*, all of this plugin. UNIMPLEMENTED for a kind that the platform lacks. The value is owned by the
   * plugin and lives as long as the object. Any thread. */
  int32_t (*native)(weir_device* device, uint32_t kind, const void* object, uint64_t* value, weir_error* error);
} weir_native_api;

#ifdef __cplusplus
}
#endif
#endif
