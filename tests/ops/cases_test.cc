// The tables of op cases on every kernel of every plugin, in every mode; the asynchronous device has a test of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/ops/declare_all.h"
#include "tests/ops/case_run.h"
#include "tests/support/test_device.h"
#include "tools/weir/cases/case_values.h"

namespace weir::testing {
namespace {

std::shared_ptr<session::Runtime> Plugins() {
  plugin::LoadOptions options;
  options.config.plugins.isa = TestIsa();
  Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  return runtime.ok() ? *runtime : nullptr;
}

TEST(OpCases, EveryKernelInEveryMode) {
  const std::shared_ptr<session::Runtime> runtime = Plugins();
  ASSERT_NE(runtime, nullptr);
  std::map<CallMode, int> calls;
  std::set<std::string> declined;  // rows that no kernel took
  std::set<std::string> taken;
  for (const OpCase& c : OpCases()) {
    for (const std::shared_ptr<device::Device>& device : runtime->plugins->devices().all()) {
      for (const kernel::KernelEntry* entry : runtime->plugins->kernels().Find(c.view(), device->info().platform)) {
        declined.insert(c.text);
        for (const CallMode mode : kCallModes) {
          const Status status = RunKernel(*entry, c, *device, mode);
          if (status.code() == Code::kUnimplemented) continue;
          ++calls[mode];
          taken.insert(c.text);
          EXPECT_TRUE(status.ok()) << c.ToString() << "\n"
                                   << entry->file << ", " << Name(mode) << ": " << status.ToString();
        }
      }
    }
  }
  for (const std::string& text : taken) declined.erase(text);
  for (const std::string& text : declined) ADD_FAILURE() << "no kernel takes '" << text << "'";
  for (const CallMode mode : kCallModes) EXPECT_GE(calls[mode], 30) << Name(mode);
}

TEST(OpCases, EveryOpAsANode) {
  const std::shared_ptr<session::Runtime> runtime = Plugins();
  ASSERT_NE(runtime, nullptr);
  int runs = 0;
  std::map<std::string, int> of_op;
  for (const OpCase& c : OpCases()) {
    if (!c.first || c.fails || ++of_op[c.def->name] > 8) continue;
    const kernel::KernelRegistry& kernels = runtime->plugins->kernels();
    const bool of_core = c.def->run_by != op::RunBy::kKernel || kernels.FindHost(c.def->name) != nullptr;
    if (!of_core && kernels.Find(c.view(), "cpu").empty()) continue;  // not in this type
    for (const GraphMode mode : {GraphMode::kKnownShapes, GraphMode::kUnknownShapes, GraphMode::kCompiled}) {
      if (mode == GraphMode::kCompiled && runtime->compilers == nullptr) continue;
      const Status status = RunNode(c, runtime, "", mode);
      if (status.code() == Code::kUnimplemented) continue;
      ++runs;
      EXPECT_TRUE(status.ok()) << c.ToString() << ", " << Name(mode) << ": " << status.ToString();
    }
  }
  EXPECT_GE(runs, 200);
}

/// A kernel without a case is one that nobody has tried.
TEST(OpCases, EveryKernelOfAShippedPluginHasACase) {
  const std::shared_ptr<session::Runtime> runtime = Plugins();
  ASSERT_NE(runtime, nullptr);
  std::set<std::string> have;
  for (const OpCase& c : OpCases()) have.insert(c.def->name);
  std::map<std::string, std::string> excused;
  std::ifstream in(std::filesystem::path(WEIR_OP_CASES) / ".." / "without_cases.txt");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with('#') || line.empty()) continue;
    ASSERT_NE(colon, std::string::npos) << line;
    excused[line.substr(0, colon)] = line.substr(colon + 2);
  }
  std::set<std::string> ops;
  for (const kernel::KernelEntry* entry : runtime->plugins->kernels().All()) {
    if (entry->host == nullptr) ops.insert(std::string(entry->record->op.data, entry->record->op.size));
  }
  for (const std::string& op : ops) EXPECT_TRUE(have.contains(op) != excused.contains(op)) << op;
  for (const auto& [op, reason] : excused) EXPECT_TRUE(ops.contains(op)) << op << " is excused, but has no kernel";
}

TEST(OpCases, AWrongValueIsFound) {
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  ASSERT_TRUE(ops.ok());
  const std::shared_ptr<session::Runtime> runtime = Plugins();
  ASSERT_NE(runtime, nullptr);
  const device::Device& host = *runtime->plugins->devices().all().at(0);
  const auto run = [&](const std::string& line) {
    const Result<std::vector<OpCase>> cases = ParseCases(**ops, line);
    if (!cases.ok()) return cases.status();
    const auto entries = runtime->plugins->kernels().Find((*cases)[0].view(), host.info().platform);
    return entries.empty()
               ? NotFound("no kernel")
               : RunKernel(*entries[0], (*cases)[0], *runtime->plugins->devices().all()[0], CallMode::kPrepared);
  };
  EXPECT_TRUE(run("Neg : [1,-2] -> [-1,2]").ok());
  EXPECT_EQ(run("Neg : [1,-2] -> [-1,3]").code(), Code::kInternal);
  EXPECT_EQ(run("Neg : [1,-2] -> [[-1,2]]").code(), Code::kInternal);
  EXPECT_EQ(run("Neg : [1,-2] -> error bad").code(), Code::kInternal);
  EXPECT_EQ(run("AssignAdd : [1,2] ; [1,2] -> [2,4] => [2,5]").code(), Code::kInternal);
  EXPECT_TRUE(run("AssignAdd : [1,2] ; [1,2] -> [2,4] => [2,4]").ok());
  EXPECT_EQ(run("Neg : [1] -> [1] | nothing").code(), Code::kInvalidArgument);
  EXPECT_EQ(run("Neg : [[1],[2,3]] -> [1]").code(), Code::kInvalidArgument);
  EXPECT_EQ(run("Neg [1] -> [1]").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir::testing
