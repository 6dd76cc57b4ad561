#include "tests/pipeline/bad_inputs.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

/// y = Identity(input).
BadInput BadName(std::string name, const std::string& input, std::vector<std::string> said) {
  return {std::move(name), kTwo + TypedText("y", "Identity", {input}), Code::kInvalidArgument, "y", std::move(said)};
}

/// A constant y of these extents and contents.
BadInput BadConst(std::string name, const std::string& dtype, const std::vector<int64_t>& dims,
                  const std::string& content, std::vector<std::string> said, Code code = Code::kInvalidArgument) {
  return {std::move(name), ConstText("y", dtype, dims, content), code, "y", std::move(said)};
}

BadInput BadShape(std::string name, const std::vector<int64_t>& dims, std::vector<std::string> said) {
  return {std::move(name), PlaceholderText("y", "DT_FLOAT", dims), Code::kInvalidArgument, "y", std::move(said)};
}

std::vector<BadInput> BadOpsAndAttrs() {
  return {
      {"UnknownOp",
       kTwo + TypedText("y", "MatMull", {"a", "a"}),
       Code::kNotFound,
       "y",
       {"Op type not registered 'MatMull'", "'MatMul'", "{{node y}}"}},
      {"MissingAttr",
       NodeText("y", "Placeholder"),
       Code::kInvalidArgument,
       "y",
       {"missing attr 'dtype'", "{{node y}}"}},
      {"WrongTypedAttr",
       NodeText("y", "Placeholder", {}, {{"dtype", "i: 3"}}),
       Code::kInvalidArgument,
       "y",
       {"'dtype'", "value with type 'int' when 'type' expected"}},
      {"AttrWithoutValue",
       NodeText("y", "Placeholder", {}, {{"dtype", ""}}),
       Code::kInvalidArgument,
       "y",
       {"AttrValue missing value", "'dtype'"}},
      {"ListOfTwoKinds",
       NodeText("y", "Placeholder", {}, {{"dtype", "list { i: 1 f: 2 }"}}),
       Code::kInvalidArgument,
       "y",
       {"2 kinds", "'dtype'"}},
      {"TypeNotAllowed",
       kTwo + TypedText("y", "MatMul", {"a", "a"}, "DT_STRING"),
       Code::kInvalidArgument,
       "y",
       {"Value for attr 'T' of string is not in the list of allowed values"}},
      {"UnknownType",
       NodeText("y", "Placeholder", {}, {{"dtype", "type: 77"}}),
       Code::kInvalidArgument,
       "y",
       {"'dtype'"}},
      {"ReferenceTypeAsAttr",
       NodeText("y", "Placeholder", {}, {{"dtype", "type: DT_FLOAT_REF"}}),
       Code::kInvalidArgument,
       "y",
       {"reference type"}},
      {"NumberBelowMinimum",
       kTwo + NodeText("y", "AddN", {"a"}, {{"T", "type: DT_FLOAT"}, {"N", "i: 0"}}),
       Code::kInvalidArgument,
       "y",
       {"attr 'N' of 0 must be at least minimum 1"}},
      {"NumberFarTooLarge",
       kTwo + NodeText("y", "AddN", {"a"}, {{"T", "type: DT_FLOAT"}, {"N", "i: 9223372036854775807"}}),
       Code::kInvalidArgument,
       "y",
       {"9223372036854775807"}},
      {"TextNotAllowed",
       kTwo + NodeText("y", "BiasAdd", {"a", "a"}, {{"T", "type: DT_FLOAT"}, {"data_format", "s: \"NWHC\""}}),
       Code::kInvalidArgument,
       "y",
       {"attr 'data_format' of \"NWHC\" is not in the list of allowed values"}},
  };
}

