#include "core/client/containers/staging_area.h"

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return "[" + text + "]";
}

/// A name that no other area of the graph has.
std::string OwnName(std::string_view usual, Graph& graph) {
  std::string path = NameScope(usual, graph).path();
  while (path.ends_with('/')) path.pop_back();
  return path;
}

Tensor IndexTensor(const std::vector<int32_t>& indices) { return Tensor::Vector(indices); }

}  // namespace

StagingAreaBase::StagingAreaBase(std::string_view usual, std::vector<DType> dtypes, const StagingAreaOptions& options,
                                 const Where& where)
    : dtypes_(std::move(dtypes)), shapes_(options.shapes), options_(options) {
  Graph& graph = Graph::Default();
  shapes_.resize(dtypes_.size());
  const auto fits = [&](size_t given) { return given == 0 || given == dtypes_.size(); };
  if (!fits(options.shapes.size()) || !fits(options.names.size())) {
    root_ = Fail(InvalidArgument("StagingArea {} must be the same length as dtypes",
                                 fits(options.shapes.size()) ? "names" : "shapes"),
                 where);
    return;
  }
  name_ = options.shared_name.empty() ? OwnName(usual, graph) : options.shared_name;
  const NameScope scope(name_ + "_root", graph);
  root_ = NoOp();
}

Operation StagingAreaBase::Fail(const Status& status, const Where& where) const {
  Graph& graph = root_.exists() ? *root_.graph() : Graph::Default();
  (void)graph.Fail(status.Append(" (" + Format(where) + ")"));
  return Operation::Absent(graph);
}

Operation StagingAreaBase::Build(std::string_view op, std::string_view suffix, const std::vector<Operand>& operands,
                                 const std::vector<DType>& types, std::string_view name, const Where& where) const {
  if (!root_.exists()) return root_;
  Graph& graph = *root_.graph();
  const AsDefault in(graph);
  const ColocateWith beside(root_, OuterColocation::kIgnore, graph);
  const std::string usual = name_ + std::string(suffix);
  return BuildOp(prefix_ + std::string(op), operands,
                 {{"dtypes", types},
                  {"capacity", options_.capacity},
                  {"memory_limit", options_.memory_limit},
                  {"shared_name", name_}},
                 name.empty() ? std::string_view(usual) : name, where);
}

Result<std::vector<Operand>> StagingAreaBase::Values(const QueueTuple& tuple, std::vector<int32_t>* indices) const {
  std::vector<Operand> values;
  if (tuple.has_names()) {
    const std::vector<std::string>& names = options_.names;
    if (names.empty()) return InvalidArgument("Staging areas must have names to enqueue a dictionary");
    indices->clear();
    std::vector<std::string> given;
    for (const auto& [key, value] : tuple.by_name()) given.push_back(key);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = tuple.by_name().find(names[i]);
      if (found == tuple.by_name().end()) continue;
      indices->push_back(static_cast<int32_t>(i));
      values.push_back(found->second);
    }
    if (values.size() != given.size()) {
      return InvalidArgument("Keys in dictionary to put do not match names of staging area. Dictionary: {}Queue: {}",
                             Quoted(given), Quoted(names));
    }
  } else {
    if (!options_.names.empty()) return InvalidArgument("You must enqueue a dictionary in a staging area with names");
    values = tuple.values();
  }
  if (values.size() != indices->size()) {
    return InvalidArgument("{} values were given for {} components", values.size(), indices->size());
  }
  Graph& graph = *root_.graph();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<size_t>((*indices)[i]);
    if (at >= dtypes_.size()) return OutOfRange("list index out of range");
    const Output value = values[i].In(graph, values[i].is_literal() ? dtypes_[at] : DType::kInvalid);
    values[i] = value;
    if (!value.exists()) continue;
    if (BaseType(value.dtype()) != dtypes_[at]) {
      return InvalidArgument(
          "Datatypes do not match. Received val.dtype <dtype: '{}'> and dtype <dtype: '{}'>",
          NumpyName(BaseType(value.dtype())), NumpyName(dtypes_[at]));
    }
    if (value.shape().CompatibleWith(shapes_[at])) continue;
    return InvalidArgument("Shapes {} and {} are incompatible", value.shape().ToTupleString(),
                           shapes_[at].ToTupleString());
  }
  return values;
}

std::vector<int32_t> StagingAreaBase::All() const {
  std::vector<int32_t> indices(dtypes_.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

void StagingAreaBase::SetShapes(const List<Output>& outputs, size_t first, const std::vector<int32_t>& indices) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    const Output output = outputs[first + i];
    if (output.exists()) output.SetShape(shapes_[static_cast<size_t>(indices[i])]);
  }
}

