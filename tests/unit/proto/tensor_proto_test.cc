#include <fmt/format.h>

#include "core/tensor/resource.h"
#include "core/tensor/tensor_proto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "core/proto/parse.h"
#include "weir/proto/tensor.pb.h"

namespace weir {
namespace {

tf::TensorProto Text(const std::string& text) {
  tf::TensorProto proto;
  const Status status = proto::ParseText(text, "TensorProto", proto);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return proto;
}

/// The elements as T, which may be another number type of the same size: the bits of half, the codes of qint8.
template <class T>
std::vector<T> Values(const Tensor& tensor) {
  if (HasFixedSize(tensor.dtype()) && SizeOf(tensor.dtype()) != sizeof(T)) return {};
  const std::span<const T> values(reinterpret_cast<const T*>(tensor.raw()), static_cast<size_t>(tensor.elements()));
  return std::vector<T>(values.begin(), values.end());
}

Tensor Decode(const std::string& text) {
  Result<Tensor> tensor = TensorFromProto(Text(text));
  EXPECT_TRUE(tensor.ok()) << tensor.status().ToString() << text;
  return tensor.ok() ? *tensor : Tensor();
}

std::string Vec(int64_t n) { return fmt::format("tensor_shape {{ dim {{ size: {} }} }}", n); }

TEST(TensorFromProto, LastValueRepeats) {
  EXPECT_EQ(Values<float>(Decode("dtype: DT_FLOAT float_val: [1.5, 2] " + Vec(4))),
            (std::vector<float>{1.5f, 2, 2, 2}));
  EXPECT_EQ(Values<int32_t>(Decode("dtype: DT_INT32 int_val: 7 " + Vec(3))), (std::vector<int32_t>{7, 7, 7}));
  EXPECT_EQ(Values<std::string>(Decode("dtype: DT_STRING string_val: ['a', 'b'] " + Vec(3))),
            (std::vector<std::string>{"a", "b", "b"}));
}

TEST(TensorFromProto, NoValueMeansZeros) {
  EXPECT_EQ(Values<double>(Decode("dtype: DT_DOUBLE " + Vec(2))), (std::vector<double>{0, 0}));
  EXPECT_EQ(Values<std::string>(Decode("dtype: DT_STRING")), (std::vector<std::string>{""}));
}

TEST(TensorFromProto, SurplusValuesAreCut) {
  EXPECT_EQ(Values<int64_t>(Decode("dtype: DT_INT64 int64_val: [1, 2, 3] " + Vec(2))), (std::vector<int64_t>{1, 2}));
}

TEST(TensorFromProto, EmptyTensorIgnoresItsPayload) {
  const Tensor tensor = Decode("dtype: DT_FLOAT tensor_content: 'xyz' float_val: 3 " + Vec(0));
  EXPECT_EQ(tensor.elements(), 0);
  EXPECT_EQ(tensor.shape().ToString(), "[0]");
}

TEST(TensorFromProto, EveryTypeReadsItsField) {
  EXPECT_EQ(Values<int16_t>(Decode("dtype: DT_INT16 int_val: -2")), (std::vector<int16_t>{-2}));
  EXPECT_EQ(Values<uint8_t>(Decode("dtype: DT_UINT8 int_val: 255")), (std::vector<uint8_t>{255}));
  EXPECT_EQ(Values<int8_t>(Decode("dtype: DT_QINT8 int_val: -128")), (std::vector<int8_t>{-128}));
  EXPECT_EQ(Values<int32_t>(Decode("dtype: DT_QINT32 int_val: -5")), (std::vector<int32_t>{-5}));
  EXPECT_EQ(Values<uint16_t>(Decode("dtype: DT_UINT16 int_val: 65535")), (std::vector<uint16_t>{65535}));
  EXPECT_EQ(Values<uint32_t>(Decode("dtype: DT_UINT32 uint32_val: 4294967295")), (std::vector<uint32_t>{4294967295u}));
  EXPECT_EQ(Values<uint64_t>(Decode("dtype: DT_UINT64 uint64_val: 18446744073709551615")),
            (std::vector<uint64_t>{~uint64_t{0}}));
  EXPECT_EQ(Values<bool>(Decode("dtype: DT_BOOL bool_val: [true, false] " + Vec(2))), (std::vector<bool>{true, false}));
  EXPECT_EQ(Values<uint16_t>(Decode("dtype: DT_HALF half_val: 15360")), (std::vector<uint16_t>{15360}));
  EXPECT_EQ(Values<uint16_t>(Decode("dtype: DT_BFLOAT16 half_val: 16256")), (std::vector<uint16_t>{16256}));
  EXPECT_EQ(Values<uint8_t>(Decode("dtype: DT_FLOAT8_E5M2 float8_val: 'ab' " + Vec(3))),
            (std::vector<uint8_t>{'a', 'b', 'b'}));
  EXPECT_EQ(Values<int8_t>(Decode("dtype: DT_INT4 int_val: [-8, 7] " + Vec(2))), (std::vector<int8_t>{-8, 7}));
  EXPECT_EQ(Values<std::complex<float>>(Decode("dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3, 4] " + Vec(3))),
            (std::vector<std::complex<float>>{{1, 2}, {3, 4}, {3, 4}}));
  EXPECT_EQ(Values<std::complex<double>>(Decode("dtype: DT_COMPLEX128 dcomplex_val: [1, 2]")),
            (std::vector<std::complex<double>>{{1, 2}}));
  const Tensor handles = Decode("dtype: DT_RESOURCE resource_handle_val { name: 'v' container: 'c' } " + Vec(2));
  EXPECT_EQ(handles.as<ResourceHandle>()[0].name, "v");
  EXPECT_EQ(handles.as<ResourceHandle>()[1].name, "");  // handles do not repeat
}

TEST(TensorFromProto, ContentOfFixedSizeTypes) {
  EXPECT_EQ(Values<float>(Decode(R"(dtype: DT_FLOAT tensor_content: "\000\000\200\077\000\000\000\100" )" + Vec(2))),
            (std::vector<float>{1, 2}));
  const Tensor bools = Decode(R"(dtype: DT_BOOL tensor_content: "\000\001\005" )" + Vec(3));
  EXPECT_EQ(Values<uint8_t>(bools), (std::vector<uint8_t>{0, 1, 1}));
}

TEST(TensorFromProto, ContentOfStrings) {
  EXPECT_EQ(Values<std::string>(Decode(R"(dtype: DT_STRING tensor_content: "\002\000\001abc" )" + Vec(3))),
            (std::vector<std::string>{"ab", "", "c"}));
}

struct Bad {
  const char* name;
  std::string text;
};

TEST(TensorFromProto, MismatchesAreNamed) {
  const Bad cases[] = {
      {"invalid type", "dtype: DT_INVALID"},
      {"no type", ""},
      {"reference type", "dtype: DT_FLOAT_REF float_val: 1"},
      {"unknown type", "dtype: 77"},
      {"negative extent", "dtype: DT_FLOAT " + Vec(-2)},
      {"unknown extent", "dtype: DT_FLOAT " + Vec(-1)},
      {"unknown rank", "dtype: DT_FLOAT tensor_shape { unknown_rank: true }"},
      {"overflow", "dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"},
      {"content too short", "dtype: DT_FLOAT tensor_content: 'abc'"},
      {"content one byte short", "dtype: DT_INT32 tensor_content: 'abcdefg' " + Vec(2)},
      {"content too long", "dtype: DT_INT32 tensor_content: 'abcdefghi' " + Vec(2)},
      {"string length beyond content", R"(dtype: DT_STRING tensor_content: "\177abc")"},
      {"string content too long", R"(dtype: DT_STRING tensor_content: "\001abc")"},
      {"string lengths cut", R"(dtype: DT_STRING tensor_content: "\200\200" )" + Vec(2)},
      {"more strings than bytes", "dtype: DT_STRING tensor_content: 'abc' " + Vec(1'000'000'000'000)},
  };
  for (const Bad& bad : cases) {
    const Result<Tensor> tensor = TensorFromProto(Text(bad.text));
    ASSERT_FALSE(tensor.ok()) << bad.name;
    EXPECT_EQ(tensor.status().code(), Code::kInvalidArgument) << bad.name << tensor.status().ToString();
    EXPECT_TRUE(tensor.status().message().starts_with("Cannot parse tensor from proto: ")) << bad.name;
  }
  const Status status = TensorFromProto(Text("dtype: DT_FLOAT tensor_content: 'abc'")).status();
  EXPECT_EQ(status.message(), "Cannot parse tensor from proto: dtype: DT_FLOAT\ntensor_content: \"abc\"\n");
}

TEST(TensorFromProto, RanksBeyondTheLimit) {
  tf::TensorProto proto = Text("dtype: DT_FLOAT");
  for (int i = 0; i < 255; ++i) proto.mutable_tensor_shape()->add_dim()->set_size(1);
  EXPECT_EQ(TensorFromProto(proto).status().code(), Code::kInvalidArgument);
  proto.mutable_tensor_shape()->mutable_dim()->RemoveLast();
  EXPECT_TRUE(TensorFromProto(proto).ok());
}

TEST(TensorFromProto, VariantIsUnimplemented) {
  EXPECT_EQ(TensorFromProto(Text("dtype: DT_VARIANT")).status().code(), Code::kUnimplemented);
}

// B31: 20 bytes that describe 32 GiB.
TEST(TensorFromProto, ExpansionIsCharged) {
  const Status status = TensorFromProto(Text("dtype: DT_FLOAT float_val: 1 " + Vec(int64_t{1} << 33))).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("[8589934592]"), std::string::npos) << status.message();
  EXPECT_EQ(TensorFromProto(Text("dtype: DT_STRING " + Vec(int64_t{1} << 40))).status().code(),
            Code::kResourceExhausted);

