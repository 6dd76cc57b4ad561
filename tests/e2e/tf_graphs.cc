#include "tests/e2e/tf_graphs.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/tensor/number.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound("cannot open {}", path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Numbers, True, False, nan, inf, one per line.
Result<std::vector<double>> ReadCsv(const std::string& path) {
  WEIR_ASSIGN(const std::string text, ReadFile(path));
  std::vector<double> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
    if (line == "True" || line == "False") {
      values.push_back(line == "True");
    } else {
      values.push_back(std::strtod(line.c_str(), nullptr));
    }
  }
  return values;
}

struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

Tolerance ToleranceOf(DType dtype, const std::set<std::string>& ops) {
  static const std::set<std::string> kSums = {
      "MatMul",  "BatchMatMul", "BatchMatMulV2", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
      "Softmax", "LogSoftmax"};
  if (dtype == DType::kDouble) return {1e-7, 1e-6};
  if (dtype == DType::kHalf) return {1e-3, 2e-3};
  if (dtype == DType::kBfloat16) return {1e-2, 1e-2};
  if (dtype != DType::kFloat) return {};
  const bool sums = std::any_of(ops.begin(), ops.end(), [](const std::string& op) { return kSums.contains(op); });
  return sums ? Tolerance{1e-5, 1e-4} : Tolerance{1e-6, 1e-5};
}

bool IsReal(DType t) { return IsFloating(t); }

Status CompareValues(const Tensor& ours, const std::vector<double>& theirs, const Tolerance& tolerance) {
  if (static_cast<int64_t>(theirs.size()) != ours.elements()) {
    return InvalidArgument("{} values, wanted {}", ours.elements(), theirs.size());
  }
  for (int64_t i = 0; i < ours.elements(); ++i) {
    const double a = ElementAsDouble(ours, i);
    const double b = theirs[static_cast<size_t>(i)];
    bool same = false;
    if (!IsReal(ours.dtype())) {
      same = a == std::nearbyint(b);
    } else if (std::isnan(b) || std::isnan(a)) {
      same = std::isnan(a) && std::isnan(b);
    } else if (std::isinf(b) || std::isinf(a)) {
      same = a == b;
    } else {
      same = std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b);
    }
    if (!same) return InvalidArgument("element {} is {}, wanted {}", i, a, b);
  }
  return Status();
}

Shape ShapeOf(const Json& dims) {
  std::vector<int64_t> extents;
  for (const Json& dim : dims) extents.push_back(dim.get<int64_t>());
  return Shape::Of(extents);
}

Result<Tensor> TensorFrom(DType dtype, const Shape& shape, const std::vector<double>& values) {
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, shape));
  if (static_cast<int64_t>(values.size()) != tensor.elements())
    return InvalidArgument("the file has {} values", values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    WEIR_ASSIGN(const Tensor element, ScalarFrom(dtype, values[i]));
    std::copy_n(element.raw(), SizeOf(dtype), tensor.mutable_raw() + i * SizeOf(dtype));
  }
  return tensor;
}

}  // namespace

Result<graph::Definition> TfGraph::Parse(const op::OpRegistry& ops) const {
  WEIR_ASSIGN(const std::string bytes, ReadFile(collection_ + "/" + entry_["file"].get<std::string>()));
  return graph::ParseGraph(bytes, ops);
}

Result<std::vector<session::Feed>> TfGraph::Feeds() const {
  std::vector<session::Feed> feeds;
  for (const Json& input : entry_["inputs"]) {
    const std::optional<DType> dtype = ParseDType(input["dtype"].get<std::string>());
    if (!dtype) return InvalidArgument("unknown dtype {}", input["dtype"].get<std::string>());
    WEIR_ASSIGN(const std::vector<double> values, ReadCsv(Folder() + input["csv"].get<std::string>()));
    WEIR_ASSIGN(Tensor tensor, TensorFrom(*dtype, ShapeOf(input["shape"]), values));
    feeds.emplace_back(input["tensor"].get<std::string>(), std::move(tensor));
  }
  return feeds;
}

std::vector<std::string> TfGraph::Fetches() const {
  std::vector<std::string> fetches;
  for (const Json& output : entry_["outputs"]) fetches.push_back(output["tensor"].get<std::string>());
  return fetches;
}

Status TfGraph::Compare(const std::vector<Tensor>& results) const {
  std::set<std::string> ops;
  for (const Json& op : entry_["ops"]) ops.insert(op.get<std::string>());
  if (results.size() != entry_["outputs"].size()) return InvalidArgument("{} results", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Json& output = entry_["outputs"][i];
    const std::string fetch = output["tensor"].get<std::string>();
    const std::optional<DType> dtype = ParseDType(output["dtype"].get<std::string>());
    if (!dtype || results[i].dtype() != *dtype) {
      return InvalidArgument("{} has type {}, wanted {}", fetch, Name(results[i].dtype()),
                             output["dtype"].get<std::string>());
    }
    if (!(results[i].shape() == ShapeOf(output["shape"]))) {
      return InvalidArgument("{} has shape {}, wanted {}", fetch, results[i].shape().ToString(),
                             output["shape"].dump());
    }
    WEIR_ASSIGN(std::vector<double> expected, ReadCsv(Folder() + output["csv"].get<std::string>()));
    const Status same = CompareValues(results[i], expected, ToleranceOf(*dtype, ops));
    if (!same.ok()) return same.Prepend(fetch + ": ");
  }
  return Status();
}

bool TfGraph::Runs(const op::OpRegistry& ops) const {
  return std::all_of(entry_["ops"].begin(), entry_["ops"].end(),
                     [&](const Json& name) { return ops.Find(name.get<std::string>()) != nullptr; });
}

bool TfGraph::Refused() const {
  for (const Json& note : entry_.value("notes", Json::array())) {
    if (note.get<std::string>().find("refuses to import") != std::string::npos) return true;
  }
  return false;
}

Result<std::vector<TfGraph>> ListTfGraphs(const std::string& data) {
  const std::string collection = data + "/tf_graphs";
  WEIR_ASSIGN(const std::string text, ReadFile(collection + "/index.json"));
  const Json index = Json::parse(text, nullptr, false);
  if (!index.is_array()) return InvalidArgument("{}/index.json is no JSON array", collection);
  std::vector<TfGraph> graphs;
  for (const Json& entry : index) graphs.emplace_back(collection, entry);
  return graphs;
}

}  // namespace weir::testing
