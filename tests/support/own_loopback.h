// An address of loopback for the servers of one test process.
#ifndef WEIR_TESTS_SUPPORT_OWN_LOOPBACK_H_
#define WEIR_TESTS_SUPPORT_OWN_LOOPBACK_H_

#include <unistd.h>

#include <string>

namespace weir::testing {

/// "127.a.b.c" by the process id. Nobody else listens there, so that a port that a server has left stays free for the
/// next.
inline std::string OwnLoopback() {
  const int id = getpid();
  return "127." + std::to_string(64 + (id >> 16) % 64) + "." + std::to_string((id >> 8) % 256) + "." +
         std::to_string(id % 256);
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_OWN_LOOPBACK_H_
