#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/io/array_text.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/inspect.h"
#include "core/io/npy.h"
#include "core/tensor/number.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

class Npy : public TempDir {};
class State : public TempDir {};
class Inspect : public TempDir {
 protected:
  void SetUp() override {
    TempDir::SetUp();
    Result<BundleWriter> writer = BundleWriter::Create(Path("m"));
    ASSERT_TRUE(writer.ok());
    WEIR_ASSERT_OK(writer->Add("v2", Tensor::Vector<float>({-1, -1, -1, -1, -1})));
    WEIR_ASSERT_OK(writer->Add("v1", Tensor::Vector<float>({1, 1, 1})));
    WEIR_ASSERT_OK(writer->Finish());
  }
};

// --- .npy ------------------------------------------------------------------------------------------------------------

std::string Npy1(std::string_view header, std::string_view data) {
  std::string file("\x93NUMPY\x01\0", 8);
  file.push_back(static_cast<char>(header.size()));
  file.push_back(static_cast<char>(header.size() >> 8));
  return file.append(header).append(data);
}

TEST_F(Npy, WritesNumPysBytes) {
  const Result<std::string> bytes = EncodeNpy(Tensor::Of<float>(Shape::Of({2, 1}), {1, 2}));
  ASSERT_TRUE(bytes.ok());
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  EXPECT_EQ(*bytes, Npy1(header + std::string(128 - 10 - header.size() - 1, ' ') + "\n", FromHex("0000803f00000040")));
  const auto header_of = [](const Tensor& tensor) {
    const Result<std::string> encoded = EncodeNpy(tensor);
    EXPECT_TRUE(encoded.ok());
    return encoded->substr(10, encoded->find('}') - 9);
  };
  EXPECT_EQ(header_of(Tensor::Scalar<int64_t>(1)), "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(header_of(Tensor::Vector<uint8_t>({1})), "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }");
  EXPECT_EQ(header_of(Tensor::Vector<std::string>({"a", "bcd"})),
            "{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }");
}

TEST_F(Npy, EveryTypeRoundTrips) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint8,
                            DType::kUint16, DType::kUint32, DType::kUint64, DType::kHalf, DType::kFloat, DType::kDouble,
                            DType::kComplex64, DType::kComplex128}) {
    for (const Shape& shape : {Shape(), Shape::Of({3}), Shape::Of({2, 0, 4}), Shape::Of({2, 3, 1})}) {
      Result<Tensor> tensor = Tensor::Make(dtype, shape);
      ASSERT_TRUE(tensor.ok());
      for (size_t i = 0; i < tensor->bytes(); ++i) {
        tensor->mutable_raw()[i] = std::byte(dtype == DType::kBool ? i % 2 : i);
      }
      WEIR_ASSERT_OK(WriteNpy(Path("a.npy"), *tensor));
      const Result<Tensor> read = ReadNpy(Path("a.npy"));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      EXPECT_TRUE(read->SameBits(*tensor)) << Name(dtype) << shape.ToString();
    }
  }
  const Tensor strings = Tensor::Of<std::string>(Shape::Of({2, 2}), {"", "abc", std::string("a\0b", 3), "é"});
  EXPECT_TRUE(DecodeNpy(*EncodeNpy(strings), "s")->SameBits(strings));
}

TEST_F(Npy, TypesWithoutAFormInNumPyBecomeOthers) {
  Tensor bf16 = *Tensor::Make(DType::kBfloat16, Shape::Of({2}));
  const uint16_t bits[] = {FloatToBfloat16(1.5f), FloatToBfloat16(-2)};
  std::memcpy(bf16.mutable_raw(), bits, sizeof(bits));
  EXPECT_TRUE(DecodeNpy(*EncodeNpy(bf16), "b")->SameBits(Tensor::Vector<float>({1.5f, -2})));
  Tensor qint8 = *Tensor::Make(DType::kQint8, Shape::Of({1}));
  qint8.mutable_raw()[0] = std::byte{0xff};
  EXPECT_TRUE(DecodeNpy(*EncodeNpy(qint8), "q")->SameBits(Tensor::Vector<int8_t>({-1})));
  WEIR_EXPECT_ERROR(EncodeNpy(*Tensor::Make(DType::kResource, Shape())).status(), Code::kUnimplemented, "resource");
}

