// Staging areas: tuples that one step puts and another takes, first in, first out or by key. They have no handles: ops
// with one shared name use one area.
#include <fmt/format.h>

#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::NoOutputs;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::Unknown;

constexpr std::string_view kStaged = "what a staging area holds is state, not a function of the inputs";

/// `types`: the attribute of the components' types, which ops that name none may leave empty.
OpBuilder StagingOp(OpRegistry& ops, std::string_view name, std::string_view types) {
  return ops.Declare(name)
      .Is(Category::kState)
      .Stateful()
      .NoGradient(kStaged)
      .Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr(types)
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''");
}

constexpr std::string_view kSomeTypes = "dtypes: list(type) >= 1", kAnyTypes = "dtypes: list(type)";

void DeclareQueued(OpRegistry& ops) {
  StagingOp(ops, "Stage", kSomeTypes)
      .In("values: [dtypes]")
      .Shape(NoOutputs())
      .Doc("Puts a tuple at the end, once there is room.");
  StagingOp(ops, "Unstage", kSomeTypes)
      .Out("values: [dtypes]")
      .Shape(Unknown())
      .Doc("Takes the first tuple, once there is one.");
  StagingOp(ops, "StagePeek", kSomeTypes)
      .In("index: int32")
      .Out("values: [dtypes]")
      .Shape(Unknown())
      .Doc("The tuple number `index` from the front, which stays, once there are as many.");
  StagingOp(ops, "StageSize", kAnyTypes).Out("size: int32").Shape(Scalar()).Doc("How many tuples the area holds.");
  StagingOp(ops, "StageClear", kAnyTypes).Shape(NoOutputs()).Doc("Drops all tuples.");
}

/// `prefix`: "Ordered" or empty.
void DeclareMapped(OpRegistry& ops, std::string_view prefix, std::string_view any_key) {
  const auto named = [&](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  StagingOp(ops, named("MapStage"), kAnyTypes)
      .In("key: int64")
      .In("indices: int32")
      .In("values: [fake_dtypes]")
      .Attr("fake_dtypes: list(type) >= 1")
      .Shape(NoOutputs())
      .Doc("Puts components of the key's tuple, those with these indices, once there is room.");
  StagingOp(ops, named("MapPeek"), kSomeTypes)
      .In("key: int64")
      .In("indices: int32")
      .Out("values: [dtypes]")
      .Shape(Unknown())
      .Doc("Components of the key's tuple, which stay, once it is whole.");
  StagingOp(ops, named("MapUnstage"), kSomeTypes)
      .In("key: int64")
      .In("indices: int32")
      .Out("values: [dtypes]")
      .Shape(Unknown())
      .Doc("Takes components of the key's tuple, once it is whole.");
  StagingOp(ops, named("MapUnstageNoKey"), kSomeTypes)
      .In("indices: int32")
      .Out("key: int64")
      .Out("values: [dtypes]")
      .Shape(Unknown())
      .Doc(fmt::format("Takes components of the tuple of {}, once there is one that is whole.", any_key));
  StagingOp(ops, named("MapSize"), kAnyTypes).Out("size: int32").Shape(Scalar()).Doc("How many tuples are whole.");
  StagingOp(ops, named("MapIncompleteSize"), kAnyTypes)
      .Out("size: int32")
      .Shape(Scalar())
      .Doc("How many tuples lack components.");
  StagingOp(ops, named("MapClear"), kAnyTypes).Shape(NoOutputs()).Doc("Drops all tuples.");
}

}  // namespace

void DeclareStaging(OpRegistry& ops) {
  DeclareQueued(ops);
  DeclareMapped(ops, "", "any key");
  DeclareMapped(ops, "Ordered", "the least key");
}

}  // namespace weir::ops
