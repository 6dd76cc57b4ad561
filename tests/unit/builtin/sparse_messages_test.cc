// Sparse tensors as messages. The bytes are TensorFlow 2.17.1's.
#include <fmt/format.h>

#include "core/tensor/variant.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class SparseMessages : public Calls {
 protected:
  static Tensor Matrix(const std::vector<int64_t>& numbers, int64_t rows, int64_t columns) {
    return *Tensor::Vector(numbers).Reshaped(*Shape::Make({rows, columns}));
  }
  static Tensor Longs(const std::vector<int64_t>& numbers) { return Tensor::Vector(numbers); }
  static std::string Hex(const std::string& bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  }
};

TEST_F(SparseMessages, AreTensorFlowsBytes) {
  const Tensor messages =
      One("SerializeSparse", {Matrix({0, 1, 1, 0}, 2, 2), Floats({1, 2}), Longs({2, 2})}, {{"T", DType::kFloat}});
  ASSERT_EQ(messages.shape(), Shape::Of({3}));
  const auto bytes = messages.as<std::string>();
  EXPECT_EQ(Hex(bytes[0]),
            "08091208120208021202080222200000000000000000010000000000000001000000000000000000000000000000");
  EXPECT_EQ(Hex(bytes[1]), "0801120412020802" "22080000803f00000040");
  EXPECT_EQ(Hex(bytes[2]), "0809120412020802" "221002000000000000000200000000000000");
}

TEST_F(SparseMessages, RowsComeBack) {
  for (const DType type : {DType::kString, DType::kVariant}) {
    const Tensor many = One("SerializeManySparse", {Matrix({0, 1, 2, 0}, 2, 2), Floats({5, 6}), Longs({3, 2})},
                            {{"T", DType::kFloat}, {"out_type", type}});
    ASSERT_EQ(many.shape(), Shape::Of({3, 3}));
    const Result<std::vector<Tensor>> back =
        Call("DeserializeSparse", {many}, {{"dtype", DType::kFloat}, {"Tserialized", type}});
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE((*back)[0].SameBits(Matrix({0, 1, 2, 0}, 2, 2)));
    EXPECT_EQ(Values((*back)[1]), (std::vector<float>{5, 6}));
    EXPECT_TRUE((*back)[2].SameBits(Longs({3, 2})));
  }
}

TEST_F(SparseMessages, TextsComeBackWithTheAxesOfTheMessages) {
  const Tensor one = One("SerializeSparse",
                         {Matrix({0, 1, 1, 0}, 2, 2), Tensor::Vector<std::string>({"a", "bc"}), Longs({2, 2})},
                         {{"T", DType::kString}});
  const Result<std::vector<Tensor>> back =
      Call("DeserializeManySparse", {*one.Reshaped(Shape::Of({1, 3}))}, {{"dtype", DType::kString}});
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE((*back)[0].SameBits(Matrix({0, 0, 1, 0, 1, 0}, 2, 3)));
  EXPECT_EQ((*back)[1].as<std::string>()[1], "bc");
  EXPECT_TRUE((*back)[2].SameBits(Longs({1, 2, 2})));
}

TEST_F(SparseMessages, AMapKeepsThemByNumberUntilTheyAreTaken) {
  const op::AttrList own = {{"T", DType::kFloat}}, take = {{"dtype", DType::kFloat}, {"shared_name", "node"}};
  const Tensor one = One("AddSparseToTensorsMap", {Matrix({0, 1, 1, 0}, 2, 2), Floats({1, 2}), Longs({2, 2})}, own);
  ASSERT_EQ(one.shape(), Shape());
  const Tensor many =
      One("AddManySparseToTensorsMap", {Matrix({0, 1, 2, 2}, 2, 2), Floats({5, 6}), Longs({3, 3})}, own);
  ASSERT_EQ(many.shape(), Shape::Of({3}));
  // Of vectors: the first and the last row.
  const auto rows = many.as<int64_t>();
  const Result<std::vector<Tensor>> back =
      Call("TakeManySparseFromTensorsMap", {Longs({rows[2], rows[1], rows[0]})}, take);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE((*back)[0].SameBits(Matrix({0, 2, 2, 1}, 2, 2)));
  EXPECT_EQ(Values((*back)[1]), (std::vector<float>{6, 5}));
  EXPECT_TRUE((*back)[2].SameBits(Longs({3, 3})));
  Refused(Call("TakeManySparseFromTensorsMap", {Longs({rows[0]})}, take), Code::kInvalidArgument,
          "Unable to find SparseTensor: 1 in map: node");
  Refused(Call("TakeManySparseFromTensorsMap", {one}, take), Code::kInvalidArgument, "should be a vector");
  Refused(Call("TakeManySparseFromTensorsMap", {Longs({})}, take), Code::kInvalidArgument,
          "Must have at least 1 serialized SparseTensor");
  Refused(Call("TakeManySparseFromTensorsMap", {Longs({one.as<int64_t>()[0]})},
               {{"dtype", DType::kInt32}, {"shared_name", "node"}}),
          Code::kInvalidArgument, "Requested SparseTensor of type int32 but SparseTensor[0].values.dtype() == float");
  Refused(Call("AddSparseToTensorsMap", {Matrix({0, 1}, 1, 2), Floats({1, 2}), Longs({2, 2})}, own),
          Code::kInvalidArgument, "Expected row counts of SparseTensor[0].indices");
  Refused(Call("AddManySparseToTensorsMap",
               {*Longs({}).Reshaped(Shape::Of({0, 2})), Floats({}), Longs({int64_t{1} << 40, 2})}, own),
          Code::kResourceExhausted, "the shape says 1099511627776 sparse tensors");
}

