// Expressions of several ops that one fused op computes (op::FusedExpression), and where they are in a step.
#ifndef WEIR_CORE_FUSE_EXPRESSION_INTERNAL_H_
#define WEIR_CORE_FUSE_EXPRESSION_INTERNAL_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/fuse/match_internal.h"

namespace weir::fuse {

/// A part of an expression: a node of one of the ops, or, without ops, a name. "BiasAdd[data_format=NHWC](x, bias)"
/// stands for nodes with that attribute, a text. "last" and "first" are constants with the number of that dimension.
struct Term {
  std::string name;
  std::vector<std::string> ops;  // "AddV2|Add" has two
  std::vector<std::pair<std::string, std::string>> attrs;
  std::vector<Term> operands;
};

/// InvalidArgument with the column for a text that is no expression.
Result<Term> ParseTerm(std::string_view text);

/// Values of names, and the nodes that matched.
struct Bindings {
  std::map<std::string, graph::Endpoint, std::less<>> values;
  op::AttrList attrs;
  std::vector<graph::NodeId> nodes;  // the root first
};

/// An expression in a loop with a part that does not depend on the loop: "MatMul(…, w) with p=_Op(x, w)". The input `p`
/// of the fused op is the value of the node _Op(x, w), which is made ahead of the loop. Further terms with names of the
/// expression say which node ahead of the loop gives a loop constant, and "next=Op(t, step)" how a counter is advanced.
struct Lift {
  Term term;
  const op::OpDef* result = nullptr;
  const op::FusedExpression* expression = nullptr;
  Term lifted;
  std::vector<Term> producers;
};

/// An expression found at a node. Attributes of the fused op that the expression does not give are those of the nodes;
/// nodes that disagree are no match.
struct Found {
  const op::OpDef* result = nullptr;
  const op::FusedExpression* expression = nullptr;
  graph::NodeId root = -1;
  std::vector<graph::NodeId> inner;     // the other nodes of the expression, ascending
  std::vector<graph::Endpoint> inputs;  // of the fused node
  op::AttrList attrs;
};

/// The expressions of the catalogue's fused ops whose root is an op of a step.
class Expressions {
 public:
  /// Reads these expressions only, since there are hundreds. Internal for one that does not parse.
  static Result<Expressions> Of(const graph::StepGraph& step);

  /// The first expression whose root is the node, whose inner nodes have no other users and are on one device and in
  /// one frame with the root, whose operands are plain values of known shapes, and which a kernel takes. Nodes marked
  /// in `taken` do not count.
  std::optional<Found> At(const Scene& scene, graph::NodeId root,
                          const IndexedVector<graph::NodeId, char>& taken) const;

  /// The lifts whose root may be the node, by its op.
  std::vector<const Lift*> LiftsAt(const graph::StepNode& node) const;

 private:
  struct Row {
    Term term;
    const op::OpDef* result = nullptr;
    const op::FusedExpression* expression = nullptr;
  };
  std::multimap<std::string, Row, std::less<>> by_root_;  // by op of the root
  std::multimap<std::string, Lift, std::less<>> lifts_;   // the same
};

/// Binds the names of the lift's expression at `root`; false if it is not there, or if its nodes are on several devices
/// or in several frames.
bool MatchLift(const Scene& scene, const Lift& lift, graph::NodeId root, Bindings& bound);
/// Adds the attributes of `result` that the nodes have, but for those given. False if the nodes disagree about one.
[[nodiscard]] bool AddAttrs(const graph::StepGraph& step, const std::vector<graph::NodeId>& nodes,
                            const op::OpDef& result, op::AttrList& attrs);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_EXPRESSION_INTERNAL_H_
