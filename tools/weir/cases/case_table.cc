#include "tools/weir/cases/case_table.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/base/errors.h"
#include "core/op/shape_context.h"
#include "tools/weir/cases/case_values.h"

namespace weir::cases {
namespace {

using op::AttrDef;
using op::AttrValue;

const std::map<std::string, std::string>& TypeSets() {
  static const std::map<std::string, std::string> sets = {
      {"floats", "float,double,half,bfloat16"},
      {"complexes", "complex64,complex128"},
      {"ints", "int32,int64,int8,int16,uint8,uint16,uint32,uint64"},
      {"reals", "float,double,half,bfloat16,int32,int64,int8,int16,uint8,uint16,uint32,uint64"},
      {"numbers", "float,double,half,bfloat16,complex64,complex128,int32,int64,int8,int16,uint8,uint16,uint32,uint64"},
      {"moved", "float,double,uint8,half,complex128"},  // one of each size
      {"index", "int32,int64"}};
  return sets;
}

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(separator, from), text.size());
    if (std::string part = Trim(text.substr(from, to - from)); !part.empty()) parts.push_back(std::move(part));
    from = to + separator.size();
  }
  return parts;
}

/// Cuts what follows `mark` off `text`.
std::string CutBehind(std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  std::string rest = text.substr(at + mark.size());
  text.resize(at);
  return rest;
}

/// Cuts what ends with `end` off the front of `text`.
std::string CutFront(std::string& text, char end) {
  const size_t at = std::min(text.find(end), text.size() - 1);
  std::string front = text.substr(0, at + 1);
  text.erase(0, at + 1);
  return front;
}

/// The texts of a line.
struct Row {
  std::string line, op;
  std::vector<std::pair<std::string, std::string>> attrs;
  std::vector<std::string> inputs, outputs, after, options;
  bool fails = false;
  std::string error;
  PartialShape refused;
};

