// Accepts connections, and refuses those beyond the limits before gRPC sees them.
#ifndef WEIR_PLUGINS_GRPC_BACKEND_ACCEPTOR_H_
#define WEIR_PLUGINS_GRPC_BACKEND_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace weir_grpc {

struct AcceptLimits {
  uint32_t connections = 4096;
  uint32_t connections_of_host = 1024;
};

/// A listening socket with a thread. A connection is watched until its peer or the user of the descriptor ends it.
class Acceptor {
 public:
  /// Gets the descriptor of a connection, which it owns from then on.
  using Take = std::function<void(int fd)>;
  Acceptor() = default;
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Binds and listens, or takes `inherited` (not -1). Empty if it succeeded, else the reason; `taken` tells that the
  /// address is in use.
  std::string Listen(const std::string& host, const std::string& port, int inherited, bool* taken);
  /// "127.0.0.1:40001", "[::1]:40001".
  std::string Address() const;
  int listening() const { return listening_; }
  /// Begins to accept.
  void Start(const AcceptLimits& limits, Take take);
  /// Closes the socket. Connections live on. Repeated calls have no effect.
  void Stop();

 private:
  struct Watched {
    int copy = -1;  // of the connection's descriptor
    std::string host;
  };
  void Loop();
  void AcceptOne();
  void Forget(int copy);
  void ReplaceSpare();

  int listening_ = -1, wake_ = -1, polled_ = -1, spare_ = -1;
  AcceptLimits limits_;
  Take take_;
  std::thread thread_;
  // Of the thread.
  std::map<int, Watched> watched_;
  std::map<std::string, uint32_t> of_host_;
};

}  // namespace weir_grpc

#endif  // WEIR_PLUGINS_GRPC_BACKEND_ACCEPTOR_H_