TEST_F(Npy, ReadsFilesOfOtherWriters) {
  // Big-endian, Fortran order, UCS-4 text, key order and spacing, version 2.
  const Result<Tensor> big =
      DecodeNpy(Npy1("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", FromHex("00010200")), "b");
  ASSERT_TRUE(big.ok()) << big.status().ToString();
  EXPECT_TRUE(big->SameBits(Tensor::Vector<int16_t>({1, 512})));
  const Result<Tensor> fortran =
      DecodeNpy(Npy1("{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"|i1\"}", FromHex("000301040205")), "f");
  ASSERT_TRUE(fortran.ok()) << fortran.status().ToString();
  EXPECT_TRUE(fortran->SameBits(Tensor::Of<int8_t>(Shape::Of({2, 3}), {0, 1, 2, 3, 4, 5})));
  const Result<Tensor> text =
      DecodeNpy(Npy1("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }", FromHex("61000000e9000000"
                                                                                          "20f60100"
                                                                                          "00000000")),
                "u");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_TRUE(text->SameBits(Tensor::Vector<std::string>({"a\xc3\xa9", "\xf0\x9f\x98\xa0"})));
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (), }";
  std::string two("\x93NUMPY\x02\0", 8);
  two += std::string{static_cast<char>(header.size()), 0, 0, 0} + header + FromHex("000000000000f03f");
  EXPECT_EQ(DecodeNpy(two, "2")->scalar<double>(), 1.0);
}

TEST_F(Npy, BadFilesAreRefusedBeforeAllocating) {
  const auto refuse = [](std::string_view header, std::string_view data, Code code, const std::string& text) {
    WEIR_EXPECT_ERROR(DecodeNpy(Npy1(header, data), "bad.npy").status(), code, text);
  };
  refuse("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x", Code::kInvalidArgument, "element type '|O'");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abc", Code::kDataLoss, "3 bytes of data");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcde", Code::kDataLoss, "5 bytes of data");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }", "", Code::kDataLoss, "1099511627776");
  refuse("{'descr': '|S0', 'fortran_order': False, 'shape': (1099511627776,), }", "", Code::kDataLoss, "1099511627776");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "", Code::kInvalidArgument, "bad.npy");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "", Code::kInvalidArgument,
         "bad.npy");
  refuse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "", Code::kInvalidArgument,
         "dictionary");
  refuse("{'descr': '<f4', 'shape': (1,), }", "", Code::kInvalidArgument, "dictionary");
  refuse("{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': (1,), }", "", Code::kInvalidArgument,
         "element type");
  const std::string good = *EncodeNpy(Tensor::Vector<float>({1, 2}));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(DecodeNpy(std::string_view(good).substr(0, length), "cut").ok()) << length;
  }
  for (size_t bit = 0; bit < 128 * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const Result<Tensor> read = DecodeNpy(bad, "flipped");
    if (read.ok()) {
      EXPECT_LE(read->elements(), 8) << bit;
    }
  }
  Write(Path("a.npy"), good);
  WEIR_EXPECT_ERROR(ReadNpy(Path("a.npy"), 64).status(), Code::kResourceExhausted, Path("a.npy"));
}

// --- the state file --------------------------------------------------------------------------------------------------

TEST_F(State, F375_TextIsTensorFlows) {
  Write(Path("m-2.index"), "");
  Write(Path("m-3.index"), "");
  WEIR_ASSERT_OK(WriteCheckpointState(dir_, {Path("m-3"), {Path("m-2"), Path("m-3")}, {}, 0}));
  EXPECT_EQ(Slurp(Path("checkpoint")), fmt::format("model_checkpoint_path: \"{0}/m-3\"\n"
                                                   "all_model_checkpoint_paths: \"{0}/m-2\"\n"
                                                   "all_model_checkpoint_paths: \"{0}/m-3\"\n",
                                                   dir_));
  EXPECT_EQ(LatestCheckpoint(dir_), Path("m-3"));
  WEIR_ASSERT_OK(WriteCheckpointState(dir_, {Path("m-2"), {}, {}, 0}, "ck2"));
  EXPECT_EQ(Slurp(Path("ck2")), fmt::format("model_checkpoint_path: \"{0}/m-2\"\n"
                                            "all_model_checkpoint_paths: \"{0}/m-2\"\n",
                                            dir_));
  EXPECT_EQ(LatestCheckpoint(dir_, "ck2"), Path("m-2"));
  std::filesystem::remove(Path("m-3.index"));
  EXPECT_EQ(LatestCheckpoint(dir_), "");
  EXPECT_EQ(LatestCheckpoint(Path("none")), "");
  Write(Path("checkpoint"), "garbage");
  EXPECT_EQ(LatestCheckpoint(dir_), "");
  WEIR_EXPECT_ERROR(ReadCheckpointState(dir_).status(), Code::kInvalidArgument, Path("checkpoint"));
  Write(Path("checkpoint"), "");
  WEIR_EXPECT_ERROR(ReadCheckpointState(dir_).status(), Code::kInvalidArgument, "no model_checkpoint_path");
}

