// The TensorList ops.
#include <algorithm>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/builtin/pieces.h"
#include "core/builtin/tensor_list.h"
#include "core/tensor/number.h"
#include "core/tensor/sum.h"
#include "core/tensor/variant.h"

namespace weir::builtin {
namespace {

using List = std::shared_ptr<const TensorList>;

Tensor ListTensor(List list) { return Tensor::Scalar(Variant{std::move(list)}); }

Result<List> ListIn(const Variant& variant) {
  List list = std::dynamic_pointer_cast<const TensorList>(variant.value);
  if (list) return list;
  return InvalidArgument("Input handle is not a list. Saw: '{}'",
                         variant.value ? variant.value->DebugString() : std::string("a variant without a value"));
}

Result<List> ListAt(const kernel::BuiltinCall& call, size_t i) {
  const Tensor& input = call.inputs[i];
  if (input.dtype() != DType::kVariant || input.shape().rank() != 0) {
    return InvalidArgument("Input list must be a scalar saw: {}", input.shape().ToString());
  }
  return ListIn(input.as<Variant>()[0]);
}

/// The list in input `i` of an op with an element_dtype.
Result<List> TypedListAt(const kernel::BuiltinCall& call, size_t i) {
  WEIR_ASSIGN(List list, ListAt(call, i));
  WEIR_ASSIGN(const DType wanted, call.attrs.Type("element_dtype"));
  if (wanted == list->kind().dtype) return list;
  return InvalidArgument("Invalid data types; op elements {} but list elements {}", Name(wanted),
                         Name(list->kind().dtype));
}

/// The shape in input `i`: a vector of extents, or the scalar -1 for unknown rank.
Result<PartialShape> ShapeAt(const kernel::BuiltinCall& call, size_t i) {
  const Tensor& input = call.inputs[i];
  if (input.shape().rank() > 1) {
    return InvalidArgument("element_shape must be at most a vector, got shape {}", input.shape().ToString());
  }
  if (input.elements() > kMaxRank) return InvalidArgument("element_shape has {} extents", input.elements());
  if (input.shape().rank() == 0) {
    if (ElementAsInt(input, 0) == -1) return PartialShape();
    return InvalidArgument("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.elements(); ++d) dims.push_back(ElementAsInt(input, d));
  return PartialShape::Make(dims);
}

Result<TensorList::Kind> KindOf(const kernel::BuiltinCall& call, size_t shape) {
  TensorList::Kind kind;
  WEIR_ASSIGN(kind.dtype, call.attrs.Type("element_dtype"));
  WEIR_ASSIGN(kind.element_shape, ShapeAt(call, shape));
  return kind;
}

Status MakeEmptyList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(TensorList::Kind kind, KindOf(call, 0));
  WEIR_ASSIGN(kind.max_elements, Scalar<int32_t>(call, 1, "max_num_elements"));
  call.outputs[0] = ListTensor(TensorList::Make(std::move(kind)));
  return Status();
}

Status ReserveList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(TensorList::Kind kind, KindOf(call, 0));
  WEIR_ASSIGN(const int32_t count, Scalar<int32_t>(call, 1, "num_elements"));
  if (count < 0) {
    return InvalidArgument("The num_elements to reserve must be a non negative number, but got {}", count);
  }
  call.outputs[0] = ListTensor(TensorList::Make(std::move(kind))->Resized(count));
  return Status();
}

/// Zeros for an unset element; `hint` is the op's element_shape.
Result<Tensor> Unset(const TensorList& list, const PartialShape& hint) {
  WEIR_ASSIGN(PartialShape shape, MergedShape(hint, list.kind().element_shape));
  if (!shape.fully_defined()) {
    WEIR_ASSIGN(shape, list.CommonShape(hint));
  }
  const Result<Shape> known = shape.ToShape();
  if (known.ok()) return Zeros(list.kind().dtype, *known);
  return InvalidArgument(
      "Trying to read an uninitialized tensor but element_shape is not fully defined: {} and no list element is set.",
      shape.ToString());
}

Status GetListItem(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  WEIR_ASSIGN(const int32_t index, Scalar<int32_t>(call, 1, "index"));
  if (index < 0 || index >= list->length()) {
    return InvalidArgument("Trying to access element {} in a list with {} elements.", index, list->length());
  }
  call.outputs[0] = list->At(index);
  if (call.outputs[0].valid()) return Status();
  WEIR_ASSIGN(const PartialShape hint, ShapeAt(call, 2));
  WEIR_ASSIGN(call.outputs[0], Unset(*list, hint));
  return Status();
}

Status SetListItem(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(List list, TypedListAt(call, 0));
  WEIR_ASSIGN(const int32_t index, Scalar<int32_t>(call, 1, "index"));
  WEIR_ASSIGN(const bool resize, call.attrs.Bool("resize_if_index_out_of_bounds"));
  const Tensor& item = call.inputs[2];
  if (index < 0 || (index >= list->length() && !resize)) {
    return InvalidArgument("Trying to modify element {} in a list with {} elements.", index, list->length());
  }
  if (!list->kind().element_shape.CompatibleWith(item.shape())) {
    return InvalidArgument(
        "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
        item.shape().ToString(), list->kind().element_shape.ToString());
  }
  if (index > list->length()) list = list->Resized(index);
  call.outputs[0] = ListTensor(list->With(index, item));
  return Status();
}

Status CheckPush(const TensorList& list, const Tensor& element) {
  const TensorList::Kind& kind = list.kind();
  if (!kind.element_shape.CompatibleWith(element.shape())) {
    return InvalidArgument(
        "Tried to append a tensor with incompatible shape to a list. Op element shape: {} list shape: {}",
        element.shape().ToString(), kind.element_shape.ToString());
  }
  if (kind.max_elements >= 0 && list.length() >= kind.max_elements) {
    return InvalidArgument("Tried to push item into a full list list size: {} max_num_elements: {}", list.length(),
                           kind.max_elements);
  }
  return Status();
}

Status PushBack(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  WEIR_TRY(CheckPush(*list, call.inputs[1]));
  call.outputs[0] = ListTensor(list->With(list->length(), call.inputs[1]));
  return Status();
}

Status PopBack(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  if (list->length() == 0) return InvalidArgument("Trying to pop from an empty list.");
  call.outputs[1] = list->At(list->length() - 1);
  if (!call.outputs[1].valid()) {
    WEIR_ASSIGN(const PartialShape hint, ShapeAt(call, 1));
    WEIR_ASSIGN(call.outputs[1], Unset(*list, hint));
  }
  call.outputs[0] = ListTensor(list->WithoutLast());
  return Status();
}

Status PushBackBatch(kernel::BuiltinCall& call) {
  const Tensor& tensor = call.inputs[1];
  WEIR_ASSIGN(const std::span<const Variant> lists, Elements<Variant>(call, 0, "input_handles"));
  if (call.inputs[0].shape().rank() != 1) {
    return InvalidArgument("Expected input_handles to be a vector, but saw shape: {}",
                           call.inputs[0].shape().ToString());
  }
  if (tensor.shape().rank() == 0) return InvalidArgument("Expected tensor to be at least a vector");
  if (tensor.shape().dim(0) != call.inputs[0].elements()) {
    return InvalidArgument("Expected tensor.shape[0] == input_handles.size, but saw {} vs. {}", tensor.shape().dim(0),
                           call.inputs[0].elements());
  }
  WEIR_ASSIGN(Tensor pushed, Tensor::Make(DType::kVariant, call.inputs[0].shape()));
  for (size_t i = 0; i < lists.size(); ++i) {
    WEIR_ASSIGN(const List list, ListIn(lists[i]));
    WEIR_ASSIGN(Tensor row, Row(tensor, static_cast<int64_t>(i)));
    if (row.dtype() != list->kind().dtype) {
      return InvalidArgument("Invalid data types; op elements {} but list elements {}", Name(row.dtype()),
                             Name(list->kind().dtype));
    }
    WEIR_TRY(CheckPush(*list, row));
    pushed.mutable_as<Variant>()[i] = Variant{list->With(list->length(), std::move(row))};
  }
  call.outputs[0] = std::move(pushed);
  return Status();
}

Status StackList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  WEIR_ASSIGN(const int64_t wanted, call.attrs.Int("num_elements"));
  if (wanted >= 0 && wanted != list->length()) {
    return InvalidArgument("Operation expected a list with {} elements but got a list with {} elements.", wanted,
                           list->length());
  }
  WEIR_ASSIGN(const PartialShape hint, ShapeAt(call, 1));
  WEIR_ASSIGN(const PartialShape shape, list->CommonShape(hint));
  const Result<Shape> element = shape.ToShape();
  if (!element.ok() && list->length() == 0) {
    return InvalidArgument("Tried to stack elements of an empty list with non-fully-defined element_shape: {}",
                           shape.ToString());
  }
  if (!element.ok()) {
    return InvalidArgument(
        "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: {}",
        shape.ToString());
  }
  WEIR_ASSIGN(const Shape whole, WithCount(list->length(), *element));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(list->kind().dtype, whole));
  WEIR_TRY(list->EachSet([&](int64_t i, const Tensor& row) { return joiner.Put(i * element->elements(), row); }));
  call.outputs[0] = joiner.Take();
  return Status();
}

