// TensorProtos that are read and written without message objects.
#include "core/tensor/tensor_content.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/tensor/tensor_proto.h"

namespace weir {
namespace {

std::vector<Tensor> Samples() {
  std::vector<Tensor> samples = {Tensor::Scalar<float>(2.5f), Tensor::Vector<int64_t>({1, -2, 3}),
                                 Tensor::Vector<float>({}),   Tensor::Vector<bool>({true, false}),
                                 Tensor::Scalar<std::string>("text"), Tensor::Vector<std::string>({"", "a", "bc"})};
  Result<Tensor> large = Tensor::Make(DType::kDouble, Shape{3, 1, 700});
  EXPECT_TRUE(large.ok());
  for (int64_t i = 0; i < large->elements(); ++i) large->mutable_as<double>()[i] = static_cast<double>(i) / 7;
  samples.push_back(std::move(*large));
  return samples;
}

TEST(TensorContent, PiecesAreTheSerializedMessage) {
  for (const Tensor& sample : Samples()) {
    const Result<std::string> whole = SerializeTensorProto(sample);
    const Result<TensorPieces> pieces = PiecesOf(sample);
    ASSERT_TRUE(whole.ok() && pieces.ok());
    EXPECT_EQ(pieces->head + std::string(pieces->content), *whole) << sample.shape().ToString();
    EXPECT_EQ(pieces->size(), whole->size());
    const Result<Tensor> back = ParseTensorProto(*whole);
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE(back->SameBits(sample));
  }
  EXPECT_FALSE(PiecesOf(Tensor()).ok());
}

TEST(TensorContent, MessagesThatAreCutShortAreRefusedOrLeftToTheParser) {
  const Result<std::string> whole = SerializeTensorProto(Tensor::Vector<float>({1, 2, 3}));
  ASSERT_TRUE(whole.ok());
  for (size_t size = 0; size < whole->size(); ++size) {
    const Result<Tensor> cut = TensorOfContent(std::string_view(*whole).substr(0, size));
    ASSERT_TRUE(cut.ok()) << size;
    EXPECT_FALSE(cut->valid()) << size;
  }
  EXPECT_TRUE(TensorOfContent(*whole)->valid());
}

}  // namespace
}  // namespace weir
