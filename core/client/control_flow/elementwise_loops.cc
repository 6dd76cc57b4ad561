#include "core/client/control_flow/elementwise_loops.h"

#include <utility>

#include "core/base/errors.h"
#include "core/client/containers/tensor_array.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// The first extent of all slices: a number where it is known.
struct Count {
  int64_t known = -1;
  Output value = {};

  Operand operand(const Where& where) const {
    return known >= 0 ? Operand(Literal(known), where) : Operand(value, where);
  }
  /// The last index.
  Operand Last(const Where& where) const {
    return known >= 0 ? Operand(Literal(known - 1), where) : Operand(value - 1, where);
  }
  /// `steps` before the last index.
  Operand BeforeLast(int steps, const Where& where) const {
    return known >= 0 ? Operand(Literal(known - 1 - steps), where) : Operand(value - 1 - steps, where);
  }
};

PartialShape SliceShape(const PartialShape& shape) {
  return shape.rank() < 1 ? PartialShape() : PartialShape::Of(shape.dims().subspan(1));
}

/// Sets the first extent.
void SetCount(const Output& stacked, int64_t count) {
  if (!stacked.exists() || stacked.shape().rank() < 1) return;
  PartialShape shape = stacked.shape();
  shape.set_dim(0, count);
  stacked.SetShape(shape);
}

/// Tensors whose slices a loop goes through.
class Slices {
 public:
  Slices(Graph& graph, const std::vector<Operand>& elems, Where where) : graph_(graph), where_(where) {
    for (const Operand& each : elems) elems_.push_back(each.In(graph, DType::kInvalid, "elem"));
  }

  /// InvalidArgument for none, for scalars, and for different first extents.
  Status Check() {
    if (elems_.empty()) return InvalidArgument("elems must be a Tensor or (possibly nested) sequence of Tensors.");
    for (const Output& each : elems_) {
      WEIR_TRY(graph_.status());
      const PartialShape shape = each.shape();
      if (shape.rank() == 0) return InvalidArgument("Elements in elems must be 1+ dimensional Tensors, not scalars");
      const int64_t rows = shape.has_rank() ? shape.dim(0) : -1;
      if (rows >= 0 && count_.known >= 0 && rows != count_.known) {
        return InvalidArgument("Dimensions {} and {} are not compatible", count_.known, rows);
      }
      if (&each == elems_.data()) count_.known = rows;
    }
    if (count_.known < 0) count_.value = ShapeOf(elems_[0], DType::kInt32, "Shape", where_)[0];
    return graph_.status();
  }

  /// Writes the slices to arrays.
  void Unstack(bool with_shapes) {
    std::vector<TensorArray> empty;
    for (const Output& each : elems_) {
      TensorArrayOptions options;
      if (with_shapes) options.element_shape = SliceShape(each.shape());
      empty.emplace_back(each.dtype(), count_.operand(where_), options, where_);
    }
    for (size_t i = 0; i < elems_.size(); ++i) arrays_.push_back(empty[i].Unstack(elems_[i], {}, where_));
  }

  List<Output> Read(const Operand& index) const {
    List<Output> slices;
    for (const TensorArray& array : arrays_) slices.push_back(array.Read(index, {}, where_));
    return slices;
  }

  const Count& count() const { return count_; }
  const std::vector<Output>& elems() const { return elems_; }

 private:
  Graph& graph_;
  Where where_;
  std::vector<Output> elems_;
  std::vector<TensorArray> arrays_;
  Count count_;
};

WhileOptions LoopOptions(const FoldOptions& options, const Count& count, const Where& where) {
  return {.parallel_iterations = options.parallel_iterations,
          .back_prop = options.back_prop,
          .swap_memory = options.swap_memory,
          .maximum_iterations = count.operand(where)};
}

/// A graph in which a function works below a name scope of its own; an error of `build` becomes one of the graph.
template <class T, class Build>
T Scoped(const std::vector<Operand>& operands, std::string_view name, const Where& where, T absent,
         const Build& build) {
  Graph& graph = GraphOf(operands);
  const AsDefault in(graph);
  const NameScope scope(name, graph);
  Result<T> made = build(graph);
  if (made.ok()) return std::move(*made);
  (void)graph.Fail(made.status().Append(" (" + Format(where) + ")"));
  return absent;
}

enum class Direction { kUp, kDown };

