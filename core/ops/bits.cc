// Functions of the bits of integers.
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::OpBuilder;
using op::OpRegistry;

constexpr std::string_view kIntegerT = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

OpBuilder Bitwise(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .In("x: T")
      .In("y: T")
      .Out("z: T")
      .Attr(kIntegerT)
      .Shape(op::Broadcast(0, 1))
      .NoGradient(kDiscrete);
}

}  // namespace

void DeclareBits(OpRegistry& ops) {
  Bitwise(ops, "BitwiseAnd").Commutative().Doc("The bits that x and y both have, with broadcasting.");
  Bitwise(ops, "BitwiseOr").Commutative().Doc("The bits that x or y has, with broadcasting.");
  Bitwise(ops, "BitwiseXor").Commutative().Doc("The bits that one of x and y has, with broadcasting.");
  Bitwise(ops, "LeftShift")
      .Doc("x * 2^y modulo the type's range, with broadcasting; y is limited to [0, bits of T - 1].");
  Bitwise(ops, "RightShift").Doc("x / 2^y rounded down, with broadcasting; y is limited to [0, bits of T - 1].");
  ops.Declare("Invert")
      .In("x: T")
      .Out("y: T")
      .Attr(kIntegerT)
      .Shape(op::SameAs(0))
      .Doc("The bits that x does not have, element by element.")
      .NoGradient(kDiscrete);
  ops.Declare("PopulationCount")
      .In("x: T")
      .Out("y: uint8")
      .Attr(kIntegerT)
      .Shape(op::SameAs(0))
      .Doc("How many bits of x are set, element by element.")
      .NoGradient(kDiscrete);
}

}  // namespace weir::ops
