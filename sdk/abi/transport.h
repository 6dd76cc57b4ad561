/* transport/1: carries messages between processes. A process listens, or connects to one that does, and calls it: a
 * request with a method, meta and bodies, and one reply of the same form. The plugin knows frames, connections and
 * peers; what methods, meta and bodies mean is the core's affair. Meta is small (WEIR_TRANSPORT_META_BYTES); bodies
 * are of any size and land where the receiver says, so that no length from outside makes the plugin allocate.
 *
 * Functions may be called from any thread, several at once, also from callbacks. They do not wait for a peer, except as
 * said at each. Callbacks come on threads of the plugin, and on a thread that is within `call` or `reply`; they must
 * not block, and several may come at once, but those of one call come one after the other. Times are in ms. */
#ifndef WEIR_SDK_ABI_TRANSPORT_H_
#define WEIR_SDK_ABI_TRANSPORT_H_

#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TRANSPORT_INTERFACE "transport/1"

#define WEIR_TRANSPORT_META_BYTES 1000000 /* of one message, at most */
#define WEIR_TRANSPORT_BODIES 65536       /* of one message, at most */
#define WEIR_TRANSPORT_TOLD_BYTES 65536   /* of the bodies of a message that is told, at most */

typedef struct weir_listener weir_listener; /* the plugin's */
typedef struct weir_channel weir_channel;   /* the plugin's: the way to one address */
typedef struct weir_incoming weir_incoming; /* the plugin's: a request that waits for its reply */

/* A range of bytes; `data` may be null when `size` is 0. Frozen. */
typedef struct weir_bytes {
  const void* data;
  uint64_t size;
} weir_bytes;

/* Flags of an end. */
enum {
  WEIR_END_INSECURE = 1u,   /* listens beyond this machine without a token and TLS */
  WEIR_END_SOCKET_ONLY = 2u /* bodies never go through memory that processes of this machine share */
};

/* This process, and what protects its connections. Borrowed for the call. */
typedef struct weir_transport_end {
  uint32_t struct_size;
  uint32_t flags; /* WEIR_END_* */
  weir_str job;   /* empty: no task of a cluster */
  uint32_t task;
  uint32_t peer_timeout_ms; /* silence after which a peer counts as lost */
  uint64_t incarnation;     /* of this process; not 0 */
  weir_str cluster;         /* peers of another cluster are refused */
  weir_str token;           /* the shared secret; empty = none */
  weir_str tls_certificate; /* paths of PEM files; empty = no TLS */
  weir_str tls_key;
  weir_str tls_authorities;
} weir_transport_end;

/* A message. The sender's bytes. */
typedef struct weir_message {
  uint32_t struct_size;
  uint32_t method; /* of a request; 0 in a reply */
  weir_bytes meta;
  const weir_bytes* bodies;
  uint64_t body_count;
} weir_message;

/* What arrived of a message before its bodies. Borrowed for the call. */
typedef struct weir_arrival {
  uint32_t struct_size;
  uint32_t method;
  weir_bytes meta;
  const uint64_t* body_bytes; /* `body_count` sizes as the peer states them */
  uint64_t body_count;
  uint64_t time_left_ms; /* of a request; UINT64_MAX without a deadline */
  weir_str peer;         /* of a request: "/job:worker/task:1 at 10.0.0.7", or the host of a peer that is no task */
  uint64_t incarnation;  /* of the peer */
} weir_arrival;

/* Serves requests. */
typedef struct weir_service {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  /* A request begins. Sets `*call` to the core's object for it, and for every body `to[i]` to memory of its size, which
   * stays valid until `ended`. An error is the reply; `*call` is then not used. */
  int32_t (*begin)(void* ctx, weir_incoming* incoming, const weir_arrival* request, void** to, void** call,
                   weir_error* error);
  /* All bodies are there. The core calls `reply` once, in this call or later. */
  void (*received)(void* call);
  /* The caller gave up or its connection ended, with the reason; at most once, after `begin`, also before `received`,
   * which then does not come. */
  void (*cancelled)(void* call, int32_t code, weir_str reason);
  /* The last call: the plugin no longer uses the memory of the request and of its reply. */
  void (*ended)(void* call);
  /* The plugin uses `ctx` no more. */
  void (*release)(void* ctx);
  /* Optional. A message of the caller (`tell`), after `begin` and perhaps before `received`; `body` has its bodies, one
   * after the other, for this call. An error is the reply, and `cancelled` follows. */
  int32_t (*told)(void* call, const weir_arrival* message, const void* body, weir_error* error);
} weir_service;

/* Receives the reply to a call. */
typedef struct weir_receiver {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  /* A reply begins: as `begin` of a service. The memory stays valid until `done`. */
  int32_t (*place)(void* ctx, const weir_arrival* reply, void** to, weir_error* error);
  /* The last call, exactly once, perhaps before `call` returns: WEIR_OK after `place` and all bodies, or an error. The
   * plugin no longer uses the memory of the request and of the reply. */
  void (*done)(void* ctx, int32_t code, weir_str text);
  /* Optional. A message before the reply (`tell_caller`), as `told` of a service. An error ends the call. */
  int32_t (*told)(void* ctx, const weir_arrival* message, const void* body, weir_error* error);
} weir_receiver;

