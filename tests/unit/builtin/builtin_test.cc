#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>

#include "core/base/errors.h"
#include "core/builtin/register.h"
#include "core/io/bundle.h"
#include "core/io/summary.h"
#include "core/kernel/host.h"
#include "core/ops/declare_all.h"

namespace weir::builtin {
namespace {

// Outputs of one call, or its error.
struct Answer {
  Status status;
  std::vector<Tensor> outputs;
};

class Builtin : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "weir-builtin-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
    AddAll(kernels_);
    const Result<const op::OpRegistry*> ops = ops::Catalogue();
    ASSERT_TRUE(ops.ok()) << ops.status().ToString();
    ops_ = *ops;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  Answer Call(const std::string& op, std::vector<Tensor> inputs, size_t outputs, op::AttrList attrs = {}) {
    const op::OpDef* def = ops_->Find(op);
    const kernel::KernelEntry* kernel = kernels_.FindHost(op);
    if (def == nullptr || kernel == nullptr) return {NotFound("no op or kernel {}", op), {}};
    kernel::BuiltinCall call{"node", op::AttrView(*def, attrs), std::move(inputs), std::vector<Tensor>(outputs)};
    Status status = kernel->host->fn(call);
    return {std::move(status), std::move(call.outputs)};
  }
  void ExpectError(const Answer& answer, Code code, const std::string& text) {
    EXPECT_EQ(answer.status.code(), code) << answer.status.ToString();
    EXPECT_NE(answer.status.message().find(text), std::string::npos) << answer.status.ToString();
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  static Tensor Strings(const std::vector<std::string>& texts) { return Tensor::Vector(texts); }
  static Tensor Text(std::string_view text) { return Tensor::String(text); }

  std::string dir_;
  kernel::KernelRegistry kernels_;
  const op::OpRegistry* ops_ = nullptr;
};

TEST_F(Builtin, EachKernelIsOfAnOpThatKernelsRun) {
  EXPECT_GT(kernels_.size(), 10u);
  for (const kernel::KernelEntry* entry : kernels_.All()) {
    const std::string name(kernel::Text(entry->record->op));
    const op::OpDef* const def = ops_->Find(name);
    ASSERT_NE(def, nullptr) << name;
    EXPECT_EQ(def->run_by, op::RunBy::kKernel) << name;
    EXPECT_EQ(kernel::Text(entry->record->platform), kernel::kHostPlatform);
    EXPECT_EQ(entry->plugin, "core");
    EXPECT_TRUE(entry->host->fn || entry->host->async) << name;
  }
}

TEST_F(Builtin, SaveThenRestore) {
  const Tensor w = Tensor::Vector<float>({1, 2});
  const Answer saved = Call("SaveV2",
                            {Text(Path("m")), Strings({"w", "s", "p"}), Strings({"", "", "4 1,2"}), w, Text("hello"),
                             Tensor::Vector<int32_t>({7, 8})},
                            0);
  ASSERT_TRUE(saved.status.ok()) << saved.status.ToString();
  const std::vector<DType> types = {DType::kString, DType::kFloat, DType::kInt32};
  const Answer read = Call("RestoreV2", {Text(Path("m")), Strings({"s", "w", "p"}), Strings({"", "2 1,1", "4 2,1"})}, 3,
                           {{"dtypes", types}});
  ASSERT_TRUE(read.status.ok()) << read.status.ToString();
  EXPECT_TRUE(read.outputs[0].SameBits(Text("hello")));
  EXPECT_TRUE(read.outputs[1].SameBits(Tensor::Vector<float>({2})));
  EXPECT_TRUE(read.outputs[2].SameBits(Tensor::Vector<int32_t>({8})));
}

/// The text that `body` writes to stderr.
template <class Body>
std::string Said(Body&& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(Builtin, F389_PrintWritesTheFirstElements) {
  const Tensor c = Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4.5}), i = Tensor::Vector<int32_t>({1, 2, 3, 4, 5});
  const Tensor b = Tensor::Vector<bool>({true, false});
  const auto said = [&](std::vector<Tensor> data, op::AttrList attrs) {
    data.insert(data.begin(), c);
    return Said([&] {
      const Answer answer = Call("Print", data, 1, attrs);
      ASSERT_TRUE(answer.status.ok()) << answer.status.ToString();
      EXPECT_TRUE(answer.outputs[0].SameBits(c));
    });
  };
  EXPECT_EQ(said({c, i, Strings({"a", "b"}), Tensor::Scalar(3), b}, {{"message", "msg: "}}),
            "msg: [[1 2][3...]...][1 2 3...][a b][3][1 0]\n");
  EXPECT_EQ(said({i}, {{"summarize", 2}}), "[1 2...]\n");
  EXPECT_EQ(said({i}, {{"summarize", -1}}), "[1 2 3 4 5]\n");
  EXPECT_EQ(said({i}, {{"summarize", 10}}), "[1 2 3 4 5]\n");
  EXPECT_EQ(said({Tensor::Vector<float>({})}, {}), "[]\n");
  EXPECT_EQ(said({}, {{"message", "only"}}), "only\n");
  EXPECT_EQ(said({Tensor::Vector<float>({1e20f, 1e5f, 1234567, 1e-10f, 0.1f})}, {{"summarize", -1}}),
            "[1e+20 100000 1234567 1e-10 0.1]\n");
  EXPECT_EQ(said({i}, {{"first_n", 0}}), "");
}

TEST_F(Builtin, F389_TensorsInsideTexts) {
  const auto text = [&](const Tensor& tensor, int64_t summarize = 3) {
    const Answer answer =
        Call("StringFormat", {tensor}, 1, {{"template", "<{}>"}, {"placeholder", "{}"}, {"summarize", summarize}});
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    return answer.status.ok() ? *answer.outputs[0].scalar<std::string>() : "";
  };
  const auto counted = [](std::initializer_list<int64_t> dims) {
    const Shape shape = Shape::Of(dims);
    std::vector<int32_t> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
    return Tensor::Of<int32_t>(shape, values);
  };
  EXPECT_EQ(text(Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4.5})), "<[[1 2]\n [3 4.5]]>");
  EXPECT_EQ(text(counted({10})), "<[0 1 2 ... 7 8 9]>");
  EXPECT_EQ(text(counted({7}), 2), "<[0 1 ... 5 6]>");
  EXPECT_EQ(text(counted({5})), "<[0 1 2 3 4]>");
  EXPECT_EQ(text(counted({2, 2, 2})), "<[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]>");
  EXPECT_EQ(text(counted({10, 10, 10}), 1),
            "<[[[0 ... 9]\n  ...\n  [90 ... 99]]\n\n ...\n\n [[900 ... 909]\n  ...\n  [990 ... 999]]]>");
  EXPECT_EQ(text(counted({8, 8})),
            "<[[0 1 2 ... 5 6 7]\n [8 9 10 ... 13 14 15]\n [16 17 18 ... 21 22 23]\n ...\n [40 41 42 ... 45 46 47]\n"
            " [48 49 50 ... 53 54 55]\n [56 57 58 ... 61 62 63]]>");
  EXPECT_EQ(text(counted({10}), -1), "<[0 1 2 3 4 5 6 7 8 9]>");
  EXPECT_EQ(text(counted({0})), "<[]>");
  EXPECT_EQ(text(counted({2, 0})), "<[\n ...]>");
  EXPECT_EQ(text(Tensor::Scalar(3)), "<3>");
  EXPECT_EQ(text(Tensor::Vector<bool>({true, false})), "<[1 0]>");
  EXPECT_EQ(text(Strings({"a\"b", "c\nd"})), "<[\"a\\\"b\" \"c\\nd\"]>");
  ExpectError(Call("StringFormat", {}, 1, {{"template", "{}"}, {"placeholder", "{}"}}), Code::kInvalidArgument,
              "num placeholders in template and num inputs must match: 1 vs. 0");
}

