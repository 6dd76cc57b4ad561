#include "core/cluster/inherited.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace weir::cluster {
namespace {

constexpr int kFirstInherited = 3;

/// -1 if the variable is not a number.
int NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  const std::string_view view = text == nullptr ? std::string_view() : text;
  int number = -1;
  const auto [rest, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  return error == std::errc() && rest == view.data() + view.size() ? number : -1;
}

bool Listens(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

}  // namespace

int TakeInheritedSocket() {
  static std::atomic<int> taken{0};
  if (NumberIn("LISTEN_PID") != getpid()) return -1;
  const int number = taken++;
  const int descriptor = kFirstInherited + number;
  if (number >= NumberIn("LISTEN_FDS") || !Listens(descriptor)) return -1;
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return -1;
  return descriptor;
}

}  // namespace weir::cluster
