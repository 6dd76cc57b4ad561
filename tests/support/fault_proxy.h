// A proxy between the ends of TCP connections that does to their bytes what networks do.
#ifndef WEIR_TESTS_SUPPORT_FAULT_PROXY_H_
#define WEIR_TESTS_SUPPORT_FAULT_PROXY_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::testing {

/// A direction through the proxy.
enum class Way : uint8_t { kToServer, kToClient };

/// What happens to the bytes of one direction. Each stream is cut into pieces whose sizes follow from the seed, the
/// number of the connection and the direction; so do the pieces that a fault meets. How the kernel delivers the bytes
/// changes neither.
struct Faults {
  static constexpr uint64_t kNever = UINT64_MAX;

  bool hold = false;     // no byte passes until the hold is lifted
  bool swallow = false;  // bytes are read and lost
  std::chrono::milliseconds delay{0}, jitter{0};  // each piece waits this long, and a random part of the jitter
  uint64_t bytes_per_second = 0;                  // 0: as fast as they come
  /// Bytes after which both sides get a reset, or the receiver an end.
  uint64_t reset_after = kNever, end_after = kNever;
  /// Of a thousand pieces: lost; sent twice; sent behind the next one; with a flipped bit.
  int drop = 0, repeat = 0, swap = 0, corrupt = 0;
  /// Of a thousand pieces: lost by a network that TCP makes good. Each comes 200 ms later, or after twice the time for
  /// each further loss of it, and what follows it waits.
  int lose = 0;
  int most = 1 << 30;  // pieces of a connection that may be met
};

/// Listens on a port of loopback and passes connections on to a server. All faults are those that are set when a byte
/// arrives; counts of bytes and pieces begin anew with each Set. Thread-safe; has a thread of its own.
class FaultProxy {
 public:
  /// `server`: "host:port", dialled for each connection.
  explicit FaultProxy(const std::string& server, uint64_t seed = 1);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  /// "localhost:port".
  const std::string& address() const;
  /// The server of later connections.
  void Serve(const std::string& server);

  // In force when they return.
  void Set(Way way, const Faults& faults);
  /// In both directions.
  void SetAll(const Faults& faults);
  /// No fault any more; what was held goes on.
  void Heal() { SetAll({}); }
  /// New connections are not accepted, but wait at the port.
  void PauseAccept();
  void ResumeAccept();
  /// All connections: both sides get a reset, or an end.
  void Reset();
  void End();
  /// All connections: the server's side is reset, the client's stays open and silent.
  void HalfOpen();

  struct Counts {
    uint64_t accepted = 0, open = 0;  // connections
    uint64_t to_server = 0, to_client = 0;  // bytes that were passed on
    uint64_t met = 0;  // pieces that met a fault
  };
  Counts counts() const;

 private:
  class Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_FAULT_PROXY_H_