  ExpansionBudget budget{1000};
  const tf::TensorProto fill = Text("dtype: DT_FLOAT float_val: 1 " + Vec(200));
  EXPECT_TRUE(TensorFromProto(fill, &budget).ok());
  EXPECT_LT(budget.bytes, 250u);
  EXPECT_EQ(TensorFromProto(fill, &budget).status().code(), Code::kResourceExhausted);
}

TEST(TensorFromProto, ManyRepeatedNumbersTakeNoMemoryUntilTheyAreWritten) {
  const int64_t n = int64_t{1} << 24;  // 64 MiB
  const auto resident = [] {
    uint64_t size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * 4096;
  };
  const uint64_t before = resident();
  Result<Tensor> made = TensorFromProto(Text("dtype: DT_FLOAT float_val: [1, 2, 3] " + Vec(n)));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_LT(resident(), before + (uint64_t{16} << 20));
  const std::span<float> x = made->mutable_as<float>();
  ASSERT_EQ(static_cast<int64_t>(x.size()), n);
  const auto last = static_cast<size_t>(n - 1), middle = static_cast<size_t>(n / 2);
  EXPECT_EQ((std::vector<float>{x[0], x[1], x[2], x[3], x[middle], x[last]}), (std::vector<float>{1, 2, 3, 3, 3, 3}));
  x[middle] = 7;
  EXPECT_EQ(std::count(x.begin(), x.end(), 7.0f), 1);
  EXPECT_EQ(std::count(x.begin(), x.end(), 3.0f), n - 3);
  const Result<Tensor> zeros = TensorFromProto(Text("dtype: DT_COMPLEX128 " + Vec(n / 4)));
  ASSERT_TRUE(zeros.ok());
  EXPECT_EQ(zeros->as<std::complex<double>>()[middle / 4], std::complex<double>());
}

TEST(TensorFromProto, TextsThatRepeatAreLimited) {
  EXPECT_TRUE(TensorFromProto(Text("dtype: DT_STRING " + Vec(int64_t{1} << 20))).ok());
  EXPECT_EQ(TensorFromProto(Text("dtype: DT_STRING " + Vec(int64_t{1} << 22))).status().code(),
            Code::kResourceExhausted);
}

TEST(ParseTensorProto, EveryCutAndEveryFlippedBitGivesAnAnswer) {
  for (const Tensor& tensor :
       {Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4}), Tensor::Of<std::string>(Shape::Of({2}), {"one", "two"})}) {
    for (const TensorEncoding encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
      const std::string bytes = *SerializeTensorProto(tensor, encoding);
      for (size_t i = 0; i < bytes.size(); ++i) {
        const Result<Tensor> cut = ParseTensorProto(std::string_view(bytes).substr(0, i));
        EXPECT_FALSE(cut.ok() && cut->SameBits(tensor));
        for (int bit = 0; bit < 8; ++bit) {
          std::string flipped = bytes;
          flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
          ExpansionBudget budget{1 << 20};
          const Result<Tensor> read = ParseTensorProto(flipped, &budget);
          EXPECT_TRUE(!read.ok() || read->valid());
        }
      }
    }
  }
}