Output Fold(const FoldFunction& fn, const Operand& elems, const FoldOptions& options, Direction direction,
            std::string_view name, const Where& where) {
  const auto build = [&](Graph& graph) -> Result<Output> {
    Slices slices(graph, {elems}, where);
    WEIR_TRY(slices.Check());
    slices.Unstack(false);
    const bool up = direction == Direction::kUp;
    Operand first = 0, value = 0;
    if (options.initializer) {
      first = up ? Operand(Constant(0, DType::kInvalid, "Const", where)) : slices.count().operand(where);
      value = *options.initializer;
    } else if (up) {
      value = slices.Read(0)[0];
      first = Constant(1, DType::kInvalid, "Const", where);
    } else {
      first = slices.count().Last(where);
      value = slices.Read(first)[0];
    }
    const LoopCondFn goes_on = [&](const LoopVars& v) {
      return up ? Less(v[0], slices.count().operand(where)) : Greater(v[0], 0);
    };
    const LoopBodyFn body = [&](const LoopVars& v) -> LoopVars {
      if (!up) {
        const Output at = v[0] - 1;
        return {at, fn(v[1], slices.Read(at)[0])};
      }
      const Output next = fn(v[1], slices.Read(v[0])[0]);
      return {v[0] + 1, next};
    };
    const LoopVars last = WhileLoop(goes_on, body, {first, value}, LoopOptions(options, slices.count(), where), where);
    WEIR_TRY(graph.status());
    return last[1];
  };
  return Scoped<Output>({elems}, options.name.empty() ? name : options.name, where, Output::Absent(GraphOf(elems)),
                        build);
}

}  // namespace

List<Output> MapFn(const MapListFunction& fn, const std::vector<Operand>& elems, const MapOptions& options,
                   Where where) {
  const auto build = [&](Graph& graph) -> Result<List<Output>> {
    Slices slices(graph, elems, where);
    WEIR_TRY(slices.Check());
    slices.Unstack(false);
    const Output first = Constant(0, DType::kInvalid, "Const", where);
    std::vector<DType> types = options.dtype;
    if (types.empty()) {
      for (const Output& each : slices.elems()) types.push_back(BaseType(each.dtype()));
    }
    std::vector<TensorArray> results;
    std::vector<Operand> vars = {first};
    for (const DType type : types) {
      results.emplace_back(type, slices.count().operand(where), TensorArrayOptions{.infer_shape = options.infer_shape},
                           where);
      vars.emplace_back(results.back().flow());
    }
    Status mismatch;
    const LoopBodyFn body = [&](const LoopVars& v) -> LoopVars {
      const List<Output> values = fn(slices.Read(v[0]));
      if (values.size() != results.size()) {
        mismatch =
            InvalidArgument("The two structures don't have the same nested structure: fn gives {} values, not {}",
                            values.size(), results.size());
      }
      LoopVars next = {Output()};
      for (size_t i = 0; i < results.size(); ++i) {
        next.push_back(results[i].WithFlow(v[1 + i]).Write(v[0], values[i], {}, where).flow());
      }
      next[0] = v[0] + 1;
      return next;
    };
    const LoopVars last =
        WhileLoop([&](const LoopVars& v) { return Less(v[0], slices.count().operand(where)); }, body, vars,
                  {.parallel_iterations = options.parallel_iterations,
                   .back_prop = options.back_prop,
                   .swap_memory = options.swap_memory,
                   .maximum_iterations = slices.count().operand(where)},
                  where);
    WEIR_TRY(mismatch);
    WEIR_TRY(graph.status());
    List<Output> stacked;
    for (size_t i = 0; i < results.size(); ++i) {
      stacked.push_back(results[i].WithFlow(last[1 + i]).Stack({}, where));
      SetCount(stacked.back(), slices.count().known);
    }
    return stacked;
  };
  const size_t count = options.dtype.empty() ? elems.size() : options.dtype.size();
  return Scoped<List<Output>>(elems, options.name.empty() ? "map" : options.name, where,
                              List<Output>::Absent(count, Output::Absent(GraphOf(elems))), build);
}

Output MapFn(const MapFunction& fn, const Operand& elems, const MapOptions& options, Where where) {
  const MapListFunction one = [&fn](const List<Output>& elements) -> List<Output> { return {fn(elements[0])}; };
  return MapFn(one, std::vector<Operand>{elems}, options, where)[0];
}

Output FoldL(const FoldFunction& fn, const Operand& elems, const FoldOptions& options, Where where) {
  return Fold(fn, elems, options, Direction::kUp, "foldl", where);
}

Output FoldR(const FoldFunction& fn, const Operand& elems, const FoldOptions& options, Where where) {
  return Fold(fn, elems, options, Direction::kDown, "foldr", where);
}