std::vector<BadInput> BadStructure() {
  return {
      {"Cycle",
       kTwo + TypedText("y", "Identity", {"z"}) + TypedText("z", "Identity", {"y"}),
       Code::kInvalidArgument,
       "y",
       {"2 nodes in a cycle", "'y'", "'z'"}},
      {"NodeThatReadsItself", TypedText("y", "Identity", {"y"}), Code::kInvalidArgument, "y", {"1 nodes in a cycle"}},
      {"ControlCycle",
       NodeText("y", "NoOp", {"^z"}) + NodeText("z", "NoOp", {"^y"}),
       Code::kInvalidArgument,
       "y",
       {"in a cycle"}},
      {"DuplicateName", kTwo + kTwo, Code::kInvalidArgument, "a", {"Node 'a' is not unique"}},
      {"NameWithBlank", NodeText("a b", "NoOp"), Code::kInvalidArgument, "a b", {"'a b'", "invalid characters"}},
      {"NameOfTheRuntime", NodeText("_y", "NoOp"), Code::kInvalidArgument, "_y", {"'_y'"}},
      {"EmptyName", NodeText("", "NoOp"), Code::kInvalidArgument, "", {"Node ''"}},
      BadName("EmptyInput", "", {"Illegal op input name ''", "{{node y}}"}),
      BadName("InputOfNobody", "nobody", {"Unknown input node 'nobody'"}),
      BadName("InputWithoutNode", ":0", {"':0'"}),
      BadName("InputWithTextIndex", "a:b", {"'a:b'"}),
      BadName("InputWithNegativeIndex", "a:-1", {"'a:-1'"}),
      BadName("InputWithHugeIndex", "a:4294967296", {"'a:4294967296'"}),
      BadName("InputWithTwoIndices", "a:0:0", {"a:0"}),
      BadName("InputOfOutputThatIsNot", "a:99", {"invalid output 99", "1 outputs"}),
      BadName("LoneCaret", "^", {"'^'"}),
      BadName("TwoCarets", "^^a", {"^a"}),
      {"ControlBeforeData",
       kTwo + TypedText("y", "Add", {"^a", "a", "a"}),
       Code::kInvalidArgument,
       "y",
       {"Control dependencies must come after regular dependencies"}},
      {"TooFewInputs",
       kTwo + TypedText("y", "Add", {"a"}),
       Code::kInvalidArgument,
       "y",
       {"expected inputs 'float, float' do not match 1 inputs specified"}},
      {"TooManyInputs",
       kTwo + TypedText("y", "Identity", {"a", "a"}),
       Code::kInvalidArgument,
       "y",
       {"do not match 2 inputs specified"}},
      {"InputOfAnotherType",
       kTwo + TypedText("y", "Identity", {"a"}, "DT_INT32"),
       Code::kInvalidArgument,
       "y",
       {"Input 0 of node y was passed float from a:0 incompatible with expected int32"}},
      {"ColocatedWithNobody",
       kTwo + NodeText("y", "Neg", {"a"}, {{"T", "type: DT_FLOAT"}, {"_class", "list { s: \"loc:@nobody\" }"}}),
       Code::kInvalidArgument,
       "y",
       {"Node 'y' expects to be colocated with unknown node 'nobody'"}},
      {"NameBeyondAscii",
       "node { name: \"\\377\" op: \"NoOp\" }",
       Code::kInvalidArgument,
       "",
       {"the name of node number 0 has bytes beyond ASCII"}},
      {"OpBeyondAscii",
       "node { name: \"y\" op: \"a\\377b\" }",
       Code::kInvalidArgument,
       "",
       {"the op of node 'y' has bytes beyond ASCII"}},
      {"DeviceBeyondAscii",
       "node { name: \"y\" op: \"NoOp\" device: \"\\377\" }",
       Code::kInvalidArgument,
       "",
       {"the device of node 'y' has bytes beyond ASCII"}},
      {"NoGraphAtAll", "this is no GraphDef", Code::kInvalidArgument, "", {"GraphDef"}},
  };
}