TEST_F(Builtin, F389_PrintV2WritesToStreams) {
  EXPECT_EQ(Said([&] { EXPECT_TRUE(Call("PrintV2", {Text("a")}, 0).status.ok()); }), "a\n");
  EXPECT_EQ(Said([&] { EXPECT_TRUE(Call("PrintV2", {Text("a")}, 0, {{"end", "E"}}).status.ok()); }), "aE");
  const op::AttrList to_file = {{"output_stream", "file://" + Path("log")}};
  EXPECT_TRUE(Call("PrintV2", {Text("one")}, 0, to_file).status.ok());
  EXPECT_TRUE(Call("PrintV2", {Text("two")}, 0, to_file).status.ok());
  std::ifstream file(Path("log"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one\ntwo\n");
  ExpectError(Call("PrintV2", {Text("a")}, 0, {{"output_stream", "nowhere"}}), Code::kInvalidArgument,
              "Unknown output stream: nowhere");
  ExpectError(Call("PrintV2", {Text("a")}, 0, {{"output_stream", "file:///proc/nothing/here"}}), Code::kUnavailable,
              "/proc/nothing/here");
}

TEST_F(Builtin, F236_RestoreErrorsAreTensorFlowsTexts) {
  ASSERT_TRUE(Call("SaveV2", {Text(Path("m")), Strings({"v1"}), Strings({""}), Tensor::Vector<float>({1, 2, 3})}, 0)
                  .status.ok());
  const auto restore = [&](const std::string& name, const std::string& slice, DType type) {
    return Call("RestoreV2", {Text(Path("m")), Strings({name}), Strings({slice})}, 1,
                {{"dtypes", std::vector<DType>{type}}});
  };
  ExpectError(restore("x", "", DType::kFloat), Code::kNotFound, "Key x not found in checkpoint");
  ExpectError(restore("v1", "", DType::kInt32), Code::kInvalidArgument,
              "tensor_name = v1; expected dtype int32 does not equal original dtype float");
  ExpectError(restore("v1", "4 0,1", DType::kFloat), Code::kInvalidArgument,
              "tensor_name = v1; shape in shape_and_slice spec [4] does not match the shape stored in checkpoint: [3]");
  ExpectError(restore("v1", "3 0,4", DType::kFloat), Code::kInvalidArgument, "'3 0,4'");
  std::filesystem::remove(Path("m.index"));
  ExpectError(restore("v1", "", DType::kFloat), Code::kNotFound,
              "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + Path("m"));
}

TEST_F(Builtin, B24_BadOperandsOfSaveAndRestore) {
  const Tensor value = Tensor::Scalar(1.0f);
  const std::string prefix = Path("m");
  const auto save = [&](std::vector<Tensor> inputs) { return Call("SaveV2", std::move(inputs), 0); };
  ExpectError(save({Text(prefix), Strings({}), Strings({}), value}), Code::kInvalidArgument,
              "Got 0 tensor names but 1 tensors.");
  ExpectError(save({Text(prefix), Strings({"a", "b"}), Strings({"", ""}), value}), Code::kInvalidArgument,
              "Got 2 tensor names but 1 tensors.");
  ExpectError(save({Text(prefix), Strings({"a"}), Strings({}), value}), Code::kInvalidArgument,
              "different number of elements: 1 vs. 0");
  ExpectError(save({Strings({prefix, prefix}), Strings({"a"}), Strings({""}), value}), Code::kInvalidArgument,
              "Input prefix should have a single element, got 2 instead.");
  ExpectError(save({Text(prefix), Text("a"), Strings({""}), value}), Code::kInvalidArgument, "1-D");
  ExpectError(save({Tensor::Scalar(1.0f), Strings({"a"}), Strings({""}), value}), Code::kInvalidArgument,
              "prefix must be string, got float");
  ExpectError(save({Text(prefix), Strings({"a"})}), Code::kInvalidArgument, "SaveV2 wants 3");
  ExpectError(save({Text(prefix), Strings({""}), Strings({""}), value}), Code::kInvalidArgument, "empty");
  ExpectError(Call("RestoreV2", {Text(prefix), Strings({"a"}), Strings({""})}, 2,
                   {{"dtypes", std::vector<DType>{DType::kFloat, DType::kFloat}}}),
              Code::kInvalidArgument, "Got 1 tensor names, but 2 expected dtypes.");
  EXPECT_TRUE(std::filesystem::is_empty(dir_)) << "a refused save leaves no file";
}

TEST_F(Builtin, F241_ShardedSaveMerges) {
  const std::string temp = Path("m_temp_1/part");
  std::vector<std::string> shards;
  for (int32_t i = 0; i < 2; ++i) {
    const Answer name = Call("ShardedFilename", {Text(temp), Tensor::Scalar(i), Tensor::Scalar<int32_t>(2)}, 1);
    ASSERT_TRUE(name.status.ok()) << name.status.ToString();
    shards.push_back(*name.outputs[0].scalar<std::string>());
    ASSERT_TRUE(Call("SaveV2", {name.outputs[0], Strings({i == 0 ? "a" : "b"}), Strings({""}), Tensor::Scalar(i)}, 0)
                    .status.ok());
  }
  EXPECT_EQ(shards[1], temp + "-00001-of-00002");
  const Answer merged = Call("MergeV2Checkpoints", {Strings(shards), Text(Path("m"))}, 0);
  ASSERT_TRUE(merged.status.ok()) << merged.status.ToString();
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"m.index", "m.data-00000-of-00002", "m.data-00001-of-00002"}));
  const Result<io::BundleReader> reader = io::BundleReader::Open(Path("m"));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->Read("b")->SameBits(Tensor::Scalar<int32_t>(1)));
  ExpectError(Call("MergeV2Checkpoints", {Text("x"), Text(Path("m"))}, 0), Code::kInvalidArgument, "1-D");
  ExpectError(Call("MergeV2Checkpoints", {Strings({"x"}), Strings({"m"})}, 0), Code::kInvalidArgument,
              "destination_prefix must be a scalar, got shape [1]");
}

