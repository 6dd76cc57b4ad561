#include "core/graph/late_ranks_internal.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace weir::graph {

LateRanks::LateRanks(size_t vertices)
    : writers_(vertices, 0), users_(vertices, 0), before_(vertices), makes_(vertices), uses_(vertices) {}

void LateRanks::AddEdge(int from, int to) {
  ++users_[static_cast<size_t>(from)];
  before_[static_cast<size_t>(to)].push_back(from);
}

void LateRanks::AddUse(int from, int to, const Endpoint& value, double bytes) {
  AddEdge(from, to);
  const auto [at, is_new] = value_of_.try_emplace({from, value}, values_.size());
  if (is_new) {
    values_.push_back({bytes, {}, false});
    makes_[static_cast<size_t>(from)].push_back(at->second);
  }
  std::vector<int>& users = values_[at->second].users;
  if (!users.empty() && users.back() == to) return;
  users.push_back(to);
  uses_[static_cast<size_t>(to)].push_back(at->second);
}

double LateRanks::GainOf(int vertex) const {
  double gain = 0;
  for (const size_t value : makes_[static_cast<size_t>(vertex)]) gain += values_[value].bytes;
  for (const size_t value : uses_[static_cast<size_t>(vertex)]) gain -= values_[value].live ? 0 : values_[value].bytes;
  return gain;
}

void LateRanks::CountWriters() {
  if (std::ranges::find(writers_, 1) == writers_.end()) return;
  std::vector<int> users = users_, order;  // backwards
  for (size_t v = 0; v < users.size(); ++v) {
    if (users[v] == 0) order.push_back(static_cast<int>(v));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const int before : before_[static_cast<size_t>(order[i])]) {
      if (--users[static_cast<size_t>(before)] == 0) order.push_back(before);
    }
  }
  for (auto vertex = order.rbegin(); vertex != order.rend(); ++vertex) {
    int most = 0;
    for (const int before : before_[static_cast<size_t>(*vertex)]) {
      most = std::max(most, writers_[static_cast<size_t>(before)]);
    }
    writers_[static_cast<size_t>(*vertex)] += most;
  }
}

std::vector<int> LateRanks::Find() && {
  CountWriters();
  using Candidate = std::tuple<int, double, int>;  // writers, gain, vertex
  std::priority_queue<Candidate> ready;             // one entry for each gain that a vertex has had; gains only grow
  std::vector<char> ranked(users_.size(), 0);
  const auto offer = [&](int vertex) {
    const auto at = static_cast<size_t>(vertex);
    if (users_[at] == 0 && ranked[at] == 0) ready.emplace(writers_[at], GainOf(vertex), vertex);
  };
  std::vector<int> ranks(users_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  int next = static_cast<int>(users_.size());
  for (int vertex = 0; vertex < next; ++vertex) offer(vertex);
  while (!ready.empty()) {
    const int vertex = std::get<2>(ready.top());
    ready.pop();
    const auto at = static_cast<size_t>(vertex);
    if (std::exchange(ranked[at], 1) != 0) continue;
    ranks[at] = --next;
    for (const size_t used : uses_[at]) {
      if (std::exchange(values_[used].live, true)) continue;
      for (const int user : values_[used].users) offer(user);
    }
    for (const int before : before_[at]) {
      if (--users_[static_cast<size_t>(before)] == 0) offer(before);
    }
  }
  return ranks;
}

}  // namespace weir::graph
