// Tables of passes, and the runner that times, verifies and shows each of them.
#ifndef WEIR_CORE_BASE_PASSES_H_
#define WEIR_CORE_BASE_PASSES_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir {

/// A row of a table of passes over a T. `context` holds the other inputs.
template <class Context, class T>
struct Pass {
  const char* name;
  Status (*run)(const Context& context, T& subject);
};

/// A pass that ran.
struct PassReport {
  std::string_view stage;  // such as "optimize"
  std::string_view pass;
  int64_t ns = 0;
  const std::function<std::string()>& text;  // prints the subject as the pass left it
};
using PassWatch = std::function<void(const PassReport&)>;

struct PassOptions {
  /// Names of passes to skip.
  std::vector<std::string> disabled;
  /// Verifies the subject after each pass. A violation is Internal and names the pass.
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  /// Called after each pass, if set.
  PassWatch watch;
};

/// Runs the table in order up to the first error. `verify` and `print` take the subject.
template <class Table, class Context, class T, class Verify, class Print>
Status RunPasses(const PassOptions& options, std::string_view stage, const Table& table, const Context& context,
                 T& subject, const Verify& verify, const Print& print) {
  using Clock = std::chrono::steady_clock;
  const std::function<std::string()> text = [&] { return print(subject); };
  for (const auto& pass : table) {
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end()) continue;
    const Clock::time_point begin = options.watch ? Clock::now() : Clock::time_point();
    WEIR_TRY(pass.run(context, subject));
    const int64_t ns = options.watch ? std::chrono::nanoseconds(Clock::now() - begin).count() : 0;
    if (options.verify) {
      const Status sound = verify(subject);
      if (!sound.ok()) return sound.Prepend("after " + std::string(stage) + "/" + pass.name + ": ");
    }
    if (options.watch) options.watch({stage, pass.name, ns, text});
  }
  return Status();
}

}  // namespace weir

#endif  // WEIR_CORE_BASE_PASSES_H_