/* Flags of a call: what it does without a connection. By default it makes one attempt to connect, together with others
 * that wait, and ends with UNAVAILABLE if that fails. */
enum {
  WEIR_CALL_WAIT = 1u,        /* waits for the peer until its deadline; the error has the last reason */
  WEIR_CALL_IF_CONNECTED = 2u /* ends at once with UNAVAILABLE */
};

typedef struct weir_transport_api {
  uint32_t struct_size;
  uint32_t reserved;
  weir_str scheme; /* of addresses: "weir" */

  /* Listens on "host:port", port 0 = any; on "unix:/path"; or, if `inherited` is not negative, on that descriptor,
   * which the plugin then owns. INVALID_ARGUMENT for an address that cannot be understood or resolved,
   * FAILED_PRECONDITION if it is taken, or neither on this machine nor protected (WEIR_END_INSECURE). Copies `service`
   * and calls its `release` also after an error. */
  int32_t (*listen)(const weir_transport_end* self, const weir_service* service, weir_str address, int32_t inherited,
                    weir_listener** listener, weir_error* error);
  /* "host:port" with the actual port; valid until `close`. */
  weir_str (*address)(const weir_listener* listener);
  /* Tells the peers that this process will soon stop. */
  void (*drain)(weir_listener* listener);
  /* Ends all connections and cancels their requests; waits until the address is free, unless it is called from a
   * callback. Requests without a reply get theirs as before, and it goes nowhere. The listener is gone. */
  void (*close)(weir_listener* listener);

  /* A way to `address`, which connects on the first call, and again after a failure. `peer`: "/job:ps/task:0" if only
   * that task may answer, else empty. */
  int32_t (*connect)(const weir_transport_end* self, weir_str address, weir_str peer, weir_channel** channel,
                     weir_error* error);
  /* Ends its calls with CANCELLED, perhaps after this returns. The channel is gone. */
  void (*disconnect)(weir_channel* channel);
  /* Sends a request. Meta is copied; bodies are borrowed until `done`. `time_left_ms`: UINT64_MAX = no deadline; at the
   * deadline the call ends with DEADLINE_EXCEEDED. A request is sent once: if the connection ends before the reply, the
   * call ends with UNAVAILABLE. The result is a number for `cancel`; errors come by `done`. */
  uint64_t (*call)(weir_channel* channel, const weir_message* request, uint32_t flags, uint64_t time_left_ms,
                   const weir_receiver* receiver);
  /* Ends a call with CANCELLED unless it has ended, and tells the peer. */
  void (*cancel)(weir_channel* channel, uint64_t call);
  /* The reply to a request whose `received` came: an error with its text (`message` is then null), or a message. Meta
   * and text are copied; bodies are borrowed until `ended`. */
  void (*reply)(weir_incoming* incoming, int32_t code, weir_str text, const weir_message* message);

  /* Optional. From now on new connections of all listeners and channels with the incarnation of `self` use its token
   * and TLS, whose files are read again; those that are open stay. After an error nothing has changed. */
  int32_t (*renew)(const weir_transport_end* self, weir_error* error);

  /* Optional. The calling thread receives for the plugin instead of waiting until another thread has received and
   * wakes it: callbacks come on it. Until `over(arg)` is not 0, which the plugin asks before it begins and after what
   * has come, on the calling thread and without a lock of its own; and for `most_us` at most. 1 if it did; 0 at once
   * where another thread has to receive, from a callback, and while the plugin stops: the caller then waits by itself.
   * What makes `over` true elsewhere need not wake the thread, so `most_us` is short; `over` may still be 0 after 1.
   * `most_us` 0, from what `run_after` runs: it will wait by itself, and another thread receives at once. */
  int32_t (*receive)(int32_t (*over)(void* arg), void* arg, uint64_t most_us);
  /* Optional. Only within a callback: runs `fn(arg)` once, on this thread, when the callback has returned. `fn` may
   * block and may call `receive`; if it takes long, another thread receives meanwhile. It holds up nothing, not even
   * the shutdown of the plugin. 1 if it will run; 0, and it will not, elsewhere, while the plugin has such a function
   * to run, and without a thread to receive instead. */
  int32_t (*run_after)(void (*fn)(void* arg), void* arg);

  /* Optional, both or none. Messages of a call beside its request and reply, in either direction: small ones, which are
   * copied. They come to the other side in order, after the request and before the reply, and are lost only with the
   * call. `tell` is for calls that were begun, `tell_caller` for requests whose `received` came and that have no reply;
   * a message for a call that has ended is dropped. 1, or 0 for a message that is too large. */
  int32_t (*tell)(weir_channel* channel, uint64_t call, const weir_message* message);
  int32_t (*tell_caller)(weir_incoming* incoming, const weir_message* message);
} weir_transport_api;

#ifdef __cplusplus
}
#endif
#endif
