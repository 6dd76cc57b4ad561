// Staging areas: tuples that one step puts and another takes, so that their work overlaps.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_STAGING_AREA_H_
#define WEIR_CORE_CLIENT_CONTAINERS_STAGING_AREA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/containers/queue.h"

namespace weir {

struct StagingAreaOptions {
  std::vector<PartialShape> shapes = {};  // of the components; empty = any
  std::vector<std::string> names = {};    // of the components; empty = none
  std::string shared_name = {};           // areas of one name are one; empty = a name of its own
  int64_t capacity = 0;                   // in tuples; 0 = any number
  int64_t memory_limit = 0;               // in bytes; 0 = any number
};

/// What both areas have. An op that puts waits for room, one that takes for what it takes; neither holds a thread. All
/// ops of an area run on the device where it was made. Nodes are named as TensorFlow's Python names them:
/// `StagingArea_put`. Errors of building are errors of the graph, with TensorFlow's texts.
class StagingAreaBase {
 public:
  const std::string& name() const { return name_; }
  const std::vector<DType>& dtypes() const { return dtypes_; }
  const std::vector<PartialShape>& shapes() const { return shapes_; }
  const std::vector<std::string>& names() const { return options_.names; }
  int64_t capacity() const { return options_.capacity; }
  int64_t memory_limit() const { return options_.memory_limit; }

  /// int32 scalar: whole tuples.
  Output Size(std::string_view name = {}, Where where = Where::current()) const;
  /// Drops all tuples.
  Operation Clear(std::string_view name = {}, Where where = Where::current()) const;
  /// All components by name; empty where the area has no names.
  NamedOutputs Named(const List<Output>& components) const;

 protected:
  /// `usual`: the name of an area without a shared one.
  StagingAreaBase(std::string_view usual, std::vector<DType> dtypes, const StagingAreaOptions& options,
                  const Where& where);
  /// An op of this area beside it. `types`: of the attribute dtypes; `suffix`: of the node's name unless it has one.
  Operation Build(std::string_view op, std::string_view suffix, const std::vector<Operand>& operands,
                  const std::vector<DType>& types, std::string_view name, const Where& where) const;
  /// The components that a tuple has, as values of their types and shapes, and which they are.
  Result<std::vector<Operand>> Values(const QueueTuple& tuple, std::vector<int32_t>* indices) const;
  Operation Fail(const Status& status, const Where& where) const;
  /// The indices of all components.
  std::vector<int32_t> All() const;
  void SetShapes(const List<Output>& outputs, size_t first, const std::vector<int32_t>& indices) const;

  Operation root_;  // its device is the area's
  std::string name_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;  // as many as types
  StagingAreaOptions options_;
  std::string prefix_;  // of the ops: "", "Map", "OrderedMap"
};

/// First in, first out.
class StagingArea : public StagingAreaBase {
 public:
  explicit StagingArea(std::vector<DType> dtypes, const StagingAreaOptions& options = {},
                       Where where = Where::current());
  /// Puts one tuple.
  Operation Put(const QueueTuple& values, std::string_view name = {}, Where where = Where::current()) const;
  /// Takes the first tuple.
  List<Output> Get(std::string_view name = {}, Where where = Where::current()) const;
  /// The tuple number `index` (int32 scalar) from the front, which stays.
  List<Output> Peek(const Operand& index, std::string_view name = {}, Where where = Where::current()) const;

 private:
  List<Output> Whole(const Operation& taken) const;
};

struct MapStagingAreaOptions : StagingAreaOptions {
  bool ordered = false;  // takes without a key take the least one
};

/// By key, an int64 scalar. Components may come and go one by one; a tuple can be taken once it is whole. `indices` say
/// which components are meant: all if empty, but for the put of a list, which needs them.
class MapStagingArea : public StagingAreaBase {
 public:
  explicit MapStagingArea(std::vector<DType> dtypes, const MapStagingAreaOptions& options = {},
                          Where where = Where::current());
  Operation Put(const Operand& key, const QueueTuple& values, std::vector<int32_t> indices = {},
                std::string_view name = {}, Where where = Where::current()) const;
  List<Output> Get(const Operand& key, std::vector<int32_t> indices = {}, std::string_view name = {},
                   Where where = Where::current()) const;
  /// As Get; the components stay.
  List<Output> Peek(const Operand& key, std::vector<int32_t> indices = {}, std::string_view name = {},
                    Where where = Where::current()) const;
  struct Keyed {
    Output key;
    List<Output> values;
  };
  /// Takes from the tuple of any key.
  Keyed GetAny(std::vector<int32_t> indices = {}, std::string_view name = {}, Where where = Where::current()) const;
  /// int32 scalar: tuples that lack components.
  Output IncompleteSize(std::string_view name = {}, Where where = Where::current()) const;

 private:
  List<Output> Take(std::string_view op, std::string_view suffix, std::vector<Operand> operands, size_t before,
                    std::vector<int32_t> indices, std::string_view name, const Where& where) const;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_STAGING_AREA_H_