TEST_F(SparseMessages, BadPartsAreRefused) {
  const op::AttrList attrs = {{"T", DType::kFloat}};
  const auto many = [&](Tensor indices, Tensor values, Tensor shape) {
    return Call("SerializeManySparse", {std::move(indices), std::move(values), std::move(shape)}, attrs);
  };
  Refused(many(Matrix({0, 1, 5, 0}, 2, 2), Floats({1, 2}), Longs({2, 2})), Code::kInvalidArgument,
          "indices[1] = [5,0] is out of bounds: need 0 <= index < [2,2]");
  Refused(many(Matrix({1, 1, 0, 0}, 2, 2), Floats({1, 2}), Longs({2, 2})), Code::kInvalidArgument,
          "indices[1] = [0,0] is out of order. Many sparse ops require sorted indices.");
  Refused(many(Matrix({0, 1}, 2, 1), Floats({1, 2}), Longs({2})), Code::kInvalidArgument,
          "Rank of input SparseTensor should be > 1, but saw rank: 1");
  Refused(many(Matrix({0, 1, 1, 0}, 2, 2), Floats({1, 2}), Longs({2, 2, 2})), Code::kInvalidArgument,
          "Order length must be SparseTensor rank.");
  Refused(many(Matrix({0, 1, 1, 0}, 2, 2), Floats({1, 2, 3}), Longs({2, 2})), Code::kInvalidArgument,
          "Number of elements in indices (2) and values (3) do not match");
  Refused(Call("SerializeSparse", {Longs({0, 1}), Floats({1, 2}), Longs({2, 2})}, attrs), Code::kInvalidArgument,
          "Input indices should be a matrix but received shape [2]");
}

TEST_F(SparseMessages, BadMessagesAreRefused) {
  const auto read = [&](Tensor messages, DType dtype) {
    return Call("DeserializeSparse", {std::move(messages)}, {{"dtype", dtype}});
  };
  const auto texts = [](const std::vector<std::string>& list) { return Tensor::Vector(list); };
  Refused(read(Tensor::String("a"), DType::kFloat), Code::kInvalidArgument,
          "Serialized sparse should have non-zero rank []");
  Refused(read(texts({"a", "b"}), DType::kFloat), Code::kInvalidArgument,
          "Serialized sparse should have 3 as the last dimension [2]");
  Refused(read(*texts({}).Reshaped(Shape::Of({0, 3})), DType::kFloat), Code::kInvalidArgument,
          "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension [0,3]");
  Refused(read(texts({"a", "b", "c"}), DType::kFloat), Code::kInvalidArgument, "Could not parse serialized proto");
  const Tensor good =
      One("SerializeSparse", {Matrix({0, 1, 1, 0}, 2, 2), Floats({1, 2}), Longs({2, 2})}, {{"T", DType::kFloat}});
  Refused(read(good, DType::kInt32), Code::kInvalidArgument,
          "Requested SparseTensor of type int32 but SparseTensor[0].values.dtype() == float");
  const auto parts = good.as<std::string>();
  Refused(read(texts({parts[1], parts[1], parts[2]}), DType::kFloat), Code::kInvalidArgument,
          "Expected SparseTensor[0].indices to be an int64 matrix but got float [2]");
  Refused(read(*Tensor::Make(DType::kVariant, Shape::Of({3})), DType::kFloat), Code::kInvalidArgument,
          "Could not get a tensor from variant 0 of the serialized sparse");
}

}  // namespace
}  // namespace weir::builtin