Status GatherList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  WEIR_ASSIGN(const std::span<const int32_t> indices, Elements<int32_t>(call, 1, "indices"));
  WEIR_ASSIGN(const PartialShape hint, ShapeAt(call, 2));
  for (const int32_t index : indices) {
    if (index >= 0 && index < list->length()) continue;
    return InvalidArgument("Index {} out o range; list only has {} elements.", index, list->length());
  }
  WEIR_ASSIGN(const PartialShape shape, list->CommonShape(hint));
  const Result<Shape> element = shape.ToShape();
  if (!element.ok()) {
    return InvalidArgument("Tried to gather {} from a list with non-fully-defined element_shape: {}",
                           indices.empty() ? "0-elements" : "uninitialized tensors", shape.ToString());
  }
  WEIR_ASSIGN(const Shape whole, WithCount(static_cast<int64_t>(indices.size()), *element));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(list->kind().dtype, whole));
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor row = list->At(indices[i]);
    if (row.valid()) WEIR_TRY(joiner.Put(static_cast<int64_t>(i) * element->elements(), row));
  }
  call.outputs[0] = joiner.Take();
  return Status();
}

/// Checks that the rows of a tensor can be elements of a list of this kind.
Status CheckRows(const Tensor& tensor, const TensorList::Kind& kind) {
  if (tensor.shape().rank() == 0) {
    return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
  }
  const Shape row = InnerShape(tensor.shape());
  if (kind.element_shape.CompatibleWith(row)) return Status();
  return InvalidArgument("Specified a list with shape {} from a tensor with shape {}", kind.element_shape.ToString(),
                         row.ToString());
}

