// A run in parts: feeds come bit by bit, and every op runs at most once over all parts.
#ifndef WEIR_CORE_SESSION_PARTIAL_RUN_H_
#define WEIR_CORE_SESSION_PARTIAL_RUN_H_

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/session/resolve.h"
#include "core/session/session.h"
#include "core/tensor/tensor.h"

namespace weir::session {

/// A part runs all that the feeds given so far allow, as TensorFlow does. What it computes for later parts is kept and
/// fed to them; nodes that ran do not run again. Only nodes that name or choose a value (variables, constants, Switch
/// and Identity inside a cond) belong to several parts. A loop is never cut: it waits until all its feeds are there.
///
/// Callers hold `mutex` from Next to Finish. The graph is borrowed and may grow meanwhile.
class PartialRun {
 public:
  /// `whole` names all that any part may feed and fetch; its targets run as soon as they can.
  PartialRun(const graph::Graph& graph, ResolvedNames whole);

  struct Part {
    ResolvedNames names;                 // what to run; nothing without fetches and targets
    std::vector<Tensor> feeds;           // by names.feeds
    std::vector<graph::Endpoint> asked;  // what the caller fetches
    std::vector<graph::NodeId> runs;     // nodes that later parts leave out
  };
  /// InvalidArgument with TensorFlow's texts for what the setup does not name, what came before, what cannot be fed,
  /// and what the feeds so far do not give; nothing changes then. A part may ask for a fetch twice.
  Result<Part> Next(std::span<const Feed> feeds, std::span<const std::string> fetches);
  /// Takes what the part computed, by names.fetches; gives what was asked for.
  Result<std::vector<Tensor>> Finish(const Part& part, std::vector<Tensor> computed);
  /// Everything was fed and fetched.
  bool complete() const { return unfetched_.empty() && unfed_.empty(); }

  std::mutex mutex;

 private:
  using Endpoint = graph::Endpoint;
  using NodeId = graph::NodeId;
  using Marks = std::vector<bool>;  // by node

  /// An edge into a node. `from` is what may be fed; of control edges it has index -1, but for those of fed
  /// placeholders.
  struct Edge {
    Endpoint from;
    int input = -1;  // -1 for control edges
  };
  struct Around {
    int conds = 0, loops = 0;
  };

  std::vector<Edge> EdgesInto(NodeId id) const;
  void FindNodes();
  Around AroundNode(NodeId id) const;
  bool RunsAgain(NodeId id) const;
  bool CanBeCut(const Edge& edge, NodeId to) const;
  /// Nodes that have to wait for a feed of `unfed`, or for something that does.
  Marks Waiting(const std::set<Endpoint>& unfed) const;
  void WaitForFeeds(const std::set<Endpoint>& unfed, Marks& waiting) const;
  /// Those and the nodes that will run again for them.
  Marks Later(const Marks& waiting) const;
  std::optional<Endpoint> Find(const std::string& name) const;
  Status CheckComputable(Endpoint fetch, const std::set<Endpoint>& unfed, const Marks& waiting) const;
  void Choose(const Marks& waiting, Part& part) const;
  void Forget();

  const graph::Graph& graph_;
  const ResolvedNames whole_;
  const std::set<Endpoint> all_feeds_, all_fetches_;
  std::vector<NodeId> nodes_;        // what the whole run needs, inputs first but for the edges that close loops
  std::map<NodeId, Around> around_;  // control flow around what a node gives
  std::set<NodeId> done_;
  std::set<Endpoint> unfed_, unfetched_;
  std::map<Endpoint, Tensor> values_;  // fed or computed, and still needed
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PARTIAL_RUN_H_
