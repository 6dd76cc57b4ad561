#include "tests/unit/ops/row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/errors.h"
#include "core/ops/declare_all.h"
#include "core/tensor/number.h"

namespace weir::ops::test {
namespace {

using op::AttrDef;
using op::AttrValue;
using op::OpDef;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Result<AttrValue> ParseAttrValue(const std::string& type, const std::string& text) {
  WEIR_ASSIGN(AttrDef attr, op::ParseAttr(fmt::format("x: {} = {}", type, text)));
  return std::move(attr.default_value);
}

Result<PartialShape> ParseShape(const std::string& text) {
  WEIR_ASSIGN(AttrValue value, ParseAttrValue("shape", text));
  return *value.get<PartialShape>();
}

/// "3", "[1,2]" or "[[1,2],[3,4]]" as a tensor of `dtype`.
Result<Tensor> ParseIntegers(const std::string& text, DType dtype) {
  std::string flat = text;
  std::erase_if(flat, [](char c) { return c == '[' || c == ']'; });
  WEIR_ASSIGN(AttrValue list, ParseAttrValue("list(int)", "[" + flat + "]"));
  const std::vector<int64_t>& values = *list.get<std::vector<int64_t>>();
  const int64_t count = static_cast<int64_t>(values.size()), rows = std::ranges::count(text, '[') - 1;
  Shape shape = Shape::Of({count});
  if (rows < 0) shape = Shape();
  if (rows > 0) shape = Shape::Of({rows, count / rows});
  WEIR_ASSIGN(Tensor out, Tensor::Make(dtype, shape));
  for (size_t i = 0; i < values.size(); ++i) {
    WEIR_ASSIGN(Tensor element, ScalarFrom(dtype, static_cast<double>(values[i])));
    std::memcpy(out.mutable_raw() + i * SizeOf(dtype), element.raw(), SizeOf(dtype));
  }
  return out;
}

DType Preferred(const AttrDef& attr, DType wish) {
  if (Contains(attr.allowed_types, wish)) return wish;
  if (const DType* type = attr.default_value.get<DType>()) return *type;
  for (DType type : {DType::kFloat, DType::kInt32, DType::kInt64, DType::kBool, DType::kComplex64}) {
    if (Contains(attr.allowed_types, type)) return type;
  }
  return DType::kString;
}

bool Has(const Row& row, const std::string& name) { return op::AttrView(*row.def, row.attrs).Has(name); }

bool IsExplicit(const Row& row, const std::string& name) {
  for (const auto& [key, value] : row.attrs) {
    if (key == name) return true;
  }
  return false;
}

/// The number of inputs of each argument of variable length: an equal share of the remaining inputs.
int64_t Share(const Row& row) {
  int64_t left = static_cast<int64_t>(row.inputs.size()), sharers = 0;
  for (const op::ArgDef& arg : row.def->inputs) {
    (arg.number_attr.empty() && arg.type_list_attr.empty() ? left : sharers) += -1;
  }
  return sharers == 0 ? 0 : left / -sharers;
}

/// Adds the counts and types that the line omits.
void Complete(Row& row, const std::vector<std::string>& specs) {
  size_t next = 0;
  for (const op::ArgDef& arg : row.def->inputs) {
    const char mark = next < specs.size() ? specs[next][0] : '[';
    const DType wish = mark == '=' || mark == '~' ? DType::kInt32 : DType::kFloat;
    if (!arg.type_list_attr.empty() && !IsExplicit(row, arg.type_list_attr)) {
      row.attrs.emplace_back(arg.type_list_attr, std::vector<DType>(Share(row), DType::kFloat));
    }
    if (!arg.number_attr.empty() && !IsExplicit(row, arg.number_attr)) {
      row.attrs.emplace_back(arg.number_attr, Share(row));
    }
    if (!arg.type_attr.empty() && !IsExplicit(row, arg.type_attr)) {
      row.attrs.emplace_back(arg.type_attr, Preferred(*row.def->FindAttr(arg.type_attr), wish));
    }
    next += arg.number_attr.empty() && arg.type_list_attr.empty() ? 1 : Share(row);
  }
  for (const AttrDef& attr : row.def->attrs) {
    if (attr.type == "type" && !Has(row, attr.name)) row.attrs.emplace_back(attr.name, Preferred(attr, DType::kFloat));
  }
}

Status ParseInputs(Row& row, const std::vector<std::string>& specs) {
  row.inputs.resize(specs.size());
  Complete(row, specs);
  const op::AttrView attrs(*row.def, row.attrs);
  WEIR_TRY(op::Validate(attrs));
  WEIR_ASSIGN(row.signature, op::Expand(attrs));
  if (row.signature.inputs.size() != specs.size()) {
    return InvalidArgument("{} inputs, but the op takes {}", specs.size(), row.signature.inputs.size());
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    Input& input = row.inputs[i];
    const std::string& spec = specs[i];
    if (spec.starts_with('=')) {
      WEIR_ASSIGN(input.value, ParseIntegers(Trim(spec.substr(1)), row.signature.inputs[i]));
      input.shape = input.value.shape();
    } else if (spec.starts_with('~')) {
      WEIR_ASSIGN(input.partial_value, ParseShape(spec.substr(1)));
      input.shape = PartialShape::Of({input.partial_value.rank()});
    } else if (spec.starts_with("handle ")) {
      const size_t shape = spec.find_first_of("[<");
      if (shape == std::string::npos) return InvalidArgument("'{}' names no shape", spec);
      if (const std::string type = Trim(spec.substr(7, shape - 7)); !type.empty()) {
        const std::optional<DType> dtype = ParseDType(type);
        if (!dtype) return InvalidArgument("'{}' is no type", type);
        input.held.dtype = *dtype;
      }
      WEIR_ASSIGN(input.held.shape, ParseShape(spec.substr(shape)));
      input.shape = Shape();
    } else {
      WEIR_ASSIGN(input.shape, ParseShape(spec));
    }
  }
  return Status();
}

Status Parse(const op::OpRegistry& ops, const std::string& line, Row& row) {
  const size_t colon = line.find(" :");
  const size_t arrow = colon == std::string::npos ? colon : line.find("->", colon);  // an attribute may contain one
  if (colon == std::string::npos || arrow == std::string::npos) return InvalidArgument("wanted 'Op : … -> …'");
  const std::vector<std::string> head = Split(line.substr(0, colon), " ");
  WEIR_ASSIGN(row.def, ops.Get(head[0]));
  for (size_t i = 1; i < head.size(); ++i) {
    const size_t equals = head[i].find('=');
    const std::string name = head[i].substr(0, equals);
    const AttrDef* attr = row.def->FindAttr(name);
    if (attr == nullptr || equals == std::string::npos) return InvalidArgument("no attribute '{}'", head[i]);
    const std::string text = head[i].substr(equals + 1);
    if (attr->type == "tensor") {
      WEIR_ASSIGN(Tensor tensor, ParseIntegers(text, DType::kInt32));
      row.attrs.emplace_back(name, std::move(tensor));
      continue;
    }
    if (attr->type == "func" || attr->type == "list(func)") {  // the name of one function
      const op::FuncRef function{text, nullptr};
      row.attrs.emplace_back(name, attr->type == "func" ? AttrValue(function) : std::vector<op::FuncRef>{function});
      continue;
    }
    WEIR_ASSIGN(AttrValue value, ParseAttrValue(attr->type, text));
    row.attrs.emplace_back(name, std::move(value));
  }
  row.expected = Split(line.substr(arrow + 2), " ; ");
  return ParseInputs(row, Split(line.substr(colon + 2, arrow - colon - 2), ";"));
}

}  // namespace

const op::OpRegistry& Ops() {
  static const Result<const op::OpRegistry*> catalogue = Catalogue();
  EXPECT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  return **catalogue;
}

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t to = std::min(text.find(separator, from), text.size());
    if (std::string part = Trim(text.substr(from, to - from)); !part.empty()) parts.push_back(std::move(part));
    from = to + separator.size();
  }
  return parts;
}

