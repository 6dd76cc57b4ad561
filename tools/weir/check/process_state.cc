#include "tools/weir/check/process_state.h"

#include <fenv.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "core/base/errors.h"

namespace weir::check {
namespace {

namespace fs = std::filesystem;

std::map<int, std::string> OpenFiles() {
  std::map<int, std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    // The iterator's own descriptor refers to the folder it lists.
    if (!gone && target.find("/fd") == std::string::npos) files[std::atoi(entry.path().filename().c_str())] = target;
  }
  return files;
}

int CountThreads() {
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task", error)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

// Ranges of addresses, from /proc/self/maps.
struct Mapping {
  uint64_t begin = 0, end = 0;
  bool readable = false, executable = false;
  std::string file;

  bool Has(uint64_t address) const { return address >= begin && address < end; }
};

std::vector<Mapping> Mappings() {
  std::vector<Mapping> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Mapping mapping;
    char dash = 0;
    std::string access, skipped;
    words >> std::hex >> mapping.begin >> dash >> mapping.end >> access >> skipped >> skipped >> skipped;
    std::getline(words >> std::ws, mapping.file);
    mapping.readable = access.starts_with('r');
    mapping.executable = access.find('x') != std::string::npos;
    all.push_back(std::move(mapping));
  }
  return all;
}

// The stack pointer of a thread that waits in the kernel; 0 if it is not known.
uint64_t StackPointer(const fs::path& task) {
  std::ifstream file(task / "syscall");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  return all.size() < 3 ? 0 : std::strtoull(all[all.size() - 2].c_str(), nullptr, 16);
}

// Words of a stack may be written meanwhile, so that they are read by a system call.
bool CallsInto(uint64_t pointer, const Mapping& stack, const std::vector<Mapping>& code) {
  constexpr uint64_t kMost = uint64_t{1} << 20;
  std::vector<uint64_t> words(std::min(stack.end - pointer, kMost) / sizeof(uint64_t));
  iovec here{words.data(), words.size() * sizeof(uint64_t)};
  iovec there{reinterpret_cast<void*>(pointer), here.iov_len};
  const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  words.resize(got > 0 ? static_cast<size_t>(got) / sizeof(uint64_t) : 0);
  return std::ranges::any_of(words, [&](uint64_t word) {
    return std::ranges::any_of(code, [&](const Mapping& part) { return part.Has(word); });
  });
}

}  // namespace

int ThreadsIn(const std::string& path) {
  std::vector<Mapping> all = Mappings(), code;
  for (const Mapping& mapping : all) {
    if (mapping.executable && mapping.file == path) code.push_back(mapping);
  }
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task", error)) {
    if (entry.path().filename() == std::to_string(getpid())) continue;
    const uint64_t pointer = StackPointer(entry.path());
    const auto stack =
        std::ranges::find_if(all, [&](const Mapping& mapping) { return mapping.readable && mapping.Has(pointer); });
    if (stack != all.end() && CallsInto(pointer, *stack, code)) ++count;
  }
  return count;
}

ProcessState ProcessState::Now() {
  ProcessState state;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    state.environment.emplace_back(*variable);
  std::sort(state.environment.begin(), state.environment.end());
  std::error_code error;
  state.folder = fs::current_path(error).string();
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    state.signal_handlers.push_back(reinterpret_cast<const void*>(action.sa_handler));
  }
  state.rounding = fegetround();
  state.exception_mask = fegetexcept();
  state.files = OpenFiles();
  state.threads = CountThreads();
  return state;
}

Status SameSurroundings(const ProcessState& before, const ProcessState& after) {
  if (before.environment != after.environment) {
    std::vector<std::string> changed;
    std::set_symmetric_difference(before.environment.begin(), before.environment.end(), after.environment.begin(),
                                  after.environment.end(), std::back_inserter(changed));
    return FailedPrecondition("the environment changed: {}", changed.front());
  }
  if (before.folder != after.folder) return FailedPrecondition("the working folder changed to {}", after.folder);
  for (size_t i = 0; i < before.signal_handlers.size(); ++i) {
    if (before.signal_handlers[i] == after.signal_handlers[i]) continue;
    return FailedPrecondition("the handler of signal {} changed", i + 1);
  }
  if (before.rounding != after.rounding || before.exception_mask != after.exception_mask) {
    return FailedPrecondition("the floating-point mode changed");
  }
  return {};
}

Status SameActivity(const ProcessState& before, const ProcessState& after) {
  for (const auto& [number, target] : after.files) {
    if (!before.files.contains(number)) return FailedPrecondition("descriptor {} is open: {}", number, target);
  }
  if (after.threads > before.threads) {
    return FailedPrecondition("{} threads run, {} did before", after.threads, before.threads);
  }
  return {};
}

}  // namespace weir::check
