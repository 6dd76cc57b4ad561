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

/* Flags of a device. Those marked reserved change nothing yet. */
enum {
  WEIR_DEVICE_SYNC_ONLY = 1u << 0,      /* no streams: every call is complete when it returns */
  WEIR_DEVICE_UNIFIED_MEMORY = 1u << 1, /* the host addresses device memory: alloc sets `host` of each buffer */
  WEIR_DEVICE_MUST_GROW = 1u << 2,      /* the arena grows on demand instead of reserving its memory at once */
  WEIR_DEVICE_SELF_POOL = 1u << 3,      /* the device pools memory itself: every value gets its own alloc */
  WEIR_DEVICE_NO_OFFSET = 1u << 4,      /* offsets are expensive: every variable and every value of a size that is
                                           known only at run time gets its own alloc. The values of a step share one
                                           alloc all the same, at offsets. */
  WEIR_DEVICE_GRAPH_CAPTURE = 1u << 5,  /* stream/1 has the capture functions, and the core may use them */
  WEIR_DEVICE_PEER = 1u << 6,           /* reserved: can_copy of copy/1 is asked instead */
  WEIR_DEVICE_IMPORT_FD = 1u << 7,      /* reserved */
  WEIR_DEVICE_ORDERED_ALLOC = 1u << 8,  /* memory/1 has alloc_async and free_async */
  WEIR_DEVICE_OPT_IN = 1u << 9          /* used only if a request or the configuration names it */
};

/* Spaces of memory: the device's own, the host's, and page-locked host memory (memory/1). */
enum { WEIR_SPACE_DEVICE = 0, WEIR_SPACE_HOST = 1, WEIR_SPACE_PINNED = 2 };
/* A lost device fails all sessions that use it. RESET_NEEDED: lost, but it works again once closed and opened. */
enum { WEIR_HEALTH_OK = 0, WEIR_HEALTH_LOST = 1, WEIR_HEALTH_RESET_NEEDED = 2 };

/* The description of one device. Its texts live until emit returns. Equal class ids mean interchangeable devices. */
typedef struct weir_device_record {
  uint32_t struct_size;
  uint32_t flags; /* WEIR_DEVICE_* */
  weir_str uid;   /* stable between starts: a PCI address, a UUID; never empty */
  weir_str class_id; /* equal texts: interchangeable devices; may be empty */
  weir_str kind;     /* CPU, GPU, NPU …: the device type in requests; never empty */
  weir_str platform; /* cpu, cuda/13 …: the platform of its kernels; never empty */
  weir_str name;     /* for people; may be empty */
  weir_str driver_version; /* for people; may be empty */
  uint32_t vendor_id;      /* PCI ids; 0 unknown; reserved: not used yet */
  uint32_t device_id;      /* as vendor_id */
  int32_t numa_node; /* -1 unknown */
  uint32_t reserved;
  uint64_t memory_bytes; /* capacity of WEIR_SPACE_DEVICE; 0 unknown */
  /* Bytes, a power of two; 0 and less than 64 mean 64. alloc guarantees it for each block, and the core keeps it for
   * each tensor in WEIR_SPACE_DEVICE: its offset in the block is a multiple of it. In unified memory, where tensors of
   * the host are used as they are, the core keeps 64. */
  uint64_t alignment;
  uint64_t largest_allocation; /* since 1.1: bytes of the largest block that alloc gives; 0: no limit of its own */
} weir_device_record;

typedef struct weir_device_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Calls emit for each device, without opening a driver context. Without a driver there are no devices, and the
   * result is OK; a text in `error` is then shown as the reason. Calls are serialized. */
  int32_t (*enumerate)(const weir_opt* options, uint64_t option_count,
                       void (*emit)(void* ctx, const weir_device_record* record), void* ctx, weir_error* error);
  int32_t (*open)(weir_str uid, const weir_opt* options, uint64_t option_count, weir_device** device,
                  weir_error* error); /* any thread; not again until close. uid and options are borrowed */
  void (*close)(weir_device* device); /* no call on the device runs, and none comes later */
  /* Reserved: not called. A plugin binds its driver's context to the calling thread in each function that needs it. */
  int32_t (*make_current)(weir_device* device, weir_error* error);
  /* alloc fills `buf`, whose struct_size the caller sets; bytes > 0, space is WEIR_SPACE_DEVICE. Its `host` decides
   * what `data` of a register means (types.h): null for memory without an address that the kernels can be given. free
   * gets what alloc filled. Both are called from any thread, concurrently. */
  int32_t (*alloc)(weir_device* device, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error);
  void (*free)(weir_device* device, const weir_buf* buf);
  /* Bytes of a space now: free for the process, in all, and of the largest block that alloc could give; an unknown one
   * is left as it is (0). May be null. Any thread. The core asks before it reserves memory and when memory runs out. */
  int32_t (*mem_info)(weir_device* device, uint32_t space, uint64_t* free_bytes, uint64_t* total_bytes,
                      uint64_t* largest_bytes);
  /* As copy; may be null: then devices cannot fill memory. */
  int32_t (*memset)(weir_device* device, weir_stream* stream, const weir_buf* buf, uint8_t value, uint64_t bytes,
                    weir_error* error);
  /* Copies from host to device, from device to host, or within the device. Host memory is a weir_buf with space HOST or
   * PINNED and `host` set. With a null stream the copy is complete when the call returns. On a stream it is read and
   * written when the copy runs: the core keeps host memory alive and unchanged until then. Ranges never overlap. */
  int32_t (*copy)(weir_device* device, weir_stream* stream, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                  weir_error* error);
  /* WEIR_HEALTH_*; asked after a call has failed. May be null: the device is lost only by WEIR_ERROR_DEVICE_LOST. */
  int32_t (*health)(weir_device* device);
  /* Reserved: not called. */
  int32_t (*set_options)(weir_device* device, const weir_opt* changed, uint64_t count, weir_error* error);
} weir_device_api;

#ifdef __cplusplus
}
#endif
#endif
