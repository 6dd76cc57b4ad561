// Ops at the boundary of a part of a partitioned step: transfers between parts, feeds and fetches.
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Flow;
using op::NoOutputs;
using op::OpBuilder;
using op::OpRegistry;

constexpr std::string_view kAfterGradients = "steps are cut after they were differentiated";

/// The common attributes of both ends of a transfer.
OpBuilder& WithTransfer(OpBuilder& op) {
  return op.Attr("tensor_name: string")
      .Attr("send_device: string")
      .Attr("send_device_incarnation: int")
      .Attr("recv_device: string")
      .Attr("client_terminated: bool = false");
}

}  // namespace

void DeclareTransfer(OpRegistry& ops) {
  const auto declare = [&ops](std::string_view name, Flow flow) {
    return ops.Declare(name).Is(Category::kNetwork).RunsAs(flow).Stateful().NoGradient(kAfterGradients);
  };
  OpBuilder send = declare("_Send", Flow::kSend).In("tensor: T").Attr(kAnyT);
  WithTransfer(send)
      .Shape(NoOutputs())
      .Doc(
          "Sends `tensor` to the `_Recv` of another part of the step with the same attributes; runs also where its "
          "input "
          "is dead, and says so.");
  OpBuilder receive = declare("_Recv", Flow::kRecv).Out("tensor: tensor_type").Attr("tensor_type: type");
  WithTransfer(receive)
      .Shape(op::Unknown())
      .Doc("What the `_Send` of another part of the step with the same attributes sends; dead where that is.");
  declare("_Arg", Flow::kArgument)
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("index: int >= 0")
      .Shape(op::Unknown())
      .Doc("What the step is fed at position `index`.");
  declare("_Retval", Flow::kResult)
      .In("input: T")
      .Attr(kAnyT)
      .Attr("index: int >= 0")
      .Shape(NoOutputs())
      .Doc("What the step gives back at position `index`.");
}

}  // namespace weir::ops
