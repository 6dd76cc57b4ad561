// The TensorArray ops.
#include <algorithm>
#include <atomic>
#include <limits>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/pieces.h"
#include "core/builtin/references.h"
#include "core/builtin/tensor_array.h"
#include "core/tensor/resource.h"

namespace weir::builtin {
namespace {

using Array = std::shared_ptr<TensorArray>;

/// Version 2 names arrays by two strings and gives no flow.
enum class ArrayVersion : uint8_t { k2, k3 };

Status FinishMaking(kernel::BuiltinCall& call, ArrayVersion version) {
  if (version == ArrayVersion::k2) {
    ReferToHandle(call, 0);
  } else {
    call.outputs[1] = Tensor::Scalar<float>(0);
  }
  return Status();
}

Status MakeArray(kernel::BuiltinCall& call, ArrayVersion version) {
  if (call.inputs[0].shape().rank() != 0) {
    return InvalidArgument("TensorArray size must be scalar, but had shape: {}", call.inputs[0].shape().ToString());
  }
  WEIR_ASSIGN(const int32_t size, Scalar<int32_t>(call, 0, "size"));
  if (size < 0) return InvalidArgument("Size should be >= 0.");
  TensorArray::Options options;
  WEIR_ASSIGN(options.dtype, call.attrs.Type("dtype"));
  WEIR_ASSIGN(options.element_shape, call.attrs.ShapeAttr("element_shape"));
  WEIR_ASSIGN(options.dynamic_size, call.attrs.Bool("dynamic_size"));
  WEIR_ASSIGN(options.clear_after_read, call.attrs.Bool("clear_after_read"));
  if (version == ArrayVersion::k3) {
    WEIR_ASSIGN(options.identical_shapes, call.attrs.Bool("identical_element_shapes"));
  }
  WEIR_ASSIGN(std::string name, call.attrs.String("tensor_array_name"));
  if (name.empty()) name = call.node_name;
  static std::atomic<uint64_t> arrays{0};
  name += fmt::format("_{}", arrays.fetch_add(1, std::memory_order_relaxed));
  WEIR_TRY(OutputOfStep(call, 0, std::make_shared<TensorArray>(std::move(name), size, std::move(options))));
  return FinishMaking(call, version);
}

Status MakeGradientArray(kernel::BuiltinCall& call, ArrayVersion version) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const std::string source, call.attrs.String("source"));
  Status entered;
  WEIR_ASSIGN(ResourceHandle handle, array->Gradient(source, [&](Array gradient) {
    entered = OutputOfStep(call, 0, std::move(gradient));
    return entered.ok() ? call.outputs[0].as<ResourceHandle>()[0] : ResourceHandle();
  }));
  WEIR_TRY(entered);
  call.outputs[0] = HandleTensor(std::move(handle));
  return FinishMaking(call, version);
}

Status CheckRequested(const TensorArray& array, const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const DType wanted, call.attrs.Type("dtype"));
  if (wanted == array.dtype()) return Status();
  return InvalidArgument("TensorArray dtype is {} but Op requested dtype {}.", Name(array.dtype()), Name(wanted));
}

Status CheckWritten(const TensorArray& array, const Tensor& value) {
  if (value.dtype() == array.dtype()) return Status();
  return InvalidArgument("TensorArray dtype is {} but Op is trying to write dtype {}.", Name(array.dtype()),
                         Name(value.dtype()));
}

/// Passes the flow on, which orders the uses of an array.
Status GiveFlow(kernel::BuiltinCall& call) {
  const Tensor& flow = call.inputs[3];
  if (flow.shape().rank() != 0) {
    return InvalidArgument("flow_in must be a scalar, but received shape: {}", flow.shape().ToString());
  }
  call.outputs[0] = flow;
  return Status();
}

Status ReadElement(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const int32_t index, Scalar<int32_t>(call, 1, "TensorArray index"));
  WEIR_TRY(CheckRequested(*array, call));
  WEIR_ASSIGN(call.outputs[0], array->Read(index));
  return Status();
}

Status WriteElement(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const int32_t index, Scalar<int32_t>(call, 1, "TensorArray index"));
  WEIR_TRY(array->Write(index, call.inputs[2]));
  return GiveFlow(call);
}

