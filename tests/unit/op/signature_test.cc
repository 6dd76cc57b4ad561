#include <gtest/gtest.h>

#include "core/op/registry.h"

namespace weir::op {
namespace {

TEST(ParseArgTest, Good) {
  const struct {
    const char* text;
    const char* name;
    DType dtype;
    const char* type_attr;
    const char* number_attr;
    const char* list_attr;
    bool is_ref;
  } kCases[] = {
      {"x: T", "x", DType::kInvalid, "T", "", "", false},
      {"x:T", "x", DType::kInvalid, "T", "", "", false},
      {"  grad_y :  dtype ", "grad_y", DType::kInvalid, "dtype", "", "", false},
      {"values: N * T", "values", DType::kInvalid, "T", "N", "", false},
      {"values:N*T", "values", DType::kInvalid, "T", "N", "", false},
      {"shape: N * int32", "shape", DType::kInt32, "", "N", "", false},
      {"cond: bool", "cond", DType::kBool, "", "", "", false},
      {"cond: DT_BOOL", "cond", DType::kBool, "", "", "", false},
      {"dims: i32", "dims", DType::kInt32, "", "", "", false},
      {"f: float32", "f", DType::kFloat, "", "", "", false},
      {"ref: Ref(T)", "ref", DType::kInvalid, "T", "", "", true},
      {"ref: Ref(float)", "ref", DType::kFloat, "", "", "", true},
      {"refs: Ref(N*T)", "refs", DType::kInvalid, "T", "N", "", true},
      {"data: [L]", "data", DType::kInvalid, "", "", "L", false},
      {"output: type", "output", DType::kInvalid, "type", "", "", false},
      {"handle: resource", "handle", DType::kResource, "", "", "", false},
  };
  for (const auto& c : kCases) {
    const Result<ArgDef> arg = ParseArg(c.text);
    ASSERT_TRUE(arg.ok()) << c.text << ": " << arg.status().message();
    EXPECT_EQ(arg->name, c.name);
    EXPECT_EQ(arg->dtype, c.dtype) << c.text;
    EXPECT_EQ(arg->type_attr, c.type_attr);
    EXPECT_EQ(arg->number_attr, c.number_attr);
    EXPECT_EQ(arg->type_list_attr, c.list_attr);
    EXPECT_EQ(arg->is_ref, c.is_ref);
  }
}

TEST(ParseArgTest, BadNamesTheColumn) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {{"", "column 1: wanted the name of an argument, found the end"},
                {"x T", "column 3: wanted ':', found 'T'"},
                {"x:", "column 3: wanted a type or the name of an attribute, found the end"},
                {"1x: T", "column 1: wanted the name of an argument"},
                {"x: T T", "column 6: wanted the end, found 'T'"},
                {"x: N*", "column 6: wanted a type or the name of an attribute"},
                {"x: 2*T", "column 4: wanted a type or the name of an attribute"},
                {"x: Ref(T", "column 9: wanted ')', found the end"},
                {"x: [L", "column 6: wanted ']'"},
                {"x: T, y: T", "column 5: wanted the end"}};
  for (const auto& c : kCases) {
    const Result<ArgDef> arg = ParseArg(c.text);
    ASSERT_FALSE(arg.ok()) << c.text;
    EXPECT_EQ(arg.status().code(), Code::kInvalidArgument);
    EXPECT_NE(arg.status().message().find(c.error), std::string::npos) << arg.status().message();
  }
}

TEST(ParseAttrTest, TypesAndDefaults) {
  const struct {
    const char* text;
    const char* name;
    const char* type;
    AttrValue default_value;
    std::optional<int64_t> minimum;
  } kCases[] = {
      {"T: type", "T", "type", {}, {}},
      {"dtype:type", "dtype", "type", {}, {}},
      {"N: int >= 1", "N", "int", {}, 1},
      {"num:int>=0", "num", "int", {}, 0},
      {"n: int = -1", "n", "int", -1, {}},
      {"n: int >= 1 = 3", "n", "int", 3, 1},
      {"alpha: float = 0.2", "alpha", "float", 0.2f, {}},
      {"eps: float = 1e-4", "eps", "float", 1e-4f, {}},
      {"transpose_a: bool = false", "transpose_a", "bool", false, {}},
      {"keep:bool=true", "keep", "bool", true, {}},
      {"container: string = ''", "container", "string", "", {}},
      {"end: string = \"\\n\"", "end", "string", "\n", {}},
      {"q: string = 'it\\'s'", "q", "string", "it's", {}},
      {"shape: shape", "shape", "shape", {}, {}},
      {"shape: shape = {unknown_rank: true}", "shape", "shape", PartialShape(), {}},
      {"shape: shape = { unknown_rank : true }", "shape", "shape", PartialShape(), {}},
      {"shape: shape = <unknown>", "shape", "shape", PartialShape(), {}},
      {"shape: shape = {}", "shape", "shape", PartialShape(Shape()), {}},
      {"shape: shape = [2, ?, -1]", "shape", "shape", PartialShape::Of({2, -1, -1}), {}},
      {"value: tensor", "value", "tensor", {}, {}},
      {"f: func", "f", "func", {}, {}},
      {"T: list(type) >= 1", "T", "list(type)", {}, 1},
      {"strides: list(int) = []", "strides", "list(int)", std::vector<int64_t>{}, {}},
      {"dims: list(int) >= 0 = [1, -2]", "dims", "list(int)", std::vector<int64_t>{1, -2}, 0},
      {"squeeze_dims:list(int)>=0=[]", "squeeze_dims", "list(int)", std::vector<int64_t>{}, 0},
      {"names: list(string) = ['a', 'b']", "names", "list(string)", std::vector<std::string>{"a", "b"}, {}},
      {"shapes: list(shape) = []", "shapes", "list(shape)", std::vector<PartialShape>{}, {}},
      {"fs: list(func) = []", "fs", "list(func)", EmptyList{}, {}},
      {"bs: list(bool) = [true]", "bs", "list(bool)", std::vector<bool>{true}, {}},
      {"Tidx: {int32, int64} = DT_INT32", "Tidx", "type", DType::kInt32, {}},
      {"Tidx:{i32,i64}=i64", "Tidx", "type", DType::kInt64, {}},
      {"data_format: {'NHWC', 'NCHW'} = 'NHWC'", "data_format", "string", "NHWC", {}},
      {"data_format:{NHWC,NCHW}=\"NCHW\"", "data_format", "string", "NCHW", {}},
  };
  for (const auto& c : kCases) {
    const Result<AttrDef> attr = ParseAttr(c.text);
    ASSERT_TRUE(attr.ok()) << c.text << ": " << attr.status().message();
    EXPECT_EQ(attr->name, c.name);
    EXPECT_EQ(attr->type, c.type) << c.text;
    EXPECT_EQ(attr->default_value, c.default_value) << c.text;
    EXPECT_EQ(attr->minimum, c.minimum) << c.text;
  }
}

DTypeSet SetOf(std::initializer_list<DType> types) {
  DTypeSet set = 0;
  for (DType t : types) set |= Bit(t);
  return set;
}

TEST(ParseAttrTest, AllowedTypes) {
  const DTypeSet real =
      SetOf({DType::kFloat, DType::kDouble, DType::kInt32, DType::kUint8, DType::kInt16, DType::kInt8, DType::kInt64,
             DType::kBfloat16, DType::kUint16, DType::kHalf, DType::kUint32, DType::kUint64});
  const DTypeSet quantized = SetOf({DType::kQint8, DType::kQuint8, DType::kQint32, DType::kQint16, DType::kQuint16});
  const DTypeSet complex = SetOf({DType::kComplex64, DType::kComplex128});
  const struct {
    const char* text;
    DTypeSet allowed;
  } kCases[] = {{"T: realnumbertype", real},
                {"T: realnum", real},
                {"T: quantizedtype", quantized},
                {"T: numbertype", real | quantized | complex},
                {"T:numtype", real | quantized | complex},
                {"T: type", kAnyType},
                {"T: {float, double} = DT_FLOAT", SetOf({DType::kFloat, DType::kDouble})},
                {"T: {bf16, f16, f32, f64, qi8, qu8, qi16, qu16, qi32}",
                 quantized | SetOf({DType::kBfloat16, DType::kHalf, DType::kFloat, DType::kDouble})},
                {"T: {i8,u8,i16,u16,i32,u32,i64,u64,c64,c128,bool,string}",
                 SetOf({DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32, DType::kUint32,
                        DType::kInt64, DType::kUint64, DType::kBool, DType::kString}) |
                     complex},
                {"T: {numbertype, variant}", real | quantized | complex | Bit(DType::kVariant)},
                {"T: list({float, int32})", SetOf({DType::kFloat, DType::kInt32})},
                {"T: list(numbertype)", real | quantized | complex}};
  for (const auto& c : kCases) {
    const Result<AttrDef> attr = ParseAttr(c.text);
    ASSERT_TRUE(attr.ok()) << attr.status().message();
    EXPECT_EQ(attr->allowed_types, c.allowed) << c.text;
  }
  EXPECT_EQ(ParseAttr("m: {'SAME', 'VALID'}")->allowed_strings, (std::vector<std::string>{"SAME", "VALID"}));
  EXPECT_EQ(ParseAttr("m: list{'a', 'b'}")->type, "list(string)");
}

TEST(ParseAttrTest, BadNamesTheColumn) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {{"", "column 1: wanted the name of an attribute"},
                {"T", "column 2: wanted ':'"},
                {"T: wibble", "column 4: wanted a type of attribute"},
                {"T: float32", "column 4: wanted a type of attribute"},
                {"T: {}", "column 5: wanted a type or a string"},
                {"T: {float", "column 10: wanted '}'"},
                {"T: {float, wibble}", "column 12: wanted a type or a string"},
                {"T: {float, 'SAME'}", "column 12: wanted only types or only strings in one set"},
                {"n: int >=", "column 10: wanted an integer"},
                {"n: int = x", "column 10: wanted an integer"},
                {"n: int = 99999999999999999999", "column 10: wanted an integer within range"},
                {"n: int >= 1 = 0", "must be at least minimum 1"},
                {"b: bool >= 1", "column 9: wanted no minimum"},
                {"b: bool = yes", "column 11: wanted true or false"},
                {"s: string = 'open", "wanted a closing quote"},
                {"s: string = bare", "column 13: wanted a quoted string"},
                {"T: {float, int32} = DT_HALF", "column 21: wanted an allowed default"},
                {"m: {'A', 'B'} = 'C'", "column 17: wanted an allowed default"},
                {"T: type = wibble", "column 11: wanted a type"},
                {"v: tensor = 3", "["},
                {"v: tensor = [256]", "a number from 0 to 255"},
                {"v: func = 3", "an attribute of type func cannot have one"},
                {"l: list(int) = 3", "column 16: wanted '['"},
                {"l: list(int) = [1 2]", "column 19: wanted ','"},
                {"l: list(int) >= 2 = [1]", "Length for attr 'l' of 1 must be at least minimum 2"},
                {"l: list(int", "column 12: wanted ')'"},
                {"s: shape = [-2]", "values below -1"},
                {"s: shape = {unknown_rank: false}", "wanted 'true'"},
                {"n: int = 3 3", "column 12: wanted the end"}};
  for (const auto& c : kCases) {
    const Result<AttrDef> attr = ParseAttr(c.text);
    ASSERT_FALSE(attr.ok()) << c.text;
    EXPECT_EQ(attr.status().code(), Code::kInvalidArgument);
    EXPECT_NE(attr.status().message().find(c.error), std::string::npos) << attr.status().message();
  }
}

}  // namespace
}  // namespace weir::op
