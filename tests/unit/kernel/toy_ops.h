// A catalogue of a few made-up ops, with nodes of them, for the tests of this folder.
#ifndef WEIR_TESTS_UNIT_KERNEL_TOY_OPS_H_
#define WEIR_TESTS_UNIT_KERNEL_TOY_OPS_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/kernel/host.h"
#include "core/kernel/registry.h"
#include "core/op/registry.h"
#include "core/op/shape_context.h"

namespace weir::kernel {

inline op::OpRegistry& ToyOps() {
  static op::OpRegistry* const ops = [] {
    auto* made = new op::OpRegistry;
    const auto any_shape = [](op::ShapeContext&) { return Status(); };
    made->Declare("ToyAdd")
        .In("x: T")
        .In("y: T")
        .Out("z: T")
        .Attr("T: {float, double, int32, string}")
        .Attr("scale: float = 1.5")
        .Doc("x + y")
        .Shape(any_shape)
        .NoGradient("a toy");
    made->Declare("ToyJoin")
        .In("values: N*T")
        .In("axis: int32")
        .Out("all: T")
        .Out("texts: string")
        .Attr("N: int >= 1")
        .Attr("T: type")
        .Attr("Tall: list(type) = []")
        .Attr("dims: list(int) = [1, 2]")
        .Attr("ratios: list(float) = [0.5]")
        .Attr("flags: list(bool) = [true, false]")
        .Attr("names: list(string) = ['a', 'bc']")
        .Attr("where: shape = {unknown_rank: true}")
        .Attr("text: string = 'hi'")
        .Attr("yes: bool = true")
        .Attr("count: int = 7")
        .Doc("all of them")
        .Shape(any_shape)
        .NoGradient("a toy");
    made->Declare("ToyConst")
        .Out("z: T")
        .Attr("T: type")
        .RunsAs(op::Universal::kConstant)
        .Doc("the core's")
        .Shape(any_shape)
        .NoGradient("a toy");
    const Status frozen = made->Freeze();
    EXPECT_TRUE(frozen.ok()) << frozen.ToString();
    return made;
  }();
  return *ops;
}

/// A node of a toy op; owns the data that its view borrows.
class ToyNode {
 public:
  ToyNode(std::string_view op, op::AttrList attrs) : attrs_(std::move(attrs)), node_{name_, View(op)} {}
  ToyNode(const ToyNode&) = delete;
  ToyNode& operator=(const ToyNode&) = delete;

  weir_node& node() { return node_; }
  op::AttrView attrs() const { return node_.attrs; }

 private:
  op::AttrView View(std::string_view op) {
    const op::OpDef* def = ToyOps().Find(op);
    EXPECT_NE(def, nullptr) << op;
    return op::AttrView(*def, attrs_);
  }
  op::AttrList attrs_;
  std::string name_ = "scope/toy";
  weir_node node_;
};

inline weir_str Str(std::string_view text) { return {text.data(), text.size()}; }

/// A record that passes the registry's checks; tests change fields as needed.
inline weir_kernel ToyRecord(std::string_view op, std::string_view platform = "toy") {
  weir_kernel record{};
  record.struct_size = sizeof(record);
  record.op = Str(op);
  record.platform = Str(platform);
  record.compute = [](void*, weir_ctx*, weir_error*) -> int32_t { return WEIR_OK; };
  return record;
}

}  // namespace weir::kernel

#endif  // WEIR_TESTS_UNIT_KERNEL_TOY_OPS_H_
