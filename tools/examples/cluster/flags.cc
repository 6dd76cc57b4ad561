#include "tools/examples/cluster/flags.h"

#include <charconv>

#include "core/base/errors.h"

namespace weir::trainer {
namespace {

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Status ReadNumber(const std::string& flag, const std::string& text, int& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && rest == text.data() + text.size() && number >= 0) return Status();
  return InvalidArgument("{}: wanted a number, got '{}'", flag, text);
}

}  // namespace

Result<Flags> ParseFlags(const std::vector<std::string>& words) {
  Flags flags;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "true" : word.substr(equals + 1);
    if (name == "--ps_hosts") {
      flags.ps_hosts = SplitAtCommas(value);
    } else if (name == "--worker_hosts") {
      flags.worker_hosts = SplitAtCommas(value);
    } else if (name == "--job_name") {
      flags.job_name = value;
    } else if (name == "--task_index") {
      WEIR_TRY(ReadNumber(name, value, flags.task_index));
    } else if (name == "--steps") {
      WEIR_TRY(ReadNumber(name, value, flags.steps));
    } else if (name == "--sync") {
      flags.sync = value != "false" && value != "0";
    } else {
      return InvalidArgument("unknown flag '{}': there are --ps_hosts, --worker_hosts, --job_name, --task_index, "
                             "--steps and --sync", word);
    }
  }
  if (flags.ps_hosts.empty() || flags.worker_hosts.empty()) {
    return InvalidArgument("--ps_hosts and --worker_hosts: wanted host:port, separated by commas");
  }
  if (flags.job_name != "ps" && flags.job_name != "worker") {
    return InvalidArgument("--job_name: wanted ps or worker, got '{}'", flags.job_name);
  }
  return flags;
}

}  // namespace weir::trainer
