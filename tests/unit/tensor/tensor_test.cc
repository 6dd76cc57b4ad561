#include "core/tensor/tensor.h"
#include "core/base/errors.h"
#include "core/tensor/buffer.h"
#include "core/tensor/resource.h"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <numeric>

#include "core/tensor/number.h"

namespace weir {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(TensorTest, DefaultIsInvalid) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.valid());
  EXPECT_EQ(tensor.elements(), 0);
  EXPECT_EQ(tensor.SummarizeValues(), "[]");
  EXPECT_TRUE(tensor.SameBits(Tensor()));
}

TEST(TensorTest, MakeOfEveryType) {
  for (uint32_t i = 1; i <= static_cast<uint32_t>(DType::kUint2); ++i) {
    const auto type = static_cast<DType>(i);
    const Result<Tensor> tensor = Tensor::Make(type, Shape::Of({2, 3}));
    ASSERT_TRUE(tensor.ok()) << Name(type);
    EXPECT_EQ(tensor->dtype(), type);
    EXPECT_EQ(tensor->elements(), 6);
    EXPECT_EQ(tensor->bytes(), 6 * SizeOf(type));
    EXPECT_TRUE(tensor->on_host());
  }
}

TEST(TensorTest, MakeRefusesBadTypes) {
  for (const DType type : {DType::kInvalid, RefType(DType::kFloat), static_cast<DType>(77), RefType(DType::kString)}) {
    EXPECT_EQ(Tensor::Make(type, Shape()).status().code(), Code::kInvalidArgument) << Name(type);
  }
  EXPECT_EQ(Tensor::Make(DType::kString, Shape(), HostAllocator()).status().code(), Code::kInvalidArgument);
}

TEST(TensorTest, LargerThanMemoryIsResourceExhausted) {
  for (const DType type : {DType::kFloat, DType::kComplex128, DType::kBool, DType::kString, DType::kResource}) {
    for (const int64_t count : {int64_t{1} << 48, kHuge, std::numeric_limits<int64_t>::max()}) {
      const Result<Tensor> tensor = Tensor::Make(type, Shape::Of({count}));
      ASSERT_FALSE(tensor.ok());
      EXPECT_EQ(tensor.status().code(), Code::kResourceExhausted);
      const std::string start =
          "OOM when allocating tensor with shape[" + std::to_string(count) + "] and type " + Name(type) + ": ";
      EXPECT_TRUE(tensor.status().message().starts_with(start)) << tensor.status().message();
    }
  }
}

// Only exhausted memory is reported as exhausted.
TEST(TensorTest, AnAllocatorThatFailsOtherwiseSaysHow) {
  struct Closed final : Allocator {
    Result<std::shared_ptr<Buffer>> Allocate(uint64_t) override { return Unavailable("cannot open TOY:0: no power"); }
  } closed;
  const Status failed = Tensor::Make(DType::kFloat, Shape::Of({32}), closed).status();
  EXPECT_EQ(failed.code(), Code::kUnavailable);
  EXPECT_EQ(failed.message(), "cannot allocate tensor with shape[32] and type float: cannot open TOY:0: no power");
  EXPECT_FALSE(OutOfMemory(failed));
}

TEST(TensorTest, FromValues) {
  const Tensor matrix = Tensor::Of<int32_t>(Shape::Of({2, 2}), {1, 2, 3, 4});
  ASSERT_TRUE(matrix.valid());
  EXPECT_EQ(matrix.as<int32_t>()[3], 4);
  EXPECT_EQ(Tensor::Scalar(2.5f).scalar<float>(), 2.5f);
  EXPECT_EQ(Tensor::Scalar(true).dtype(), DType::kBool);
  EXPECT_EQ(Tensor::Vector<double>({1, 2, 3}).shape(), Shape::Of({3}));
  EXPECT_EQ(Tensor::String("text").scalar<std::string>(), "text");
  EXPECT_FALSE(Tensor::Of<int32_t>(Shape::Of({2, 2}), {1, 2, 3}).valid());
}

