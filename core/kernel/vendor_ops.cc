#include "core/kernel/vendor_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/op/vendor_ops.h"

namespace weir::kernel {
namespace {

constexpr uint32_t kMostArguments = 1024;

std::string Called(const weir_op& op, std::string_view function) {
  return fmt::format("the {} function of op {}", function, Text(op.name));
}

/// Shapes as the plugin sees them.
class ShapeViews {
 public:
  explicit ShapeViews(const op::ShapeContext& context) {
    for (int i = 0; i < context.num_inputs(); ++i) {
      const PartialShape& shape = context.input(i);
      weir_shape view{WEIR_UNKNOWN_RANK, 0, nullptr};
      if (shape.has_rank()) view = {static_cast<uint32_t>(shape.rank()), 0, shape.dims().data()};
      views_.push_back(view);
    }
  }
  const weir_shape* data() const { return views_.data(); }

 private:
  std::vector<weir_shape> views_;
};

/// The outputs that a shape function sets.
struct ShapesSet {
  std::vector<PartialShape> outputs;
  Status fault;
};

void SetShape(void* ctx, uint32_t output, const weir_shape* shape) noexcept {
  auto& set = *static_cast<ShapesSet*>(ctx);
  if (!set.fault.ok()) return;
  if (output >= set.outputs.size() || shape == nullptr ||
      (shape->rank != WEIR_UNKNOWN_RANK && shape->rank != 0 && shape->dims == nullptr)) {
    set.fault = Internal("it sets output {} of {} to no shape", output, set.outputs.size());
  } else if (shape->rank != WEIR_UNKNOWN_RANK) {
    Result<PartialShape> made = shape->rank > static_cast<uint32_t>(kMaxRank)
                                    ? InvalidArgument("rank {} of output {}, at most {}", shape->rank, output, kMaxRank)
                                    : PartialShape::Make({shape->dims, shape->rank});
    if (made.ok()) set.outputs[output] = std::move(*made);
    if (!made.ok()) set.fault = made.status();
  }
}

Status InferShapes(const weir_op& op, op::ShapeContext& context) {
  const ShapeViews inputs(context);
  const weir_node node{.name = {}, .attrs = context.attrs(), .constant_input = [&](int i) {
                         return i < context.num_inputs() ? context.value(i) : nullptr;
                       }};
  weir_shape_args args{};
  args.struct_size = sizeof args;
  args.input_count = static_cast<uint32_t>(context.num_inputs());
  args.output_count = static_cast<uint32_t>(context.num_outputs());
  args.node = &node;
  args.inputs = inputs.data();
  ShapesSet set{std::vector<PartialShape>(static_cast<size_t>(context.num_outputs())), {}};
  WEIR_TRY(CallPlugin([&] { return Called(op, "shape"); },
                      [&](weir_error* error) { return op.shape(op.user, &args, SetShape, &set, error); }));
  if (!set.fault.ok()) return set.fault.Prepend(Called(op, "shape") + ": ");
  for (int i = 0; i < context.num_outputs(); ++i) {
    context.set_output(i, std::move(set.outputs[static_cast<size_t>(i)]));
  }
  return {};
}

Result<op::AttrList> AttrsOf(const weir_opt* attrs, uint32_t count) {
  op::AttrList list;
  for (const weir_opt& attr : std::span(attrs, count)) {
    std::string key(Text(attr.key));
    switch (attr.type) {
      case WEIR_VALUE_INT:
        list.emplace_back(std::move(key), attr.value.i);
        break;
      case WEIR_VALUE_FLOAT:
        list.emplace_back(std::move(key), static_cast<float>(attr.value.f));
        break;
      case WEIR_VALUE_BOOL:
        list.emplace_back(std::move(key), attr.value.i != 0);
        break;
      case WEIR_VALUE_STRING:
        list.emplace_back(std::move(key), std::string(Text(attr.value.s)));
        break;
      case WEIR_VALUE_DTYPE:
        list.emplace_back(std::move(key), static_cast<DType>(attr.value.i));
        break;
      default:
        return Internal("attribute '{}' has type {}, wanted int, float, bool, string or dtype", key, attr.type);
    }
  }
  return list;
}

/// The graph behind weir_gradient: values by number.
class GradientGraph {
 public:
  explicit GradientGraph(op::GradContext& context)
      : context_(context), gradients_(static_cast<size_t>(context.num_inputs())) {}