Output Scan(const FoldFunction& fn, const Operand& elems, const FoldOptions& options, Where where) {
  const auto build = [&](Graph& graph) -> Result<Output> {
    Slices slices(graph, {elems}, where);
    WEIR_TRY(slices.Check());
    slices.Unstack(true);
    const Count& count = slices.count();
    const bool down = options.reverse;
    const int done = options.initializer ? 0 : 1;  // slices before the loop
    const Output value = options.initializer ? options.initializer->In(graph, DType::kInvalid, "Const")
                                             : slices.Read(down ? count.Last(where) : Operand(0, where))[0];
    WEIR_TRY(graph.status());
    TensorArrayOptions array_options{.infer_shape = options.infer_shape};
    if (options.infer_shape) array_options.element_shape = value.shape();
    TensorArray results(value.dtype(), count.operand(where), array_options, where);
    if (done == 1) results = results.Write(down ? count.Last(where) : Operand(0, where), value, {}, where);
    const Operand first = down ? count.BeforeLast(done, where) : Operand(done, where);
    const LoopCondFn goes_on = [&](const LoopVars& v) {
      return down ? GreaterEqual(v[0], 0) : Less(v[0], count.operand(where));
    };
    const LoopBodyFn body = [&](const LoopVars& v) -> LoopVars {
      const Output next = fn(v[1], slices.Read(v[0])[0]);
      const Output flow = results.WithFlow(v[2]).Write(v[0], next, {}, where).flow();
      return {down ? v[0] - 1 : v[0] + 1, next, flow};
    };
    const LoopVars last =
        WhileLoop(goes_on, body, {first, value, results.flow()}, LoopOptions(options, count, where), where);
    WEIR_TRY(graph.status());
    const Output stacked = results.WithFlow(last[2]).Stack({}, where);
    SetCount(stacked, count.known);
    return stacked;
  };
  return Scoped<Output>({elems}, options.name.empty() ? "scan" : options.name, where, Output::Absent(GraphOf(elems)),
                        build);
}

LoopVars ForRange(const Operand& start, const Operand& limit, const Operand& delta, const RangeBodyFn& body,
                  const std::vector<Operand>& vars, const WhileOptions& options, Where where) {
  std::vector<Operand> all = {start, limit, delta};
  all.insert(all.end(), vars.begin(), vars.end());
  Graph& graph = GraphOf(all);
  const AsDefault in(graph);
  DType type = DType::kInvalid;
  for (const Operand& each : {limit, start, delta}) {
    if (!each.is_literal() || type == DType::kInvalid) type = BaseType(each.dtype());
  }
  const Output from = start.In(graph, type, "range/start"), to = limit.In(graph, type, "range/limit"),
               by = delta.In(graph, type, "range/delta");
  Operand first = from;
  // A range that leads nowhere has no last number.
  if (!delta.is_literal()) {
    const Operation check = Assert(NotEqual(by, 0, {}, where), {Operand("Requires delta != 0:", where), by}, {}, where);
    first = WithDependencies({check}, from, "range/checked", where);
  }
  const Tensor& step = delta.literal().tensor;
  const double known = delta.is_literal() && step.valid() && step.elements() == 1 ? ElementAsDouble(step, 0) : 1;
  if (known == 0) {
    (void)graph.Fail(InvalidArgument("Requires delta != 0: 0 ({})", Format(where)));
    return List<Output>::Absent(vars.size(), Output::Absent(graph));
  }
  const bool falls = known < 0;
  const LoopCondFn goes_on = [&](const LoopVars& v) {
    if (delta.is_literal()) return falls ? Greater(v[0], to) : Less(v[0], to);
    return SelectV2(Greater(by, 0), Less(v[0], to), Greater(v[0], to));
  };
  std::vector<Operand> loop_vars = {first};
  loop_vars.insert(loop_vars.end(), vars.begin(), vars.end());
  WhileOptions loop = options;
  if (!loop.shape_invariants.empty())
    loop.shape_invariants.insert(loop.shape_invariants.begin(), PartialShape(Shape()));
  const LoopBodyFn next = [&](const LoopVars& v) -> LoopVars {
    LoopVars given(std::vector<Output>(v.begin() + 1, v.end()));
    LoopVars made = body(v[0], given);
    made.insert(made.begin(), v[0] + by);
    return made;
  };
  LoopVars last = WhileLoop(goes_on, next, loop_vars, loop, where);
  if (!last.empty()) last.erase(last.begin());
  return last;
}

LoopVars ForRange(const Operand& limit, const RangeBodyFn& body, const std::vector<Operand>& vars,
                  const WhileOptions& options, Where where) {
  return ForRange(0, limit, 1, body, vars, options, where);
}

}  // namespace weir
