#include "core/graph/function_library.h"

#include <unordered_map>

#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

Result<bool> SameBytes(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  WEIR_ASSIGN(const std::string bytes_a, proto::Serialize(a, "FunctionDef"));
  WEIR_ASSIGN(const std::string bytes_b, proto::Serialize(b, "FunctionDef"));
  return bytes_a == bytes_b;
}

/// Adds what is new to `all`, which `index` knows by key.
template <class Item, class Items, class Key, class Conflict>
Status AddNew(const Items& added, Items& all, Key key, Conflict conflict) {
  std::unordered_map<std::string, int> index;
  for (int i = 0; i < all.size(); ++i) index.emplace(key(all.Get(i)), i);
  for (const Item& item : added) {
    const auto [found, fresh] = index.emplace(key(item), all.size());
    if (fresh) {
      *all.Add() = item;
      continue;
    }
    WEIR_ASSIGN(const bool same, SameBytes(all.Get(found->second), item));
    if (!same) return conflict(item);
  }
  return {};
}

}  // namespace

Result<std::string> MergeLibraries(std::string_view known, std::string_view added_bytes) {
  if (added_bytes.empty()) return std::string(known);
  tf::FunctionDefLibrary added;
  WEIR_TRY(proto::ParseBinary(added_bytes, "FunctionDefLibrary", added));
  tf::FunctionDefLibrary all;
  WEIR_TRY(proto::ParseBinary(known, "FunctionDefLibrary", all));
  WEIR_TRY(AddNew<tf::FunctionDef>(
      added.function(), *all.mutable_function(), [](const tf::FunctionDef& f) { return f.signature().name(); },
      [](const tf::FunctionDef& f) {
        return InvalidArgument(
            "Cannot add function '{}' because a different function with the same name already exists.",
            f.signature().name());
      }));
  WEIR_TRY(AddNew<tf::GradientDef>(
      added.gradient(), *all.mutable_gradient(), [](const tf::GradientDef& g) { return g.function_name(); },
      [](const tf::GradientDef& g) {
        return InvalidArgument(
            "Cannot assign gradient function '{}' to '{}' because it already has another gradient "
            "function",
            g.gradient_func(), g.function_name());
      }));
  WEIR_TRY(AddNew<tf::RegisteredGradient>(
      added.registered_gradients(), *all.mutable_registered_gradients(),
      [](const tf::RegisteredGradient& g) { return g.registered_op_type(); },
      [](const tf::RegisteredGradient& g) {
        return InvalidArgument("Cannot register a second gradient for op type '{}'", g.registered_op_type());
      }));
  return proto::Serialize(all, "FunctionDefLibrary");
}

}  // namespace weir::graph