Result<Row> ParseRow(const std::string& line) {
  Row row;
  row.line = line;
  std::string text = line;
  std::string inputs = CutBehind(text, " :");  // an attribute may contain an arrow
  std::string outputs = CutBehind(inputs, "->");
  if (outputs.empty()) return InvalidArgument("wanted 'Op : … -> …'");
  if (Trim(outputs).starts_with("error")) {
    row.fails = true;
    row.error = Trim(outputs).substr(5);
    if (row.error.starts_with('[')) {
      WEIR_ASSIGN(AttrDef parsed, op::ParseAttr("x: shape = " + CutFront(row.error, ']')));
      row.refused = *parsed.default_value.get<PartialShape>();
    }
    row.error = Trim(row.error);
  } else {
    row.options = Split(CutBehind(outputs, " |"), " ");
    row.after = Split(CutBehind(outputs, "=>"), " ; ");
    row.outputs = Split(outputs, " ; ");
    if (row.outputs == std::vector<std::string>{"none"}) row.outputs.clear();
  }
  row.inputs = Split(inputs, " ; ");
  for (const std::string& word : Split(text, " ")) {
    const size_t equals = word.find('=');
    if (row.op.empty()) {
      row.op = word;
    } else if (equals == std::string::npos) {
      return InvalidArgument("'{}' is no attribute", word);
    } else {
      row.attrs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return row;
}

/// Attributes of a case, put together one after the other.
class Attributes {
 public:
  Attributes(const op::OpDef& def, const Row& row) : def_(def), row_(row) {}

  /// All combinations of types.
  Result<std::vector<op::AttrList>> All() {
    WEIR_TRY(Add(0, {}));
    return std::move(all_);
  }

 private:
  Status Add(size_t next, op::AttrList attrs) {
    if (next == row_.attrs.size()) {
      Complete(attrs);
      all_.push_back(std::move(attrs));
      return {};
    }
    const auto& [name, text] = row_.attrs[next];
    const AttrDef* attr = def_.FindAttr(name);
    if (attr == nullptr) return InvalidArgument("no attribute '{}'", name);
    if (attr->type == "type") {
      const auto set = TypeSets().find(text);
      for (const std::string& type : Split(set == TypeSets().end() ? text : set->second, ",")) {
        const std::optional<DType> dtype = ParseDType(type);
        if (!dtype) return InvalidArgument("'{}' is no type", type);
        if (!Contains(attr->allowed_types, *dtype)) continue;
        op::AttrList with = attrs;
        with.emplace_back(name, *dtype);
        WEIR_TRY(Add(next + 1, std::move(with)));
      }
      return {};
    }
    WEIR_ASSIGN(AttrDef parsed, op::ParseAttr(fmt::format("x: {} = {}", attr->type, text)));
    attrs.emplace_back(name, std::move(parsed.default_value));
    return Add(next + 1, std::move(attrs));
  }

  static DType Preferred(const AttrDef& attr) {
    if (const DType* type = attr.default_value.get<DType>()) return *type;
    for (const DType type : {DType::kFloat, DType::kInt32, DType::kInt64, DType::kBool, DType::kComplex64}) {
      if (Contains(attr.allowed_types, type)) return type;
    }
    return DType::kString;
  }

  /// Counts and types that the row leaves out.
  void Complete(op::AttrList& attrs) const {
    const auto given = [&](const std::string& name) {
      return std::ranges::any_of(attrs, [&](const auto& attr) { return attr.first == name; });
    };
    for (const AttrDef& attr : def_.attrs) {
      if (attr.type == "type" && !given(attr.name)) attrs.emplace_back(attr.name, Preferred(attr));
    }
    int64_t left = static_cast<int64_t>(row_.inputs.size()), sharers = 0;
    for (const op::ArgDef& arg : def_.inputs) {
      (arg.number_attr.empty() && arg.type_list_attr.empty() ? left : sharers) += -1;
    }
    for (const op::ArgDef& arg : def_.inputs) {
      const int64_t share = sharers == 0 ? 0 : left / -sharers;
      if (!arg.number_attr.empty() && !given(arg.number_attr)) attrs.emplace_back(arg.number_attr, share);
      if (!arg.type_list_attr.empty() && !given(arg.type_list_attr)) {
        attrs.emplace_back(arg.type_list_attr, std::vector<DType>(static_cast<size_t>(share), DType::kFloat));
      }
    }
  }

  const op::OpDef& def_;
  const Row& row_;
  std::vector<op::AttrList> all_;
};

Status ReadOptions(const Row& row, OpCase& c) {
  for (const std::string& option : row.options) {
    const std::string name = option.substr(0, option.find('=')),
                      value = name.size() < option.size() ? option.substr(name.size() + 1) : "";
    if (name == "grad") {
      c.gradient = true;
      for (const std::string& input : Split(value, ",")) c.by.push_back(std::stoul(input));
    } else if (name == "out") {
      c.output = std::atoi(value.c_str());
    } else if (name == "tol") {
      c.tolerance = std::atof(value.c_str());
    } else {
      return InvalidArgument("no option '{}'", option);
    }
  }
  return {};
}

/// True if input i may be of type double.
bool TakesDouble(const op::OpDef& def, const op::Signature& signature, size_t i) {
  size_t arg = 0;
  for (size_t end = 0; arg < def.inputs.size(); ++arg) {
    end += static_cast<size_t>(signature.input_counts[arg]);
    if (i < end) break;
  }
  const op::ArgDef& input = def.inputs[arg];
  if (!input.type_list_attr.empty()) return true;
  const AttrDef* const type = input.type_attr.empty() ? nullptr : def.FindAttr(input.type_attr);
  return type == nullptr ? input.dtype == DType::kDouble : Contains(type->allowed_types, DType::kDouble);
}

/// The type of input i; of a handle, of its variable, int64 where no attribute says it.
Result<DType> TypeOf(const OpCase& c, size_t i) {
  const DType dtype = BaseType(c.signature.inputs[i]);
  if (dtype != DType::kResource) return dtype;
  if (c.view().Has("T")) return c.view().Type("T");
  return c.view().Has("dtype") ? c.view().Type("dtype") : Result<DType>(DType::kInt64);
}

Status ReadValues(const Row& row, OpCase& c) {
  if (row.inputs.size() != c.signature.inputs.size()) {
    return InvalidArgument("{} inputs, wanted {}", row.inputs.size(), c.signature.inputs.size());
  }
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    WEIR_ASSIGN(const DType dtype, TypeOf(c, i));
    WEIR_ASSIGN(Tensor value, ParseCaseValue(row.inputs[i], dtype, static_cast<int>(i)));
    c.inputs.push_back(std::move(value));
  }
  for (size_t i = 0; i < row.after.size(); ++i) {
    WEIR_ASSIGN(Tensor value, ParseCaseValue(row.after[i], c.inputs[i].dtype(), 0));
    c.after.push_back(std::move(value));
  }
  c.by_reference = row.outputs == std::vector<std::string>{"ref"};
  c.any = row.outputs == std::vector<std::string>{"any"};
  if (c.by_reference || c.any || row.fails) return {};
  if (row.outputs.size() != c.signature.outputs.size()) {
    return InvalidArgument("{} outputs, wanted {}", row.outputs.size(), c.signature.outputs.size());
  }
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    WEIR_ASSIGN(Tensor value, ParseCaseValue(row.outputs[i], BaseType(c.signature.outputs[i]), 0));
    c.outputs.push_back(std::move(value));
  }
  return {};
}

}  // namespace