TEST_F(Builtin, ShardedNames) {
  EXPECT_EQ(Call("ShardedFilespec", {Text("f"), Tensor::Scalar<int32_t>(100)}, 1).outputs[0].scalar<std::string>(),
            "f-\?\?\?\?\?-of-00100");
  ExpectError(Call("ShardedFilename", {Text("f"), Tensor::Vector<int32_t>({1}), Tensor::Scalar<int32_t>(1)}, 1),
              Code::kInvalidArgument, "shard must be a scalar, got shape [1]");
}

TEST_F(Builtin, StringJoinBroadcastsScalars) {
  const Answer joined =
      Call("StringJoin", {Text("a"), Strings({"x", "y"}), Text("z")}, 1, {{"N", int64_t{3}}, {"separator", "-"}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.ToString();
  EXPECT_TRUE(joined.outputs[0].SameBits(Strings({"a-x-z", "a-y-z"})));
  EXPECT_EQ(Call("StringJoin", {Text("a"), Text("b")}, 1, {{"N", int64_t{2}}}).outputs[0].scalar<std::string>(), "ab");
  EXPECT_TRUE(Call("StringJoin", {Text("a"), Strings({})}, 1, {{"N", int64_t{2}}}).outputs[0].SameBits(Strings({})));
  ExpectError(Call("StringJoin", {Strings({"a"}), Strings({"x", "y"})}, 1, {{"N", int64_t{2}}}), Code::kInvalidArgument,
              "Input shapes do not match: [1] vs. [2]");
}

TEST_F(Builtin, StaticRegexFullMatchHasRe2Semantics) {
  const auto match = [&](const std::string& pattern, const std::vector<std::string>& texts) {
    return Call("StaticRegexFullMatch", {Strings(texts)}, 1, {{"pattern", pattern}});
  };
  const Answer s3 = match("^s3://.*", {"s3://bucket/m", "/local/m", "xs3://"});
  ASSERT_TRUE(s3.status.ok()) << s3.status.ToString();
  EXPECT_TRUE(s3.outputs[0].SameBits(Tensor::Of<bool>(Shape::Of({3}), {true, false, false})));
  EXPECT_TRUE(match("a|ab", {"ab"}).outputs[0].as<bool>()[0]);
  EXPECT_FALSE(match("a", {"ab"}).outputs[0].as<bool>()[0]);
  // Exponential for a backtracking matcher.
  EXPECT_FALSE(match("(a*)*b", {std::string(10000, 'a')}).outputs[0].as<bool>()[0]);
  ExpectError(match("(", {"x"}), Code::kInvalidArgument, "Invalid pattern: (, error: missing )");
  ExpectError(match("(a)\\1", {"aa"}), Code::kInvalidArgument, "Invalid pattern");
  ExpectError(match("((a{100}){100}){100}", {"x"}), Code::kInvalidArgument, "Invalid pattern");
}

TEST_F(Builtin, AssertNamesItsData) {
  const auto check = [&](Tensor condition, std::vector<Tensor> data, op::AttrList attrs = {}) {
    data.insert(data.begin(), std::move(condition));
    return Call("Assert", std::move(data), 0, std::move(attrs));
  };
  EXPECT_TRUE(check(Tensor::Scalar(true), {Text("x")}).status.ok());
  ExpectError(check(Tensor::Scalar(false), {Text("x must be positive:"), Tensor::Scalar(-1.5f)}),
              Code::kInvalidArgument, "assertion failed: [x must be positive:] [-1.5]");
  const Tensor many = Tensor::Vector<int32_t>({1, 2, 3, 4});
  ExpectError(check(Tensor::Scalar(false), {many}), Code::kInvalidArgument, "assertion failed: [1 2 3...]");
  ExpectError(check(Tensor::Scalar(false), {many}, {{"summarize", int64_t{-1}}}), Code::kInvalidArgument,
              "assertion failed: [1 2 3 4]");
  ExpectError(check(Tensor::Of<bool>(Shape::Of({2}), {true, true}), {many}), Code::kInvalidArgument,
              "In[0] should be a scalar: [2]");
}

TEST_F(Builtin, F322_CheckNumericsTellsWhatItFound) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const auto check = [&](const std::vector<float>& values) {
    return Call("CheckNumerics", {Tensor::Vector<float>(values)}, 1, {{"message", std::string("log of x")}});
  };
  const Answer fine = check({1, -2});
  ASSERT_TRUE(fine.status.ok()) << fine.status.ToString();
  EXPECT_TRUE(fine.outputs[0].SameBits(Tensor::Vector<float>({1, -2})));
  EXPECT_TRUE(check({}).status.ok());
  ExpectError(check({1, -kInf}), Code::kInvalidArgument, "log of x : Tensor had Inf values");
  ExpectError(check({kNan}), Code::kInvalidArgument, "log of x : Tensor had NaN values");
  ExpectError(check({kInf, 0, kNan}), Code::kInvalidArgument, "log of x : Tensor had Inf and NaN values");
}

TEST_F(Builtin, SummariesDecode) {
  const Answer scalars = Call("ScalarSummary", {Strings({"a", "b"}), Tensor::Vector<int64_t>({3, -4})}, 1);
  ASSERT_TRUE(scalars.status.ok()) << scalars.status.ToString();
  const Tensor values = Tensor::Of<double>(Shape::Of({2, 2}), {1, 2, 3, 4});
  const Answer histogram = Call("HistogramSummary", {Text("h"), values}, 1);
  ASSERT_TRUE(histogram.status.ok()) << histogram.status.ToString();
  const Answer merged = Call("MergeSummary", {scalars.outputs[0], histogram.outputs[0]}, 1);
  ASSERT_TRUE(merged.status.ok()) << merged.status.ToString();
  const auto decoded = io::DecodeSummary(*merged.outputs[0].scalar<std::string>());
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size(), 3u);
  EXPECT_EQ((*decoded)[0].tag, "a");
  EXPECT_EQ((*decoded)[0].scalar, 3);
  EXPECT_EQ((*decoded)[1].scalar, -4);
  EXPECT_EQ((*decoded)[2].tag, "h");
  EXPECT_EQ((*decoded)[2].histogram.sum_squares, 30);
}

