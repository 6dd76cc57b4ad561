// The insides of conds and loops: what the nodes that are made there get wired to.
#ifndef WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_CONTEXT_H_
#define WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"

namespace weir {

class CondContext;
class ControlFlow;
class Graph;
class WhileContext;

/// Where nodes that are added on behalf of another one belong.
struct CaptureSite {
  std::string scope;   // path with a trailing slash, or empty: their names begin with it
  std::string device;  // what an Enter asks for
  std::string origin;  // file:line of the model code
};

/// The inside of one branch of a cond, or of a loop. Owned by its graph's ControlFlow; stable address. Every node made
/// inside uses values from outside through a Switch (cond) or a constant Enter (loop), one per value. Single-threaded.
/// Source: TensorFlow 1.x's CondContext and WhileContext.
class ControlFlowContext {
 public:
  virtual ~ControlFlowContext() = default;
  ControlFlowContext(const ControlFlowContext&) = delete;
  ControlFlowContext& operator=(const ControlFlowContext&) = delete;

  /// "cond/cond_text", "while/while_context".
  const std::string& name() const { return name_; }
  /// The one around it, or null.
  ControlFlowContext* outer() const { return outer_; }
  const std::vector<ControlFlowContext*>& nested() const { return nested_; }
  /// Values that were seen in here, those from outside included.
  const std::set<graph::Endpoint>& values() const { return values_; }
  /// Values from outside, with what stands for them in here.
  const std::map<graph::Endpoint, graph::Endpoint>& external_values() const { return external_; }

  virtual CondContext* AsCond() { return nullptr; }
  virtual WhileContext* AsWhile() { return nullptr; }
  /// This loop or the innermost one around; null outside of loops.
  WhileContext* Loop();
  /// True when this is `other` or lies within it. Everything lies within null.
  bool Within(const ControlFlowContext* other) const;

  /// What a node in here that would else start too early waits for.
  virtual graph::NodeId pivot_node() const = 0;
  /// What stands for `value` in here; adds the nodes that bring it in when it comes from outside and is new.
  virtual Result<graph::Endpoint> Bring(graph::Endpoint value, const CaptureSite& site) = 0;
  /// Rewires a node that is about to be added in here.
  virtual Status Adapt(graph::NodeSpec& node, const CaptureSite& site) = 0;
  /// Takes note of the outputs of a node added in here.
  virtual void Note(const graph::Node& node) = 0;
  /// Values that leave: known to the context around from now on.
  void NoteResults(const std::vector<graph::Endpoint>& results);
  /// As the collections cond_context and while_context hold it: a CondContextDef or WhileContextDef.
  virtual Result<std::string> Serialize() const = 0;

 protected:
  friend class ControlFlow;
  friend class ContextReader;
  friend class ContextWriter;
  ControlFlowContext(ControlFlow& flow, std::string name) : flow_(flow), name_(std::move(name)) {}

  /// What is known to stand for a value that was seen.
  graph::Endpoint Known(graph::Endpoint value) const;
  /// Marks a value as seen here and in every context around.
  void See(graph::Endpoint value);
  /// Drops control inputs from outside the loop around, if there is one, and returns them.
  std::vector<graph::NodeId> DropExternalControls(graph::NodeSpec& node);

  ControlFlow& flow_;
  std::string name_;
  ControlFlowContext* outer_ = nullptr;
  std::vector<ControlFlowContext*> nested_;
  std::set<graph::Endpoint> values_;
  std::map<graph::Endpoint, graph::Endpoint> external_;
};

/// One branch of a cond.
class CondContext final : public ControlFlowContext {
 public:
  CondContext* AsCond() override { return this; }
  /// `cond/pred_id`, by which values are switched.
  graph::Endpoint pred() const { return pred_; }
  /// `cond/switch_t` or `cond/switch_f`: alive when the branch is taken.
  graph::Endpoint pivot() const { return pivot_; }
  /// 1 for the true branch, else 0: the output of a Switch that leads in here.
  int branch() const { return branch_; }

