// Random graphs made from the catalogue: each case has one to five ops with operands and attributes, and defines feeds,
// fetches and options. In half of the cases the ops are rows of tests/ops/cases, with a few changes, so that each op
// also runs with operands that fit. A case depends only on its seed, its number, the catalogue, the rows and the
// types that the kernels support.
#ifndef WEIR_TESTS_FUZZ_OP_CASES_H_
#define WEIR_TESTS_FUZZ_OP_CASES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/registry.h"
#include "core/op/registry.h"
#include "core/session/session.h"
#include "tests/fuzz/dice.h"
#include "tests/ops/case_table.h"
#include "weir/proto/graph.pb.h"

namespace weir::fuzz {

/// How a case is run.
enum class Entry { kRun, kCallable, kPartialRun, kExplain };

struct Case {
  tf::GraphDef graph;
  bool damaged = false;
  std::string bytes;  // the imported bytes: `graph` serialized, with a few bytes changed if `damaged`
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<int> ops;  // indices in OpRegistry::All of the ops under test
  session::SessionOptions options;
  bool check_numerics = false;
  Entry entry = Entry::kRun;
  int runs = 1;
};

/// The case as a text graph for `weir run`, with everything else in comments before it.
std::string Describe(const Case& made);

class CaseMaker {
 public:
  /// Borrows both.
  CaseMaker(const op::OpRegistry& ops, const kernel::KernelRegistry& kernels);

  /// Makes case `number` of `seed`; the first op of a case cycles through the catalogue.
  Case Make(uint64_t seed, uint64_t number) const;

  const std::vector<const op::OpDef*>& ops() const { return ops_; }
  /// Types of the attribute that some kernel of the op supports, or all allowed types if no plugin runs the op.
  DTypeSet Runnable(const op::OpDef& op, const op::AttrDef& attr) const;
  /// A random row of the op; null if it has none.
  const testing::OpCase* RowOf(const op::OpDef& op, Dice& dice) const;

 private:
  std::vector<const op::OpDef*> ops_;
  std::map<std::pair<std::string, std::string>, DTypeSet> types_;    // by op and attribute
  std::map<std::string, std::vector<const testing::OpCase*>> rows_;  // by op
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_OP_CASES_H_
