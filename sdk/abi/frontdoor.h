/* frontdoor/1: a foreign protocol by which clients reach a server's master, and its client. Requests and answers cross
 * as bytes: the plugin frames, protects and limits them and does not know what they mean.
 *
 * Every function may be called from any thread, several at once, unless said. Strings and bytes that are passed are
 * borrowed for the call. A plugin runs its own threads; functions of the core called by it do not block. */
#ifndef WEIR_SDK_ABI_FRONTDOOR_H_
#define WEIR_SDK_ABI_FRONTDOOR_H_

#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_FRONT_DOOR_INTERFACE "frontdoor/1"

typedef struct weir_door_server weir_door_server; /* owned by the plugin, from serve to stop */
typedef struct weir_door_client weir_door_client; /* owned by the plugin, from connect to disconnect */

/* A call of a method. */
typedef struct weir_door_request {
  uint32_t struct_size;
  uint32_t reserved;
  weir_str method; /* without the name of the service: "RunStep" */
  weir_str body;
  weir_str peer;        /* at a server: the caller's address without its port; empty if unknown */
  int64_t time_left_ns; /* INT64_MAX: no deadline */
} weir_door_request;

/* What the core gives to a server. Calls are numbered by the plugin, from 1, never twice for a server. */
typedef struct weir_door_handler {
  uint32_t struct_size;
  uint32_t reserved;
  void* arg;
  /* The core answers with `answer`, exactly once, possibly before this returns. */
  void (*call)(void* arg, uint64_t call, const weir_door_request* request);
  /* The caller no longer waits: it gave up, or its connection ended. The call is to be answered nevertheless. Not
   * called for a call that was answered before, but an answer may come at the same time. */
  void (*cancelled)(void* arg, uint64_t call);
} weir_door_handler;

/* Text of an empty path: none. Limits of 0 are the plugin's own. */
typedef struct weir_door_options {
  uint32_t struct_size;
  int32_t inherited_socket; /* a listening descriptor that replaces the address, and that the server owns; -1: none */
  weir_str address;         /* "host:port"; at a server, port 0 lets the system choose */
  weir_str service;         /* the full name of the service: "tensorflow.MasterService" */
  weir_str tls_certificate; /* paths of PEM files: the own certificate with its chain, */
  weir_str tls_key;         /* its key, */
  weir_str tls_authorities; /* and those that certificates of peers come from, which peers then need */
  uint64_t max_request_bytes;
  uint32_t max_connections;      /* in all */
  uint32_t max_connections_host; /* of one address */
  uint32_t max_calls;            /* under way on a connection */
  uint32_t handshake_ms;         /* until a connection has sent its first call's settings */
} weir_door_options;

typedef struct weir_front_door_api {
  uint32_t struct_size;
  uint32_t reserved;
  weir_str scheme; /* of targets: "grpc" for "grpc://host:port" */

  /* Listens. `handler` is copied; its functions are called until stop returns. FAILED_PRECONDITION: the address is
   * taken; INVALID_ARGUMENT: it cannot be parsed, or a file of TLS cannot be used. */
  int32_t (*serve)(const weir_door_options* options, const weir_door_handler* handler, weir_door_server** server,
                   weir_error* error);
  /* Calls `emit` once with "host:port", the port that is bound. */
  void (*address)(weir_door_server* server, void (*emit)(void* ctx, weir_str text), void* ctx);
  /* Answers a call: with a body if `code` is WEIR_OK, else with a message. Copies both. Ignores a call that was
   * answered. */
  void (*answer)(weir_door_server* server, uint64_t call, int32_t code, weir_str message, weir_str body);
  /* Takes no more connections and calls: later ones are refused with UNAVAILABLE. Those under way continue. */
  void (*refuse)(weir_door_server* server);
  /* Ends all connections and frees the server. Every call was cancelled or answered before it returns, and no function
   * of the handler is called afterwards. Called once. */
  void (*stop)(weir_door_server* server);

  /* A client that connects on its first call, and again after a failure. */
  int32_t (*connect)(const weir_door_options* options, weir_door_client** client, weir_error* error);
  /* Begins a call, numbered by the caller from 1. `done` is called exactly once, on any thread, unless `call` returns
   * an error. */
  int32_t (*call)(weir_door_client* client, uint64_t call, const weir_door_request* request,
                  void (*done)(void* arg, int32_t code, weir_str message, weir_str body), void* arg,
                  weir_error* error);
  /* The call ends soon, with CANCELLED. Ignores a call that has ended. */
  void (*cancel)(weir_door_client* client, uint64_t call);
  /* Cancels all calls, waits for their `done`, and frees the client. Called once. */
  void (*disconnect)(weir_door_client* client);

  /* Optional. Connections that are made later meet the certificates in these files; those that are there stay. Of the
   * options only the paths of TLS are read. INVALID_ARGUMENT: a file cannot be used; FAILED_PRECONDITION: the server
   * began without TLS, or with it and now gets none. The server is unchanged then. */
  int32_t (*renew)(weir_door_server* server, const weir_door_options* options, weir_error* error);
} weir_front_door_api;

#ifdef __cplusplus
}
#endif
#endif
