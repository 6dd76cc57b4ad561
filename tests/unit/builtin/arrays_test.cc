// Stacks and arrays of tensors. Texts and values are those of TensorFlow 2.17.1.
#include "core/tensor/resource.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Stacks : public Calls {
 protected:
  Tensor Stack(int32_t max_size = -1) {
    return One("StackV2", {Int(max_size)}, {{"elem_type", DType::kFloat}, {"stack_name", std::string("s")}});
  }
  const op::AttrList kElement = {{"elem_type", DType::kFloat}};
  const op::AttrList kType = {{"T", DType::kFloat}};
};

TEST_F(Stacks, GiveBackTheLastFirstWithoutACopy) {
  const Tensor stack = Stack();
  const Tensor a = Floats({1}), b = Floats({2, 3});
  EXPECT_EQ(One("StackPushV2", {stack, a}, kType).buffer(), a.buffer());
  One("StackPushV2", {stack, b}, kType);
  EXPECT_EQ(stack.as<ResourceHandle>()[0].resource->MemoryBytes(), 12u);
  EXPECT_EQ(One("StackPopV2", {stack}, kElement).buffer(), b.buffer());
  EXPECT_EQ(One("StackPopV2", {stack}, kElement).buffer(), a.buffer());
  Refused(Call("StackPopV2", {stack}, kElement), Code::kInvalidArgument, "] is empty when calling Pop().");
}

TEST_F(Stacks, RefuseWrongTypesAndPushesBeyondTheLimit) {
  Refused(Call("StackV2", {Tensor::Vector<int32_t>({1, 2})}, kElement), Code::kInvalidArgument,
          "Stack size must be a scalar, but had shape: [2]");
  const Tensor stack = Stack(1);
  One("StackPushV2", {stack, Floats({1})}, kType);
  Refused(Call("StackPushV2", {stack, Floats({1})}, kType), Code::kInvalidArgument, "] overflowed its max_size (1)");
  Refused(Call("StackPushV2", {Stack(), Int(1)}, {{"T", DType::kInt32}}), Code::kInvalidArgument,
          "Must have type float but got int32");
  Refused(Call("StackPopV2", {stack}, {{"elem_type", DType::kInt32}}), Code::kInvalidArgument,
          "Must have type float but got int32");
  ASSERT_TRUE(Call("StackCloseV2", {stack}).ok());
  Refused(Call("StackPopV2", {stack}, kElement), Code::kInvalidArgument, "] has already been closed.");
}

TEST_F(Stacks, EndWithTheirStep) {
  const Tensor stack = Stack();
  One("StackPushV2", {stack, Floats({1, 2})}, kType);
  step_.Clear();
  EXPECT_EQ(stack.as<ResourceHandle>()[0].resource->MemoryBytes(), 0u);
  Refused(Call("StackPopV2", {stack}, kElement), Code::kNotFound, "/N10tensorflow5StackE does not exist.");
}

TEST_F(Stacks, HaveReferencesOfTwoStringsInOldGraphs) {
  const op::AttrList attrs = {{"elem_type", DType::kFloat}, {"stack_name", std::string("s")}};
  const Tensor stack = One("Stack", {}, attrs), other = One("Stack", {}, attrs);
  ASSERT_EQ(stack.dtype(), DType::kString);
  ASSERT_EQ(stack.shape(), Shape::Of({2}));
  EXPECT_FALSE(stack.SameBits(other)) << "each execution makes a stack";
  const Tensor a = Floats({1}), b = Floats({2, 3});
  EXPECT_EQ(One("StackPush", {stack, a}, kType).buffer(), a.buffer());
  One("StackPush", {stack, b}, kType);
  One("StackPush", {other, Floats({4})}, kType);
  EXPECT_EQ(One("StackPop", {stack}, kElement).buffer(), b.buffer());
  EXPECT_EQ(One("StackPop", {stack}, kElement).buffer(), a.buffer());
  Refused(Call("StackPop", {stack}, kElement), Code::kInvalidArgument, "] is empty when calling Pop().");
  ASSERT_TRUE(Call("StackClose", {other}).ok());
  Refused(Call("StackPop", {other}, kElement), Code::kInvalidArgument, "] has already been closed.");
  step_.Clear();
  Refused(Call("StackPop", {stack}, kElement), Code::kNotFound, "/N10tensorflow5StackE does not exist.");
  Refused(Call("StackPop", {Tensor::Vector<std::string>({"a"})}, kElement), Code::kInvalidArgument,
          "input 0 must be a reference of 2 strings");
}