  const Status& fault() const { return fault_; }
  std::vector<op::Grad> TakeGradients() { return std::move(gradients_); }

  static weir_gradient TableFor(GradientGraph* graph, const weir_node* node) {
    weir_gradient table{};
    table.struct_size = sizeof table;
    table.input_count = static_cast<uint32_t>(graph->context_.num_inputs());
    table.output_count = static_cast<uint32_t>(graph->context_.num_outputs());
    table.node = node;
    table.graph = graph;
    table.x = [](void* self, uint32_t i) noexcept {
      return Do(self, [&](GradientGraph& to) { return to.Operand(i, to.context_.num_inputs(), &op::GradContext::X); });
    };
    table.y = [](void* self, uint32_t i) noexcept {
      return Do(self, [&](GradientGraph& to) { return to.Operand(i, to.context_.num_outputs(), &op::GradContext::Y); });
    };
    table.dy = [](void* self, uint32_t i) noexcept {
      return Do(self,
                [&](GradientGraph& to) { return to.Operand(i, to.context_.num_outputs(), &op::GradContext::Dy); });
    };
    table.apply = [](void* self, weir_str op, const uint64_t* inputs, uint32_t input_count, const weir_opt* attrs,
                     uint32_t attr_count) noexcept {
      return Do(self, [&](GradientGraph& to) { return to.Apply(Text(op), {inputs, input_count}, attrs, attr_count); });
    };
    table.constant_like = [](void* self, uint64_t like, double value) noexcept {
      return Do(self, [&](GradientGraph& to) -> uint64_t {
        const op::Value of = to.At(like);
        return of.exists() ? to.Number(to.context_.ConstLike(of, value)) : 0;
      });
    };
    table.constant_ints = [](void* self, const int32_t* values, uint32_t count) noexcept {
      return Do(self, [&](GradientGraph& to) {
        return to.Number(to.context_.ConstInts(std::vector<int32_t>(values, values + count)));
      });
    };
    table.set = [](void* self, uint32_t i, uint64_t gradient) noexcept {
      Do(self, [&](GradientGraph& to) -> uint64_t {
        if (i >= to.gradients_.size()) {
          to.Fault(Internal("it sets the gradient of input {} of {}", i, to.gradients_.size()));
        } else {
          to.gradients_[i] = op::Grad(to.At(gradient));
        }
        return 0;
      });
    };
    return table;
  }

 private:
  /// No exception crosses the boundary.
  template <class Body>
  static uint64_t Do(void* self, Body&& body) noexcept {
    auto& to = *static_cast<GradientGraph*>(self);
    try {
      return body(to);
    } catch (const std::exception& e) {
      to.Fault(Internal("{}", e.what()));
      return 0;
    }
  }
  void Fault(Status status) {
    if (fault_.ok()) fault_ = std::move(status);
  }
  uint64_t Number(op::Value value) {
    if (!value.exists()) return 0;
    values_.push_back(value);
    return values_.size();
  }
  op::Value At(uint64_t number) {
    if (number == 0) return {};
    if (number <= values_.size()) return values_[number - 1];
    Fault(Internal("there is no value {}", number));
    return {};
  }
  uint64_t Operand(uint32_t i, int count, op::Value (op::GradContext::*get)(int)) {
    if (i < static_cast<uint32_t>(count)) return Number((context_.*get)(static_cast<int>(i)));
    Fault(Internal("it asks for operand {} of {}", i, count));
    return 0;
  }
  uint64_t Apply(std::string_view op, std::span<const uint64_t> inputs, const weir_opt* attrs, uint32_t attr_count) {
    std::vector<op::Value> values;
    for (const uint64_t input : inputs) {
      values.push_back(At(input));
      if (!values.back().exists()) return 0;
    }
    Result<op::AttrList> list = AttrsOf(attrs, attr_count);
    if (!list.ok()) {
      Fault(list.status());
      return 0;
    }
    const std::vector<op::Value> outputs = context_.ApplyAll(op, values, std::move(*list));
    if (outputs.empty() || !outputs[0].exists()) return 0;
    const uint64_t first = values_.size() + 1;
    values_.insert(values_.end(), outputs.begin(), outputs.end());
    return first;
  }

