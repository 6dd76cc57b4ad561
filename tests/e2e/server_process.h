// A process that a test starts, whose lines it reads while it runs.
#ifndef WEIR_TESTS_E2E_SERVER_PROCESS_H_
#define WEIR_TESTS_E2E_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

/// Killed at the end of the test if it still runs; what it wrote is printed if the test failed. Single-threaded.
class ServerProcess {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  /// `words`: the program's path and its arguments. Its variables are those of the test and `variables`.
  explicit ServerProcess(const std::vector<std::string>& words, const Variables& variables = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Reads lines of its output until one contains `text`; returns what follows it. Empty at the end of the output.
  std::string ReadPast(const std::string& text);
  /// Everything that has been read from it, and what it writes until its end.
  std::string ReadAll();
  void Signal(int number) const;
  /// Waits for its end; 128 + n if signal n ended it.
  int Wait();
  pid_t pid() const { return pid_; }

 private:
  void PrintRest();

  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;  // standard output and error
  std::string read_;
  int status_ = -1;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_SERVER_PROCESS_H_
