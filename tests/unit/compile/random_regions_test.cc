// Random regions of all types and broadcasts, compiled by every compiler of this build and op by op. A compiled float
// op may differ from the kernel's by 4 units in the last place of the largest value; the bound of a result follows the
// differences through the ops behind. Integers and bools are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compile/compilers.h"
#include "core/plugin/compatible.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "tests/support/text_graph.h"

namespace weir::compile {
namespace {

using weir::testing::Const;
using weir::testing::NodeLine;
using weir::testing::Placeholder;

using Names = std::vector<std::string>;

/// A value of a graph, with what is known about it.
struct Known {
  std::string name;
  DType type = DType::kFloat;
  Shape shape;
  double most = 0;       // of the absolute values
  double least = -1e30;  // of the values
  double error = 0;      // how far compiled and uncompiled values may differ
};

double UnitOf(DType type) {
  return type == DType::kDouble ? 0x1p-52 : type == DType::kFloat ? 0x1p-23 : type == DType::kHalf ? 0x1p-10 : 0x1p-7;
}

bool Fits(const Shape& a, const Shape& b) {
  for (size_t i = 1; i <= std::min(a.dims().size(), b.dims().size()); ++i) {
    const int64_t x = a.dims()[a.dims().size() - i], y = b.dims()[b.dims().size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Shape Broadcast(const Shape& a, const Shape& b) {
  std::vector<int64_t> dims(std::max(a.dims().size(), b.dims().size()), 1);
  for (const Shape* shape : {&a, &b}) {
    for (size_t i = 0; i < shape->dims().size(); ++i) {
      int64_t& dim = dims[dims.size() - shape->dims().size() + i];
      dim = std::max(dim, shape->dims()[i]);
    }
  }
  return Shape::Of(dims);
}

class RegionMaker {
 public:
  explicit RegionMaker(uint32_t seed) : dice_(seed) {}

  /// Adds a region of several ops, with a prefix of its own, and returns its last values.
  std::vector<Known> Add(const std::string& prefix) {
    prefix_ = prefix;
    values_.clear();
    fresh_.clear();
    const Shape full = PickShape();
    const int inputs = 2 + Pick(3);
    for (int i = 0; i < inputs; ++i) AddInput(i, full);
    const int ops = 3 + Pick(9);
    for (int i = 0; i < ops; ++i) AddOp();
    std::vector<Known> results;
    for (const std::string& name : fresh_) {
      const auto value = std::ranges::find(values_, name, &Known::name);
      results.push_back(*value);
    }
    return results;
  }

  const std::vector<NodeLine>& nodes() const { return nodes_; }
  const std::vector<session::Feed>& feeds() const { return feeds_; }

 private:
  int Pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(dice_); }

  Shape PickShape() {
    const std::vector<std::vector<int64_t>> shapes = {{7},        {1},          {64},   {5, 33}, {16, 16},
                                                      {3, 1, 19}, {2, 3, 4, 5}, {1000}, {}};
    return Shape::Of(shapes[static_cast<size_t>(Pick(static_cast<int>(shapes.size())))]);
  }

  /// A shape that broadcasts to `full`.
  Shape Narrower(const Shape& full) {
    std::vector<int64_t> dims(full.dims().begin(), full.dims().end());
    for (int64_t& dim : dims) {
      if (Pick(4) == 0) dim = 1;
    }
    const int kind = Pick(6);
    if (kind == 0) dims.clear();
    if (kind == 1 && !dims.empty()) dims.erase(dims.begin(), dims.begin() + 1 + Pick(static_cast<int>(dims.size())));
    return Shape::Of(kind == 2 ? std::vector<int64_t>(full.dims().begin(), full.dims().end()) : dims);
  }

  void AddInput(int number, const Shape& full) {
#ifdef WEIR_KERNEL_DTYPES_SHORT
    static constexpr DType kTypes[] = {DType::kFloat, DType::kFloat, DType::kFloat, DType::kDouble,
                                       DType::kInt32, DType::kInt64, DType::kBool};
#else
    static constexpr DType kTypes[] = {DType::kFloat,    DType::kFloat, DType::kFloat,  DType::kDouble, DType::kHalf,
                                       DType::kBfloat16, DType::kInt32, DType::kInt64,  DType::kInt8,   DType::kUint8,
                                       DType::kInt16,    DType::kBool,  DType::kUint16, DType::kUint32, DType::kUint64};
#endif
    const DType type = kTypes[Pick(static_cast<int>(std::size(kTypes)))];
    const Shape shape = number == 0 ? full : Narrower(full);
    Result<Tensor> made = Tensor::Make(type, shape);
    ASSERT_TRUE(made.ok());
    Known known{prefix_ + "i" + std::to_string(number), type, shape, 3, IsFloating(type) ? -3.0 : -1e30, 0};
    for (int64_t i = 0; i < shape.elements(); ++i) SetElement(*made, i);
    if (Pick(5) == 0) {
      nodes_.push_back(Const(known.name, *made));
    } else {
      nodes_.push_back(Placeholder(known.name, PartialShape(shape), type));
      feeds_.emplace_back(known.name + ":0", *made);
    }
    values_.push_back(known);
  }

  void SetElement(Tensor& tensor, int64_t i) {
    const double number = std::uniform_real_distribution<double>(-3, 3)(dice_);
    std::byte* const at = tensor.mutable_raw() + static_cast<size_t>(i) * SizeOf(tensor.dtype());
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (tensor.dtype()) {
      case DType::kFloat:
        return put(static_cast<float>(number));
      case DType::kDouble:
        return put(number);
      case DType::kHalf:
        return put(FloatToHalf(static_cast<float>(number)));
      case DType::kBfloat16:
        return put(FloatToBfloat16(static_cast<float>(number)));
      case DType::kInt32:
        return put(static_cast<int32_t>(number * 1e9 / 2));
      case DType::kInt64:
        return put(static_cast<int64_t>(number * 1e18));
      case DType::kInt16:
        return put(static_cast<int16_t>(number * 1e4));
      case DType::kInt8:
        return put(static_cast<int8_t>(number * 40));
      case DType::kUint8:
        return put(static_cast<uint8_t>((number + 3) * 40));
      case DType::kUint16:
        return put(static_cast<uint16_t>((number + 3) * 1e4));
      case DType::kUint32:
        return put(static_cast<uint32_t>((number + 3) * 7e8));
      case DType::kUint64:
        return put(static_cast<uint64_t>((number + 3) * 3e18));
      default:
        return put(static_cast<uint8_t>(number > 0 ? 1 : 0));
    }
  }

  /// A value that `wanted` accepts, often one that nothing uses yet; null if there is none.
  template <class Wanted>
  const Known* Find(Wanted&& wanted) {
    std::vector<const Known*> found, unused;
    for (const Known& value : values_) {
      if (!wanted(value)) continue;
      found.push_back(&value);
      if (std::ranges::find(fresh_, value.name) != fresh_.end()) unused.push_back(&value);
    }
    if (!unused.empty() && Pick(3) != 0) found = unused;
    return found.empty() ? nullptr : found[static_cast<size_t>(Pick(static_cast<int>(found.size())))];
  }

  static bool IsFloat(const Known& value) { return IsFloating(value.type); }
  static bool IsWhole(const Known& value) { return IsInteger(value.type); }

  void Push(Known made, const char* op, std::vector<Known> operands, op::AttrList attrs) {
    made.name = prefix_ + "n" + std::to_string(values_.size());
    NodeLine node{made.name, op, {}, std::move(attrs)};
    for (const Known& operand : operands) {
      node.inputs.push_back(operand.name);
      std::erase(fresh_, operand.name);
    }
    if (IsFloating(made.type)) made.error += 4 * UnitOf(made.type) * made.most;
    nodes_.push_back(std::move(node));
    fresh_.push_back(made.name);
    values_.push_back(std::move(made));
  }

  void AddOp() {
    switch (Pick(9)) {
      case 0:
      case 1:
        return AddUnary();
      case 2:
      case 3:
        return AddBinary();
      case 4:
        return AddWhole();
      case 5:
        return AddComparison();
      case 6:
        return AddChoice();
      case 7:
        return AddCast();
      default:
        return AddReduction();
    }
  }

  void AddUnary() {
    const Known* const found = Find(IsFloat);
    if (found == nullptr) return;
    const Known x = *found;
    Known y = x;
    const op::AttrList attrs = {{"T", x.type}};
    // The slope times the error of x, and the range.
    switch (Pick(10)) {
      case 0:
        y.least = -1e30;
        return Push(y, "Neg", {x}, attrs);
      case 1:
        y.least = 0;
        return Push(y, "Abs", {x}, attrs);
      case 2:
        if (x.most > 30) return;
        y.most = x.most * x.most;
        y.least = 0;
        y.error = 2 * x.most * x.error;
        return Push(y, "Square", {x}, attrs);
      case 3:
        y.most = 1;
        y.least = -1;
        return Push(y, "Tanh", {x}, attrs);
      case 4:
        if (x.most > 8) return;
        y.most = 1;
        y.least = 1 / (1 + std::exp(x.most)) / 2;
        return Push(y, "Sigmoid", {x}, attrs);
      case 5:
        y.least = 0;
        return Push(y, "Relu", {x}, attrs);
      case 6:
        if (x.most > 4) return;
        y.most = std::exp(x.most);
        y.least = std::exp(-x.most) / 2;
        y.error = y.most * x.error;
        return Push(y, "Exp", {x}, attrs);
      case 7:
        if (x.least < 1e-3) return;
        y.most = std::sqrt(x.most);
        y.least = 0;
        y.error = x.error / (2 * std::sqrt(x.least));
        return Push(y, "Sqrt", {x}, attrs);
      case 8:
        if (x.least < 1e-2) return;
        y.most = 1 / std::sqrt(x.least);
        y.least = 0;
        y.error = x.error / (2 * std::pow(x.least, 1.5));
        return Push(y, "Rsqrt", {x}, attrs);
      default:
        if (x.least < 1e-2) return;
        y.most = std::max(std::fabs(std::log(x.least)), std::fabs(std::log(x.most)));
        y.least = -1e30;
        y.error = x.error / x.least;
        return Push(y, "Log", {x}, attrs);
    }
  }

  void AddBinary() {
    const Known* const first = Find(IsFloat);
    if (first == nullptr) return;
    const Known a = *first;
    const Known* const second =
        Find([&](const Known& value) { return value.type == a.type && Fits(value.shape, a.shape); });
    if (second == nullptr) return;
    const Known b = *second;
    Known y{"", a.type, Broadcast(a.shape, b.shape), a.most + b.most, -1e30, a.error + b.error};
    const op::AttrList attrs = {{"T", a.type}};
    switch (Pick(6)) {
      case 0:
        y.least = std::max(a.least + b.least, -1e30);
        return Push(y, "AddV2", {a, b}, attrs);
      case 1:
        return Push(y, "Sub", {a, b}, attrs);
      case 2:
        if (a.most * b.most > 1e4) return;
        y.most = a.most * b.most;
        y.error = a.most * b.error + b.most * a.error;
        return Push(y, "Mul", {a, b}, attrs);
      case 3:
        if (b.least < 0.1) return;
        y.most = a.most / b.least;
        y.error = a.error / b.least + a.most * b.error / (b.least * b.least);
        return Push(y, "RealDiv", {a, b}, attrs);
      case 4:
        y.most = std::max(a.most, b.most);
        y.least = std::max(a.least, b.least);
        return Push(y, "Maximum", {a, b}, attrs);
      default:
        y.most = std::max(a.most, b.most);
        y.least = std::min(a.least, b.least);
        return Push(y, "Minimum", {a, b}, attrs);
    }
  }

  void AddWhole() {
    if (Pick(4) == 0) return AddLogic();
    const Known* const first = Find(IsWhole);
    if (first == nullptr) return;
    const Known a = *first;
    const Known b = *Find([&](const Known& value) { return value.type == a.type && Fits(value.shape, a.shape); });
    const char* const ops[] = {"AddV2", "Sub", "Mul", "Maximum", "Minimum"};
    Push({"", a.type, Broadcast(a.shape, b.shape), 0, -1e30, 0}, ops[Pick(5)], {a, b}, {{"T", a.type}});
  }

  void AddLogic() {
    const auto is_bool = [](const Known& value) { return value.type == DType::kBool; };
    const Known* const first = Find(is_bool);
    if (first == nullptr) return;
    const Known a = *first;
    const Known b = *Find([&](const Known& value) { return is_bool(value) && Fits(value.shape, a.shape); });
    Known y{"", DType::kBool, Broadcast(a.shape, b.shape), 0, -1e30, 0};
    switch (Pick(3)) {
      case 0:
        return Push(y, "LogicalAnd", {a, b}, {});
      case 1:
        return Push(y, "LogicalOr", {a, b}, {});
      default:
        y.shape = a.shape;
        return Push(y, "LogicalNot", {a}, {});
    }
  }

  /// Of values that are the same in both: a difference in the last place may turn a comparison.
  void AddComparison() {
    const auto exact = [](const Known& value) { return value.error == 0 && value.type != DType::kBool; };
    const Known* const first = Find(exact);
    if (first == nullptr) return;
    const Known a = *first;
    const Known b =
        *Find([&](const Known& value) { return exact(value) && value.type == a.type && Fits(value.shape, a.shape); });
    const char* const ops[] = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"};
    Push({"", DType::kBool, Broadcast(a.shape, b.shape), 0, -1e30, 0}, ops[Pick(6)], {a, b}, {{"T", a.type}});
  }

  void AddChoice() {
    const Known* const found = Find([](const Known& value) { return value.type == DType::kBool; });
    if (found == nullptr) return;
    const Known condition = *found;
    const Known* const first =
        Find([&](const Known& value) { return value.type != DType::kBool && Fits(value.shape, condition.shape); });
    if (first == nullptr) return;
    const Known a = *first;
    const Known b = *Find([&](const Known& value) { return value.type == a.type && Fits(value.shape, a.shape); });
    const Shape branches = Broadcast(a.shape, b.shape);
    if (!Fits(branches, condition.shape)) return;
    const Shape shape = Broadcast(condition.shape, branches);
    const Known y{"", a.type, shape, std::max(a.most, b.most), std::min(a.least, b.least), std::max(a.error, b.error)};
    const bool plain = condition.shape == shape && a.shape == shape && b.shape == shape && Pick(2) == 0;
    Push(y, plain ? "Select" : "SelectV2", {condition, a, b}, {{"T", a.type}});
  }

  void AddCast() {
    const Known* const found = Find([](const Known&) { return true; });
    const Known x = *found;
#ifdef WEIR_KERNEL_DTYPES_SHORT
    static constexpr DType kTargets[] = {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64};
#else
    static constexpr DType kTargets[] = {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64, DType::kHalf};
#endif
    const DType to = kTargets[Pick(static_cast<int>(std::size(kTargets)))];
    const bool whole = IsInteger(to);
    if (to == x.type || (whole && IsFloating(x.type) && (x.error != 0 || x.most > 1e6))) return;
    if (to == DType::kHalf && (!IsFloating(x.type) || x.most > 1e3)) return;
    Known y{"", to, x.shape, x.most, x.least, x.error};
    if (!IsFloating(x.type)) {
      y.most = x.type == DType::kBool ? 1 : x.type == DType::kInt8 || x.type == DType::kUint8 ? 255 : 1e19;
      y.least = -1e30;
    }
    Push(y, "Cast", {x}, {{"SrcT", x.type}, {"DstT", to}});
  }

  void AddReduction() {
    const Known* const found = Find([](const Known& value) {
      return (value.type == DType::kFloat || value.type == DType::kDouble) && value.shape.rank() > 0;
    });
    if (found == nullptr) return;
    const Known x = *found;
    const int64_t last = x.shape.rank() - 1;
    const auto count = static_cast<double>(x.shape.dims()[static_cast<size_t>(last)]);
    std::vector<int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
    dims.back() = 1;
    const bool keeps = Pick(4) != 0;
    if (!keeps) dims.pop_back();
    Known y{"", x.type, Shape::Of(dims), x.most, x.least, x.error};
    const char* const ops[] = {"Sum", "Mean", "Max", "Min"};
    const int op = Pick(4);
    if (op < 2) {
      if (count * x.most > 1e6) return;
      y.least = -1e30;
      // The order of the terms differs.
      y.error = count * (x.error + UnitOf(x.type) * x.most * count);
      y.most = count * x.most;
      if (op == 1) y.error /= count, y.most = x.most;
    }
    const std::string axis = prefix_ + "axis" + std::to_string(values_.size());
    nodes_.push_back(Const(axis, Pick(2) == 0 ? Tensor::Scalar<int32_t>(-1)
                                              : Tensor::Of<int32_t>(Shape::Of({1}), {static_cast<int32_t>(last)})));
    Push(y, ops[op], {x}, {{"T", x.type}, {"Tidx", DType::kInt32}, {"keep_dims", keeps}});
    nodes_.back().inputs.push_back(axis);
  }

  std::mt19937 dice_;
  std::string prefix_;
  std::vector<NodeLine> nodes_;
  std::vector<session::Feed> feeds_;
  std::vector<Known> values_;  // of the region
  Names fresh_;                // results that no op uses
};

/// What was fetched, and how many regions were compiled.
struct BothRan {
  std::vector<Tensor> values;
  size_t compiled = 0;
};

BothRan RunRegions(const std::shared_ptr<session::Runtime>& runtime, const graph::Definition& graph,
                   const std::vector<session::Feed>& feeds, const Names& fetches, bool compiled) {
  session::SessionOptions options;
  options.compile_regions = compiled ? session::CompileRegions::kOn : session::CompileRegions::kOff;
  options.fusion = compiled;
  options.constant_folding = false;
  options.keep_compiled_regions = false;
  options.compile_limit_ms = 60000;
  std::string notes;
  options.placement_log = [&](const std::string& lines) { notes += lines; };
  const auto session = session::Session::Make(runtime, graph, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  Result<std::vector<Tensor>> values = (*session)->Run(feeds, fetches, {});
  EXPECT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_EQ(notes.find("compiler '"), std::string::npos) << notes;
  BothRan ran;
  if (!values.ok()) return ran;
  ran.values = std::move(*values);
  if (!compiled) return ran;
  const auto text = (*session)->ExplainStage(session::Stage::kGraph, feeds, fetches, {});
  EXPECT_TRUE(text.ok());
  if (!text.ok()) return ran;
  for (size_t at = text->find("): compiled by "); at != std::string::npos; at = text->find("): compiled by ", at + 1)) {
    ++ran.compiled;
  }
  return ran;
}

/// The largest difference beside the bound, with its place.
void ExpectAgree(const Known& known, const Tensor& compiled, const Tensor& plain) {
  ASSERT_EQ(compiled.shape(), plain.shape()) << known.name;
  ASSERT_EQ(compiled.dtype(), plain.dtype()) << known.name;
  if (!IsFloating(known.type)) {
    ASSERT_EQ(std::memcmp(compiled.raw(), plain.raw(), plain.bytes()), 0) << known.name;
    return;
  }
  for (int64_t i = 0; i < plain.elements(); ++i) {
    const double a = ElementAsDouble(compiled, i), b = ElementAsDouble(plain, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    ASSERT_LE(std::fabs(a - b), known.error) << known.name << " element " << i << ": " << a << " and " << b;
  }
}

/// Returns how many regions the compiler took.
size_t CompareRegions(const std::shared_ptr<session::Runtime>& runtime, uint32_t seed, int regions) {
  RegionMaker maker(seed);
  std::vector<Known> wanted;
  for (int i = 0; i < regions; ++i) {
    for (Known& value : maker.Add("r" + std::to_string(i))) wanted.push_back(std::move(value));
  }
  const Result<graph::Definition> graph = weir::testing::MakeGraph(maker.nodes());
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  if (!graph.ok()) return 0;
  Names fetches;
  for (const Known& value : wanted) fetches.push_back(value.name + ":0");
  const BothRan compiled = RunRegions(runtime, *graph, maker.feeds(), fetches, true);
  const BothRan plain = RunRegions(runtime, *graph, maker.feeds(), fetches, false);
  EXPECT_EQ(compiled.values.size(), plain.values.size());
  for (size_t i = 0; i < wanted.size() && i < compiled.values.size() && i < plain.values.size(); ++i) {
    ExpectAgree(wanted[i], compiled.values[i], plain.values[i]);
    if (::testing::Test::HasFatalFailure()) break;
  }
  return compiled.compiled;
}

/// The plugins of this build and the example compiler.
std::shared_ptr<session::Runtime> AllCompilers() {
  plugin::LoadOptions options;
  options.folders = {WEIR_SHIPPED_PLUGINS, WEIR_EXAMPLE_PLUGINS};
  options.deny = {"toy", "toy_mul"};
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  return runtime.ok() ? *runtime : nullptr;
}

TEST(RandomRegions, F021_bits_do_not_depend_on_threads) {
  const std::shared_ptr<session::Runtime> all = AllCompilers();
  ASSERT_NE(all, nullptr);
  const Shape shape = Shape::Of({1000, 777});
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape(shape))};
  for (const auto& [name, op, input] : std::vector<std::array<const char*, 3>>{
           {"a", "Tanh", "x"}, {"b", "Square", "a"}, {"c", "Neg", "b"}, {"y", "Relu", "c"}}) {
    nodes.push_back({name, op, {input}, {{"T", DType::kFloat}}});
  }
  const Result<graph::Definition> graph = weir::testing::MakeGraph(nodes);
  ASSERT_TRUE(graph.ok());
  std::vector<float> numbers(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
  for (const kernel::CompilerEntry& entry : all->plugins->compilers()) {
    SCOPED_TRACE(entry.plugin);
    const auto runtime = std::make_shared<session::Runtime>(*all);
    runtime->compilers =
        std::make_shared<Compilers>(std::vector<kernel::CompilerEntry>{entry}, plugin::IsaText("auto"));
    std::vector<Tensor> results;
    for (const int threads : {1, 2, 3, 7}) {
      session::SessionOptions options;
      options.compile_regions = session::CompileRegions::kOn;
      options.intra_op_parallelism_threads = threads;
      options.deterministic = true;
      options.keep_compiled_regions = false;
      const auto session = session::Session::Make(runtime, *graph, options);
      ASSERT_TRUE(session.ok());
      const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(shape, numbers)}};
      const auto values = (*session)->Run(feeds, Names{"b:0", "y:0"}, {});
      ASSERT_TRUE(values.ok()) << values.status().ToString();
      const auto plan = (*session)->ExplainStage(session::Stage::kPlan, feeds, Names{"b:0", "y:0"}, {});
      ASSERT_TRUE(plan.ok());
      EXPECT_NE(plan->find(entry.plugin), std::string::npos) << *plan;
      results.insert(results.end(), values->begin(), values->end());
    }
    for (size_t i = 2; i < results.size(); ++i) {
      EXPECT_EQ(std::memcmp(results[i].raw(), results[i % 2].raw(), results[i].bytes()), 0) << i;
    }
  }
}

TEST(RandomRegions, F021_compiled_regions_agree_with_their_ops) {
  const std::shared_ptr<session::Runtime> all = AllCompilers();
  ASSERT_NE(all, nullptr);
  ASSERT_FALSE(all->plugins->compilers().empty()) << "the example compiler is not built";
  for (const kernel::CompilerEntry& entry : all->plugins->compilers()) {
    SCOPED_TRACE(entry.plugin);
    const auto runtime = std::make_shared<session::Runtime>(*all);
    runtime->compilers =
        std::make_shared<Compilers>(std::vector<kernel::CompilerEntry>{entry}, plugin::IsaText("auto"));
    // The example knows floats of one shape, of which few random regions consist.
    const bool example = entry.plugin == "toy_compiler";
    const char* const asked = std::getenv("WEIR_TEST_REGIONS");
    const auto wanted = static_cast<size_t>(example ? 20 : asked == nullptr ? 100 : std::atoi(asked));
    constexpr int kBatches = 100, kRegions = 20;
    size_t compiled = 0;
    for (int i = 0; i < kBatches && compiled < wanted && !HasFailure(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(i));
      compiled += CompareRegions(runtime, static_cast<uint32_t>(i), kRegions);
    }
    EXPECT_GE(compiled, wanted) << "it takes too few of them";
    RecordProperty(entry.plugin, static_cast<int>(compiled));
    std::printf("%s compiled %zu regions\n", entry.plugin.c_str(), compiled);
  }
}

}  // namespace
}  // namespace weir::compile
