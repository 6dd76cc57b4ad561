// Runs the command `weir` as a process with arguments, an environment, two outputs and an exit status.
#ifndef WEIR_TESTS_E2E_CLI_PROCESS_H_
#define WEIR_TESTS_E2E_CLI_PROCESS_H_

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::testing {

/// The end of a process. `status` is 128 + the signal if a signal ended it.
struct Ended {
  int status = -1;
  std::string out;
  std::string err;

  /// `out` as JSON; a discarded value if it is not JSON.
  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
  /// The first line of `err`.
  std::string first_error_line() const { return err.substr(0, err.find('\n')); }
};

/// Runs build/…/bin/weir with these words and these changes of the environment (an empty value unsets).
Ended Weir(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {});

/// The same on a terminal, where `out` has both outputs.
Ended WeirOnTerminal(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {});

/// A folder that is removed at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::filesystem::path path_;
};

std::string ReadWhole(const std::string& path);

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_CLI_PROCESS_H_