class Arrays : public Calls {
 protected:
  struct Array {
    Tensor handle;
    Tensor flow;
  };
  Array Make(int32_t size, op::AttrList more = {}) {
    more.emplace_back("dtype", DType::kFloat);
    more.emplace_back("tensor_array_name", std::string("ta"));
    const Result<std::vector<Tensor>> made = Call("TensorArrayV3", {Int(size)}, more);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? Array{(*made)[0], (*made)[1]} : Array{};
  }
  Array Gradient(const Array& of, const std::string& source = "gradients") {
    const auto made = Call("TensorArrayGradV3", {of.handle, of.flow}, {{"source", source}});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? Array{(*made)[0], (*made)[1]} : Array{};
  }
  Result<std::vector<Tensor>> Write(const Array& array, int32_t index, const Tensor& value) {
    return Call("TensorArrayWriteV3", {array.handle, Int(index), value, array.flow}, {{"T", value.dtype()}});
  }
  Result<std::vector<Tensor>> Read(const Array& array, int32_t index, DType dtype = DType::kFloat) {
    return Call("TensorArrayReadV3", {array.handle, Int(index), array.flow}, {{"dtype", dtype}});
  }
  Result<std::vector<Tensor>> Gather(const Array& array, const std::vector<int32_t>& indices, op::AttrList more = {}) {
    more.emplace_back("dtype", DType::kFloat);
    return Call("TensorArrayGatherV3", {array.handle, Tensor::Vector(indices), array.flow}, more);
  }
  Result<std::vector<Tensor>> Scatter(const Array& array, const std::vector<int32_t>& indices, const Tensor& value) {
    return Call("TensorArrayScatterV3", {array.handle, Tensor::Vector(indices), value, array.flow},
                {{"T", value.dtype()}});
  }
  Result<std::vector<Tensor>> Split(const Array& array, const Tensor& value, const std::vector<int64_t>& lengths) {
    return Call("TensorArraySplitV3", {array.handle, value, Tensor::Vector(lengths), array.flow},
                {{"T", value.dtype()}});
  }
  Result<std::vector<Tensor>> Concat(const Array& array, op::AttrList more = {}) {
    more.emplace_back("dtype", DType::kFloat);
    return Call("TensorArrayConcatV3", {array.handle, array.flow}, more);
  }
  void Fine(const Result<std::vector<Tensor>>& got) { EXPECT_TRUE(got.ok()) << got.status().ToString(); }
  std::vector<float> First(const Result<std::vector<Tensor>>& got) {
    Fine(got);
    return got.ok() ? Values((*got)[0]) : std::vector<float>();
  }
  int32_t Size(const Array& array) { return One("TensorArraySizeV3", {array.handle, array.flow}).as<int32_t>()[0]; }
};