Result<std::span<const int32_t>> ElementIndices(const kernel::BuiltinCall& call) {
  if (call.inputs[1].shape().rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: {}",
                           call.inputs[1].shape().ToString());
  }
  return Elements<int32_t>(call, 1, "indices");
}

Status GatherElements(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const std::span<const int32_t> indices, ElementIndices(call));
  WEIR_TRY(CheckRequested(*array, call));
  WEIR_ASSIGN(const PartialShape asked, call.attrs.ShapeAttr("element_shape"));
  WEIR_ASSIGN(const PartialShape element, array->RefineShape(asked));
  if (indices.empty()) {
    const Result<Shape> inner = element.ToShape();
    if (!inner.ok()) {
      return Unimplemented(
          "TensorArray has size zero, but element shape {} is not fully defined. Currently only static shapes are "
          "supported when packing zero-size TensorArrays.",
          element.ToString());
    }
    WEIR_ASSIGN(call.outputs[0], Stacked(array->dtype(), *inner, {}));
    return Status();
  }
  WEIR_ASSIGN(const std::vector<Tensor> rows, array->ReadMany(indices));
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].shape() == rows[0].shape()) continue;
    return InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has shape: {} but index {} has shape: {}",
                           rows[0].shape().ToString(), i, rows[i].shape().ToString());
  }
  WEIR_ASSIGN(call.outputs[0], Stacked(array->dtype(), rows[0].shape(), rows));
  return Status();
}

Status ScatterElements(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const std::span<const int32_t> indices, ElementIndices(call));
  const Tensor& value = call.inputs[2];
  WEIR_TRY(CheckWritten(*array, value));
  if (value.shape().rank() == 0) {
    return InvalidArgument("Input value for unpack must be at least a vector but received shape: []");
  }
  const auto count = static_cast<int64_t>(indices.size());
  if (value.shape().dim(0) != count) {
    return InvalidArgument("Expected len(indices) == values.shape[0], but saw: {} vs. {}", count, value.shape().dim(0));
  }
  WEIR_ASSIGN(const int32_t size, array->Size());
  const int32_t max = indices.empty() ? -1 : *std::max_element(indices.begin(), indices.end());
  if (max >= size && !array->dynamic_size()) {
    return InvalidArgument("Max scatter index must be < array size ({} vs. {})", max, size);
  }
  for (int64_t i = 0; i < count; ++i) {
    WEIR_ASSIGN(Tensor row, Row(value, i));
    WEIR_TRY(array->Write(indices[static_cast<size_t>(i)], std::move(row)));
  }
  return GiveFlow(call);
}

/// For concatenation: the length of an element, after checking its other extents against the first element.
Result<int64_t> LengthOf(const std::vector<Tensor>& pieces, size_t i) {
  const Shape& shape = pieces[i].shape();
  if (shape.rank() == 0) {
    return InvalidArgument(
        "Concat saw a scalar shape at index {} but requires at least vectors.  Did you mean to call pack?", i);
  }
  const Shape first = InnerShape(pieces[0].shape()), rest = InnerShape(shape);
  if (rest == first) return shape.dim(0);
  return InvalidArgument(
      "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: {} but index {} has (excepting "
      "dimension 0) shape: {}",
      first.ToString(), i, rest.ToString());
}

Status ConcatNoElements(const TensorArray& array, const PartialShape& rest, kernel::BuiltinCall& call) {
  const Result<Shape> inner = rest.ToShape();
  if (!inner.ok()) {
    return Unimplemented(
        "TensorArray has size zero, but element_shape_except0 {} is not fully defined. Currently only static shapes "
        "are supported when concatenating zero-size TensorArrays.",
        rest.ToString());
  }
  WEIR_ASSIGN(call.outputs[0], Stacked(array.dtype(), *inner, {}));
  call.outputs[1] = Tensor::Vector<int64_t>({});
  return Status();
}