Status ListFromTensor(kernel::BuiltinCall& call) {
  const Tensor& tensor = call.inputs[0];
  WEIR_ASSIGN(const TensorList::Kind kind, KindOf(call, 1));
  WEIR_TRY(CheckRows(tensor, kind));
  List list = TensorList::Make(kind);
  for (int64_t i = 0; i < tensor.shape().dim(0); ++i) {
    WEIR_ASSIGN(Tensor row, Row(tensor, i));
    list = list->With(i, std::move(row));
  }
  call.outputs[0] = ListTensor(std::move(list));
  return Status();
}

Status ScatterList(kernel::BuiltinCall& call) {
  const Tensor& tensor = call.inputs[0];
  WEIR_ASSIGN(const std::span<const int32_t> indices, Elements<int32_t>(call, 1, "indices"));
  WEIR_ASSIGN(const TensorList::Kind kind, KindOf(call, 2));
  int32_t count = -1;
  if (call.inputs.size() > 3) {
    WEIR_ASSIGN(count, Scalar<int32_t>(call, 3, "num_elements"));
  }
  if (count < -1) {
    return InvalidArgument("TensorListScatter expects num_elements >= -1, found: {}", count);
  }
  WEIR_TRY(CheckRows(tensor, kind));
  if (tensor.shape().dim(0) != static_cast<int64_t>(indices.size())) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: {} Actual: {}", indices.size(),
                           tensor.shape().dim(0));
  }
  int64_t length = std::max(count, 0);
  for (const int32_t index : indices) {
    if (index < 0) return InvalidArgument("Indices in TensorListScatter must all be non-negative.");
    if (count >= 0 && index >= count) {
      return InvalidArgument("TensorListScatter: Trying to scatter at index {} in list with size {}", index, count);
    }
    length = std::max<int64_t>(length, int64_t{index} + 1);
  }
  List list = TensorList::Make(kind)->Resized(length);
  for (size_t i = 0; i < indices.size(); ++i) {
    WEIR_ASSIGN(Tensor row, Row(tensor, static_cast<int64_t>(i)));
    list = list->With(indices[i], std::move(row));
  }
  call.outputs[0] = ListTensor(std::move(list));
  return Status();
}