TEST(TensorTest, ScalarsAreConvertedWhereNothingIsLost) {
  EXPECT_EQ(Tensor::Scalar(0.1f).scalar<double>(), static_cast<double>(0.1f));
  EXPECT_EQ(Tensor::Scalar(3.0f).scalar<int>(), 3);
  EXPECT_EQ(Tensor::Scalar(-0.5).scalar<float>(), -0.5f);
  EXPECT_EQ(Tensor::Scalar<int64_t>(7).scalar<int>(), 7);
  EXPECT_EQ(Tensor::Scalar<int64_t>(INT64_MIN).scalar<int64_t>(), INT64_MIN);
  EXPECT_EQ(Tensor::Scalar<uint64_t>(UINT64_MAX).scalar<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(Tensor::Scalar<int>(200).scalar<uint8_t>(), uint8_t{200});
  EXPECT_EQ(Tensor::Scalar(true).scalar<int>(), 1);
  EXPECT_TRUE(std::isnan(*Tensor::Scalar(std::nan("")).scalar<float>()));
  EXPECT_EQ(Tensor::Vector<float>({2}).scalar<float>(), 2.0f) << "one element is one";
}

TEST(TensorTest, ScalarsThatCannotBeHadNameBothTypes) {
  const auto message = [](const auto& result) { return result.status().message(); };
  const struct {
    std::string got;
    const char* text;
  } kCases[] = {
      {message(Tensor::Scalar(0.1).scalar<float>()),
       "one float32 was asked for, and the tensor has type float64: [0.1] is no float32"},
      {message(Tensor::Scalar(2.5f).scalar<int64_t>()), "[2.5] is no int64"},
      {message(Tensor::Scalar(std::nan("")).scalar<int>()), "[nan] is no int32"},
      {message(Tensor::Scalar(9.3e18).scalar<int64_t>()), "is no int64"},
      {message(Tensor::Scalar(1e300).scalar<float>()), "is no float32"},
      {message(Tensor::Scalar<int64_t>(int64_t{1} << 40).scalar<int>()), "[1099511627776] is no int32"},
      {message(Tensor::Scalar<int64_t>((int64_t{1} << 53) + 1).scalar<double>()), "is no float64"},
      {message(Tensor::Scalar<int>(-1).scalar<uint64_t>()), "[-1] is no uint64"},
      {message(Tensor::Scalar<uint64_t>(UINT64_MAX).scalar<int64_t>()), "is no int64"},
      {message(Tensor::Scalar<int>(1).scalar<bool>()), "one bool was asked for, and the tensor has type int32"},
      {message(Tensor::String("3").scalar<int>()),
       "elements of type int32 were asked for, and the tensor has type string"},
      {message(Tensor::Scalar(1).scalar<std::string>()), "elements of type string were asked for"},
      {message(Tensor::Vector<float>({1, 2}).scalar<float>()),
       "one float32 was asked for, and the tensor has type float32 and shape [2]"},
      {message(Tensor::Vector<float>({}).scalar<float>()), "shape [0]"},
      {message(Tensor().scalar<float>()), "shape none"},
  };
  for (const auto& c : kCases) EXPECT_NE(c.got.find(c.text), std::string::npos) << c.got << "\nwanted: " << c.text;
  EXPECT_EQ(*Tensor::Scalar(0.1).scalar<float>(), 0) << "the value of an error is that of its type";
}

TEST(TensorTest, ElementsOfAnotherTypeAreNone) {
  Tensor floats = Tensor::Vector<float>({1, 2, 3});
  EXPECT_TRUE(floats.as<double>().empty());
  EXPECT_TRUE(floats.as<int32_t>().empty());
  EXPECT_TRUE(floats.as<std::string>().empty());
  EXPECT_EQ(floats.as<double>()[2], 0) << "and what is read all the same is no memory of others";
  EXPECT_EQ(floats.as<float>()[3], 0);
  EXPECT_EQ(floats.as<std::string>().front(), "");
  floats.mutable_as<double>()[2] = 9;
  floats.mutable_as<float>()[3] = 9;
  EXPECT_EQ(std::vector<float>(floats.as<float>().begin(), floats.as<float>().end()), (std::vector<float>{1, 2, 3}));
  const Result<Elements<const int64_t>> wrong = floats.values<int64_t>();
  EXPECT_EQ(wrong.status().message(),
            "elements of type int64 were asked for, and the tensor has type float32 and shape [3]");
  EXPECT_EQ((*wrong)[1], 0);
  EXPECT_EQ((*floats.values<float>())[1], 2);
}

TEST(TensorTest, MovedFromIsNotValid) {
  Tensor from = Tensor::Vector<float>({1, 2, 3});
  const Tensor to = std::move(from);
  EXPECT_FALSE(from.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.as<float>()[1], 0);
  EXPECT_FALSE(from.scalar<float>().ok());
  EXPECT_EQ(to.as<float>()[1], 2);
}

TEST(TensorTest, EmptyTensors) {
  const Result<Tensor> empty = Tensor::Make(DType::kFloat, Shape::Of({0, 5}));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->as<float>().empty());
  EXPECT_EQ(empty->bytes(), 0u);
  EXPECT_TRUE(empty->Clone()->SameBits(*empty));
  EXPECT_TRUE(Tensor::Make(DType::kString, Shape::Of({0}))->as<std::string>().empty());
}

