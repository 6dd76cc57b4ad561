#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "tests/bench/limit_loops.h"
#include "tests/bench/measure.h"
#include "tests/bench/workloads.h"

extern char** environ;

namespace weir::bench {
namespace {

void Nothing(void*) {}

void AddOne(void* state) { *static_cast<volatile float*>(state) = *static_cast<volatile float*>(state) + 1; }

double CallsNs(void (*target)(void*), int calls) {
  struct Entry {
    void (*fn)(void*);
    void* state;
  };
  float value = 0;
  const std::vector<Entry> tape(static_cast<size_t>(calls), Entry{target, &value});
  const volatile Entry* entries = tape.data();
  return TimeNs([&] {
           for (int i = 0; i < calls; ++i) entries[i].fn(entries[i].state);
         }) /
         calls;
}

}  // namespace

double IndirectCallNs(int calls) { return CallsNs(Nothing, calls); }
double IndirectAddNs(int calls) { return CallsNs(AddOne, calls); }

double NameIndexNs(int names) {
  std::vector<std::string> all;
  for (int i = 0; i < names; ++i) all.push_back("layer/node_" + std::to_string(i));
  return TimeNs([&] {
    std::unordered_map<std::string_view, int> index;
    index.reserve(all.size());
    for (int i = 0; i < names; ++i) index.emplace(all[static_cast<size_t>(i)], i);
    volatile int sum = 0;
    for (int round = 0; round < 2; ++round) {
      for (const std::string& name : all) sum = sum + index.find(name)->second;
    }
  });
}

double ScaleNs(int64_t floats, int repeats, Pass pass) {
  // In adjacent arrays stores would conflict with loads; these arrays are half a page apart.
  constexpr size_t kApart = 512;
  const auto count = static_cast<size_t>(floats) / 64 * 64;
  const Floats from = MakeFloats(count, 1.0f), to = MakeFloats(count + kApart, 1.0f);
  float* const target = pass == Pass::kInPlace ? from.get() : to.get() + kApart;
  return TimeNs([&] {
           for (int r = 0; r < repeats; ++r) Scale(from.get(), target, count, 1.0f);
         }) /
         repeats;
}

double StartProcessNs(const std::string& program, const std::string& argument) {
  int status = -1;
  const double ns = TimeNs([&] {
    std::string name = program, mode = argument;
    char* arguments[] = {name.data(), mode.data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0) waitpid(child, &status, 0);
  });
  return status == 0 ? ns : -1;
}

double DigitsProductsNs(int repeats) {
  // Forward 32x64x32 and 32x32x10; backward the second one twice and the first one once (the input has no gradient).
  constexpr double kFlops = 2.0 * (2 * 32 * 64 * 32 + 3 * 32 * 32 * 10);
  return TimeNs([&] { MultiplyAdds(kFlops * repeats); }) / repeats;
}

}  // namespace weir::bench
