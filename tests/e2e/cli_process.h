// The command `weir` as its users meet it: a process with words, an environment, two outputs and an exit status.
#ifndef WEIR_TESTS_E2E_CLI_PROCESS_H_
#define WEIR_TESTS_E2E_CLI_PROCESS_H_

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::testing {

/// How a process ended. `status` is 128 + the signal when one ended it.
struct Ended {
  int status = -1;
  std::string out;
  std::string err;

  /// `out` as JSON; a discarded value when it is none.
  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
  /// The first line of `err`.
  std::string first_error_line() const { return err.substr(0, err.find('\n')); }
};

/// Runs build/…/bin/weir with these words and these changes of the environment (an empty value unsets).
Ended Weir(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {});

/// The same on a terminal, where both outputs come together in `out`.
Ended WeirOnTerminal(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {});

/// A folder that goes when the test ends.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and gives its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::filesystem::path path_;
};

std::string ReadWhole(const std::string& path);

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_CLI_PROCESS_H_
