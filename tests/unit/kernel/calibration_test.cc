#include "core/kernel/calibration.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/declare_all.h"

namespace weir::kernel {
namespace {

std::string File(const std::string& points) { return R"({"weir_calibration": 1, "points": [)" + points + "]}"; }

std::string Point(const std::string& inputs, const std::string& ns, const std::string& rest = R"("flags": [])") {
  return R"({"op": "MatMul", "dtype": "float32", "constant": [], )" + rest + R"(, "inputs": )" + inputs +
         R"(, "ns": )" + ns + "}";
}

Status ErrorOf(const std::string& text) { return Calibration::Parse(text, "c.json").status(); }

std::vector<double> Times(const Calibration& calibration, std::vector<Shape> shapes, bool transpose_b = false) {
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  const op::AttrList attrs = {{"T", DType::kFloat}, {"transpose_b", transpose_b}};
  std::vector<OperandSpec> inputs;
  for (const Shape& shape : shapes) inputs.push_back({DType::kFloat, shape});
  const std::vector<std::string> plugins = {"x", "y"};
  return calibration.Times(op::AttrView(*(*ops)->Find("MatMul"), attrs), inputs, plugins);
}

TEST(Calibration, TheNearestCompletePointAnswers) {
  const auto calibration =
      Calibration::Parse(File(Point("[[32, 32], [32, 32]]", R"({"y": 2, "x": 1})") + "," +
                              Point("[[64, 64], [64, 64]]", R"({"x": 3, "y": 4})") + "," +
                              Point("[[256, 256], [256, 256]]", R"({"x": 5})") + "," +
                              Point("[[32, 32], [32, 32]]", R"({"x": 6, "y": 7})", R"("flags": ["transpose_b"])")),
                         "c.json");
  ASSERT_TRUE(calibration.ok()) << calibration.status().ToString();
  EXPECT_EQ((*calibration)->size(), 4u);
  const Shape small = Shape::Of({40, 40}), large = Shape::Of({120, 100}), huge = Shape::Of({256, 256});
  EXPECT_EQ(Times(**calibration, {small, small}), (std::vector<double>{1, 2}));
  EXPECT_EQ(Times(**calibration, {large, large}), (std::vector<double>{3, 4}));
  EXPECT_EQ(Times(**calibration, {huge, huge}), std::vector<double>()) << "y was not measured there";
  EXPECT_EQ(Times(**calibration, {small, small}, true), (std::vector<double>{6, 7}));
  EXPECT_EQ(Times(**calibration, {small, Shape::Of({0, 40})}), std::vector<double>());
}

TEST(Calibration, ConvolutionsDifferByStridesAndPaddings) {
  const auto point = [](const std::string& settings, const std::string& ns) {
    return R"({"op": "Conv2D", "dtype": "float32", "flags": [], "constant": [1], "settings": )" + settings +
           R"(, "inputs": [[1, 8, 8, 4], [3, 3, 4, 16]], "ns": )" + ns + "}";
  };
  const auto calibration =
      Calibration::Parse(File(point(R"({"padding": "SAME", "strides": [1, 1, 1, 1]})", R"({"x": 1, "y": 2})") + "," +
                              point(R"({"padding": "SAME", "strides": [1, 2, 2, 1]})", R"({"x": 3, "y": 4})") + "," +
                              point(R"({"padding": "VALID", "strides": [1, 1, 1, 1]})", R"({"x": 5, "y": 6})")),
                         "c.json");
  ASSERT_TRUE(calibration.ok()) << calibration.status().ToString();
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  const std::vector<std::string> plugins = {"x", "y"};
  const auto times = [&](const char* op, const char* padding, int64_t stride, op::AttrList more) {
    const Tensor known = Tensor::Scalar<float>(0);
    op::AttrList attrs = {{"T", DType::kFloat}, {"padding", padding}};
    attrs.emplace_back("strides", std::vector<int64_t>{1, stride, stride, 1});
    attrs.insert(attrs.end(), more.begin(), more.end());
    std::vector<OperandSpec> inputs = {{DType::kFloat, Shape::Of({1, 8, 8, 4})},
                                       {DType::kFloat, Shape::Of({3, 3, 4, 16}), &known}};
    if (op[0] == '_') inputs.push_back({DType::kFloat, Shape::Of({16}), &known});
    return (*calibration)->Times(op::AttrView(*(*ops)->Find(op), attrs), inputs, plugins);
  };
  EXPECT_EQ(times("Conv2D", "SAME", 1, {}), (std::vector<double>{1, 2}));
  EXPECT_EQ(times("Conv2D", "SAME", 2, {}), (std::vector<double>{3, 4}));
  EXPECT_EQ(times("Conv2D", "VALID", 1, {}), (std::vector<double>{5, 6}));
  EXPECT_EQ(times("Conv2D", "VALID", 2, {}), std::vector<double>());
  EXPECT_EQ(times("Conv2D", "SAME", 1, {{"dilations", std::vector<int64_t>{1, 2, 2, 1}}}), std::vector<double>());
  EXPECT_EQ(times("Conv2D", "SAME", 1, {{"explicit_paddings", op::EmptyList{}}, {"use_cudnn_on_gpu", true}}),
            (std::vector<double>{1, 2}))
      << "defaults do not count";
  // A fused convolution takes about as long as the convolution alone.
  EXPECT_EQ(times("_BiasedConv2D", "SAME", 2, {{"activation", "Relu"}}), (std::vector<double>{3, 4}));
  EXPECT_EQ(times("_BiasedConv2D", "VALID", 2, {{"activation", "Relu"}}), std::vector<double>());
}

TEST(Calibration, TheFileSaysWhatWasMeasured) {
  const auto calibration = Calibration::Parse(R"({"weir_calibration": 1, "device": "a CPU", "plugins": {"x": "1.0"},
      "rates": {"float32": 100, "float64": 50, "memory": 20, "cache": 80}, "points": []})",
                                              "c.json");
  ASSERT_TRUE(calibration.ok()) << calibration.status().ToString();
  EXPECT_EQ((*calibration)->device(), "a CPU");
  EXPECT_EQ((*calibration)->plugins(), (std::map<std::string, std::string>{{"x", "1.0"}}));
  const device::CostFigures& rates = (*calibration)->rates();
  EXPECT_EQ(rates.peak_flops_per_ns.at(static_cast<int>(DType::kFloat)), 100);
  EXPECT_EQ(rates.peak_flops_per_ns.at(static_cast<int>(DType::kDouble)), 50);
  EXPECT_EQ(rates.bandwidth_bytes_per_ns, 20);
  EXPECT_EQ(rates.cache_bandwidth_bytes_per_ns, 80);
  EXPECT_EQ(ErrorOf(R"({"weir_calibration": 1, "rates": {"memory": 0}, "points": []})").message(),
            "c.json: rate memory is not positive");
  EXPECT_EQ(ErrorOf(R"({"weir_calibration": 1, "rates": {"speed": 1}, "points": []})").message(),
            "c.json: 'speed' is no rate: wanted memory, cache or an element type");
  EXPECT_EQ(ErrorOf(R"({"weir_calibration": 1, "plugins": {"x": 1}, "points": []})").message(),
            "c.json: the version of x is no text");
}