NamedOutputs StagingAreaBase::Named(const List<Output>& components) const {
  NamedOutputs named;
  for (size_t i = 0; i < options_.names.size(); ++i) named.emplace(options_.names[i], components[i]);
  return named;
}

Output StagingAreaBase::Size(std::string_view name, Where where) const {
  const std::string_view op = prefix_.empty() ? "StageSize" : "Size";
  return OutputsOr(Build(op, "_size", {}, dtypes_, name, where), 1)[0];
}
Operation StagingAreaBase::Clear(std::string_view name, Where where) const {
  return Build(prefix_.empty() ? "StageClear" : "Clear", "_clear", {}, dtypes_, name, where);
}

StagingArea::StagingArea(std::vector<DType> dtypes, const StagingAreaOptions& options, Where where)
    : StagingAreaBase("StagingArea", std::move(dtypes), options, where) {}

List<Output> StagingArea::Whole(const Operation& taken) const {
  const List<Output> components = OutputsOr(taken, static_cast<int64_t>(dtypes_.size()));
  SetShapes(components, 0, All());
  return components;
}

Operation StagingArea::Put(const QueueTuple& values, std::string_view name, Where where) const {
  if (!root_.exists()) return root_;
  std::vector<int32_t> indices = All();
  const AsDefault in(*root_.graph());
  const Result<std::vector<Operand>> checked = Values(values, &indices);
  if (!checked.ok()) return Fail(checked.status(), where);
  if (indices.size() != dtypes_.size()) return Fail(InvalidArgument("a tuple lacks components"), where);
  return Build("Stage", "_put", *checked, dtypes_, name, where);
}

List<Output> StagingArea::Get(std::string_view name, Where where) const {
  return Whole(Build("Unstage", "_get", {}, dtypes_, name, where));
}

List<Output> StagingArea::Peek(const Operand& index, std::string_view name, Where where) const {
  return Whole(Build("StagePeek", "_peek", {index}, dtypes_, name, where));
}

MapStagingArea::MapStagingArea(std::vector<DType> dtypes, const MapStagingAreaOptions& options, Where where)
    : StagingAreaBase("MapStagingArea", std::move(dtypes), options, where) {
  prefix_ = options.ordered ? "OrderedMap" : "Map";
}

Operation MapStagingArea::Put(const Operand& key, const QueueTuple& values, std::vector<int32_t> indices,
                              std::string_view name, Where where) const {
  if (!root_.exists()) return root_;
  if (!values.has_names() && names().empty() && indices.empty()) {
    return Fail(InvalidArgument("Indices must be supplied when inserting a list of tensors"), where);
  }
  const AsDefault in(*root_.graph());
  const Result<std::vector<Operand>> checked = Values(values, &indices);
  if (!checked.ok()) return Fail(checked.status(), where);
  std::vector<Operand> operands = {key, IndexTensor(indices)};
  operands.insert(operands.end(), checked->begin(), checked->end());
  return Build("Stage", "_put", operands, dtypes_, name, where);
}

List<Output> MapStagingArea::Take(std::string_view op, std::string_view suffix, std::vector<Operand> operands,
                                  size_t before, std::vector<int32_t> indices, std::string_view name,
                                  const Where& where) const {
  if (indices.empty()) indices = All();
  const auto count = static_cast<int64_t>(before + indices.size());
  std::vector<DType> types;
  for (const int32_t index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= dtypes_.size()) {
      return OutputsOr(Fail(OutOfRange("list index out of range"), where), count);
    }
    types.push_back(dtypes_[static_cast<size_t>(index)]);
  }
  operands.emplace_back(IndexTensor(indices));
  const List<Output> taken = OutputsOr(Build(op, suffix, operands, types, name, where), count);
  SetShapes(taken, before, indices);
  return taken;
}

List<Output> MapStagingArea::Get(const Operand& key, std::vector<int32_t> indices, std::string_view name,
                                 Where where) const {
  return Take("Unstage", "_get", {key}, 0, std::move(indices), name, where);
}
List<Output> MapStagingArea::Peek(const Operand& key, std::vector<int32_t> indices, std::string_view name,
                                  Where where) const {
  return Take("Peek", "_pop", {key}, 0, std::move(indices), name, where);
}
MapStagingArea::Keyed MapStagingArea::GetAny(std::vector<int32_t> indices, std::string_view name, Where where) const {
  const List<Output> taken = Take("UnstageNoKey", "_get_nokey", {}, 1, std::move(indices), name, where);
  Keyed keyed{taken[0], {}};
  for (size_t i = 1; i < taken.size(); ++i) keyed.values.push_back(taken[i]);
  return keyed;
}
Output MapStagingArea::IncompleteSize(std::string_view name, Where where) const {
  return OutputsOr(Build("IncompleteSize", "_incomplete_size", {}, dtypes_, name, where), 1)[0];
}

}  // namespace weir
