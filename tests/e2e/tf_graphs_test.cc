// Runs the given graphs whose ops weir has and compares with the answers that TensorFlow gave, by the rules of the
// collection's README. Every graph runs twice: with constants folded and with every kernel in the plan.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph_def.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "tests/support/test_data.h"
#include "tests/support/test_device.h"

namespace weir {
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

/// Runs one graph and compares all its outputs.
Status CheckGraph(const std::string& folder, const Json& entry, const std::shared_ptr<session::Runtime>& runtime,
                  const session::SessionOptions& options) {
  const std::string here = folder + "/" + entry["graph"].get<std::string>() + "/";
  WEIR_ASSIGN(const std::string bytes, ReadFile(folder + "/" + entry["file"].get<std::string>()));
  WEIR_ASSIGN(const graph::Graph graph, graph::ParseGraph(bytes, *runtime->ops));
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  std::vector<session::Feed> feeds;
  for (const Json& input : entry["inputs"]) {
    const std::optional<DType> dtype = ParseDType(input["dtype"].get<std::string>());
    if (!dtype) return InvalidArgument("unknown dtype {}", input["dtype"].get<std::string>());
    WEIR_ASSIGN(const std::vector<double> values, ReadCsv(here + input["csv"].get<std::string>()));
    WEIR_ASSIGN(Tensor tensor, TensorFrom(*dtype, ShapeOf(input["shape"]), values));
    feeds.emplace_back(input["tensor"].get<std::string>(), std::move(tensor));
  }
  std::vector<std::string> fetches;
  for (const Json& output : entry["outputs"]) fetches.push_back(output["tensor"].get<std::string>());
  session::RunReport report;
  WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, fetches, {}, {}, &report));
  const bool large = report.arena_bytes > 4096;  // a few values of 64 bytes each say nothing about a layout
  if (large && static_cast<double>(report.arena_bytes) > 1.15 * static_cast<double>(report.live_bytes)) {
    return Internal("the arena has {} bytes for {} in use at once", report.arena_bytes, report.live_bytes);
  }
  std::set<std::string> ops;
  for (const Json& op : entry["ops"]) ops.insert(op.get<std::string>());
  for (size_t i = 0; i < results.size(); ++i) {
    const Json& output = entry["outputs"][i];
    const std::optional<DType> dtype = ParseDType(output["dtype"].get<std::string>());
    if (!dtype || results[i].dtype() != *dtype) {
      return InvalidArgument("{} has type {}, wanted {}", fetches[i], Name(results[i].dtype()),
                             output["dtype"].get<std::string>());
    }
    if (!(results[i].shape() == ShapeOf(output["shape"]))) {
      return InvalidArgument("{} has shape {}, wanted {}", fetches[i], results[i].shape().ToString(),
                             output["shape"].dump());
    }
    WEIR_ASSIGN(std::vector<double> expected, ReadCsv(here + output["csv"].get<std::string>()));
    const Status same = CompareValues(results[i], expected, ToleranceOf(*dtype, ops));
    if (!same.ok()) return same.Prepend(fetches[i] + ": ");
  }
  return Status();
}

/// All ops of the graph are in the catalogue.
bool Runs(const Json& entry, const op::OpRegistry& ops) {
  return std::all_of(entry["ops"].begin(), entry["ops"].end(), [&](const Json& name) {
    return ops.Find(name.get<std::string>()) != nullptr;
  });
}

/// Graphs that TensorFlow itself refuses: a constant on a reference input.
bool Refused(const Json& entry) {
  for (const Json& note : entry.value("notes", Json::array())) {
    if (note.get<std::string>().find("refuses to import") != std::string::npos) return true;
  }
  return false;
}

void CheckAll(session::SessionOptions options) {
  options.default_device = testing::TestDevice();
#ifdef WEIR_KERNEL_DTYPES_SHORT
  GTEST_SKIP() << "the kernels of this build take few element types";
#endif
  const std::string data = testing::TestData();
  if (data.empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
  const std::string folder = data + "/tf_graphs";
  const Result<std::string> text = ReadFile(folder + "/index.json");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  const Json index = Json::parse(*text, nullptr, false);
  ASSERT_TRUE(index.is_array());
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  int matched = 0, refused = 0, outside = 0;
  for (const Json& entry : index) {
    const std::string name = entry["graph"].get<std::string>();
    if (!Runs(entry, *(*runtime)->ops)) {
      ++outside;
      continue;
    }
    const Status status = CheckGraph(folder, entry, *runtime, options);
    if (Refused(entry)) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << name << ": " << status.ToString();
      EXPECT_NE(status.message().find("incompatible with expected"), std::string::npos)
          << name << ": " << status.ToString();
      ++refused;
    } else if (status.ok()) {
      ++matched;
    } else {
      ADD_FAILURE() << name << ": " << status.ToString();
    }
  }
  std::cout << "tf_graphs: " << matched << " match, " << refused << " refused as TensorFlow refuses them, " << outside
            << " use ops that are not in the catalogue yet\n";
  EXPECT_GE(matched, 325);
}

TEST(TfGraphs, FoldedGraphsMatch) { CheckAll({}); }

TEST(TfGraphs, UnfoldedGraphsMatch) {
  session::SessionOptions options;
  options.constant_folding = false;
  CheckAll(options);
}

}  // namespace
}  // namespace weir