TEST_F(State, RelativePathsBelongToTheFolder) {
  Write(Path("checkpoint"),
        "model_checkpoint_path: \"model.ckpt-100\"\nall_model_checkpoint_paths: \"/abs/m-1\"\n"
        "all_model_checkpoint_paths: \"model.ckpt-100\"\nall_model_checkpoint_timestamps: 1.5e9\n"
        "last_preserved_timestamp: 2.25 # seconds\n");
  const Result<CheckpointState> state = ReadCheckpointState(dir_);
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  EXPECT_EQ(state->model_checkpoint_path, Path("model.ckpt-100"));
  EXPECT_EQ(state->all_model_checkpoint_paths, (std::vector<std::string>{"/abs/m-1", Path("model.ckpt-100")}));
  EXPECT_EQ(state->all_model_checkpoint_timestamps, std::vector<double>{1.5e9});
  EXPECT_EQ(state->last_preserved_timestamp, 2.25);
}

TEST_F(State, RelativeFoldersGetRelativePaths) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_);
  std::filesystem::create_directory("ckpt");
  WEIR_EXPECT_OK(WriteCheckpointState("ckpt", {"ckpt/m-2", {"ckpt/m-1", "/abs/m", "./ckpt/m-2", "ckpt/m-2"}, {}, 0}));
  WEIR_EXPECT_OK(WriteCheckpointState("", {"m-2", {}, {}, 0}));
  std::filesystem::current_path(before);
  EXPECT_EQ(Slurp(Path("ckpt/checkpoint")),
            "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\"\n"
            "all_model_checkpoint_paths: \"/abs/m\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n");
  EXPECT_EQ(Slurp(Path("checkpoint")), "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-2\"\n");
}

TEST_F(State, OddCharactersSurvive) {
  const CheckpointState state{"/tmp/a \"b\"\\\n\xc3\xa9", {"/x"}, {}, 0};
  const Result<CheckpointState> read = ParseCheckpointState(FormatCheckpointState(state));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->model_checkpoint_path, state.model_checkpoint_path);
}

// --- inspection ------------------------------------------------------------------------------------------------------

TEST_F(Inspect, F237_PrintsAsTensorFlow) {
  const std::string all = "tensor_name:  v1\n[1. 1. 1.]\ntensor_name:  v2\n[-1. -1. -1. -1. -1.]\n";
  EXPECT_EQ(*InspectCheckpoint(Path("m"), {.all_tensors = true}), all);
  EXPECT_EQ(*InspectCheckpoint(Path("m"), {.tensor_name = "v1"}), "tensor_name:  v1\n[1. 1. 1.]\n");
  EXPECT_EQ(*InspectCheckpoint(Path("m"), {.all_tensor_names = true}), "tensor_name:  v1\ntensor_name:  v2\n");
  EXPECT_EQ(*InspectCheckpoint(Path("m")), "v1 (DT_FLOAT) [3]\nv2 (DT_FLOAT) [5]\n");
  WEIR_EXPECT_ERROR(InspectCheckpoint(Path("m"), {.tensor_name = "v3"}).status(), Code::kNotFound,
                    "Key v3 not found in checkpoint");
}

