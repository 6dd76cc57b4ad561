// Messages over a bare TCP connection on loopback: the limit of everything that crosses one.
#ifndef WEIR_TESTS_BENCH_RAW_TCP_H_
#define WEIR_TESTS_BENCH_RAW_TCP_H_

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

namespace weir::bench {

/// False if the connection ended.
inline bool SendAll(int to, const void* data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t sent = ::send(to, static_cast<const char*>(data) + at, bytes - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}
inline bool ReceiveAll(int from, void* data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = ::recv(from, static_cast<char*>(data) + at, bytes - at, 0);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

/// As ReceiveAll, by a thread that does not sleep.
inline bool PollAll(int from, void* data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = ::recv(from, static_cast<char*>(data) + at, bytes - at, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    if (got > 0) at += static_cast<size_t>(got);
  }
  return true;
}

/// Listens on a port of loopback, which `at` gets; -1 on failure.
inline int ListenOnLoopback(sockaddr_in& at) {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(listening, 1) != 0) return -1;
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size);
  return listening;
}
inline void NoDelay(int connection) {
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_RAW_TCP_H_
