// Times every kernel on the rows of tests/ops/cases: "weir_op_bench [OP…]" prints op, kernel set, row and ns of a call.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/ops/case_run.h"

int main(int argc, char** argv) {
  using namespace weir;
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  if (!runtime.ok()) {
    fmt::print(stderr, "weir_op_bench: {}\n", runtime.status().ToString());
    return 1;
  }
  for (const testing::OpCase& c : testing::OpCases()) {
    if (!c.first || c.fails) continue;
    if (!wanted.empty() && std::ranges::find(wanted, c.def->name) == wanted.end()) continue;
    for (const std::shared_ptr<device::Device>& device : (*runtime)->plugins->devices().all()) {
      for (const kernel::KernelEntry* entry : (*runtime)->plugins->kernels().Find(c.view(), device->info().platform)) {
        const Result<double> ns = testing::TimeKernel(*entry, c, *device);
        if (!ns.ok()) continue;  // it declines the row, or has another form only
        fmt::print("{:<24} {:<18} {:>12.1f} ns  {}\n", c.def->name, entry->plugin, *ns, c.text.substr(0, 80));
      }
    }
  }
}