  graph::NodeId pivot_node() const override { return pivot_.node; }
  Result<graph::Endpoint> Bring(graph::Endpoint value, const CaptureSite& site) override;
  Status Adapt(graph::NodeSpec& node, const CaptureSite& site) override;
  void Note(const graph::Node& node) override;
  Result<std::string> Serialize() const override;

  /// What the branch hands out for a result of its function: a value from outside passes through a Switch.
  Result<graph::Endpoint> BringResult(graph::Endpoint value, const CaptureSite& site);

 private:
  friend class ControlFlow;
  friend class ContextReader;
  using ControlFlowContext::ControlFlowContext;

  /// Adds the Switch that stands for `value`, which comes from outside, in here.
  Result<graph::NodeId> Switch(graph::Endpoint value, const CaptureSite& site);

  graph::Endpoint pred_;
  graph::Endpoint pivot_;
  int branch_ = 0;
};

/// What a gradient loop knows of the loop that it goes back through, while it is built.
class LoopHistory {
 public:
  virtual ~LoopHistory() = default;
  virtual const WhileContext& forward() const = 0;
  /// What stands in the gradient loop for a value of the iteration of the forward loop that it goes back through.
  virtual Result<graph::Endpoint> Recall(graph::Endpoint value) = 0;
};

/// What a loop is made with.
struct LoopSettings {
  int64_t parallel_iterations = 10;
  bool back_prop = true;
  bool swap_memory = false;
  graph::Endpoint maximum_iterations;  // node < 0 = no limit
};

/// The inside of a loop; its name is that of the frame.
class WhileContext final : public ControlFlowContext {
 public:
  WhileContext* AsWhile() override { return this; }
  const LoopSettings& settings() const { return settings_; }
  const std::vector<graph::Endpoint>& enters() const { return enters_; }
  const std::vector<graph::Endpoint>& exits() const { return exits_; }
  /// LoopCond: whether there is an iteration.
  graph::Endpoint pivot() const { return pivot_; }

  graph::NodeId pivot_node() const override {
    return pivot_for_body_.node >= 0 ? pivot_for_body_.node : pivot_for_pred_.node;
  }
  Result<graph::Endpoint> Bring(graph::Endpoint value, const CaptureSite& site) override;
  Status Adapt(graph::NodeSpec& node, const CaptureSite& site) override;
  void Note(const graph::Node& node) override;
  Result<std::string> Serialize() const override;

  /// Makes the loop variables' Enters; `values` are their initial values as they are outside. Known in here from now
  /// on.
  Result<std::vector<graph::Endpoint>> EnterAll(const std::vector<graph::Endpoint>& values, const CaptureSite& site);
  /// Makes the Enter, named `name`, of one more loop variable.
  Result<graph::Endpoint> EnterVariable(graph::Endpoint value, std::string_view name, const CaptureSite& site);
  /// One more value that leaves.
  void AddExit(graph::Endpoint exit);
  /// The Merge of the first variable, LoopCond, and the Identity of the first variable, as they come to be.
  void SetPivotForPred(graph::Endpoint merge) { pivot_for_pred_ = merge; }
  void SetPivot(graph::Endpoint loop_cond) { pivot_ = loop_cond; }
  void SetPivotForBody(graph::Endpoint identity) { pivot_for_body_ = identity; }

  /// Makes this a gradient loop: values of the history's forward loop are recalled from now on. Null: no longer.
  void SetHistory(LoopHistory* history);
  /// Stays true without a history; files do not keep it.
  bool is_gradient() const { return is_gradient_; }
  /// Whether values of `loop` are recalled by this gradient loop or by one around it.
  bool Recalls(const WhileContext* loop) const;

 private:
  friend class ControlFlow;
  friend class ContextReader;
  friend class ContextWriter;
  using ControlFlowContext::ControlFlowContext;

