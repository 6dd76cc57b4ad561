// Copies graphs node by node into the lowered graph and replaces calls.
#ifndef WEIR_CORE_LOWER_LOWERER_INTERNAL_H_
#define WEIR_CORE_LOWER_LOWERER_INTERNAL_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/indexed.h"
#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/function_body.h"
#include "core/lower/lowering.h"

namespace weir::lower {

using graph::Definition;
using graph::Endpoint;
using graph::FunctionBody;
using graph::Node;
using graph::NodeId;

inline constexpr NodeId kNone = -1;

/// The copy of a node.
struct Image {
  NodeId node = kNone;            // for control edges
  std::vector<Endpoint> outputs;  // empty: those of `node`
  bool has_effects = false;       // part of it must run even if its outputs are unused

  Endpoint At(int index) const { return outputs.empty() ? Endpoint{node, index} : outputs[PositionOf(index)]; }
};

/// A graph that is being copied: the user's, or the body of a call.
struct Scope {
  const Definition& from;
  std::string prefix = {};    // of node names: "caller/"
  std::string device = {};    // requested by the caller
  std::string function = {};  // name; empty for the user's graph
  std::string origin = {};    // of the outermost caller
  /// A node of the lowered graph in the call's frame that is live when the call runs. Stateful nodes and nodes without
  /// inputs wait for it. kNone if all nodes may run.
  NodeId anchor = kNone;
  int depth = 0;
  IndexedVector<NodeId, Image> images = {};  // of the nodes of `from`
  std::vector<NodeId> effects = {};          // nodes of the lowered graph
};

/// A node to be replaced.
struct Call {
  const Node& node;
  const Scope& scope;
  std::string name;  // in the lowered graph
  std::string device;
  std::vector<Endpoint> inputs;
  std::vector<NodeId> controls;  // including the scope's anchor

  op::AttrView attrs() const { return node.attrs(); }
};

/// The copied nodes of a body.
struct Inlined {
  std::vector<Endpoint> results;
  NodeId done = kNone;  // runs after all effects, or after the anchor if there are none
  bool has_effects = false;
};

class Lowerer {
 public:
  /// Both graphs are borrowed. `bodies_` instantiates the functions of the source.
  Lowerer(const Definition& source, LowerLimits limits, Definition& lowered)
      : source_(source), limits_(limits), lowered_(lowered), bodies_(source) {}

  /// True for a call or functional control flow.
  static bool Lowers(const Definition& graph, const Node& node);

  /// Appends the image of the scope's next node to `scope.images`.
  Status Lower(Scope& scope, const Node& node);
  /// Adds a substitute for a node that could not be lowered, so that its users have inputs.
  void StandIn(Scope& scope, const Node& node);
  /// Sets the inputs of Merge nodes that come from later nodes, for nodes from `first` on.
  Status CloseLoops(const Scope& scope, NodeId first);

 private:
  Status Copy(Scope& scope, const Node& node);
  Status CheckRoom() const;

  using Rule = Result<Image> (Lowerer::*)(const Call&);
  using Attrs = op::AttrList;
  struct LoweredOp {
    std::string_view op;
    Rule rule;
  };
  static const LoweredOp kRules[];
  static Rule RuleOf(const op::OpDef& op);

  // call.cc
  Result<Image> LowerCall(const Call& call);
  Result<Image> LowerCallByName(const Call& call);
  Result<Image> LowerCallOf(const Call& call, const op::FuncRef& function);
  Result<Image> LowerSymbolicGradient(const Call& call);
  Result<Image> LowerRemoteCall(const Call& call);
  Result<Image> LowerDeviceIndex(const Call& call);
  Result<Image> LowerCallTo(const Call& call, const FunctionBody& body);
  /// The body of a function, checked against these argument and result types. If the call requests values only
  /// (op::kValuesOnly), the body is reduced accordingly.
  Result<const FunctionBody*> Body(const Call& call, const op::FuncRef& function, std::span<const DType> arguments,
                                   std::span<const DType> results);
  /// Copies a body; `name` is the prefix of the names of its nodes.
  Result<Inlined> Inline(const Call& call, const FunctionBody& body, const std::string& name,
                         const std::vector<Endpoint>& arguments, NodeId anchor);