TEST(TensorTest, ObjectsAreConstructedAndDestroyed) {
  const std::string text(1000, 'x');
  Tensor copy;
  {
    Result<Tensor> strings = Tensor::Make(DType::kString, Shape::Of({3}));
    ASSERT_TRUE(strings.ok());
    EXPECT_EQ(strings->as<std::string>()[2], "");
    strings->mutable_as<std::string>()[1] = text;
    copy = *strings;
  }
  EXPECT_EQ(copy.as<std::string>()[1], text);
  Result<Tensor> handle = Tensor::Make(DType::kResource, Shape());
  ASSERT_TRUE(handle.ok());
  handle->mutable_as<ResourceHandle>()[0].name = text;
  const Result<Tensor> clone = handle->Clone();
  EXPECT_EQ(clone->scalar<ResourceHandle>()->name, text);
  EXPECT_TRUE(clone->SameBits(*handle));
}

TEST(TensorTest, CopiesShareUntilOneIsWritten) {
  Tensor original = Tensor::Vector<int64_t>({1, 2});
  const Tensor shared = original;
  EXPECT_EQ(shared.raw(), original.raw());
  EXPECT_NE(original.Clone()->raw(), original.raw());
  original.mutable_as<int64_t>()[0] = 9;
  EXPECT_EQ(original.as<int64_t>()[0], 9);
  EXPECT_EQ(original.as<int64_t>()[1], 2);
  EXPECT_EQ(shared.as<int64_t>()[0], 1);
  const std::byte* const own = original.raw();
  original.mutable_as<int64_t>()[1] = 8;
  EXPECT_EQ(original.raw(), own) << "nobody shares it any more";
}

TEST(TensorTest, AViewIsWrittenByItself) {
  const Result<std::shared_ptr<Buffer>> buffer = HostAllocator().Allocate(64);
  ASSERT_TRUE(buffer.ok());
  Result<Tensor> tail = Tensor::Over(DType::kInt32, Shape::Of({2}), *buffer, 16);
  ASSERT_TRUE(tail.ok());
  const Tensor same = *tail;
  tail->mutable_as<int32_t>()[1] = 5;
  EXPECT_EQ(tail->offset(), 0u);
  EXPECT_EQ(tail->buffer()->bytes(), 8u);
  EXPECT_EQ(same.buffer(), *buffer);
}

TEST(TensorTest, StringsAndHandlesAreWrittenByThemselves) {
  Tensor text = Tensor::String("one");
  const Tensor shared = text;
  text.mutable_as<std::string>()[0] = "two";
  EXPECT_EQ(shared.scalar<std::string>(), "one");
  EXPECT_EQ(text.scalar<std::string>(), "two");
}

TEST(TensorTest, Reshaped) {
  const Tensor vector = Tensor::Vector<int32_t>({1, 2, 3, 4, 5, 6});
  const Result<Tensor> matrix = vector.Reshaped(Shape::Of({2, 3}));
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->raw(), vector.raw());
  const Status status = vector.Reshaped(Shape::Of({4})).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "a tensor of shape [6] cannot take shape [4]: it has 6 elements, not 4");
}

