// Sets in the last axis of dense and sparse tensors, of integers or strings: union, intersection, difference, size.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

/// How an element is compared: itself, or a string's bytes.
template <class T>
struct SetKeyOf {
  using Type = T;
};
template <>
struct SetKeyOf<sdk::Text> {
  using Type = std::string_view;
};
template <class T>
using SetKey = typename SetKeyOf<T>::Type;

/// The elements of input i, and its shape.
template <class T>
int32_t ReadElements(const Context& ctx, uint32_t i, std::vector<SetKey<T>>* elements, weir_shape* shape) {
  if constexpr (std::is_same_v<T, sdk::Text>) {
    return ctx.Input(i, elements, shape);
  } else {
    View<const T> view;
    if (const int32_t code = ctx.Input(i, &view); code != WEIR_OK) return code;
    elements->assign(view.data(), view.data() + view.size());
    *shape = view.shape();
    return WEIR_OK;
  }
}

template <class T>
int32_t WriteElements(const Context& ctx, uint32_t i, const std::vector<SetKey<T>>& elements) {
  if constexpr (std::is_same_v<T, sdk::Text>) {
    const auto count = static_cast<int64_t>(elements.size());
    return ctx.OutputTexts(i, {1, 0, &count}, elements);
  } else {
    return WriteVector<T>(ctx, i, elements);
  }
}

/// The sets of one operand by the coordinates of all axes but the last; without empty ones.
template <class T>
struct Sets {
  std::vector<SetKey<T>> elements;
  std::map<std::vector<int64_t>, std::vector<SetKey<T>>> groups;  // sorted, without repetitions
  std::vector<int64_t> dims;                                      // of the groups

  int32_t ReadDense(const Context& ctx, uint32_t input) {
    weir_shape shape{};
    if (const int32_t code = ReadElements<T>(ctx, input, &elements, &shape); code != WEIR_OK) return code;
    if (shape.rank < 2) return ctx.error().InvalidArgument("Shape ", shape, " has rank ", shape.rank, " < 2");
    dims.assign(shape.dims, shape.dims + shape.rank - 1);
    const auto row = static_cast<size_t>(shape.dims[shape.rank - 1]);
    std::vector<int64_t> group(dims.size());
    for (size_t begin = 0; begin < elements.size(); begin += row) {
      groups[group].assign(elements.begin() + static_cast<int64_t>(begin),
                           elements.begin() + static_cast<int64_t>(begin + row));
      for (size_t d = dims.size(); d-- > 0;) {
        if (++group[d] < dims[d]) break;
        group[d] = 0;
      }
    }
    Normalize();
    return WEIR_OK;
  }

