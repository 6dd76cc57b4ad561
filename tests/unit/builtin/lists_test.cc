// Lists of tensors as values. Texts and values are those of TensorFlow 2.17.1.
#include "core/builtin/tensor_list.h"
#include "core/tensor/variant.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Lists : public Calls {
 protected:
  using Outputs = Result<std::vector<Tensor>>;
  static op::AttrList Type(DType type = DType::kFloat) { return {{"element_dtype", type}}; }
  static op::AttrList Shaped() { return {{"element_dtype", DType::kFloat}, {"shape_type", DType::kInt32}}; }
  static Tensor Dims(const std::vector<int32_t>& dims) { return Tensor::Vector(dims); }

  Tensor Empty(const std::vector<int32_t>& shape, int32_t max = -1) {
    return One("EmptyTensorList", {Dims(shape), Int(max)}, Shaped());
  }
  Tensor Reserve(const std::vector<int32_t>& shape, int32_t count) {
    return One("TensorListReserve", {Dims(shape), Int(count)}, Shaped());
  }
  Tensor From(const Tensor& tensor, const std::vector<int32_t>& shape) {
    return One("TensorListFromTensor", {tensor, Dims(shape)}, Shaped());
  }
  Outputs Push(const Tensor& list, const Tensor& value) { return Call("TensorListPushBack", {list, value}, Type()); }
  Outputs Pop(const Tensor& list, const std::vector<int32_t>& shape) {
    return Call("TensorListPopBack", {list, Dims(shape)}, Type());
  }
  Outputs Get(const Tensor& list, int32_t index, const std::vector<int32_t>& shape) {
    return Call("TensorListGetItem", {list, Int(index), Dims(shape)}, Type());
  }
  Outputs Set(const Tensor& list, int32_t index, const Tensor& value) {
    return Call("TensorListSetItem", {list, Int(index), value}, Type());
  }
  Outputs Stack(const Tensor& list, const std::vector<int32_t>& shape, int64_t count = -1) {
    op::AttrList attrs = Type();
    attrs.emplace_back("num_elements", count);
    return Call("TensorListStack", {list, Dims(shape)}, attrs);
  }
  int32_t Length(const Tensor& list) { return One("TensorListLength", {list}).as<int32_t>()[0]; }
  Tensor Made(const Outputs& got) {
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? (*got)[0] : Tensor();
  }
  std::vector<float> First(const Outputs& got) {
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? Values((*got)[0]) : std::vector<float>();
  }
};

TEST_F(Lists, ChangesLeaveOlderListsAsTheyWere) {
  const Tensor none = Empty({});
  const Tensor a = Made(Push(none, Tensor::Scalar(1.f)));
  const Tensor ab = Made(Push(a, Tensor::Scalar(2.f)));
  const Tensor ac = Made(Push(a, Tensor::Scalar(3.f)));
  EXPECT_EQ(Length(none), 0);
  EXPECT_EQ(First(Stack(a, {})), (std::vector<float>{1}));
  EXPECT_EQ(First(Stack(ab, {})), (std::vector<float>{1, 2}));
  EXPECT_EQ(First(Stack(ac, {})), (std::vector<float>{1, 3}));
  const Tensor changed = Made(Set(ab, 0, Tensor::Scalar(9.f)));
  EXPECT_EQ(First(Stack(changed, {})), (std::vector<float>{9, 2}));
  EXPECT_EQ(First(Stack(ab, {})), (std::vector<float>{1, 2}));
  const auto popped = Pop(ab, {});
  ASSERT_TRUE(popped.ok());
  EXPECT_EQ(Values((*popped)[1]), (std::vector<float>{2}));
  const Tensor grown = One("TensorListResize", {(*popped)[0], Int(2)});
  EXPECT_EQ(First(Stack(grown, {})), (std::vector<float>{1, 0})) << "what was popped does not come back";
}

TEST_F(Lists, ElementsAreShared) {
  const Tensor value = Floats({1, 2});
  const Tensor list = Made(Push(Empty({2}), value));
  EXPECT_EQ((*Get(list, 0, {2}))[0].buffer(), value.buffer());
}

