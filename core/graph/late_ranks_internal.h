// Ranks of vertices by which each comes as late as pays.
#ifndef WEIR_CORE_GRAPH_LATE_RANKS_INTERNAL_H_
#define WEIR_CORE_GRAPH_LATE_RANKS_INTERNAL_H_

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "core/graph/endpoint.h"

namespace weir::graph {

/// Vertices are numbered. Edges must not form a cycle; vertices on one keep their numbers as ranks.
///
/// The ranks are found from the last one to the first. Of the vertices all of whose users have one, the next is that
/// which comes behind most writers, then that which, looking back in time, frees most bytes: those that it makes, less
/// those that it is the last one to use. Ties go to the larger number. O(E log E).
class LateRanks {
 public:
  explicit LateRanks(size_t vertices);

  /// It and what follows it come behind all vertices that follow fewer writers, so that these read old values.
  void AddWriter(int vertex) { writers_[static_cast<size_t>(vertex)] = 1; }
  /// `to` comes behind `from`.
  void AddEdge(int from, int to);
  /// The same, and it uses a value of so many bytes that `from` makes.
  void AddUse(int from, int to, const Endpoint& value, double bytes);
  std::vector<int> Find() &&;

 private:
  struct Value {
    double bytes = 0;
    std::vector<int> users;
    bool live = false;
  };
  double GainOf(int vertex) const;
  /// Turns writers_ into the number of writers on a path to each vertex, itself included.
  void CountWriters();

  std::vector<int> writers_;                       // by vertex, as the four below
  std::vector<int> users_;                         // edges that lead to vertices without a rank
  std::vector<std::vector<int>> before_;           // by edge
  std::vector<std::vector<size_t>> makes_, uses_;  // values
  std::vector<Value> values_;
  std::map<std::tuple<int, Endpoint>, size_t> value_of_;  // by the vertex that makes it
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_LATE_RANKS_INTERNAL_H_
