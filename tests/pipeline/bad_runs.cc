#include "tests/pipeline/bad_inputs.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

/// y = x + a for x of shape [2].
const std::string kSum = kTwo + PlaceholderText("x", "DT_FLOAT", {2}) + TypedText("y", "Add", {"x", "a"});

Tensor Floats(const std::vector<float>& values) { return Tensor::Vector<float>(values); }

std::vector<BadInput> BadFeeds() {
  const Code invalid = Code::kInvalidArgument;
  return {
      {"FeedOfWrongShape",
       kSum,
       invalid,
       "x",
       {"Cannot feed value of shape (3,) for Tensor 'x:0', which has shape '(2,)'"},
       {"y"},
       {{"x", Floats({1, 2, 3})}}},
      {"FeedOfWrongRank",
       kSum,
       invalid,
       "x",
       {"Cannot feed value of shape () for Tensor 'x:0', which has shape '(2,)'"},
       {"y"},
       {{"x", Tensor::Scalar(1.0f)}}},
      {"FeedOfWrongType",
       kSum,
       invalid,
       "x",
       {"int32", "'x:0'", "float"},
       {"y"},
       {{"x", Tensor::Vector<int32_t>({1, 2})}}},
      {"MissingFeed",
       kSum,
       invalid,
       "x",
       {"You must feed a value for placeholder tensor 'x' with dtype float and shape [2]", "{{node x}}"}},
      {"FeedOfNobody",
       kSum,
       Code::kNotFound,
       "",
       {"unable to find feed output xx", "'x'"},
       {"y"},
       {{"xx", Floats({1, 2})}}},
      {"FeedOfOutputThatIsNot", kSum, invalid, "", {"x:1", "output index"}, {"y"}, {{"x:1", Floats({1, 2})}}},
      {"FedTwice",
       kSum,
       invalid,
       "",
       {"\"x:0\" fed more than once"},
       {"y"},
       {{"x", Floats({1, 2})}, {"x:0", Floats({1, 2})}}},
      {"FedAndFetched", kSum, invalid, "", {"x:0 is both fed and fetched"}, {"x"}, {{"x", Floats({1, 2})}}},
      {"FetchOfNobody", kSum, Code::kNotFound, "", {"FetchOutputs node yy: not found", "'y'"}, {"yy"}},
      {"FetchOfOutputThatIsNot", kSum, invalid, "", {"FetchOutputs y:1", "index too large", "< 1"}, {"y:1"}},
      {"FetchOfNodeWithoutOutput", kTwo + NodeText("n", "NoOp"), invalid, "", {"'n'", "produces no output"}, {"n"}},
      {"FetchWithBadIndex", kSum, Code::kNotFound, "", {"y:-1"}, {"y:-1"}},
  };
}