template <class T>
Tensor Counting(DType dtype, int64_t n) {
  Tensor tensor = *Tensor::Make(dtype, Shape::Of({n}));
  std::span<T> to(reinterpret_cast<T*>(tensor.mutable_raw()), static_cast<size_t>(n));
  for (size_t i = 0; i < to.size(); ++i) to[i] = T(static_cast<int>(i) % 2);
  return tensor;
}

TEST(TensorToProto, EveryTypeSurvivesBothEncodings) {
  for (uint32_t code = 1; code <= 32; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (SizeOf(dtype) == 0) continue;
    for (const int64_t n : {0, 1, 5}) {
      Tensor tensor = *Tensor::Make(dtype, Shape::Of({n}));
      for (size_t i = 0; i < tensor.bytes(); ++i) {
        tensor.mutable_raw()[i] = static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i * 37 + 200);
      }
      for (const TensorEncoding encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
        const Result<std::string> bytes = SerializeTensorProto(tensor, encoding);
        ASSERT_TRUE(bytes.ok()) << Name(dtype);
        const Result<Tensor> read = ParseTensorProto(*bytes);
        ASSERT_TRUE(read.ok()) << Name(dtype) << read.status().ToString();
        EXPECT_TRUE(read->SameBits(tensor)) << Name(dtype) << " " << n;
      }
    }
  }
}