Result<Row> ParseRow(const op::OpRegistry& ops, const std::string& line) {
  Row row;
  row.text = line;
  if (Status status = Parse(ops, line, row); !status.ok()) return status.Prepend("line '" + line + "': ");
  return row;
}

std::vector<std::string> TableLines(const std::string& file) {
  std::vector<std::string> lines;
  for (const char* part : {"", "array_", "sparse_", "state_"}) {
    std::ifstream in(fmt::format("{}/{}{}", WEIR_TEST_TABLES, part, file));
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line[0] != '#') lines.push_back(line);
    }
  }
  return lines;
}

std::set<std::string> OpsWithCases() {
  std::set<std::string> ops;
  for (const auto& file : std::filesystem::directory_iterator(WEIR_OP_CASES)) {
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line[0] != '#') ops.insert(line.substr(0, line.find(' ')));
    }
  }
  return ops;
}

std::vector<Row> TableRows(const op::OpRegistry& ops, const std::string& file) {
  std::vector<Row> rows;
  for (const std::string& line : TableLines(file)) {
    Result<Row> row = ParseRow(ops, line);
    EXPECT_TRUE(row.ok()) << row.status().ToString();
    if (row.ok()) rows.push_back(std::move(*row));
  }
  EXPECT_FALSE(rows.empty()) << file;
  return rows;
}

Result<std::vector<PartialShape>> InferShapes(const Row& row) {
  std::vector<PartialShape> shapes;
  for (const Input& input : row.inputs) shapes.push_back(input.shape);
  op::ShapeContext context(
      op::AttrView(*row.def, row.attrs), row.signature.inputs, shapes, static_cast<int>(row.signature.outputs.size()),
      [&](int i) { return row.inputs[i].value.valid() ? &row.inputs[i].value : nullptr; },
      [&](int i) { return row.inputs[i].partial_value; }, [&](int i) { return row.inputs[i].held; });
  WEIR_TRY(row.def->shape(context));
  return context.outputs();
}

}  // namespace weir::ops::test
