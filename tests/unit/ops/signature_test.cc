// The catalogue's records: complete, and equal to TensorFlow's registry in tensorflow_ops.txt.
#include <fmt/format.h>

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/ops/declare_all.h"
#include "tests/unit/ops/row.h"

namespace weir::ops::test {
namespace {

using op::ArgDef;
using op::AttrDef;
using op::OpDef;

std::string ShortName(DType type) {
  static const std::map<DType, std::string> kShort = {
      {DType::kFloat, "f32"},     {DType::kDouble, "f64"},      {DType::kHalf, "f16"},    {DType::kBfloat16, "bf16"},
      {DType::kInt8, "i8"},       {DType::kInt16, "i16"},       {DType::kInt32, "i32"},   {DType::kInt64, "i64"},
      {DType::kUint8, "u8"},      {DType::kUint16, "u16"},      {DType::kUint32, "u32"},  {DType::kUint64, "u64"},
      {DType::kComplex64, "c64"}, {DType::kComplex128, "c128"}, {DType::kQint8, "qi8"},   {DType::kQint16, "qi16"},
      {DType::kQint32, "qi32"},   {DType::kQuint8, "qu8"},      {DType::kQuint16, "qu16"}};
  const auto it = kShort.find(type);
  return it == kShort.end() ? Name(type) : it->second;
}

std::string Join(const std::set<std::string>& words, const char* separator) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

std::string Print(const std::vector<ArgDef>& args) {
  std::string out;
  for (const ArgDef& arg : args) {
    std::string type = !arg.type_list_attr.empty() ? "[" + arg.type_list_attr + "]"
                       : !arg.type_attr.empty()    ? arg.type_attr
                                                   : ShortName(arg.dtype);
    if (!arg.number_attr.empty()) type = arg.number_attr + "*" + type;
    if (arg.is_ref) type = "Ref(" + type + ")";
    out += (out.empty() ? "" : ", ") + arg.name + ":" + type;
  }
  return "(" + out + ")";
}

std::string Print(const AttrDef& attr) {
  std::string out = attr.name + ":" + attr.type;
  if (!attr.allowed_strings.empty()) {
    out += "{";
    for (size_t i = 0; i < attr.allowed_strings.size(); ++i) out += (i == 0 ? "" : " ") + attr.allowed_strings[i];
    out += "}";
  }
  if (attr.allowed_types != kAnyType) {
    std::set<std::string> types;
    for (uint32_t i = 1; i < 64; ++i) {
      if (Contains(attr.allowed_types, static_cast<DType>(i))) types.insert(ShortName(static_cast<DType>(i)));
    }
    out += "{" + Join(types, " ") + "}";
  }
  if (attr.minimum) out += fmt::format(">={}", *attr.minimum);
  if (attr.default_value.set()) out += "=" + attr.default_value.ToString();
  return out;
}

std::string Print(const OpDef& def) {
  std::set<std::string> attrs;
  for (const AttrDef& attr : def.attrs) attrs.insert(Print(attr));
  std::string out = def.name + Print(def.inputs) + " -> " + Print(def.outputs) + " | " + Join(attrs, "; ");
  if (def.stateful) out += " !stateful";
  if (def.commutative) out += " !commut";
  if (def.aggregate) out += " !aggr";
  if (def.allows_uninitialized_input) out += " !uninit";
  return out;
}

TEST(Catalogue, FreezesWithoutFaults) {
  op::OpRegistry ops;
  DeclareAll(ops);
  const Status status = ops.Freeze();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(Catalogue, EveryOpHasADescriptionAndAGradientOrAReason) {
  ASSERT_FALSE(Ops().All().empty());
  for (const OpDef* def : Ops().All()) {
    EXPECT_GT(def->doc.size(), 5u) << def->name;
    EXPECT_TRUE(def->doc.ends_with('.')) << def->name << ": " << def->doc;
    EXPECT_TRUE(def->shape) << def->name;
    EXPECT_NE(static_cast<bool>(def->gradient), def->no_gradient.size() > 5) << def->name;
  }
}

TEST(Catalogue, SignaturesAreTensorFlows) {
  std::set<std::string> known = {"CompareAndBitpack"};  // of TensorFlow 1.15; removed in 2.6
  for (const std::string& line : TableLines("tensorflow_ops.txt")) {
    const std::string name = line.substr(0, line.find('('));
    known.insert(name);
    const OpDef* def = Ops().Find(name);
    if (def == nullptr) continue;  // weir does not have it
    EXPECT_EQ(Print(*def), line);
  }
  for (const OpDef* def : Ops().All()) {
    if (def->name.starts_with('_')) continue;  // created by weir only, never in files
    EXPECT_TRUE(known.contains(def->name)) << def->name << " is no op of TensorFlow 2.17";
  }
}

}  // namespace
}  // namespace weir::ops::test
