// The collections of a graph as it keeps them.
#ifndef WEIR_CORE_CLIENT_GRAPH_COLLECTIONS_INTERNAL_H_
#define WEIR_CORE_CLIENT_GRAPH_COLLECTIONS_INTERNAL_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace weir {

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

#endif  // WEIR_CORE_CLIENT_GRAPH_COLLECTIONS_INTERNAL_H_
