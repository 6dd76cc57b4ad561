// Listening sockets that the parent process opened, by systemd's convention: LISTEN_FDS sockets from descriptor 3 on,
// for the process LISTEN_PID.
#ifndef WEIR_CORE_CLUSTER_INHERITED_H_
#define WEIR_CORE_CLUSTER_INHERITED_H_

namespace weir::cluster {

/// The next such socket, each once, with its descriptor closed in child processes; -1 if there is none. Thread-safe.
int TakeInheritedSocket();

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_INHERITED_H_
