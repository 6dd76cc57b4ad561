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
/// stands for nodes with that attribute, a text.
struct Term {
  std::string name;
  std::vector<std::string> ops;  // "AddV2|Add" has two
  std::vector<std::pair<std::string, std::string>> attrs;
  std::vector<Term> operands;
};

/// InvalidArgument with the column for a text that is no expression.
Result<Term> ParseTerm(std::string_view text);

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

/// The expressions of the catalogue's fused ops.
class Expressions {
 public:
  /// Internal for an expression that does not parse.
  static Result<Expressions> Of(const op::OpRegistry& ops);

  /// The first expression whose root is the node, whose inner nodes have no other users and are on one device and in
  /// one frame with the root, whose operands are plain values of known shapes, and which a kernel takes. Nodes marked
  /// in `taken` do not count.
  std::optional<Found> At(const Scene& scene, graph::NodeId root,
                          const IndexedVector<graph::NodeId, char>& taken) const;

 private:
  struct Row {
    Term term;
    const op::OpDef* result = nullptr;
    const op::FusedExpression* expression = nullptr;
  };
  std::multimap<std::string, Row, std::less<>> by_root_;  // by op of the root
};

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_EXPRESSION_INTERNAL_H_