TEST_F(Arrays, F178_F394_ElementsAreWrittenOnceAndReadOnce) {
  const Array array = Make(3);
  const Tensor value = Floats({1, 2});
  Fine(Write(array, 0, value));
  Refused(Write(array, 0, value), Code::kInvalidArgument,
          ": Could not write to TensorArray index 0 because it has already been written to.");
  EXPECT_EQ((*Read(array, 0))[0].buffer(), value.buffer()) << "shared, not copied";
  Refused(Read(array, 0), Code::kInvalidArgument,
          ": Could not read index 0 twice because it was cleared after a previous read (perhaps try setting "
          "clear_after_read = false?).");
  Refused(Write(array, 0, value), Code::kInvalidArgument,
          ": Could not write to TensorArray index 0 because it has already been read.");
  const Array kept = Make(1, {{"clear_after_read", false}});
  Fine(Write(kept, 0, value));
  EXPECT_EQ(First(Read(kept, 0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(First(Read(kept, 0)), (std::vector<float>{1, 2}));
}

TEST_F(Arrays, F394_IndicesOutsideAreRefused) {
  const Array array = Make(3);
  Refused(Read(array, 3), Code::kInvalidArgument, "Tried to read from index 3 but array size is: 3");
  Refused(Read(array, -1), Code::kInvalidArgument, "Tried to read from index -1 but array size is: 3");
  Refused(Write(array, 3, Floats({1})), Code::kInvalidArgument,
          ": Tried to write to index 3 but array is not resizeable and size is: 3");
  Refused(Write(Make(0, {{"dynamic_size", true}}), -1, Floats({1})), Code::kInvalidArgument,
          ": Tried to write to index -1 but array is not resizeable and size is: 0");
  Refused(Call("TensorArrayV3", {Int(-1)}, {{"dtype", DType::kFloat}}), Code::kInvalidArgument, "Size should be >= 0.");
}

TEST_F(Arrays, F394_DynamicOnesGrow) {
  const Array array = Make(0, {{"dynamic_size", true}});
  Fine(Write(array, 4, Floats({1})));
  EXPECT_EQ(Size(array), 5);
  Fine(Scatter(array, {6, 5}, Floats({6, 5})));
  EXPECT_EQ(Size(array), 7);
  const Array huge = Make(std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Size(huge), std::numeric_limits<int32_t>::max()) << "unwritten elements take no memory";
}

TEST_F(Arrays, F394_UnwrittenElementsAreZerosOfAKnownShape) {
  Refused(
      Read(Make(3), 1), Code::kInvalidArgument,
      ": Could not read from TensorArray index 1.  Furthermore, the element shape is not fully defined: <unknown>.");
  EXPECT_EQ(First(Read(Make(3, {{"element_shape", PartialShape{2}}}), 1)), (std::vector<float>{0, 0}));
  const Array alike = Make(2, {{"identical_element_shapes", true}});
  Fine(Write(alike, 1, Floats({1, 2})));
  Refused(Write(alike, 0, Floats({1})), Code::kInvalidArgument,
          ": Could not write to TensorArray index 0 because the value shape is [1] which is incompatible with the "
          "TensorArray's inferred element shape: [2] (consider setting infer_shape=False).");
  EXPECT_EQ(First(Gather(alike, {0, 1})), (std::vector<float>{0, 0, 1, 2}));
}

TEST_F(Arrays, TypesAreChecked) {
  const Array array = Make(3);
  Refused(Read(array, 1, DType::kInt32), Code::kInvalidArgument,
          "TensorArray dtype is float but Op requested dtype int32.");
  Refused(Write(array, 1, Int(1)), Code::kInvalidArgument,
          "TensorArray dtype is float but Op is trying to write dtype int32.");
  Refused(Scatter(array, {0}, Tensor::Vector<int32_t>({1})), Code::kInvalidArgument,
          "TensorArray dtype is float but Op is trying to write dtype int32.");
}

TEST_F(Arrays, TheFlowIsAScalar) {
  const Array array = Make(2);
  const Tensor flow = Floats({}), rows = Tensor::Of<float>(Shape{1, 1}, {5});
  const char* const text = "flow_in must be a scalar, but received shape: [0]";
  Refused(Call("TensorArrayWriteV3", {array.handle, Int(0), Floats({1}), flow}, {{"T", DType::kFloat}}),
          Code::kInvalidArgument, text);
  Refused(
      Call("TensorArrayScatterV3", {array.handle, Tensor::Vector<int32_t>({1}), rows, flow}, {{"T", DType::kFloat}}),
      Code::kInvalidArgument, text);
}

TEST_F(Arrays, F394_GatherStacksAndScatterUnstacks) {
  const Array array = Make(3);
  Fine(Scatter(array, {0, 2}, Tensor::Of<float>(Shape{2, 2}, {1, 2, 3, 4})));
  EXPECT_EQ(First(Gather(array, {2, 0})), (std::vector<float>{3, 4, 1, 2}));
  Refused(Scatter(Make(3), {0, 3}, Floats({1, 2})), Code::kInvalidArgument,
          "Max scatter index must be < array size (3 vs. 3)");
  Refused(Scatter(Make(3), {0, -3}, Floats({1, 2})), Code::kInvalidArgument, ": Tried to write to index -3 but");
  Refused(Scatter(Make(3), {0, 1}, Floats({1})), Code::kInvalidArgument,
          "Expected len(indices) == values.shape[0], but saw: 2 vs. 1");
  Refused(Scatter(Make(3), {0}, Tensor::Scalar<float>(1)), Code::kInvalidArgument,
          "Input value for unpack must be at least a vector but received shape: []");
  const Array mixed = Make(2);
  Fine(Write(mixed, 0, Tensor::Scalar<float>(1)));
  Fine(Write(mixed, 1, Floats({1, 2})));
  Refused(Gather(mixed, {0, 1}), Code::kInvalidArgument,
          "TensorArray has inconsistent shapes.  Index 0 has shape: [] but index 1 has shape: [2]");
  Refused(Gather(Make(0), {}), Code::kUnimplemented,
          "TensorArray has size zero, but element shape <unknown> is not fully defined.");
  EXPECT_EQ((*Gather(Make(0), {}, {{"element_shape", PartialShape{2}}}))[0].shape(), (Shape{0, 2}));
  Refused(Gather(Make(1, {{"element_shape", PartialShape{2}}}), {0}, {{"element_shape", PartialShape{3}}}),
          Code::kInvalidArgument, "PartialTensorShape: Incompatible shapes during merge: [2] vs. [3]");
}

TEST_F(Arrays, F394_ConcatJoinsAndSplitCuts) {
  const Array array = Make(3);
  Fine(Split(array, Floats({1, 2, 3}), {1, 0, 2}));
  const auto whole = Concat(array);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_EQ(Values((*whole)[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE((*whole)[1].SameBits(Tensor::Vector<int64_t>({1, 0, 2})));
  Refused(Split(Make(3), Floats({1, 2, 3}), {1, 2}), Code::kInvalidArgument,
          "TensorArray's size is not equal to the size of lengths (3 vs. 2), and the TensorArray is not marked as "
          "dynamically resizeable");
  Refused(Split(Make(3), Floats({1, 2, 3}), {1, 1, 2}), Code::kInvalidArgument,
          "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is 4 and value's shape is: [3]");
  Refused(Split(Make(3), Floats({1, 2, 3}), {-1, 2, 2}), Code::kInvalidArgument, "-1");
  const Array mixed = Make(2);
  Fine(Write(mixed, 0, Tensor::Of<float>(Shape{1, 2}, {1, 2})));
  Fine(Write(mixed, 1, Tensor::Of<float>(Shape{1, 1}, {1})));
  Refused(Concat(mixed), Code::kInvalidArgument,
          "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: [2] but index 1 has "
          "(excepting dimension 0) shape: [1]");
  Refused(Concat(Make(0)), Code::kUnimplemented,
          "TensorArray has size zero, but element_shape_except0 <unknown> is not fully defined.");
  EXPECT_EQ((*Concat(Make(0), {{"element_shape_except0", PartialShape{2}}}))[0].shape(), (Shape{0, 2}));
}

TEST_F(Arrays, F394_GradientsAddUp) {
  const Array array = Make(3);
  Fine(Write(array, 0, Floats({1, 2})));
  const Array gradient = Gradient(array);
  EXPECT_EQ(Gradient(array).handle.as<ResourceHandle>()[0].resource, gradient.handle.as<ResourceHandle>()[0].resource);
  EXPECT_NE(Gradient(array, "gradients_1").handle.as<ResourceHandle>()[0].resource,
            gradient.handle.as<ResourceHandle>()[0].resource);
  Fine(Write(gradient, 0, Floats({3, 4})));
  Fine(Write(gradient, 0, Floats({10, 10})));
  Refused(Write(gradient, 0, Floats({1})), Code::kInvalidArgument,
          "@gradients: Could not aggregate to TensorArray index 0 because the existing shape is [2] but the new input "
          "shape is [1].");
  EXPECT_EQ(First(Read(gradient, 0)), (std::vector<float>{13, 14}));
  Refused(Read(gradient, 1), Code::kInvalidArgument, "@gradients: Could not read from TensorArray index 1.");
  EXPECT_EQ(First(Read(Gradient(array, "other"), 0)), (std::vector<float>{0, 0})) << "nothing flowed back";
  const Array dynamic = Make(0, {{"dynamic_size", true}});
  Gradient(dynamic);
  Refused(Write(dynamic, 0, Floats({1})), Code::kInvalidArgument, "array is not resizeable and size is: 0");
}

TEST_F(Arrays, ClosedOnesAreRefused) {
  const Array array = Make(3);
  ASSERT_TRUE(Call("TensorArrayCloseV3", {array.handle}).ok());
  Refused(Read(array, 0), Code::kInvalidArgument, " has already been closed.");
}

TEST_F(Arrays, OfVersion2HaveStringsForHandles) {
  const Tensor flow = Tensor::Scalar<float>(0);
  const op::AttrList type = {{"T", DType::kFloat}}, wanted = {{"dtype", DType::kFloat}};
  const Result<std::vector<Tensor>> made = Call("TensorArrayV2", {Int(2)}, wanted);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->size(), 1u) << "no flow";
  const Tensor array = (*made)[0];
  ASSERT_EQ(array.dtype(), DType::kString);
  ASSERT_EQ(array.shape(), Shape::Of({2}));
  One("TensorArrayWriteV2", {array, Int(1), Floats({3, 4}), flow}, type);
  One("TensorArrayWriteV2", {array, Int(0), Floats({1, 2}), flow}, type);
  EXPECT_EQ(One("TensorArraySizeV2", {array, flow}).as<int32_t>()[0], 2);
  const Tensor gathered = One("TensorArrayGatherV2", {array, Tensor::Vector<int32_t>({1, 0}), flow}, wanted);
  EXPECT_EQ(Values(gathered), (std::vector<float>{3, 4, 1, 2}));
  const op::AttrList source = {{"source", std::string("g")}};
  const Tensor gradient = One("TensorArrayGradV2", {array, flow}, source);
  EXPECT_TRUE(gradient.SameBits(One("TensorArrayGradV2", {array, flow}, source))) << "one for each source";
  One("TensorArrayWriteV2", {gradient, Int(1), Floats({5, 6}), flow}, type);
  One("TensorArrayWriteV2", {gradient, Int(1), Floats({1, 1}), flow}, type);
  EXPECT_EQ(Values(One("TensorArrayReadV2", {gradient, Int(1), flow}, wanted)), (std::vector<float>{6, 7}));
  const Tensor pieces = (*Call("TensorArrayV2", {Int(2)}, wanted))[0];
  One("TensorArraySplitV2", {pieces, Floats({1, 2, 3}), Tensor::Vector<int64_t>({1, 2}), flow}, type);
  EXPECT_EQ(Values(One("TensorArrayConcatV2", {pieces, flow}, wanted)), (std::vector<float>{1, 2, 3}));
  ASSERT_TRUE(Call("TensorArrayCloseV2", {pieces}).ok());
  EXPECT_FALSE(Call("TensorArraySizeV2", {pieces, flow}).ok());
  const Tensor rows = (*Call("TensorArrayV2", {Int(2)}, wanted))[0];
  One("TensorArrayScatterV2", {rows, Tensor::Vector<int32_t>({1, 0}), Tensor::Of<float>(Shape{2, 1}, {8, 9}), flow},
      type);
  EXPECT_EQ(Values(One("TensorArrayReadV2", {rows, Int(0), flow}, wanted)), (std::vector<float>{9}));
}

}  // namespace
}  // namespace weir::builtin