Status ConcatElements(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_TRY(CheckRequested(*array, call));
  WEIR_ASSIGN(const PartialShape rest, call.attrs.ShapeAttr("element_shape_except0"));
  WEIR_ASSIGN(const int32_t size, array->Size());
  if (size == 0) return ConcatNoElements(*array, rest, call);
  // Computed first, because they bound the number of elements.
  WEIR_ASSIGN(Tensor lengths, Tensor::Make(DType::kInt64, Shape{size}));
  std::vector<Tensor> pieces;
  int64_t total = 0;
  for (int32_t i = 0; i < size; ++i) {
    WEIR_ASSIGN(Tensor piece, array->Read(i));
    pieces.push_back(std::move(piece));
    WEIR_ASSIGN(const int64_t length, LengthOf(pieces, pieces.size() - 1));
    lengths.mutable_as<int64_t>()[static_cast<size_t>(i)] = length;
    if (__builtin_add_overflow(total, length, &total)) return ResourceExhausted("the concatenation is too long");
  }
  const Shape inner = InnerShape(pieces[0].shape());
  if (!rest.CompatibleWith(inner)) {
    return InvalidArgument(
        "TensorArray was passed element_shape_except0 {} but index 0 has (excepting dimension 0) shape: {}",
        rest.ToString(), inner.ToString());
  }
  WEIR_ASSIGN(const Shape whole, WithCount(total, inner));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(array->dtype(), whole));
  int64_t at = 0;
  for (const Tensor& piece : pieces) {
    WEIR_TRY(joiner.Put(at, piece));
    at += piece.elements();
  }
  call.outputs[0] = joiner.Take();
  call.outputs[1] = std::move(lengths);
  return Status();
}

Status SplitToElements(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  const Tensor& value = call.inputs[1];
  WEIR_TRY(CheckWritten(*array, value));
  if (call.inputs[2].shape().rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: {}", call.inputs[2].shape().ToString());
  }
  WEIR_ASSIGN(const std::span<const int64_t> lengths, Elements<int64_t>(call, 2, "lengths"));
  if (value.shape().rank() == 0) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: []");
  }
  int64_t total = 0;
  for (const int64_t length : lengths) {
    if (length < 0) return InvalidArgument("Expected lengths to be non-negative, but saw {}", length);
    if (__builtin_add_overflow(total, length, &total)) total = std::numeric_limits<int64_t>::max();
  }
  if (total != value.shape().dim(0)) {
    return InvalidArgument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {} and value's shape is: {}",
        total, value.shape().ToString());
  }
  WEIR_ASSIGN(const int32_t size, array->Size());
  const auto count = static_cast<int64_t>(lengths.size());
  if (size != count && !array->dynamic_size()) {
    return InvalidArgument(
        "TensorArray's size is not equal to the size of lengths ({} vs. {}), and the TensorArray is not marked as "
        "dynamically resizeable",
        size, count);
  }
  if (count > std::numeric_limits<int32_t>::max()) return InvalidArgument("{} lengths are too many", count);
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    WEIR_ASSIGN(Tensor piece, Rows(value, begin, lengths[static_cast<size_t>(i)]));
    WEIR_TRY(array->Write(static_cast<int32_t>(i), std::move(piece)));
    begin += lengths[static_cast<size_t>(i)];
  }
  return GiveFlow(call);
}

Status ArraySize(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  WEIR_ASSIGN(const int32_t size, array->Size());
  call.outputs[0] = Tensor::Scalar(size);
  return Status();
}

Status CloseArray(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Array array, ResourceBehind<TensorArray>(call, 0));
  array->Close();
  return Status();
}

}  // namespace

void AddTensorArrays(kernel::KernelRegistry& kernels) {
  using kernel::InputUse;
  for (const ArrayVersion version : {ArrayVersion::k2, ArrayVersion::k3}) {
    const std::string suffix = version == ArrayVersion::k2 ? "V2" : "V3";
    kernels.AddHost("TensorArray" + suffix, [version](kernel::BuiltinCall& call) { return MakeArray(call, version); });
    kernels.AddHost("TensorArrayGrad" + suffix,
                    [version](kernel::BuiltinCall& call) { return MakeGradientArray(call, version); });
    kernels.AddHost("TensorArrayRead" + suffix, ReadElement);
    kernels.AddHost("TensorArrayWrite" + suffix, WriteElement, InputUse::kKept);
    kernels.AddHost("TensorArrayGather" + suffix, GatherElements);
    kernels.AddHost("TensorArrayScatter" + suffix, ScatterElements, InputUse::kKept);
    kernels.AddHost("TensorArrayConcat" + suffix, ConcatElements);
    kernels.AddHost("TensorArraySplit" + suffix, SplitToElements, InputUse::kKept);
    kernels.AddHost("TensorArraySize" + suffix, ArraySize);
    kernels.AddHost("TensorArrayClose" + suffix, CloseArray);
  }
}

}  // namespace weir::builtin