  // control_flow.cc
  struct Branch {
    NodeId pivot = kNone;  // live when the branch runs
    std::vector<Endpoint> arguments;
  };
  /// A loop. `condition` and `body` get the variables of the current iteration and a node for control edges.
  struct Loop {
    std::vector<Endpoint> inputs;
    std::vector<bool> invariant;  // by input
    int64_t parallel_iterations = 10;
    std::function<Result<Endpoint>(const std::vector<Endpoint>&, NodeId)> condition;
    std::function<Result<std::vector<Endpoint>>(const std::vector<Endpoint>&, NodeId)> body;
  };
  Result<Image> LowerIf(const Call& call);
  Result<Image> LowerCase(const Call& call);
  Result<Image> LowerWhile(const Call& call);
  Result<Image> LowerFor(const Call& call);
  Result<Branch> SplitOff(const Call& call, const std::string& name, Endpoint predicate, Branch& rest);
  Result<Image> MergeBranches(const Call& call, const std::vector<op::FuncRef>& functions,
                              const std::vector<std::string>& names, const std::vector<Branch>& branches);
  Result<Image> MakeLoop(const Call& call, Loop loop);
  Result<Endpoint> ToBool(const Call& call, const std::string& name, Endpoint value);

  // The functions below add nodes to the lowered graph, on the call's device.
  Result<Endpoint> Add(const Call& call, std::string_view op, const std::string& name, std::vector<Endpoint> inputs,
                       Attrs attrs, std::vector<NodeId> controls = {});
  Result<Endpoint> AddConst(const Call& call, const std::string& name, const Tensor& value);
  /// Forwards a value after `controls` have run.
  Result<Endpoint> AddIdentity(const Call& call, const std::string& name, Endpoint value,
                               std::vector<NodeId> controls = {});
  /// A node that runs after all of `nodes`: the node itself if there is only one, kNone if there are none.
  Result<NodeId> Join(const Call& call, const std::string& name, std::vector<NodeId> nodes);
  Result<Image> WithDone(const Call& call, std::vector<Endpoint> outputs, std::vector<NodeId> waits_for, bool effects);
  /// Name of result `index` of the call; result 0 has the call's name.
  static std::string ResultName(const Call& call, size_t index);
  DType TypeOf(Endpoint e) const { return BaseType(lowered_.TypeOf(e)); }

  Result<Image> Replace(Scope& scope, const Node& node, Rule rule);
  graph::NodeSpec SpecOf(const Scope& scope, const Node& node);
  /// `name`, with the first free suffix "_k" if either graph uses it.
  std::string Unique(const std::string& name) const;

  const Definition& source_;
  const LowerLimits limits_;
  Definition& lowered_;
  graph::FunctionBodies bodies_;
  std::unordered_map<const FunctionBody*, std::unique_ptr<const FunctionBody>> values_bodies_;  // by the whole body
  std::unordered_map<std::string, std::string> merged_devices_;  // key: "caller's|node's"
};

/// The function, or functions, named by an attribute.
Result<op::FuncRef> FunctionAttr(const op::AttrView& attrs, std::string_view name);
Result<std::vector<op::FuncRef>> FunctionsAttr(const op::AttrView& attrs, std::string_view name);

/// True for an op that reads or writes state or draws random numbers, and so must run exactly once per call. False for
/// ops that only create a handle, such as VarHandleOp.
bool HasEffects(const op::OpDef& op);

}  // namespace weir::lower

#endif  // WEIR_CORE_LOWER_LOWERER_INTERNAL_H_