std::vector<BadInput> BadShapesAndValues() {
  return {
      BadShape("ShapeProductOverflows", {int64_t{1} << 40, int64_t{1} << 40}, {"too large"}),
      BadShape("NegativeExtent", {-2}, {"-2"}),
      BadShape("HugeRank", std::vector<int64_t>(300, 1), {"300", "254"}),
      BadConst("ConstOfUnknownExtent", "DT_FLOAT", {-1}, "float_val: 1", {"Cannot parse tensor from proto"}),
      BadConst("ConstProductOverflows", "DT_FLOAT", {int64_t{1} << 40, int64_t{1} << 40}, "float_val: 1",
               {"Cannot parse tensor from proto"}),
      BadConst("ConstOfHugeRank", "DT_FLOAT", std::vector<int64_t>(300, 1), "float_val: 1",
               {"Cannot parse tensor from proto"}),
      BadConst("ContentOfWrongLength", "DT_FLOAT", {2}, "tensor_content: \"abc\"", {"Cannot parse tensor from proto"}),
      BadConst("StringsAsContent", "DT_STRING", {1}, "tensor_content: \"abc\"", {"Cannot parse tensor from proto"}),
      BadConst("ConstThatNoMemoryHolds", "DT_FLOAT", {int64_t{1} << 40}, "float_val: 1", {"float", "[1099511627776]"},
               Code::kResourceExhausted),
      {"ConstOfAnotherType",
       NodeText("y", "Const", {}, {{"dtype", "type: DT_INT32"}, {"value", "tensor { dtype: DT_FLOAT float_val: 1 }"}}),
       Code::kInvalidArgument,
       "y",
       {"float", "int32"}},
      {"ConstOfNoType",
       NodeText("y", "Const", {}, {{"dtype", "type: DT_FLOAT"}, {"value", "tensor { }"}}),
       Code::kInvalidArgument,
       "y",
       {"'value'"}},
      {"ShapesThatDoNotMultiply",
       PlaceholderText("p", "DT_FLOAT", {2, 3}) + TypedText("y", "MatMul", {"p", "p"}),
       Code::kInvalidArgument,
       "y",
       {"Dimensions must be equal, but are 3 and 2", "[2,3], [2,3]"}},
      {"ReshapeToAnotherCount",
       kTwo + ConstText("s", "DT_INT32", {1}, "int_val: 3") + TypedText("y", "Reshape", {"a", "s"}),
       Code::kInvalidArgument,
       "y",
       {"2", "3"}},
      {"TransposeByNegativePermutation",
       kTwo + ConstText("p", "DT_INT32", {1}, "int_val: -2") + TypedText("y", "Transpose", {"a", "p"}),
       Code::kInvalidArgument,
       "y",
       {"perm dim -2 is out of range"}},
      {"SliceWithTwoEllipses",
       PlaceholderText("x", "DT_FLOAT", {2, 3}) + PlaceholderText("b", "DT_INT32", {2}) +
           NodeText("y", "StridedSlice", {"x", "b", "b", "b"},
                    {{"T", "type: DT_FLOAT"}, {"Index", "type: DT_INT32"}, {"ellipsis_mask", "i: 3"}}),
       Code::kInvalidArgument,
       "y",
       {"Multiple ellipses in slice spec not allowed"}},
      {"SliceMaskBeyondInt32",
       PlaceholderText("x", "DT_FLOAT", {2, 3}) + PlaceholderText("b", "DT_INT32", {2}) +
           NodeText("y", "StridedSlice", {"x", "b", "b", "b"},
                    {{"T", "type: DT_FLOAT"}, {"Index", "type: DT_INT32"}, {"begin_mask", "i: 4294967296"}}),
       Code::kInvalidArgument,
       "y",
       {"Attr begin_mask has value 4294967296 out of range for an int32"}},
      {"ScatterByInt16",
       kTwo + PlaceholderText("i", "DT_INT16", {2, 1}) + PlaceholderText("s", "DT_INT16", {1}) +
           NodeText("y", "ScatterNd", {"i", "a", "s"}, {{"T", "type: DT_FLOAT"}, {"Tindices", "type: DT_INT16"}}),
       Code::kInvalidArgument,
       "y",
       {"Input tensor must be int32 or int64, but was int16"}},
      {"SplitIntoNone",
       kTwo + ConstText("d", "DT_INT32", {}, "int_val: 0") +
           NodeText("y", "Split", {"d", "a"}, {{"T", "type: DT_FLOAT"}, {"num_split", "i: 0"}}),
       Code::kInvalidArgument,
       "y",
       {"attr 'num_split' of 0 must be at least minimum 1"}},
  };
}

}  // namespace

std::vector<BadInput> BadGraphs() {
  std::vector<BadInput> all = BadOpsAndAttrs();
  for (std::vector<BadInput> (*more)() : {BadStructure, BadShapesAndValues}) {
    for (BadInput& input : more()) all.push_back(std::move(input));
  }
  return all;
}

}  // namespace weir::testing