  /// Inputs `first`, first + 1 and first + 2 are the parts of a sparse tensor.
  int32_t ReadSparse(const Context& ctx, uint32_t first, bool validate) {
    Coordinates indices;
    View<const int64_t> shape;
    weir_shape values{};
    if (const int32_t code = ctx.Input(first, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ReadElements<T>(ctx, first + 1, &elements, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(first + 2, &shape); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (indices.rank() != 2) return error.InvalidArgument("indices must be a matrix, but got: ", indices.shape());
    if (values.rank != 1) return error.InvalidArgument("vals must be a vec, but got: ", values);
    if (shape.rank() != 1) return error.InvalidArgument("shape must be a vec, but got: ", shape.shape());
    if (indices.dim(0) != values.dims[0]) {
      return error.InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                                   indices.dim(0), ", values = ", values.dims[0], ")");
    }
    if (const int32_t code = CheckParts(error, indices.shape(), values, shape.shape()); code != WEIR_OK) return code;
    if (shape.size() < 2) return error.InvalidArgument("Invalid rank ", shape.size(), ".");
    if (validate) {
      if (const int32_t code = CheckIncreasing(error, indices, Elements(shape)); code != WEIR_OK) return code;
    }
    dims.assign(shape.data(), shape.data() + shape.size() - 1);
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      const std::span<const int64_t> entry = EntryAt(indices, i);
      if (!InBounds(entry, Elements(shape))) {
        return error.InvalidArgument("indices[", i, "] = ", AsShape(entry), " is out of bounds: need 0 <= index < ",
                                     AsShape(Elements(shape)));
      }
      const std::span<const int64_t> group = entry.first(dims.size());
      groups[std::vector<int64_t>(group.begin(), group.end())].push_back(elements[static_cast<size_t>(i)]);
    }
    Normalize();
    return WEIR_OK;
  }

 private:
  void Normalize() {
    for (auto& [group, set] : groups) {
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
    }
  }
};

enum class SetOp { kMinus, kReverseMinus, kIntersection, kUnion };
enum class Operand { kDense, kSparse };

/// A set operation on two operands.
template <Operand kFirst, Operand kSecond>
struct SetOperation {
  SetOp op = SetOp::kUnion;
  bool validate = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    std::string name(node.String("set_operation"));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    validate = node.Bool("validate_indices", true);
    if (name == "a-b") {
      op = SetOp::kMinus;
    } else if (name == "b-a") {
      op = SetOp::kReverseMinus;
    } else if (name == "intersection") {
      op = SetOp::kIntersection;
    } else if (name != "union") {
      return error.InvalidArgument("Invalid set_operation ", name, ".");
    }
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Sets<T> a, b;
    if (const int32_t code = Read<kFirst>(ctx, 0, &a); code != WEIR_OK) return code;
    if (const int32_t code = Read<kSecond>(ctx, kFirst == Operand::kDense ? 1 : 3, &b); code != WEIR_OK) return code;
    if (a.dims != b.dims) {
      return ctx.error().InvalidArgument("Mismatched shapes ", ShapeOf(a.dims), " vs ", ShapeOf(b.dims));
    }
    for (const auto& [group, set] : b.groups) a.groups[group];  // so that each group of either is there
    std::vector<int64_t> entries;
    std::vector<SetKey<T>> values;
    int64_t longest = 0;
    const std::vector<SetKey<T>> empty;
    for (const auto& [group, set] : a.groups) {
      const auto other = b.groups.find(group);
      const size_t begin = values.size();
      Combine(set, other == b.groups.end() ? empty : other->second, &values);
      for (size_t i = begin; i < values.size(); ++i) {
        entries.insert(entries.end(), group.begin(), group.end());
        entries.push_back(static_cast<int64_t>(i - begin));
      }
      longest = std::max(longest, static_cast<int64_t>(values.size() - begin));
    }
    std::vector<int64_t> shape = a.dims;
    shape.push_back(longest);
    if (const int32_t code = WriteEntries(ctx, 0, entries, static_cast<int64_t>(values.size()),
                                          static_cast<int64_t>(shape.size()));
        code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = WriteElements<T>(ctx, 1, values); code != WEIR_OK) return code;
    return WriteVector<int64_t>(ctx, 2, shape);
  }

 private:
  template <Operand kOperand, class T>
  int32_t Read(const Context& ctx, uint32_t first, Sets<T>* sets) const {
    if constexpr (kOperand == Operand::kDense) {
      return sets->ReadDense(ctx, first);
    } else {
      return sets->ReadSparse(ctx, first, validate);
    }
  }

  template <class Key>
  void Combine(const std::vector<Key>& a, const std::vector<Key>& b, std::vector<Key>* to) const {
    const auto out = std::back_inserter(*to);
    switch (op) {
      case SetOp::kMinus:
        std::set_difference(a.begin(), a.end(), b.begin(), b.end(), out);
        break;
      case SetOp::kReverseMinus:
        std::set_difference(b.begin(), b.end(), a.begin(), a.end(), out);
        break;
      case SetOp::kIntersection:
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out);
        break;
      case SetOp::kUnion:
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), out);
        break;
    }
  }
};

/// The number of distinct elements of each set.
struct SetSize {
  bool validate = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    validate = node.Bool("validate_indices", true);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Sets<T> sets;
    if (const int32_t code = sets.ReadSparse(ctx, 0, validate); code != WEIR_OK) return code;
    View<int32_t> size;
    if (const int32_t code = ctx.Output(0, ShapeOf(sets.dims), &size); code != WEIR_OK) return code;
    std::fill_n(size.data(), size.size(), 0);
    const std::vector<int64_t> steps = StepsOf(sets.dims);
    for (const auto& [group, set] : sets.groups) {
      int64_t at = 0;
      for (size_t d = 0; d < group.size(); ++d) at += group[d] * steps[d];
      size[at] = static_cast<int32_t>(set.size());
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddSets(sdk::KernelTable& k) {
  constexpr auto kElements =
      kSmallInts + kIndex + sdk::Types<uint8_t, uint16_t>() + sdk::Types<sdk::Text>();
  k.Add<SetOperation<Operand::kDense, Operand::kDense>>("DenseToDenseSetOperation", kElements).Class(WEIR_CLASS_SORT);
  k.Add<SetOperation<Operand::kDense, Operand::kSparse>>("DenseToSparseSetOperation", kElements)
      .Class(WEIR_CLASS_SORT);
  k.Add<SetOperation<Operand::kSparse, Operand::kSparse>>("SparseToSparseSetOperation", kElements)
      .Class(WEIR_CLASS_SORT);
  k.Add<SetSize>("SetSize", kElements).Class(WEIR_CLASS_SORT);
}

}  // namespace weir::kernels_eigen
