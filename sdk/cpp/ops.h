// Ops that weir does not have, as structs with their definition, shape function and gradient.
//
// ```cpp
// struct Twice {
//   static constexpr std::string_view kName = "Twice";
//   static constexpr std::string_view kInputs[] = {"x: T"};                 // TensorFlow's notation
//   static constexpr std::string_view kOutputs[] = {"y: T"};
//   static constexpr std::string_view kAttrs[] = {"T: {float, double}"};    // optional
//   static constexpr std::string_view kDoc = "2 * x.";                      // optional
//   static constexpr uint32_t kFlags = 0;                                   // optional: WEIR_OP_*
//   static int32_t Shapes(const OpShapes& shapes, const Error&) {           // pure
//     shapes.Set(0, shapes.input(0));
//     return WEIR_OK;
//   }
//   static int32_t Gradient(const OpGradient& g, const Error&) {            // optional: then kNoGradient is the reason
//     g.Set(0, g.Apply("AddV2", {g.dy(0), g.dy(0)}));
//     return WEIR_OK;
//   }
// };
// ```
//
// Ops<Twice, …> is a part of WEIR_PLUGIN. Kernels are registered as for any other op. Every function may throw; no
// exception crosses the boundary.
#ifndef WEIR_SDK_CPP_OPS_H_
#define WEIR_SDK_CPP_OPS_H_

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "sdk/abi/ops.h"
#include "sdk/abi/plugin.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/status.h"

namespace weir::sdk {

/// What a shape function reads and sets. Valid for the call.
class OpShapes {
 public:
  OpShapes(const weir_shape_args& args, void (*set)(void*, uint32_t, const weir_shape*), void* ctx)
      : args_(args), node_(args.node), set_(set), ctx_(ctx) {}

  const Node& node() const { return node_; }
  uint32_t inputs() const { return args_.input_count; }
  uint32_t outputs() const { return args_.output_count; }
  /// Extents may be -1 and the rank WEIR_UNKNOWN_RANK.
  const weir_shape& input(uint32_t i) const { return args_.inputs[i]; }
  /// The value of an integer input that is known.
  std::optional<Integers> Constant(uint32_t i) const {
    weir_tensor value{};
    value.struct_size = sizeof value;
    if (HostTable()->constant_input(node_.get(), i, &value) != WEIR_OK || value.buf.host == nullptr) {
      return std::nullopt;
    }
    return Integers(value.buf.host, value.dtype, {value.rank, 0, value.dims});
  }
  /// Outputs that are not set have an unknown shape.
  void Set(uint32_t output, const weir_shape& shape) const { set_(ctx_, output, &shape); }
  void Set(uint32_t output, std::initializer_list<int64_t> dims) const {
    Set(output, weir_shape{static_cast<uint32_t>(dims.size()), 0, dims.begin()});
  }

 private:
  const weir_shape_args& args_;
  Node node_;
  void (*set_)(void*, uint32_t, const weir_shape*);
  void* ctx_;
};

/// The graph in which a gradient is written: values are numbers, 0 means none and may be passed on.
class OpGradient {
 public:
  explicit OpGradient(const weir_gradient& table) : table_(table), node_(table.node) {}

  const Node& node() const { return node_; }
  uint32_t inputs() const { return table_.input_count; }
  uint32_t outputs() const { return table_.output_count; }
  uint64_t x(uint32_t i) const { return table_.x(table_.graph, i); }
  uint64_t y(uint32_t i) const { return table_.y(table_.graph, i); }
  uint64_t dy(uint32_t i) const { return table_.dy(table_.graph, i); }
  /// Adds a node; the number of its first output, behind which its others are counted.
  uint64_t Apply(std::string_view op, std::initializer_list<uint64_t> inputs,
                 std::initializer_list<weir_opt> attrs = {}) const {
    return table_.apply(table_.graph, Str(op), inputs.begin(), static_cast<uint32_t>(inputs.size()), attrs.begin(),
                        static_cast<uint32_t>(attrs.size()));
  }
  uint64_t ConstantLike(uint64_t like, double value) const { return table_.constant_like(table_.graph, like, value); }
  uint64_t ConstantInts(std::initializer_list<int32_t> values) const {
    return table_.constant_ints(table_.graph, values.begin(), static_cast<uint32_t>(values.size()));
  }
  /// Inputs that are not set have no gradient.
  void Set(uint32_t input, uint64_t gradient) const { table_.set(table_.graph, input, gradient); }

  static weir_opt Bool(std::string_view key, bool value) { return Attr(key, WEIR_VALUE_BOOL, value ? 1 : 0); }
  static weir_opt Int(std::string_view key, int64_t value) { return Attr(key, WEIR_VALUE_INT, value); }
  static weir_opt DType(std::string_view key, uint32_t value) { return Attr(key, WEIR_VALUE_DTYPE, value); }

 private:
  static weir_opt Attr(std::string_view key, uint32_t type, int64_t value) {
    weir_opt attr{};
    attr.key = Str(key);
    attr.type = type;
    attr.value.i = value;
    return attr;
  }
  const weir_gradient& table_;
  Node node_;
};

/// "ops/1" with these ops.
template <class... Op>
struct Ops {
  static constexpr uint32_t kKind = WEIR_KIND_OPS;
  static const void* Interface(std::string_view id, std::string_view) {
    if (id != WEIR_OPS_INTERFACE) return nullptr;
    static const weir_op* const ops[] = {&Record<Op>()...};
    static const weir_ops_api api = {sizeof(weir_ops_api), 0, ops, sizeof...(Op)};
    return &api;
  }

 private:
  template <class List>
  static std::vector<weir_str> Texts(const List& list) {
    std::vector<weir_str> texts;
    for (const std::string_view text : list) texts.push_back(Str(text));
    return texts;
  }
  template <class O>
  static const weir_op& Record() {
    static const std::vector<weir_str> inputs = Texts(O::kInputs), outputs = Texts(O::kOutputs), attrs = [] {
      if constexpr (requires { O::kAttrs; }) return Texts(O::kAttrs);
      return std::vector<weir_str>();
    }();
    static const weir_op record = [] {
      weir_op made{};
      made.struct_size = sizeof made;
      if constexpr (requires { O::kFlags; }) made.flags = O::kFlags;
      made.name = Str(O::kName);
      made.inputs = inputs.data();
      made.outputs = outputs.data();
      made.attrs = attrs.data();
      made.input_count = static_cast<uint32_t>(inputs.size());
      made.output_count = static_cast<uint32_t>(outputs.size());
      made.attr_count = static_cast<uint32_t>(attrs.size());
      if constexpr (requires { O::kDoc; }) made.doc = Str(O::kDoc);
      made.shape = &Shape<O>;
      if constexpr (requires { &O::Gradient; }) {
        made.gradient = &Gradient<O>;
      } else {
        made.no_gradient = Str(O::kNoGradient);
      }
      return made;
    }();
    return record;
  }
  template <class O>
  static int32_t Shape(const void*, const weir_shape_args* args, void (*set)(void*, uint32_t, const weir_shape*),
                       void* ctx, weir_error* error) noexcept {
    return Guard(error, [&] { return O::Shapes(OpShapes(*args, set, ctx), Error(error)); });
  }
  template <class O>
  static int32_t Gradient(const void*, const weir_gradient* gradient, weir_error* error) noexcept {
    return Guard(error, [&] { return O::Gradient(OpGradient(*gradient), Error(error)); });
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_OPS_H_