/// Random programs against vectors, over a tree of lists.
TEST_F(Lists, RandomProgramsAgreeWithVectors) {
  struct Both {
    std::shared_ptr<const TensorList> list;
    std::vector<float> wanted;  // -1: not set
  };
  uint64_t state = 7;
  const auto random = [&](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  std::vector<Both> all = {{TensorList::Make({DType::kFloat, Shape(), -1}), {}}};
  for (int step = 0; step < 3000; ++step) {
    Both next = all[random(3) == 0 ? random(all.size()) : all.size() - 1];
    const auto value = static_cast<float>(step);
    const size_t length = next.wanted.size();
    switch (random(5)) {
      case 0:
      case 1:
        next.list = next.list->With(static_cast<int64_t>(length), Tensor::Scalar(value));
        next.wanted.push_back(value);
        break;
      case 2:
        if (length == 0) continue;
        next.list = next.list->WithoutLast();
        next.wanted.pop_back();
        break;
      case 3: {
        if (length == 0) continue;
        const size_t at = random(length);
        next.list = next.list->With(static_cast<int64_t>(at), Tensor::Scalar(value));
        next.wanted[at] = value;
        break;
      }
      default: {
        const size_t to = random(12);
        next.list = next.list->Resized(static_cast<int64_t>(to));
        next.wanted.resize(to, -1);
      }
    }
    all.push_back(std::move(next));
    if (all.size() > 50) all.erase(all.begin() + static_cast<std::ptrdiff_t>(random(40)));
    for (const Both& both : all) {
      ASSERT_EQ(both.list->length(), static_cast<int64_t>(both.wanted.size()));
      for (size_t i = 0; i < both.wanted.size(); ++i) {
        const Tensor element = both.list->At(static_cast<int64_t>(i));
        ASSERT_EQ(element.valid() ? element.as<float>()[0] : -1, both.wanted[i]) << "step " << step;
      }
    }
  }
}

TEST_F(Lists, BadAccessIsRefused) {
  const Tensor two = Reserve({}, 2);
  Refused(Pop(Empty({}), {}), Code::kInvalidArgument, "Trying to pop from an empty list.");
  Refused(Get(two, 2, {}), Code::kInvalidArgument, "Trying to access element 2 in a list with 2 elements.");
  Refused(Get(two, -1, {}), Code::kInvalidArgument, "Trying to access element -1 in a list with 2 elements.");
  Refused(Set(two, 2, Tensor::Scalar(1.f)), Code::kInvalidArgument,
          "Trying to modify element 2 in a list with 2 elements.");
  Refused(Push(Empty({}, 0), Tensor::Scalar(1.f)), Code::kInvalidArgument,
          "Tried to push item into a full list list size: 0 max_num_elements: 0");
  Refused(Push(Empty({2}), Tensor::Scalar(1.f)), Code::kInvalidArgument,
          "Tried to append a tensor with incompatible shape to a list. Op element shape: [] list shape: [2]");
  Refused(Set(Reserve({2}, 2), 1, Tensor::Scalar(1.f)), Code::kInvalidArgument,
          "Tried to set a tensor with incompatible shape at a list index. Item element shape: [] list shape: [2]");
  Refused(Call("TensorListSetItem", {two, Int(1), Int(1)}, Type(DType::kInt32)), Code::kInvalidArgument,
          "Invalid data types; op elements int32 but list elements float");
  Refused(Call("TensorListLength", {*Tensor::Make(DType::kVariant, Shape{2})}), Code::kInvalidArgument,
          "Input list must be a scalar saw: [2]");
  Refused(Call("TensorListLength", {Tensor::Scalar(Variant())}), Code::kInvalidArgument, "Input handle is not a list.");
  Refused(Call("TensorListReserve", {Dims({}), Int(-1)}, Shaped()), Code::kInvalidArgument,
          "The num_elements to reserve must be a non negative number, but got -1");
}

TEST_F(Lists, UnsetElementsAreZerosOfAKnownShape) {
  EXPECT_EQ(First(Get(Reserve({2}, 2), 1, {2})), (std::vector<float>{0, 0}));
  EXPECT_EQ(First(Get(Reserve({-1}, 2), 1, {3})), (std::vector<float>{0, 0, 0}));
  const Tensor one = Made(Set(Reserve({-1}, 2), 0, Floats({1, 2})));
  EXPECT_EQ(First(Get(one, 1, {-1})), (std::vector<float>{0, 0}));
  EXPECT_EQ(First(Stack(one, {-1})), (std::vector<float>{1, 2, 0, 0}));
  Refused(Get(Reserve({-1}, 2), 1, {-1}), Code::kInvalidArgument,
          "Trying to read an uninitialized tensor but element_shape is not fully defined: [?] and no list element is "
          "set.");
  Refused(Get(Reserve({2}, 2), 1, {3}), Code::kInvalidArgument,
          "PartialTensorShape: Incompatible shapes during merge: [3] vs. [2]");
  Refused(Stack(Reserve({-1}, 2), {-1}), Code::kInvalidArgument,
          "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: "
          "[?]");
  Refused(Stack(Empty({-1}), {-1}), Code::kInvalidArgument,
          "Tried to stack elements of an empty list with non-fully-defined element_shape: [?]");
  Refused(Stack(Reserve({}, 2), {}, 3), Code::kInvalidArgument,
          "Operation expected a list with 3 elements but got a list with 2 elements.");
}

TEST_F(Lists, ScatterGatherSplitAndConcat) {
  const Tensor scattered =
      One("TensorListScatterV2", {Floats({1, 2}), Tensor::Vector<int32_t>({3, 0}), Dims({}), Int(-1)}, Shaped());
  EXPECT_EQ(First(Stack(scattered, {})), (std::vector<float>{2, 0, 0, 1}));
  EXPECT_EQ(First(Call("TensorListGather", {scattered, Tensor::Vector<int32_t>({3, 3, 1}), Dims({})}, Type())),
            (std::vector<float>{1, 1, 0}));
  Refused(Call("TensorListGather", {scattered, Tensor::Vector<int32_t>({4}), Dims({})}, Type()), Code::kInvalidArgument,
          "Index 4 out o range; list only has 4 elements.");
  Refused(Call("TensorListScatterV2", {Floats({1, 2}), Tensor::Vector<int32_t>({3, 0}), Dims({}), Int(2)}, Shaped()),
          Code::kInvalidArgument, "TensorListScatter: Trying to scatter at index 3 in list with size 2");
  const Tensor cut = One("TensorListSplit", {Floats({1, 2, 3}), Dims({-1}), Tensor::Vector<int64_t>({1, 2})}, Shaped());
  const auto whole = Call("TensorListConcatV2", {cut, Dims({-1}), Tensor::Vector<int64_t>({})}, Shaped());
  EXPECT_EQ(First(whole), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE((*whole)[1].SameBits(Tensor::Vector<int64_t>({1, 2})));
  Refused(Call("TensorListSplit", {Floats({1, 2, 3}), Dims({-1}), Tensor::Vector<int64_t>({1, 3})}, Shaped()),
          Code::kInvalidArgument, "Attempting to slice [1, 4] from tensor with length 3");
  Refused(Call("TensorListSplit", {Floats({1, 2, 3}), Dims({-1}), Tensor::Vector<int64_t>({1, 1})}, Shaped()),
          Code::kInvalidArgument, "Unused values in tensor. Length of tensor: 3 Values used: 2");
  Refused(Call("TensorListConcatV2", {Reserve({-1, 2}, 2), Dims({-1, 2}), Tensor::Vector<int64_t>({})}, Shaped()),
          Code::kInvalidArgument,
          "List contains uninitialized tensor at index 0 but leading_dims has only 0 elements.");
  const Tensor joined = One("TensorListConcatLists", {From(Floats({1}), {}), From(Floats({2, 3}), {})}, Type());
  EXPECT_EQ(First(Stack(joined, {})), (std::vector<float>{1, 2, 3}));
}

TEST_F(Lists, OneElementForEachOfAVectorOfLists) {
  const Tensor a = From(Floats({1}), {}), b = Empty({});
  Tensor both = *Tensor::Make(DType::kVariant, Shape::Of({2}));
  both.mutable_as<Variant>()[0] = a.as<Variant>()[0];
  both.mutable_as<Variant>()[1] = b.as<Variant>()[0];
  const Tensor longer = Made(Call("TensorListPushBackBatch", {both, Floats({7, 8})}, Type()));
  ASSERT_EQ(longer.shape(), Shape::Of({2}));
  Tensor first = *Tensor::Make(DType::kVariant, Shape());
  first.mutable_as<Variant>()[0] = longer.as<Variant>()[0];
  EXPECT_EQ(First(Stack(first, {})), (std::vector<float>{1, 7}));
  Refused(Call("TensorListPushBackBatch", {both, Floats({7})}, Type()), Code::kInvalidArgument,
          "Expected tensor.shape[0] == input_handles.size, but saw 1 vs. 2");
  Refused(Call("TensorListPushBackBatch", {a, Floats({7})}, Type()), Code::kInvalidArgument,
          "Expected input_handles to be a vector, but saw shape: []");
  const Result<Tensor> square = both.Reshaped(Shape::Of({1, 2}));
  ASSERT_TRUE(square.ok());
  Refused(Call("TensorListPushBackBatch", {*square, Floats({7, 8})}, Type()), Code::kInvalidArgument,
          "Expected input_handles to be a vector, but saw shape: [1,2]");
}

TEST_F(Lists, AddUpAndHaveZeros) {
  const Tensor a = From(Floats({1, 5}), {}), b = From(Floats({2, 3}), {});
  EXPECT_EQ(First(Stack(One("AddN", {a, b, Reserve({}, 2)}, {{"N", int64_t{3}}, {"T", DType::kVariant}}), {})),
            (std::vector<float>{3, 8}));
  EXPECT_EQ(First(Stack(One("ZerosLike", {a}, {{"T", DType::kVariant}}), {})), (std::vector<float>{0, 0}));
  Refused(Call("AddN", {a, From(Floats({1}), {})}, {{"N", int64_t{2}}, {"T", DType::kVariant}}), Code::kInvalidArgument,
          "Trying to add two lists of tensors with different lengths. One is 2 and the other is 1");
}

TEST_F(Lists, OptionalsHoldTuplesOrNothing) {
  const Tensor some = One("OptionalFromValue", {Floats({1, 2}), Int(5)},
                          {{"Toutput_types", std::vector<DType>{DType::kFloat, DType::kInt32}}});
  const Tensor none = One("OptionalNone", {});
  const auto get = [&](const Tensor& optional, const std::vector<DType>& types, const PartialShape& first) {
    std::vector<PartialShape> shapes(types.size());
    shapes[0] = first;
    return Call("OptionalGetValue", {optional}, {{"output_types", types}, {"output_shapes", shapes}});
  };
  EXPECT_TRUE(One("OptionalHasValue", {some}).as<bool>()[0]);
  EXPECT_FALSE(One("OptionalHasValue", {none}).as<bool>()[0]);
  const Outputs got = get(some, {DType::kFloat, DType::kInt32}, PartialShape{2});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(Values((*got)[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ((*got)[1].as<int32_t>()[0], 5);
  Refused(get(none, {DType::kFloat}, {}), Code::kInvalidArgument, "The given optional does not have a value.");
  Refused(get(some, {DType::kFloat}, {}), Code::kInvalidArgument, "The given optional has 2 components, expected 1.");
  Refused(get(some, {DType::kInt32, DType::kInt32}, {}), Code::kInvalidArgument,
          "The given optional does not match the expected type for component 0. Expected: int32. Actual: float.");
  Refused(get(some, {DType::kFloat, DType::kInt32}, PartialShape{3}), Code::kInvalidArgument,
          "The given optional does not match the expected shape for component 0. Expected: [3]. Actual: [2].");
  Refused(Call("OptionalHasValue", {Empty({})}), Code::kInvalidArgument,
          "Input to OptionalHasValue must be a scalar tensor containing an OptionalVariant object.");
  const Outputs zeros = get(One("ZerosLike", {some}, {{"T", DType::kVariant}}), {DType::kFloat, DType::kInt32}, {});
  ASSERT_TRUE(zeros.ok()) << zeros.status().ToString();
  EXPECT_EQ(Values((*zeros)[0]), (std::vector<float>{0, 0}));
  const Outputs sum =
      get(One("AddN", {some, some}, {{"T", DType::kVariant}, {"N", int64_t{2}}}), {DType::kFloat, DType::kInt32}, {});
  ASSERT_TRUE(sum.ok()) << sum.status().ToString();
  EXPECT_EQ(Values((*sum)[0]), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace weir::builtin
