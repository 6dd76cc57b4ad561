#include "core/lower/lowering.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/lower/lowerer_internal.h"

namespace weir::lower {

class Lowering::Impl {
 public:
  Impl(const Definition& source, LowerLimits limits) : source_(source), limits_(limits), scope_{.from = source} {}

  void Update() {
    if (!lowered_ && !HasCall()) return;
    if (!lowered_) {
      lowered_.emplace(source_.ops());
      lowerer_.emplace(source_, limits_, *lowered_);
    }
    lowered_->SetFunctions(source_.shared_functions());
    lowered_->versions() = source_.versions();
    const NodeId first = scope_.images.end_index();
    for (NodeId id = first; id < source_.num_nodes(); ++id) Lower(source_.node(id));
    // The edges between copied nodes were checked in the source graph.
    (void)lowerer_->CloseLoops(scope_, first);
  }

  const Definition& graph() const { return lowered_ ? *lowered_ : source_; }
  const Image* ImageOf(NodeId id) const { return lowered_ ? &scope_.images[id] : nullptr; }

  Status Check(const graph::StepGraph& step) const {
    if (errors_.empty()) return {};
    for (const graph::StepNode& node : step.nodes) {
      const auto error = errors_.find(node.source->id());
      if (error != errors_.end() && node.source == &graph().node(node.source->id())) return error->second;
    }
    return {};
  }

 private:
  bool HasCall() {
    for (; seen_ < source_.num_nodes(); ++seen_) {
      if (Lowerer::Lowers(source_, source_.node(seen_))) return true;
    }
    return false;
  }

  void Lower(const Node& node) {
    const int before = lowered_->num_nodes();
    Status status = lowerer_->Lower(scope_, node);
    if (status.ok()) return;
    lowered_->Truncate(before);
    lowerer_->StandIn(scope_, node);
    errors_.emplace(scope_.images.back().node, status.node().empty() || status.node() == node.name()
                                                   ? graph::AtNode(status, node)
                                                   : status.Append("\n\t [[" + node.name() + "]]"));
  }

  const Definition& source_;
  const LowerLimits limits_;
  NodeId seen_ = 0;  // earlier nodes are not calls
  std::optional<Definition> lowered_;
  std::optional<Lowerer> lowerer_;
  Scope scope_;
  std::unordered_map<NodeId, Status> errors_;  // by node of lowered_
};

Lowering::Lowering(const Definition& source, LowerLimits limits) : impl_(std::make_unique<Impl>(source, limits)) {}
Lowering::~Lowering() = default;

void Lowering::Update() { impl_->Update(); }

const Definition& Lowering::graph() const { return impl_->graph(); }

Endpoint Lowering::Of(Endpoint endpoint) const {
  const Image* const image = impl_->ImageOf(endpoint.node);
  return image == nullptr ? endpoint : image->At(endpoint.index);
}

NodeId Lowering::Of(NodeId id) const {
  const Image* const image = impl_->ImageOf(id);
  return image == nullptr ? id : image->node;
}

Status Lowering::Check(const graph::StepGraph& step) const { return impl_->Check(step); }

}  // namespace weir::lower
