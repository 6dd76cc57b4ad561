// Partial runs: feeds arrive incrementally, and every op runs at most once over all parts.
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
#include "core/graph/definition.h"
#include "core/session/resolve.h"
#include "core/session/session.h"
#include "core/tensor/tensor.h"

namespace weir::session {

/// As in TensorFlow, a part runs everything that the feeds given so far allow. Values that later parts need are kept
/// and fed to them; nodes that ran do not run again. Only nodes that name or select a value (variables, constants,
/// Switch and Identity in a cond) belong to several parts. A loop is never split: it waits for all its feeds.
///
/// Callers hold `mutex` from Next to Finish. The graph is borrowed and may grow in between.
class PartialRun {
 public:
  /// `whole` names everything that any part may feed and fetch. Its targets run as soon as possible.
  PartialRun(const graph::Definition& graph, ResolvedNames whole);

  struct Part {
    ResolvedNames names;                 // to run; nothing if there are no fetches and targets
    std::vector<Tensor> feeds;           // by names.feeds
    std::vector<graph::Endpoint> asked;  // the caller's fetches
    std::vector<graph::NodeId> runs;     // nodes that later parts omit
  };
  /// Returns the next part. InvalidArgument with TensorFlow's texts for names missing from the setup, repeated feeds,
  /// values that cannot be fed, and fetches that the feeds so far do not allow; the state is unchanged then. A part may
  /// fetch a tensor twice.
  Result<Part> Next(std::span<const Feed> feeds, std::span<const std::string> fetches);
  /// Takes the values computed by the part, by names.fetches; returns those that the caller requested.
  Result<std::vector<Tensor>> Finish(const Part& part, std::vector<Tensor> computed);
  /// True if everything was fed and fetched.
  bool complete() const { return unfetched_.empty() && unfed_.empty(); }

  std::mutex mutex;

 private:
  using Endpoint = graph::Endpoint;
  using NodeId = graph::NodeId;
  using Marks = std::vector<bool>;  // by node

  /// An edge into a node. `from` is the value that may be fed; its index is -1 for control edges, except those of fed
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
  /// Nodes that depend on a feed in `unfed`.
  Marks Waiting(const std::set<Endpoint>& unfed) const;
  void WaitForFeeds(const std::set<Endpoint>& unfed, Marks& waiting) const;
  /// Those nodes, and the nodes that will run again for them.
  Marks Later(const Marks& waiting) const;
  std::optional<Endpoint> Find(const std::string& name) const;
  Status CheckComputable(Endpoint fetch, const std::set<Endpoint>& unfed, const Marks& waiting) const;
  void Choose(const Marks& waiting, Part& part) const;
  void Forget();

  const graph::Definition& graph_;
  const ResolvedNames whole_;
  const std::set<Endpoint> all_feeds_, all_fetches_;
  std::vector<NodeId> nodes_;        // needed by the whole run; inputs first, except back edges
  std::map<NodeId, Around> around_;  // control flow around the node's outputs
  std::set<NodeId> done_;
  std::set<Endpoint> unfed_, unfetched_;
  std::map<Endpoint, Tensor> values_;  // fed or computed, and still needed
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PARTIAL_RUN_H_