bool OpCase::DifferentiatedBy(size_t i) const {
  if (!gradient || (!by.empty() && std::ranges::find(by, i) == by.end())) return false;
  if (inputs[i].dtype() == DType::kDouble) return true;
  return inputs[i].dtype() == DType::kFloat && !TakesDouble(*def, signature, i);
}

bool OpCase::differentiable() const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (DifferentiatedBy(i)) return true;
  }
  return false;
}

std::string OpCase::ToString() const {
  std::string types;
  for (const auto& [name, value] : attrs) {
    if (value.get<DType>() != nullptr) types += fmt::format(" {}={}", name, value.ToString());
  }
  return fmt::format("'{}' with{}", text, types);
}

Result<std::vector<OpCase>> ParseCases(const op::OpRegistry& ops, const std::string& line) {
  const auto parse = [&]() -> Result<std::vector<OpCase>> {
    WEIR_ASSIGN(const Row row, ParseRow(line));
    WEIR_ASSIGN(const op::OpDef* const def, ops.Get(row.op));
    WEIR_ASSIGN(const std::vector<op::AttrList> all, Attributes(*def, row).All());
    if (all.empty()) return InvalidArgument("the op takes none of the types");
    std::vector<OpCase> cases;
    for (const op::AttrList& attrs : all) {
      OpCase& c = cases.emplace_back();
      c.text = line;
      c.def = def;
      c.attrs = attrs;
      c.fails = row.fails;
      c.error = row.error;
      c.refused = row.refused;
      c.first = cases.size() == 1;
      WEIR_TRY(ReadOptions(row, c));
      WEIR_TRY(op::Validate(c.view()));
      WEIR_ASSIGN(c.signature, op::Expand(c.view()));
      WEIR_TRY(ReadValues(row, c));
    }
    return cases;
  };
  Result<std::vector<OpCase>> cases = parse();
  if (!cases.ok()) return cases.status().Prepend("line '" + line + "': ");
  return cases;
}

Result<std::vector<OpCase>> ReadCases(const op::OpRegistry& ops, const std::string& folder, std::vector<Status>* faults,
                                      const std::set<std::string>* only) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (file.path().extension() == ".txt") files.push_back(file.path());
  }
  if (error) return NotFound("cannot read the op cases in '{}': {}", folder, error.message());
  std::ranges::sort(files);
  std::vector<OpCase> all;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (only != nullptr && !only->contains(line.substr(0, line.find(' ')))) continue;
      Result<std::vector<OpCase>> made = ParseCases(ops, line);
      if (!made.ok()) {
        faults->push_back(made.status().Prepend(file.filename().string() + ": "));
        continue;
      }
      std::ranges::move(*made, std::back_inserter(all));
    }
  }
  return all;
}

Result<std::vector<PartialShape>> InferCase(const OpCase& c) {
  std::vector<PartialShape> shapes;
  const auto handle = [&](int i) { return c.signature.inputs[static_cast<size_t>(i)] == DType::kResource; };
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    shapes.emplace_back(handle(static_cast<int>(i)) ? Shape() : c.inputs[i].shape());
  }
  op::ShapeContext context(
      c.view(), c.signature.inputs, shapes, static_cast<int>(c.signature.outputs.size()),
      [&](int i) { return handle(i) ? nullptr : &c.inputs[static_cast<size_t>(i)]; }, {},
      [&](int i) {
        const Tensor& value = c.inputs[static_cast<size_t>(i)];
        return op::HeldValue{value.dtype(), PartialShape(value.shape())};
      });
  WEIR_TRY(c.def->shape(context));
  return context.outputs();
}

}  // namespace weir::cases
