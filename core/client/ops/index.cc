#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/operand.h"
#include "core/client/ops/ops.h"
#include "core/client/variables/variable.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// The operands of a StridedSlice, one element of each list per index, and its masks.
struct SliceSpec {
  std::vector<Operand> begin, end, strides;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;

  void Add(Operand from, Operand to, Operand step) {
    begin.push_back(std::move(from));
    end.push_back(std::move(to));
    strides.push_back(std::move(step));
  }
};

/// What follows a position: a number, or the value of an op "add".
Operand After(const Operand& position) {
  if (!position.is_literal()) return Operand(position + 1, position.where());
  const int64_t at = ElementAsInt(position.literal().tensor, 0);
  return Operand(at == std::numeric_limits<int64_t>::max() ? at : at + 1, position.where());
}

void AddIndex(const Index& index, SliceSpec& spec) {
  const int64_t bit = int64_t{1} << spec.begin.size();
  const Operand zero(0, index.where()), one(1, index.where());
  if (const Operand* position = std::get_if<Operand>(&index.kind())) {
    spec.shrink_axis_mask |= bit;
    return spec.Add(*position, After(*position), one);
  }
  if (const Span* span = std::get_if<Span>(&index.kind())) {
    if (!span->begin) spec.begin_mask |= bit;
    if (!span->end) spec.end_mask |= bit;
    return spec.Add(span->begin.value_or(zero), span->end.value_or(zero), span->stride.value_or(one));
  }
  (std::holds_alternative<Ellipsis>(index.kind()) ? spec.ellipsis_mask : spec.new_axis_mask) |= bit;
  spec.Add(zero, zero, one);
}

/// A constant where all elements are numbers, else their Pack.
Output Packed(Graph& graph, const std::vector<Operand>& elements, const Where& where) {
  const auto value = std::ranges::find_if(elements, [](const Operand& e) { return !e.is_literal(); });
  if (elements.empty()) return Operand(Literal(Tensor::Vector<int32_t>({})), where).In(graph, DType::kInvalid, "stack");
  if (value == elements.end()) {
    std::vector<Literal> numbers;
    for (const Operand& element : elements) numbers.push_back(element.literal());
    return Operand(Literal(numbers), where).In(graph, DType::kInvalid, "stack");
  }
  const NameScope scope("stack", graph);
  OperationSpec spec;
  spec.op = "Pack";
  for (size_t i = 0; i < elements.size(); ++i) {
    spec.inputs.push_back(elements[i].In(graph, BaseType(value->dtype()), std::to_string(i)));
  }
  spec.attrs = {{"axis", 0}};
  spec.name = scope.path();
  spec.where = where;
  return graph.Add(spec).output(0);
}

/// tf.Tensor.__getitem__: a StridedSlice with its operands below its name.
Output Strided(const Output& tensor, std::initializer_list<Index> indices) {
  if (!tensor.exists()) return tensor;
  const Where where = indices.size() == 0 ? Where() : indices.begin()->where();
  Graph& graph = *tensor.graph();
  constexpr size_t kMost = 32;  // as many bits as a mask of StridedSlice has
  if (indices.size() > kMost) {
    (void)graph.Fail(
        InvalidArgument("Too many indices: {}, at most {} are possible ({})", indices.size(), kMost, Format(where)));
    return Output();
  }
  SliceSpec spec;
  for (const Index& index : indices) AddIndex(index, spec);
  const NameScope scope("strided_slice", graph);
  std::vector<Operand> inputs = {tensor};
  for (const auto* list : {&spec.begin, &spec.end, &spec.strides}) inputs.emplace_back(Packed(graph, *list, where));
  const auto is_wide = [](const Operand& list) { return list.dtype() == DType::kInt64; };
  if (std::any_of(inputs.begin() + 1, inputs.end(), is_wide)) {
    for (size_t i = 1; i < inputs.size(); ++i) inputs[i] = Cast(inputs[i], DType::kInt64, "Cast", where);
  }
  const std::string path = scope.path();
  return BuildOp("StridedSlice", inputs,
                 {{"begin_mask", spec.begin_mask},
                  {"end_mask", spec.end_mask},
                  {"ellipsis_mask", spec.ellipsis_mask},
                  {"new_axis_mask", spec.new_axis_mask},
                  {"shrink_axis_mask", spec.shrink_axis_mask}},
                 path, where)
      .output(0);
}

}  // namespace

Output Output::operator[](const Index& index) const { return Strided(*this, {index}); }
Output Output::operator[](std::initializer_list<Index> indices) const { return Strided(*this, indices); }
Output Variable::operator[](const Index& index) const { return Strided(value(index.where()), {index}); }
Output Variable::operator[](std::initializer_list<Index> indices) const { return Strided(value(), indices); }

}  // namespace weir