  enum class Invariant { kYes, kNo };
  Result<graph::Endpoint> AddEnter(graph::Endpoint value, Invariant invariant, std::string_view name,
                                   const CaptureSite& site);
  /// Control inputs of the current scopes that an Enter of `source` may have.
  std::vector<graph::NodeId> OuterControls(graph::NodeId source) const;
  Result<graph::NodeId> BringControl(graph::NodeId node, const CaptureSite& site);

  LoopSettings settings_;
  LoopHistory* history_ = nullptr;
  bool is_gradient_ = false;
  graph::Endpoint pivot_for_pred_;
  graph::Endpoint pivot_;
  graph::Endpoint pivot_for_body_;
  std::vector<graph::Endpoint> enters_;
  std::vector<graph::Endpoint> exits_;
};

/// The conds and loops of one graph. Single-threaded.
class ControlFlow {
 public:
  explicit ControlFlow(Graph& graph) : graph_(graph) {}

  Graph& graph() const { return graph_; }
  /// The one that new nodes are made in, or null.
  ControlFlowContext* current() const { return current_; }
  /// Contexts within the current one, named below the current name scope.
  CondContext& AddCond(graph::Endpoint pred, graph::Endpoint pivot, int branch);
  WhileContext& AddLoop(const LoopSettings& settings, std::string_view name = "while_context");

  /// The one that a node was made in, or null.
  ControlFlowContext* ContextOf(graph::NodeId node) const;
  /// Where a node's outputs are: of an Exit, outside of its loop.
  ControlFlowContext* OutputContextOf(graph::NodeId node) const;
  void SetContext(graph::NodeId node, ControlFlowContext* context);

  /// Checks a node about to be added against the loops that its inputs are in, and rewires it to the current context.
  Status Adapt(graph::NodeSpec& node);
  /// Takes note of a node that was added after Adapt.
  void Note(graph::NodeId node);
  /// Adds a node as it stands, in no context and without the scopes' control inputs. Its name is made unique.
  Result<graph::NodeId> AddAsIs(std::string_view op, graph::NodeSpec node);
  /// A Switch (RefSwitch of a reference) beside `value`, named "Switch" in the site's scope; in no context.
  Result<graph::NodeId> AddSwitch(graph::Endpoint value, graph::Endpoint pred, const CaptureSite& site);

  /// Nodes inside of conds and loops cannot be fetched.
  void PreventFetching(graph::NodeId node) { unfetchable_.insert(node); }
  bool IsFetchable(graph::NodeId node) const { return !unfetchable_.contains(node); }

  /// Reads a CondContextDef or WhileContextDef (`key`: cond_context or while_context) of a graph whose nodes got
  /// `prefix` + "/". InvalidArgument for malformed bytes and for nodes that the graph does not have.
  Result<ControlFlowContext*> Read(std::string_view key, std::string_view bytes, std::string_view prefix);

 private:
  friend class InContext;
  friend class ContextReader;
  void Own(std::unique_ptr<ControlFlowContext> context);
  Status CheckReach(const graph::NodeSpec& node) const;

  Graph& graph_;
  ControlFlowContext* current_ = nullptr;
  std::vector<std::unique_ptr<ControlFlowContext>> contexts_;
  std::vector<ControlFlowContext*> context_of_;  // by node; shorter than the graph where no context is
  std::set<graph::NodeId> unfetchable_;
};

/// Makes a context (or null: none) the current one while it lives.
class InContext {
 public:
  [[nodiscard]] InContext(ControlFlow& flow, ControlFlowContext* context)
      : flow_(flow), before_(std::exchange(flow.current_, context)) {}
  ~InContext() { flow_.current_ = before_; }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  ControlFlow& flow_;
  ControlFlowContext* before_;
};

/// Whether a node is the Enter of a loop invariant.
bool IsConstantEnter(const graph::Node& node);

/// What colocation with a node means: its own `loc:@…` classes, else "loc:@" + its name.
std::vector<std::string> ColocationGroups(const graph::Node& node);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_CONTEXT_H_