TEST(Calibration, BadTextsAreRefusedWithTheFault) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{", "not a JSON text"},
      {"[]", "\"weir_calibration\": 1"},
      {R"({"weir_calibration": 2, "points": []})", "\"weir_calibration\": 1"},
      {R"({"weir_calibration": 1})", "\"points\""},
      {File("7"), "point 0: wanted op"},
      {File(Point("[[2, 2]]", "{}", R"("flags": [], "settings": [])")), "the settings are no object"},
      {File(Point("[[2, 2]]", "{}", R"("flags": [], "settings": {"strides": [1.5]})")),
       "a setting is neither a text nor a list of integers"},
      {File(Point("[[2, 2]]", R"({"x": -1})")), "the time of x is not positive"},
      {File(Point("[[2, 2]]", R"({"x": "1"})")), "the time of x is not positive"},
      {File(Point("[[2, -2]]", "{}")), "point 0"},
      {File(Point("[[2, 2.5]]", "{}")), "an extent is no integer"},
      {File(Point("[2]", "{}")), "a shape is no list"},
      {File(Point("[[4611686018427387904, 4]]", "{}")), "point 0"},
      {File(Point("[[2]]", "{}", R"("flags": [1])")), "a flag is no text"},
      {File(R"({"op": "A", "dtype": "float33", "flags": [], "inputs": [], "constant": [], "ns": {}})"), "float33"},
      {File(R"({"op": "A", "dtype": "float", "flags": [], "inputs": [], "constant": [0], "ns": {}})"), "constant"}};
  for (const auto& [text, reason] : bad) {
    const Status status = ErrorOf(text);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(reason), std::string::npos) << text << " gave: " << status.message();
    EXPECT_NE(status.message().find("c.json"), std::string::npos) << status.message();
  }
  std::string many = File(std::string(100001 * 2 - 1, ' '));
  for (size_t i = many.find('[') + 1, n = 0; n < 100001 * 2 - 1; ++n) many[i + n] = n % 2 == 0 ? '1' : ',';
  EXPECT_NE(ErrorOf(many).message().find("100001 points"), std::string::npos);
}

TEST(Calibration, AMissingFileIsNotFound) {
  EXPECT_EQ(Calibration::Read("/nonexistent/c.json").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace weir::kernel
