// The graphs of the test data with TensorFlow's results.
#ifndef WEIR_TESTS_E2E_TF_GRAPHS_H_
#define WEIR_TESTS_E2E_TF_GRAPHS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/op/registry.h"
#include "core/session/session.h"

namespace weir::testing {

/// One graph of the collection.
class TfGraph {
 public:
  TfGraph(std::string collection, nlohmann::json entry)
      : collection_(std::move(collection)), entry_(std::move(entry)) {}

  std::string name() const { return entry_["graph"].get<std::string>(); }
  Result<graph::Definition> Parse(const op::OpRegistry& ops) const;
  Result<std::vector<session::Feed>> Feeds() const;
  std::vector<std::string> Fetches() const;
  /// InvalidArgument if a result differs from TensorFlow's by the rules of the collection's README. `results` are in
  /// the order of Fetches().
  Status Compare(const std::vector<Tensor>& results) const;
  /// True if all ops of the graph are in the catalogue.
  bool Runs(const op::OpRegistry& ops) const;
  /// True if TensorFlow refuses the graph: a constant on a reference input.
  bool Refused() const;

 private:
  std::string Folder() const { return collection_ + "/" + name() + "/"; }

  std::string collection_;  // folder
  nlohmann::json entry_;    // of index.json
};

/// All graphs of `data`/tf_graphs.
Result<std::vector<TfGraph>> ListTfGraphs(const std::string& data);

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_TF_GRAPHS_H_