TEST_F(Builtin, SummaryErrorsAreTensorFlowsTexts) {
  ExpectError(Call("ScalarSummary", {Text("t"), Tensor::Vector<float>({1, 2})}, 1), Code::kInvalidArgument,
              "tags and values are not the same shape: [] != [2] (tag 't')");
  ExpectError(Call("ScalarSummary", {Strings({"t", "u"}), Tensor::Scalar(1.0f)}, 1), Code::kInvalidArgument,
              "tags and values are not the same shape: [2] != []");
  ExpectError(Call("ScalarSummary", {Text("t"), Text("u")}, 1), Code::kInvalidArgument, "got string");
  ExpectError(Call("HistogramSummary", {Text("t"), Tensor::Scalar(std::nanf(""))}, 1), Code::kInvalidArgument,
              "Nan in summary histogram for: node");
  ExpectError(Call("HistogramSummary", {Strings({"t"}), Tensor::Scalar(1.0f)}, 1), Code::kInvalidArgument,
              "tag must be a scalar");
  const Tensor loss = Text(io::ScalarSummary("loss", 1));
  ExpectError(Call("MergeSummary", {loss, loss}, 1), Code::kInvalidArgument,
              "Duplicate tag loss found in summary inputs");
  ExpectError(Call("MergeSummary", {Text("\xff")}, 1), Code::kInvalidArgument, "Could not parse");
}

}  // namespace
}  // namespace weir::builtin