  op::GradContext& context_;
  std::vector<op::Value> values_;  // by number - 1
  std::vector<op::Grad> gradients_;
  Status fault_;
};

Result<std::vector<op::Grad>> WriteGradient(const weir_op& op, op::GradContext& context) {
  const weir_node node{.name = {}, .attrs = context.attrs()};
  GradientGraph graph(context);
  const weir_gradient table = GradientGraph::TableFor(&graph, &node);
  WEIR_TRY(CallPlugin([&] { return Called(op, "gradient"); },
                      [&](weir_error* error) { return op.gradient(op.user, &table, error); }));
  if (!graph.fault().ok()) return graph.fault().Prepend(Called(op, "gradient") + ": ");
  return graph.TakeGradients();
}

/// The definition of one op, or what is wrong with it.
Status Declare(const weir_op* op, std::string_view plugin, const op::OpRegistry& ops) {
  const auto needed = static_cast<uint32_t>(offsetof(weir_op, gradient));
  if (op == nullptr || op->struct_size < needed || op->shape == nullptr) {
    return InvalidArgument("a record of ops/1 is too short, or has no shape function");
  }
  const std::string name(Text(op->name));
  const bool camel = !name.empty() && name[0] >= 'A' && name[0] <= 'Z' && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
  if (!camel) return InvalidArgument("op '{}': wanted an upper-case letter, then letters and digits", name);
  if (ops.Find(name) != nullptr) return AlreadyExists("op '{}' exists", name);
  if (std::max({op->input_count, op->output_count, op->attr_count}) > kMostArguments) {
    return InvalidArgument("op '{}': more than {} arguments", name, kMostArguments);
  }
  auto registry = std::make_unique<op::OpRegistry>();
  op::OpBuilder builder = registry->Declare(name);
  for (const weir_str& text : std::span(op->inputs, op->input_count)) builder.In(Text(text));
  for (const weir_str& text : std::span(op->outputs, op->output_count)) builder.Out(Text(text));
  for (const weir_str& text : std::span(op->attrs, op->attr_count)) builder.Attr(Text(text));
  const std::string_view doc = Text(op->doc);
  builder.Doc(doc.empty() ? fmt::format("An op of plugin {}.", plugin) : std::string(doc));
  if ((op->flags & WEIR_OP_STATEFUL) != 0) builder.Stateful();
  if ((op->flags & WEIR_OP_COMMUTATIVE) != 0) builder.Commutative();
  builder.Shape([op](op::ShapeContext& context) { return InferShapes(*op, context); });
  if (WEIR_HAS(op, gradient)) {
    builder.Grad([op](op::GradContext& context) { return WriteGradient(*op, context); });
  } else {
    const bool has_text = op->struct_size >= sizeof(weir_op);
    const std::string_view why = has_text ? Text(op->no_gradient) : std::string_view();
    builder.NoGradient(why.empty() ? fmt::format("plugin {} has none", plugin) : std::string(why));
  }
  WEIR_TRY(registry->Freeze());
  const op::OpDef* const def = registry->Find(name);
  return op::AddVendorOp(def, std::move(registry), std::string(plugin));
}

}  // namespace

std::vector<std::string> DeclareVendorOps(const weir_ops_api* api, std::string_view plugin, const op::OpRegistry& ops) {
  if (!WEIR_HAS(api, op_count) || !WEIR_HAS(api, ops)) return {};
  static std::mutex* const mutex = new std::mutex;  // protects declared; neither is ever destroyed
  static auto* const declared = new std::map<const weir_ops_api*, std::vector<std::string>>;
  const std::lock_guard lock(*mutex);
  const auto [faults, first] = declared->try_emplace(api);
  for (uint64_t i = 0; first && i < api->op_count; ++i) {
    if (const Status made = Declare(api->ops[i], plugin, ops); !made.ok()) faults->second.push_back(made.message());
  }
  return faults->second;
}

}  // namespace weir::kernel
