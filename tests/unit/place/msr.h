// The graphs of "Efficient Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020) as problems of
// scheduling.
#ifndef WEIR_TESTS_UNIT_PLACE_MSR_H_
#define WEIR_TESTS_UNIT_PLACE_MSR_H_

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

/// Nanoseconds per unit of a data file.
inline constexpr double kUnit = 1e6;

inline int64_t Ns(double units) { return std::llround(units * kUnit); }
inline double Units(int64_t ns) { return static_cast<double>(ns) / kUnit; }

/// A profiled graph: one CPU and the accelerators of the file. A transfer takes its edge's cost between an accelerator
/// and the CPU, and twice that between two accelerators; each ordered pair of devices has its own channel.
class Msr {
 public:
  explicit Msr(const std::string& path) : data_(nlohmann::json::parse(std::ifstream(path))) {
    const int devices = data_["maxFPGAs"].get<int>() + 1;
    std::vector<DeviceCost> costs;
    for (int d = 0; d < devices; ++d) {
      costs.push_back({.space = d, .device_class = d == 0 ? 0 : 1, .priority = d == 0 ? 70 : 210});
      if (d != 0) costs.back().capacity_bytes = data_["maxSizePerFPGA"].get<int64_t>();
    }
    std::vector<LinkCost> links(static_cast<size_t>(devices * devices));
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        links[static_cast<size_t>(from * devices + to)].ns_per_byte = from == 0 || to == 0 ? 1 : 2;
      }
    }
    problem_.emplace(costs, devices, links);
    for (size_t i = 0; i < data_["nodes"].size(); ++i) position_[data_["nodes"][i]["id"].get<int>()] = i;
    for (const size_t node : Order()) AddNode(node);
    problem_->Seal();
  }

  const Problem& problem() const { return *problem_; }

 private:
  /// Nodes in topological order; among ready nodes, in the order of the file.
  std::vector<size_t> Order() {
    std::vector<std::vector<size_t>> next(position_.size());
    std::vector<int> missing(position_.size(), 0);
    inputs_.resize(position_.size());
    for (const nlohmann::json& edge : data_["edges"]) {
      const size_t from = position_.at(edge["sourceId"].get<int>());
      const size_t to = position_.at(edge["destId"].get<int>());
      inputs_[to][from] = edge["cost"].get<double>();
    }
    for (size_t to = 0; to < inputs_.size(); ++to) {
      for (const auto& [from, cost] : inputs_[to]) {
        next[from].push_back(to);
        ++missing[to];
      }
    }
    std::set<size_t> ready;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (missing[i] == 0) ready.insert(i);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t node = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(node);
      for (const size_t to : next[node]) {
        if (--missing[to] == 0) ready.insert(to);
      }
    }
    return order;
  }

  void AddNode(size_t position) {
    const nlohmann::json& node = data_["nodes"][position];
    const auto supported = node["supportedOnFpga"];
    const bool accelerated = supported.is_boolean() ? supported.get<bool>() : supported.get<int>() != 0;
    std::vector<int64_t> times(static_cast<size_t>(problem_->device_count()),
                               accelerated ? Ns(node["fpgaLatency"].get<double>()) : kImpossible);
    times[0] = Ns(node["cpuLatency"].get<double>());
    const int group = node.contains("colorClass")
                          ? groups_.emplace(node["colorClass"].get<int>(), groups_made_).first->second
                          : groups_made_;
    if (group == groups_made_) ++groups_made_;
    const int task = problem_->AddTask(times, group, node["size"].get<int64_t>(), inputs_[position].empty());
    for (const auto& [from, cost] : inputs_[position]) problem_->AddUse({Output(from, cost)});
    task_of_[position] = task;
  }

  int Output(size_t from, double cost) {
    const auto [known, fresh] = value_of_.emplace(from, -1);
    if (fresh) known->second = problem_->AddValue({.task = task_of_.at(from), .bytes = Ns(cost)});
    return known->second;
  }

  nlohmann::json data_;
  std::optional<Problem> problem_;
  std::map<int, size_t> position_;
  std::vector<std::map<size_t, double>> inputs_;
  std::map<int, int> groups_;
  int groups_made_ = 0;
  std::map<size_t, int> task_of_, value_of_;
};

}  // namespace weir::place

#endif  // WEIR_TESTS_UNIT_PLACE_MSR_H_
