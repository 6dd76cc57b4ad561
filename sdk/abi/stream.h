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
  /* A higher priority runs earlier if the hardware supports priorities; 0 is the default, and all that the core asks
   * for yet. destroy waits for the stream's work. The core keeps streams and events between steps. */
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
  /* Makes later work on the stream fail with `code` and the message; the first poison wins. May be null. */
  void (*poison)(weir_stream* stream, int32_t code, weir_str message);

  /* Between begin and end work on the stream is recorded, not run; launches run it, on any stream of the device. The
   * core records CAPTURABLE kernels behind each other when they run for the third time with the same registers. It
   * frees a capture when no launch of it is on its way. Inside a capture: no query, sync or on_complete. */
  int32_t (*capture_begin)(weir_stream* stream, weir_error* error);
  int32_t (*capture_end)(weir_stream* stream, weir_capture** capture, weir_error* error);
  int32_t (*capture_launch)(weir_capture* capture, weir_stream* stream, weir_error* error);
  void (*capture_free)(weir_capture* capture);

  /* Since 1.1; both may be null. mark: work that any function enqueues on the stream from here on belongs to `mark`,
   * until the next call; 0 at first. It costs a few nanoseconds, enqueues nothing and cannot fail; called before each
   * piece of work, by the thread that uses the stream. failed_mark: the mark of the work whose failure poisoned the
   * stream, also if that was enqueued on another stream for which this one waited; 0 if unknown or not poisoned. With
   * both, an error that comes late is reported with the node whose work failed. */
  void (*mark)(weir_stream* stream, uint64_t mark);
  uint64_t (*failed_mark)(weir_stream* stream);
} weir_stream_api;

#ifdef __cplusplus
}
#endif
#endif
