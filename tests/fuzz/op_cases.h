// Random graphs made from the catalogue: each case takes one to five ops, gives them operands and attributes, and says
// what is fed, fetched and switched on. A case depends on nothing but its seed, its number, the catalogue and the types
// that the kernels take.
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
#include "weir/proto/graph.pb.h"

namespace weir::fuzz {

/// How a case is run.
enum class Entry { kRun, kCallable, kPartialRun, kExplain };

struct Case {
  tf::GraphDef graph;
  bool damaged = false;
  std::string bytes;  // what is imported: `graph` serialized, and with a few bytes changed when `damaged`
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<int> ops;  // numbers in OpRegistry::All of those under test
  session::SessionOptions options;
  bool check_numerics = false;
  Entry entry = Entry::kRun;
  int runs = 1;
};

/// The case as a text graph that `weir run` takes, with everything else in comments before it.
std::string Describe(const Case& made);

class CaseMaker {
 public:
  /// Borrows both.
  CaseMaker(const op::OpRegistry& ops, const kernel::KernelRegistry& kernels);

  /// Number `number` of those of `seed`; the ops take turns as the one that a case begins with.
  Case Make(uint64_t seed, uint64_t number) const;

  const std::vector<const op::OpDef*>& ops() const { return ops_; }
  /// Types of the attribute that some kernel of the op takes, or all that the op allows where no plugin runs it.
  DTypeSet Runnable(const op::OpDef& op, const op::AttrDef& attr) const;

 private:
  std::vector<const op::OpDef*> ops_;
  std::map<std::pair<std::string, std::string>, DTypeSet> types_;  // by op and attribute
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_OP_CASES_H_