std::vector<BadInput> BadVariables() {
  const AttrTexts declared = {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { dim { size: 2 } }"}};
  const AttrTexts dtype = {{"dtype", "type: DT_FLOAT"}};
  const Code code = Code::kFailedPrecondition;
  return {
      {"UninitialisedRefVariable",
       NodeText("v", "VariableV2", {}, declared) + TypedText("y", "Identity", {"v"}),
       code,
       "y",
       {"Attempting to use uninitialized value v"}},
      {"UninitialisedResourceVariable",
       NodeText("v", "VarHandleOp", {}, declared) + NodeText("y", "ReadVariableOp", {"v"}, dtype),
       code,
       "y",
       {"Could not find variable", "v"}},
      {"UpdateOfUninitialisedVariable",
       kTwo + NodeText("v", "VarHandleOp", {}, declared) + NodeText("add", "AssignAddVariableOp", {"v", "a"}, dtype) +
           NodeText("y", "ReadVariableOp", {"v", "^add"}, dtype),
       Code::kNotFound,
       "add",
       {"Resource localhost/v/N10tensorflow3VarE does not exist."}},
      {"AssignOfAnotherShape",
       PlaceholderText("x", "DT_FLOAT", {-1}) + NodeText("v", "VariableV2", {}, declared) +
           TypedText("y", "Assign", {"v", "x"}),
       Code::kInvalidArgument,
       "y",
       {"Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]"},
       {"y"},
       {{"x", Floats({1, 2, 3})}}},
  };
}

/// y = `op` of a fed tensor whose second extent, which the placeholder may declare, exceeds int32.
BadInput LongShape(std::string name, const std::string& op, int64_t declared, const std::string& said) {
  const std::string x = PlaceholderText("x", "DT_INT8", {0, declared});
  AttrTexts attrs = {{"T", "type: DT_INT8"}, {"out_type", "type: DT_INT32"}};
  std::vector<std::string> inputs = {"x"};
  if (op == "ShapeN") {
    attrs.push_back({"N", "i: 2"});
    inputs.push_back("x");
  }
  const Tensor empty = *Tensor::Make(DType::kInt8, Shape::Of({0, 3'000'000'000}));
  return {std::move(name), x + NodeText("y", op, inputs, attrs), Code::kInvalidArgument, "y", {said}, {"y:0"},
          {{"x", empty}}};
}

/// y = Fill(s, 1) for a fed s.
BadInput BadFill(std::string name, const std::vector<int64_t>& shape, Code code, std::vector<std::string> said) {
  const AttrTexts types = {{"T", "type: DT_FLOAT"}, {"index_type", "type: DT_INT64"}};
  const std::string graph = PlaceholderText("s", "DT_INT64", {static_cast<int64_t>(shape.size())}) +
                            ConstText("v", "DT_FLOAT", {}, "float_val: 1") + NodeText("y", "Fill", {"s", "v"}, types);
  return {std::move(name), graph, code, "y", std::move(said), {"y"}, {{"s", Tensor::Vector<int64_t>(shape)}}};
}

std::vector<BadInput> BadFills() {
  return {
      BadFill("FillThatNoMemoryHolds", {int64_t{1} << 45}, Code::kResourceExhausted, {"[35184372088832]"}),
      BadFill("FillOfNegativeExtent", {-1}, Code::kInvalidArgument, {"-1"}),
      BadFill("FillWhoseCountOverflows", {int64_t{1} << 40, int64_t{1} << 40}, Code::kInvalidArgument, {"too large"}),
  };
}

std::vector<BadInput> BadDevicesAndShapes() {
  const Code invalid = Code::kInvalidArgument;
  return {
      {"MalformedDevice",
       PlaceholderText("x", "DT_FLOAT", {}) + "node { name: \"y\" op: \"Square\" input: \"x\" device: \"/device:?\" "
                                              "attr { key: \"T\" value { type: DT_FLOAT } } }",
       invalid,
       "y",
       {"Malformed device specification '/device:?'"},
       {"y"},
       {{"x", Tensor::Scalar(1.0f)}}},
      {"MalformedDeviceOfFoldedNode",
       kTwo +
           "node { name: \"z\" op: \"Square\" input: \"a\" device: \"/gpuu:zero\" "
           "attr { key: \"T\" value { type: DT_FLOAT } } }" +
           TypedText("y", "Neg", {"z"}),
       invalid,
       "z",
       {"Malformed device specification '/gpuu:zero': Unknown attribute: 'gpuu' in '/gpuu:zero' (column 2)"}},
      {"MalformedDeviceOfNodeThatDoesNotRun",
       kSum + "node { name: \"z\" op: \"NoOp\" device: \"/device:?\" }",
       invalid,
       "z",
       {"Malformed device specification '/device:?'"},
       {"a"}},
      LongShape("ShapeThatInt32CannotHold", "Shape", 3'000'000'000,
                "Shape output type is 32-bit  but dim 1 is 3000000000"),
      LongShape("FedShapeThatInt32CannotHold", "Shape", -1, "Shape output type is 32-bit  but dim 1 is 3000000000"),
      LongShape("ShapeNThatInt32CannotHold", "ShapeN", -1,
                "ShapeN output type is 32-bit but shape 0 dim 1 is 3000000000"),
  };
}

/// y = x[p ? 1 : 0] of a Switch whose fed predicate is not a scalar.
BadInput BadPredicate(std::string name, const Shape& shape) {
  const std::string graph =
      NodeText("p", "Placeholder", {}, {{"dtype", "type: DT_BOOL"}, {"shape", "shape { unknown_rank: true }"}}) +
      TypedText("s", "Switch", {"p", "p"}, "DT_BOOL") +
      NodeText("y", "Merge", {"s", "s:1"}, {{"T", "type: DT_BOOL"}, {"N", "i: 2"}});
  return {std::move(name),
          graph,
          Code::kInvalidArgument,
          "s",
          {"The second input must be a scalar, but it has shape " + shape.ToString()},
          {"y"},
          {{"p", *Tensor::Make(DType::kBool, shape)}}};
}

std::vector<BadInput> BadComputations() {
  const Code invalid = Code::kInvalidArgument;
  const std::string any = PlaceholderText("x", "DT_FLOAT", {-1, -1}) + PlaceholderText("z", "DT_FLOAT", {-1, -1});
  const Tensor row = Tensor::Of<float>(Shape::Of({1, 3}), {1, 2, 3});
  return {
      BadPredicate("PredicateWithoutElements", Shape::Empty()),
      {"ProductOfFedShapes",
       any + TypedText("y", "MatMul", {"x", "z"}),
       invalid,
       "y",
       {"[1,3]"},
       {"y"},
       {{"x", row}, {"z", row}}},
      {"SumOfFedShapes",
       any + TypedText("y", "Add", {"x", "z"}),
       invalid,
       "y",
       {"[1,3]", "[1,2]"},
       {"y"},
       {{"x", row}, {"z", Tensor::Of<float>(Shape::Of({1, 2}), {1, 2})}}},
      {"IntegerDivisionByZero",
       PlaceholderText("x", "DT_INT32", {}) + TypedText("y", "FloorDiv", {"x", "x"}, "DT_INT32"),
       invalid,
       "y",
       {"division by zero"},
       {"y"},
       {{"x", Tensor::Scalar<int32_t>(0)}}},
      {"GatherOutOfRange",
       kTwo + PlaceholderText("i", "DT_INT32", {1}) + ConstText("axis", "DT_INT32", {}, "int_val: 0") +
           NodeText("y", "GatherV2", {"a", "i", "axis"},
                    {{"Tparams", "type: DT_FLOAT"}, {"Tindices", "type: DT_INT32"}, {"Taxis", "type: DT_INT32"}}),
       invalid,
       "y",
       {"5", "[0, 2)"},
       {"y"},
       {{"i", Tensor::Vector<int32_t>({5})}}},
      {"ReshapeByFedShape",
       kTwo + PlaceholderText("s", "DT_INT32", {1}) + TypedText("y", "Reshape", {"a", "s"}),
       invalid,
       "y",
       {"2", "3"},
       {"y"},
       {{"s", Tensor::Vector<int32_t>({3})}}},
      {"FailedAssertion",
       kTwo + PlaceholderText("c", "DT_BOOL", {}) +
           NodeText("check", "Assert", {"c", "a"}, {{"T", "list { type: DT_FLOAT }"}}) +
           TypedText("y", "Identity", {"a", "^check"}),
       invalid,
       "check",
       {"assertion failed: [1 2]"},
       {"y"},
       {{"c", Tensor::Scalar(false)}}},
      {"SumAlongAVector",
       kTwo + PlaceholderText("i", "DT_INT32", {-1}) +
           NodeText("y", "Cumsum", {"a", "i"}, {{"T", "type: DT_FLOAT"}, {"Tidx", "type: DT_INT32"}}),
       invalid,
       "y",
       {"ScanOp: axis must be a scalar, not [1]"},
       {"y"},
       {{"i", Tensor::Vector<int32_t>({0})}}},
      {"LoopFrame",
       kTwo + NodeText("y", "Enter", {"a"}, {{"T", "type: DT_FLOAT"}, {"frame_name", "s: \"loop\""}}),
       invalid,
       "y",
       {"Operation 'y' has been marked as not fetchable", "'loop'"}},
  };
}

}  // namespace

/// Values whose byte count overflows: 2^61 + 1 doubles are 8 bytes modulo 2^64.
std::vector<BadInput> BadByteCounts() {
  const Code code = Code::kResourceExhausted;
  const std::string extents = ConstText("s", "DT_INT64", {1}, "int64_val: 2305843009213693953");
  const std::string one = ConstText("one", "DT_DOUBLE", {}, "double_val: 1");
  const std::string filled =
      extents + one + NodeText("f", "Fill", {"s", "one"}, {{"T", "type: DT_DOUBLE"}, {"index_type", "type: DT_INT64"}});
  const std::string negated = TypedText("n", "Neg", {"f"}, "DT_DOUBLE");
  const AttrTexts random = {{"dtype", "type: DT_DOUBLE"}, {"T", "type: DT_INT64"}};
  const std::string what = "OOM when allocating tensor with shape[2305843009213693953] and type double";
  return {
      {"RandomValueWhoseBytesWrap", extents + NodeText("y", "RandomUniform", {"s"}, random), code, "y", {what}},
      {"FilledValueWhoseBytesWrap", filled + negated, code, "f", {what}, {"n"}},
      {"ReducedValueWhoseBytesWrap",
       filled + negated + ConstText("axis", "DT_INT32", {}, "int_val: 0") +
           NodeText("y", "Max", {"n", "axis"}, {{"T", "type: DT_DOUBLE"}, {"Tidx", "type: DT_INT32"}}),
       code,
       "f",
       {what}},
  };
}

/// The variables of handles selected at run time are not known before the step is planned.
std::vector<BadInput> BadHeldTypes() {
  const AttrTexts held = {{"dtype", "type: DT_COMPLEX128"}, {"shape", "shape { dim { size: 4 } }"}};
  const std::string chosen = ConstText("p", "DT_BOOL", {}, "bool_val: true") + NodeText("v", "VarHandleOp", {}, held) +
                             NodeText("w", "VarHandleOp", {}, held) +
                             TypedText("sv", "Switch", {"v", "p"}, "DT_RESOURCE") +
                             TypedText("sw", "Switch", {"w", "p"}, "DT_RESOURCE") +
                             NodeText("m", "Merge", {"sw", "sv:1"}, {{"T", "type: DT_RESOURCE"}, {"N", "i: 2"}});
  const AttrTexts dtype = {{"dtype", "type: DT_INT32"}};
  const std::string what = "Trying to read variable with wrong dtype. Expected complex128 got int32";
  const std::string ones = ConstText("ones", "DT_INT32", {4}, "int_val: 1");
  return {
      {"ChosenHandleReadAsAnotherType",
       chosen + NodeText("y", "ReadVariableOp", {"m"}, dtype),
       Code::kInvalidArgument,
       "y",
       {what}},
      {"ChosenHandleChangedAsAnotherType",
       chosen + ones + NodeText("add", "AssignAddVariableOp", {"m", "ones"}, dtype) +
           TypedText("y", "Identity", {"ones", "^add"}, "DT_INT32"),
       Code::kInvalidArgument,
       "add",
       {what}},
  };
}

std::vector<BadInput> BadRuns() {
  std::vector<BadInput> all = BadFeeds();
  for (std::vector<BadInput> (*more)() :
       {BadByteCounts, BadHeldTypes, BadVariables, BadFills, BadDevicesAndShapes, BadComputations}) {
    for (BadInput& input : more()) all.push_back(std::move(input));
  }
  return all;
}

}  // namespace weir::testing