TEST_F(Inspect, F328_ReportNamesMissingExtraAndMismatched) {
  const Result<BundleReader> reader = BundleReader::Open(Path("m"));
  ASSERT_TRUE(reader.ok());
  const RestoreReport all = CompareCheckpoint(
      *reader, {{"v1", DType::kFloat, PartialShape::Of({-1})}, {"v2", RefType(DType::kFloat), Shape::Of({5})}});
  EXPECT_TRUE(all.complete());
  EXPECT_EQ(all.matched, (std::vector<std::string>{"v1", "v2"}));
  const RestoreReport some =
      CompareCheckpoint(*reader, {{"w1", DType::kFloat, PartialShape()}, {"v2", DType::kFloat, Shape::Of({4})}});
  EXPECT_FALSE(some.complete());
  EXPECT_EQ(some.missing, std::vector<std::string>{"w1"});
  EXPECT_EQ(some.extra, std::vector<std::string>{"v1"});
  ASSERT_EQ(some.mismatched.size(), 1u);
  EXPECT_EQ(some.ToString(),
            "restored 0, missing 1, extra 1, mismatched 1\n"
            "  missing: w1 (nearest: 'v1')\n"
            "  extra: v1\n"
            "  mismatched: v2: checkpoint has float [5], wanted float [4]\n");
  EXPECT_EQ(CompareCheckpoint(*reader, {{"v1", DType::kInt32, Shape::Of({3})}}).mismatched[0].text,
            "checkpoint has float [3], wanted int32 [3]");
}

// The expected texts were written by NumPy.
TEST(ArrayTexts, AsNumPyPrints) {
  EXPECT_EQ(ArrayText(Tensor::Scalar(1.0f)), "1.0");
  EXPECT_EQ(ArrayText(Tensor::Scalar(0.1f)), "0.1");
  EXPECT_EQ(ArrayText(Tensor::Scalar(1e-5)), "1e-05");
  EXPECT_EQ(ArrayText(Tensor::Scalar(-1.5e20)), "-1.5e+20");
  EXPECT_EQ(ArrayText(Tensor::Scalar<int64_t>(-7)), "-7");
  EXPECT_EQ(ArrayText(Tensor::Scalar(true)), "True");
  EXPECT_EQ(ArrayText(Tensor::String("a'b\n\xff")), "b\"a'b\\n\\xff\"");
  EXPECT_EQ(ArrayText(*Tensor::Make(DType::kFloat, Shape::Of({0, 3}))), "[]");
  EXPECT_EQ(ArrayText(Tensor::Of<float>(Shape::Of({2, 2}), {1, 2.5f, 3, 4})), "[[1.  2.5]\n [3.  4. ]]");
  EXPECT_EQ(ArrayText(Tensor::Vector<double>({0.123456789012, 10})), "[ 0.12345679 10.        ]");
  EXPECT_EQ(ArrayText(Tensor::Vector<float>({1e-5f, 1})), "[1.e-05 1.e+00]");
  EXPECT_EQ(ArrayText(Tensor::Vector<double>({1e8, 1.5})), "[1.0e+08 1.5e+00]");
  EXPECT_EQ(ArrayText(Tensor::Vector<float>({std::nanf(""), 1.5f, -std::numeric_limits<float>::infinity()})),
            "[ nan  1.5 -inf]");
  EXPECT_EQ(ArrayText(Tensor::Vector<int32_t>({1, -20, 300})), "[  1 -20 300]");
  EXPECT_EQ(ArrayText(Tensor::Vector<std::string>({"a", "bc"})), "[b'a' b'bc']");
  EXPECT_EQ(ArrayText(Tensor::Of<bool>(Shape::Of({2}), {true, false})), "[ True False]");
  EXPECT_EQ(ArrayText(Tensor::Of<int8_t>(Shape::Of({2, 1, 2}), {1, 2, 3, 4})), "[[[1 2]]\n\n [[3 4]]]");
  EXPECT_EQ(ArrayText(Tensor::Vector<double>({0.99999999999, 2})), "[1. 2.]");
}

TEST(ArrayTexts, LongRowsWrapAndLongArraysAreCut) {
  std::vector<int32_t> thirty, many;
  for (int i = 0; i < 30; ++i) thirty.push_back(i);
  for (int i = 0; i < 1001; ++i) many.push_back(i);
  EXPECT_EQ(ArrayText(Tensor::Vector(thirty)),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29]");
  EXPECT_EQ(ArrayText(Tensor::Vector(many)), "[   0    1    2 ...  998  999 1000]");
}

}  // namespace
}  // namespace weir::io
