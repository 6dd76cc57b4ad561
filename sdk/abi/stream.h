/* stream/1: ordered queues of device work and binary events between them. A device without this table is synchronous:
 * all work is complete when its call returns.
 *
 * `record` marks the work enqueued on a stream so far; `wait` refers to the event's latest record at the time of the
 * call and ignores later ones. An event must be recorded before a wait on it. Re-record an event only after every
 * wait on its previous record has been enqueued. A stream is used by one thread at a time, though not always the
 * same thread. The default stream of a platform is never used. */
#ifndef WEIR_SDK_ABI_STREAM_H_
#define WEIR_SDK_ABI_STREAM_H_

#include "sdk/abi/device.h"
#include "sdk/abi/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_STREAM_INTERFACE "stream/1"

typedef struct weir_event weir_event;     /* owned by the plugin */
typedef struct weir_capture weir_capture; /* a recorded sequence that can be launched again */

enum { WEIR_EVENT_PENDING = 0, WEIR_EVENT_DONE = 1, WEIR_EVENT_FAILED = 2 };

typedef struct weir_stream_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* A higher priority runs earlier if the hardware supports priorities; 0 is the default. destroy waits for the
   * stream's work. */
  int32_t (*stream_create)(weir_device* device, int32_t priority, weir_stream** stream, weir_error* error);
  void (*stream_destroy)(weir_device* device, weir_stream* stream);
  int32_t (*event_create)(weir_device* device, weir_event** event, weir_error* error);
  void (*event_destroy)(weir_device* device, weir_event* event);

  int32_t (*record)(weir_stream* stream, weir_event* event, weir_error* error);
  int32_t (*wait)(weir_stream* stream, weir_event* event, weir_error* error);
  /* WEIR_EVENT_*, without blocking. */
  int32_t (*query)(weir_event* event);
  /* Blocks until the event's latest record is reached. Returns the error that poisoned its stream, if any. */
  int32_t (*sync)(weir_event* event, weir_error* error);
  /* Calls fn once, on any thread, when the event's latest record is reached. After a failure it is called too, with
   * a code other than 0. fn only enqueues host work and calls no blocking device function. */
  int32_t (*on_complete)(weir_event* event, void (*fn)(void* arg, int32_t code), void* arg, weir_error* error);
  /* Makes later work on the stream fail with `code` and the message; the first poison wins. */
  void (*poison)(weir_stream* stream, int32_t code, weir_str message);

  /* Optional, with WEIR_DEVICE_GRAPH_CAPTURE. Between begin and end work on the stream is recorded, not run. Inside a
   * capture: waits only on events of that capture, side streams joined before its end, no query, sync or on_complete.
   */
  int32_t (*capture_begin)(weir_stream* stream, weir_error* error);
  int32_t (*capture_end)(weir_stream* stream, weir_capture** capture, weir_error* error);
  int32_t (*capture_launch)(weir_capture* capture, weir_stream* stream, weir_error* error);
  void (*capture_free)(weir_capture* capture);
} weir_stream_api;

#ifdef __cplusplus
}
#endif
#endif
