/* device/1: the hardware of a plugin. The core owns names, arena, options and cross-device copies; the plugin
 * supplies slabs, copies and health. */
#ifndef WEIR_SDK_ABI_DEVICE_H_
#define WEIR_SDK_ABI_DEVICE_H_

#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DEVICE_INTERFACE "device/1"

typedef struct weir_device weir_device; /* an open device, owned by the plugin */
typedef struct weir_stream weir_stream; /* see stream.h */

enum {
  WEIR_DEVICE_SYNC_ONLY = 1u << 0,      /* no streams: every call is complete when it returns */
  WEIR_DEVICE_UNIFIED_MEMORY = 1u << 1, /* the host addresses device memory: alloc sets `host` of each buffer */
  WEIR_DEVICE_MUST_GROW = 1u << 2,      /* the arena grows on demand instead of reserving its memory at once */
  WEIR_DEVICE_SELF_POOL = 1u << 3,      /* the device pools memory itself: every value gets its own alloc */
  WEIR_DEVICE_NO_OFFSET = 1u << 4,      /* buffers cannot be used at an offset: every value gets its own alloc */
  WEIR_DEVICE_GRAPH_CAPTURE = 1u << 5,  /* stream/1 has the capture functions */
  WEIR_DEVICE_PEER = 1u << 6,           /* direct copies between devices, see copy/1 */
  WEIR_DEVICE_IMPORT_FD = 1u << 7,      /* memory/1 imports WEIR_HANDLE_FD */
  WEIR_DEVICE_ORDERED_ALLOC = 1u << 8,  /* memory/1 has alloc_async and free_async */
  WEIR_DEVICE_OPT_IN = 1u << 9          /* used only if a request or the configuration names it */
};

enum { WEIR_SPACE_DEVICE = 0, WEIR_SPACE_HOST = 1, WEIR_SPACE_PINNED = 2 };
enum { WEIR_HEALTH_OK = 0, WEIR_HEALTH_LOST = 1, WEIR_HEALTH_RESET_NEEDED = 2 };

/* The description of one device. Its texts live until emit returns. Equal class ids mean interchangeable devices. */
typedef struct weir_device_record {
  uint32_t struct_size;
  uint32_t flags;
  weir_str uid; /* stable: a PCI address, a UUID */
  weir_str class_id;
  weir_str kind;     /* CPU, GPU, NPU …: the device type in requests */
  weir_str platform; /* cpu, cuda/13 …: the platform of its kernels */
  weir_str name;
  weir_str driver_version;
  uint32_t vendor_id;
  uint32_t device_id;
  int32_t numa_node; /* -1 unknown */
  uint32_t reserved;
  uint64_t memory_bytes; /* capacity of WEIR_SPACE_DEVICE */
  uint64_t alignment;    /* guaranteed by alloc, in bytes */
} weir_device_record;

typedef struct weir_device_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Calls emit for each device, without opening a driver context. Without a driver there are no devices, and the
   * result is OK. Calls are serialized. */
  int32_t (*enumerate)(const weir_opt* options, uint64_t option_count,
                       void (*emit)(void* ctx, const weir_device_record* record), void* ctx, weir_error* error);
  int32_t (*open)(weir_str uid, const weir_opt* options, uint64_t option_count, weir_device** device,
                  weir_error* error);
  void (*close)(weir_device* device);
  /* Binds the driver context to the calling thread; null if the driver has no such context. */
  int32_t (*make_current)(weir_device* device, weir_error* error);
  /* alloc fills `buf`, whose struct_size the caller sets; bytes > 0. Called from any thread, concurrently. */
  int32_t (*alloc)(weir_device* device, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error);
  void (*free)(weir_device* device, const weir_buf* buf);
  int32_t (*mem_info)(weir_device* device, uint32_t space, uint64_t* free_bytes, uint64_t* total_bytes,
                      uint64_t* largest_bytes);
  int32_t (*memset)(weir_device* device, weir_stream* stream, const weir_buf* buf, uint8_t value, uint64_t bytes,
                    weir_error* error);
  /* Copies from host to device, from device to host, or within the device. Host memory is a weir_buf with space HOST
   * and `host` set. With a null stream the copy is complete when the call returns. */
  int32_t (*copy)(weir_device* device, weir_stream* stream, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                  weir_error* error);
  int32_t (*health)(weir_device* device);
  int32_t (*set_options)(weir_device* device, const weir_opt* changed, uint64_t count, weir_error* error);
} weir_device_api;

#ifdef __cplusplus
}
#endif
#endif