Status SplitToList(kernel::BuiltinCall& call) {
  const Tensor& tensor = call.inputs[0];
  WEIR_ASSIGN(const TensorList::Kind kind, KindOf(call, 1));
  if (call.inputs[2].shape().rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: {}", call.inputs[2].shape().ToString());
  }
  WEIR_ASSIGN(const std::span<const int64_t> lengths, Elements<int64_t>(call, 2, "lengths"));
  if (tensor.shape().rank() == 0) return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
  const int64_t total = tensor.shape().dim(0);
  PartialShape any = tensor.shape();
  any.set_dim(0, -1);
  if (!kind.element_shape.CompatibleWith(any)) {
    return InvalidArgument("tensor shape {} is not compatible with element_shape {}", tensor.shape().ToString(),
                           kind.element_shape.ToString());
  }
  List list = TensorList::Make(kind);
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: {}", length);
    if (length > total - begin) {
      return InvalidArgument("Attempting to slice [{}, {}] from tensor with length {}", begin, begin + length, total);
    }
    WEIR_ASSIGN(Tensor piece, Rows(tensor, begin, length));
    list = list->With(list->length(), std::move(piece));
    begin += length;
  }
  if (begin != total) {
    return InvalidArgument("Unused values in tensor. Length of tensor: {} Values used: {}", total, begin);
  }
  call.outputs[0] = ListTensor(std::move(list));
  return Status();
}

/// The length of element `i`: its own, else from the shape of all elements, else from the op's leading_dims.
Result<int64_t> LeadingDim(const TensorList& list, int64_t i, const Tensor& element, const PartialShape& hint,
                           std::span<const int64_t> leading) {
  if (element.valid()) return element.shape().dim(0);
  for (const PartialShape* shape : {&hint, &list.kind().element_shape}) {
    if (shape->rank() > 0 && shape->dim(0) >= 0) return shape->dim(0);
  }
  if (i >= static_cast<int64_t>(leading.size())) {
    return InvalidArgument("List contains uninitialized tensor at index {} but leading_dims has only {} elements.", i,
                           leading.size());
  }
  if (leading[static_cast<size_t>(i)] >= 0) return leading[static_cast<size_t>(i)];
  return InvalidArgument("Expected non-negative leading_dims, got {}", leading[static_cast<size_t>(i)]);
}

Status ConcatList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, TypedListAt(call, 0));
  WEIR_ASSIGN(const PartialShape hint, ShapeAt(call, 1));
  WEIR_ASSIGN(const std::span<const int64_t> leading, Elements<int64_t>(call, 2, "leading_dims"));
  const Status scalars = InvalidArgument("Concat requires elements to be at least vectors, found scalars instead.");
  if (hint.rank() == 0 || list->kind().element_shape.rank() == 0) return scalars;
  WEIR_ASSIGN(const PartialShape rest, list->CommonShape(hint, 1));
  const Result<Shape> inner = rest.ToShape();
  if (!inner.ok()) {
    return InvalidArgument(
        "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: {}",
        rest.ToString());
  }
  WEIR_ASSIGN(Tensor lengths, Tensor::Make(DType::kInt64, Shape{list->length()}));
  int64_t total = 0;
  for (int64_t i = 0; i < list->length(); ++i) {
    const Tensor element = list->At(i);
    if (element.valid() && element.shape().rank() == 0) return scalars;
    WEIR_ASSIGN(const int64_t length, LeadingDim(*list, i, element, hint, leading));
    lengths.mutable_as<int64_t>()[static_cast<size_t>(i)] = length;
    if (__builtin_add_overflow(total, length, &total)) return ResourceExhausted("the concatenation is too long");
  }
  WEIR_ASSIGN(const Shape whole, WithCount(total, *inner));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(list->kind().dtype, whole));
  int64_t at = 0;
  for (int64_t i = 0; i < list->length(); ++i) {
    const Tensor element = list->At(i);
    if (element.valid()) WEIR_TRY(joiner.Put(at, element));
    at += lengths.as<int64_t>()[static_cast<size_t>(i)] * inner->elements();
  }
  call.outputs[0] = joiner.Take();
  call.outputs[1] = std::move(lengths);
  return Status();
}

