// Collections: named lists that a graph carries along, and the names of those that TensorFlow keeps.
#ifndef WEIR_CORE_CLIENT_COLLECTIONS_H_
#define WEIR_CORE_CLIENT_COLLECTIONS_H_

#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace weir {

class Variable;

/// The text, "" for a null pointer.
inline std::string OrEmpty(const char* text) { return text == nullptr ? std::string() : std::string(text); }

/// Standard collection keys. A variable is in kGlobalVariables, or where its options say; one that is not trainable is
/// there as well, and only not in kTrainableVariables.
namespace keys {
inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kMetricVariables[] = "metric_variables";
inline constexpr char kModelVariables[] = "model_variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";
inline constexpr char kConcatenatedVariables[] = "concatenated_variables";
inline constexpr char kTrainableResourceVariables[] = "trainable_resource_variables";
inline constexpr char kSummaries[] = "summaries";
inline constexpr char kSummaryOp[] = "summary_op";
inline constexpr char kQueueRunners[] = "queue_runners";
inline constexpr char kTableInitializers[] = "table_initializer";
inline constexpr char kAssetFilepaths[] = "asset_filepaths";
inline constexpr char kRegularizationLosses[] = "regularization_losses";
inline constexpr char kLosses[] = "losses";
inline constexpr char kUpdateOps[] = "update_ops";
inline constexpr char kSaveableObjects[] = "saveable_objects";
inline constexpr char kSavers[] = "savers";
inline constexpr char kWeights[] = "weights";
inline constexpr char kBiases[] = "biases";
inline constexpr char kActivations[] = "activations";
inline constexpr char kResources[] = "resources";
inline constexpr char kLocalResources[] = "local_resources";
inline constexpr char kInitOp[] = "init_op";
inline constexpr char kLocalInitOp[] = "local_init_op";
inline constexpr char kReadyOp[] = "ready_op";
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";
inline constexpr char kTrainOp[] = "train_op";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kEvalStep[] = "eval_step";
inline constexpr char kCondContext[] = "cond_context";
inline constexpr char kWhileContext[] = "while_context";
}  // namespace keys

/// What the names of entries must begin with: a regular expression, tried at the start of the name. None = every entry
/// is wanted; any scope, "" too, leaves out the entries that have no name.
using CollectionScope = std::optional<std::string_view>;

/// The collections of one graph, in the order in which they were made; entries keep the order in which they came, and
/// repeated ones stay. `Entry` has `std::string name() const`, empty for none. Single-threaded.
template <class Entry>
class Collections {
 public:
  void Add(const std::string& key, Entry entry) { Ref(key).push_back(std::move(entry)); }
  /// The list itself, made when it is not there. Its address stays.
  std::vector<Entry>& Ref(const std::string& key) {
    const auto [found, fresh] = lists_.try_emplace(key);
    if (fresh) keys_.push_back(key);
    return found->second;
  }
  /// Null for an unknown key.
  const std::vector<Entry>* Find(const std::string& key) const {
    const auto found = lists_.find(key);
    return found == lists_.end() ? nullptr : &found->second;
  }
  void Clear(const std::string& key) {
    if (lists_.erase(key) > 0) std::erase(keys_, key);
  }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::map<std::string, std::vector<Entry>> lists_;
  std::vector<std::string> keys_;
};

/// Tells names that a scope lets through.
class NameFilter {
 public:
  /// InvalidArgument for a bad regular expression, quoting it.
  static Result<NameFilter> Make(std::string_view scope);
  bool operator()(std::string_view name) const;

 private:
  struct Compiled;
  std::string prefix_;
  std::shared_ptr<const Compiled> compiled_;  // null: the scope is plain text
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_COLLECTIONS_H_