TEST(TensorTest, OverABuffer) {
  const auto buffer = *HostAllocator().Allocate(64);
  const Result<Tensor> tail = Tensor::Over(DType::kInt32, Shape::Of({4}), buffer, 48);
  ASSERT_TRUE(tail.ok());
  EXPECT_EQ(tail->raw(), buffer->host() + 48);
  const struct {
    DType type;
    Shape shape;
    uint64_t offset;
  } kBad[] = {{DType::kInt32, Shape::Of({4}), 49}, {DType::kInt32, Shape::Of({17}), 0},
              {DType::kInt8, Shape(), 64},         {DType::kInt8, Shape(), std::numeric_limits<uint64_t>::max()},
              {DType::kString, Shape(), 0},        {DType::kInvalid, Shape(), 0}};
  for (const auto& c : kBad) {
    EXPECT_EQ(Tensor::Over(c.type, c.shape, buffer, c.offset).status().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(Tensor::Over(DType::kInt8, Shape(), nullptr).ok());
  EXPECT_FALSE(Tensor::Over(DType::kComplex128, Shape::Of({kHuge}), buffer).ok());
}

TEST(TensorTest, SameBits) {
  const Tensor a = Tensor::Vector<float>({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(a.SameBits(*a.Clone()));
  EXPECT_FALSE(a.SameBits(Tensor::Vector<float>({1, 2})));
  EXPECT_FALSE(Tensor::Scalar(0.0f).SameBits(Tensor::Scalar(-0.0f)));
  EXPECT_FALSE(Tensor::Scalar<int32_t>(0).SameBits(Tensor::Scalar(0.0f)));
  EXPECT_FALSE(a.SameBits(*a.Reshaped(Shape::Of({1, 2}))));
  EXPECT_TRUE(Tensor::Vector<std::string>({"a", ""}).SameBits(Tensor::Vector<std::string>({"a", ""})));
  EXPECT_FALSE(Tensor::String("a").SameBits(Tensor::String("b")));
}

Tensor Counting(std::initializer_list<int64_t> dims) {
  const Shape shape = Shape::Of(dims);
  std::vector<int32_t> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::Of<int32_t>(shape, values);
}

// The expected texts are what TensorFlow 2.17's Assert printed for the same values.
TEST(TensorTest, SummariesAreTensorFlows) {
  const struct {
    Tensor tensor;
    int64_t limit;
    const char* text;
  } kCases[] = {
      {Tensor::Scalar(1.0f / 3), 3, "[0.333333343]"},
      {Tensor::Scalar(1.0 / 3), 3, "[0.33333333333333331]"},
      {Tensor::Vector<double>({1.0 / 3, 1e-300, 123456789012}), 3, "[0.33333333333333331 1e-300 123456789012]"},
      {Tensor::Vector<float>({1e20f, 100000, 1234567, 1e-10f, 0.1f, NAN, INFINITY, -INFINITY, 16777216, 3.14159274f}),
       20, "[1e+20 100000 1234567 1e-10 0.1 nan inf -inf 16777216 3.14159274]"},
      {Tensor::Of<int32_t>(Shape::Of({3, 2}), {1, 2, 3, 4, 5, 6}), 3, "[[1 2][3...]...]"},
      {Counting({2, 3, 2}), 7, "[[[0 1][2 3][4 5]][[6...]]...]"},
      {Counting({2, 3, 2}), 6, "[[[0 1][2 3][4 5]]...]"},
      {Counting({2, 3, 2}), 1, "[[[0...]]...]"},
      {Counting({2, 3, 2}), -1, "[[[0 1][2 3][4 5]][[6 7][8 9][10 11]]]"},
      {Counting({5}), 0, "[...]"},
      {Counting({5}), 3, "[0 1 2...]"},
      {Counting({3}), 3, "[0 1 2]"},
      {Counting({0, 3}), 3, "[]"},
      {Tensor::Vector<bool>({true, false}), 3, "[1 0]"},
      {Tensor::Vector<std::string>({"a\n\"b'", std::string("\0\xc3\xbf", 3)}), 3, "[a\\n\\\"b\\' \\000\xc3\xbf]"},
      {Tensor::Scalar<uint64_t>(uint64_t{1} << 63), 3, "[9223372036854775808]"},
      {Tensor::Scalar<int8_t>(-3), 3, "[-3]"},
      {*ScalarFrom(DType::kHalf, 0.1), 3, "[0.0999755859]"},
      {*ScalarFrom(DType::kHalf, 6e-8), 3, "[5.96046448e-08]"},
      {*ScalarFrom(DType::kBfloat16, 1.0 / 3), 3, "[0.333984375]"},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.tensor.SummarizeValues(c.limit), c.text);
  EXPECT_EQ(ScalarFrom(DType::kComplex64, 1.5)->SummarizeValues(), "[(1.5,0)]");
}

}  // namespace
}  // namespace weir