Status ConcatTwoLists(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::span<const Variant> a, Elements<Variant>(call, 0, "input_a"));
  WEIR_ASSIGN(const std::span<const Variant> b, Elements<Variant>(call, 1, "input_b"));
  if (!(call.inputs[0].shape() == call.inputs[1].shape())) {
    return InvalidArgument("Incompatible input TensorList tensor shapes: {} vs. {}", call.inputs[0].shape().ToString(),
                           call.inputs[1].shape().ToString());
  }
  WEIR_ASSIGN(Tensor joined, Tensor::Make(DType::kVariant, call.inputs[0].shape()));
  for (size_t l = 0; l < a.size(); ++l) {
    WEIR_ASSIGN(List list, ListIn(a[l]));
    WEIR_ASSIGN(const List more, ListIn(b[l]));
    if (list->kind().dtype != more->kind().dtype) {
      return InvalidArgument("Invalid data types; op elements {} but list elements {}", Name(more->kind().dtype),
                             Name(list->kind().dtype));
    }
    WEIR_TRY(MergedShape(list->kind().element_shape, more->kind().element_shape).status());
    const int64_t first = list->length();
    list = list->Resized(first + more->length());
    for (int64_t i = 0; i < more->length(); ++i) {
      if (Tensor element = more->At(i); element.valid()) list = list->With(first + i, std::move(element));
    }
    joined.mutable_as<Variant>()[l] = Variant{std::move(list)};
  }
  call.outputs[0] = std::move(joined);
  return Status();
}

Status ListLength(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, ListAt(call, 0));
  call.outputs[0] = Tensor::Scalar(static_cast<int32_t>(list->length()));
  return Status();
}

Status ListElementShape(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, ListAt(call, 0));
  WEIR_ASSIGN(const DType type, call.attrs.Type("shape_type"));
  const PartialShape& shape = list->kind().element_shape;
  const bool wide = type == DType::kInt64;
  if (!shape.has_rank()) {
    call.outputs[0] = wide ? Tensor::Scalar<int64_t>(-1) : Tensor::Scalar<int32_t>(-1);
  } else if (wide) {
    call.outputs[0] = Tensor::Vector<int64_t>({shape.dims().begin(), shape.dims().end()});
  } else {
    call.outputs[0] = Tensor::Vector<int32_t>({shape.dims().begin(), shape.dims().end()});
  }
  return Status();
}

Status ResizeList(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const List list, ListAt(call, 0));
  WEIR_ASSIGN(const int32_t size, Scalar<int32_t>(call, 1, "size"));
  if (size < 0) return InvalidArgument("TensorListSlice expects size to be non-negative. Got: {}", size);
  call.outputs[0] = ListTensor(list->Resized(size));
  return Status();
}

// Host kernels for variants, and for devices without their own kernels.

Status SumOfAll(kernel::BuiltinCall& call) {
  call.outputs[0] = call.inputs[0];
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    WEIR_ASSIGN(call.outputs[0], Sum(call.outputs[0], call.inputs[i]));
  }
  return Status();
}

Status ZerosOf(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(call.outputs[0], ZerosLike(call.inputs[0]));
  return Status();
}

}  // namespace

void AddTensorLists(kernel::KernelRegistry& kernels) {
  using kernel::InputUse;
  kernels.AddHost("EmptyTensorList", MakeEmptyList);
  kernels.AddHost("TensorListReserve", ReserveList);
  kernels.AddHost("TensorListFromTensor", ListFromTensor, InputUse::kKept);
  kernels.AddHost("TensorListScatter", ScatterList, InputUse::kKept);
  kernels.AddHost("TensorListScatterV2", ScatterList, InputUse::kKept);
  kernels.AddHost("TensorListSplit", SplitToList, InputUse::kKept);
  kernels.AddHost("TensorListStack", StackList);
  kernels.AddHost("TensorListGather", GatherList);
  kernels.AddHost("TensorListConcatV2", ConcatList);
  kernels.AddHost("TensorListLength", ListLength);
  kernels.AddHost("TensorListElementShape", ListElementShape);
  kernels.AddHost("TensorListPushBack", PushBack, InputUse::kKept);
  kernels.AddHost("TensorListPopBack", PopBack);
  kernels.AddHost("TensorListGetItem", GetListItem);
  kernels.AddHost("TensorListSetItem", SetListItem, InputUse::kKept);
  kernels.AddHost("TensorListResize", ResizeList);
  kernels.AddHost("TensorListConcatLists", ConcatTwoLists);
  kernels.AddHost("TensorListPushBackBatch", PushBackBatch, InputUse::kKept);
  kernels.AddHost("AddN", SumOfAll);
  kernels.AddHost("ZerosLike", ZerosOf);
}

}  // namespace weir::builtin