TEST(TensorToProto, HandlesAndStringsSurviveBothEncodings) {
  Tensor handles = *Tensor::Make(DType::kResource, Shape::Of({2}));
  handles.mutable_as<ResourceHandle>()[1] = {"/device:CPU:0", "localhost", "v", 7, "Var"};
  const Tensor strings = Tensor::Of<std::string>(Shape::Of({3}), {"", std::string("\0x", 2), std::string(300, 'y')});
  for (const Tensor& tensor : {handles, strings}) {
    for (const TensorEncoding encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
      const Result<Tensor> read = ParseTensorProto(*SerializeTensorProto(tensor, encoding));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      EXPECT_TRUE(read->SameBits(tensor));
    }
  }
}

TEST(TensorToProto, TypedMatchesPython) {
  const auto typed = [](const Tensor& tensor) {
    tf::TensorProto proto;
    EXPECT_TRUE(TensorToProto(tensor, TensorEncoding::kTyped, proto).ok());
    return proto;
  };
  EXPECT_EQ(typed(Tensor::Scalar<float>(2)).float_val_size(), 1);
  EXPECT_EQ(typed(Tensor::Vector<int32_t>({1, 2})).tensor_content().size(), 8u);
  EXPECT_EQ(typed(Tensor::Vector<int32_t>({4, 4, 4})).int_val_size(), 1);  // equal elements are stored once
  EXPECT_EQ(typed(Tensor::Vector<std::string>({"a", "a"})).string_val_size(), 2);
  EXPECT_EQ(typed(Tensor::Vector<bool>({true, false})).bool_val_size(), 2);
  EXPECT_EQ(typed(Counting<uint16_t>(DType::kHalf, 3)).half_val_size(), 3);
}

TEST(TensorToProto, TensorWithoutType) {
  EXPECT_EQ(SerializeTensorProto(Tensor()).status().code(), Code::kInvalidArgument);
}

TEST(ShapeFromProto, PartialAndConcrete) {
  tf::TensorShapeProto proto;
  EXPECT_EQ(PartialShapeFromProto(proto)->ToString(), "[]");
  EXPECT_EQ(ShapeFromProto(proto)->rank(), 0);
  ShapeToProto(PartialShape::Of({-1, 3}), proto);
  EXPECT_EQ(PartialShapeFromProto(proto)->ToString(), "[?,3]");
  EXPECT_EQ(ShapeFromProto(proto).status().code(), Code::kInvalidArgument);
  ShapeToProto(PartialShape(), proto);
  EXPECT_TRUE(proto.unknown_rank());
  EXPECT_FALSE(PartialShapeFromProto(proto)->has_rank());
  proto.add_dim()->set_size(2);
  EXPECT_EQ(PartialShapeFromProto(proto).status().code(), Code::kInvalidArgument);
  proto.Clear();
  proto.add_dim()->set_size(-2);
  EXPECT_EQ(PartialShapeFromProto(proto).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir
