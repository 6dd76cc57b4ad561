// Builders that make, reshape, cut, join and index arrays.
#ifndef WEIR_CORE_CLIENT_OPS_ARRAY_OPS_H_
#define WEIR_CORE_CLIENT_OPS_ARRAY_OPS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

/// Extents of `input`, its rank, its element count: constants where the static shape says them.
Output ShapeOf(const Operand& input, DType out_type = DType::kInt32, std::string_view name = "Shape",
               Where where = Where::current());
Output RankOf(const Operand& input, std::string_view name = "Rank", Where where = Where::current());
Output SizeOf(const Operand& input, DType out_type = DType::kInt32, std::string_view name = "Size",
              Where where = Where::current());

Output Zeros(const Shape& shape, DType dtype = DType::kFloat, std::string_view name = "zeros",
             Where where = Where::current());
Output Ones(const Shape& shape, DType dtype = DType::kFloat, std::string_view name = "ones",
            Where where = Where::current());
inline constexpr UnaryOp ZerosLike{"ZerosLike", "zeros_like"}, OnesLike{"OnesLike", "ones_like"};
/// A value of shape `dims` (int32 or int64 [rank]) whose elements are all `value` (scalar).
Output Fill(const Operand& dims, const Operand& value, std::string_view name = "Fill", Where where = Where::current());
/// start, start + delta, … below `limit` (above, when delta is negative).
Output Range(const Operand& start, const Operand& limit, const Operand& delta = 1, std::string_view name = "range",
             Where where = Where::current());

/// The same values as `shape` (int32 or int64 [rank]); one extent may be -1.
Output Reshape(const Operand& tensor, const Operand& shape, std::string_view name = "Reshape",
               Where where = Where::current());
/// Inserts an axis of extent 1 before `axis`.
Output ExpandDims(const Operand& input, const Operand& axis, std::string_view name = "ExpandDims",
                  Where where = Where::current());
/// Takes axes of extent 1 away: those given, else all.
Output Squeeze(const Operand& input, const std::vector<int64_t>& axes = {}, std::string_view name = "Squeeze",
               Where where = Where::current());
/// Order of axes of a transposition: a list, a value, or by default the reverse. A text is the name of the node, as in
/// Transpose(x, "t").
class Permutation {
 public:
  Permutation() = default;
  Permutation(std::initializer_list<int> axes) : axes_(Operand(std::vector<int>(axes))) {}
  Permutation(const std::vector<int>& axes) : axes_(Operand(axes)) {}    // NOLINT(google-explicit-constructor)
  Permutation(Operand axes) : axes_(std::move(axes)) {}                  // NOLINT(google-explicit-constructor)
  Permutation(Output axes) : axes_(Operand(axes)) {}                     // NOLINT(google-explicit-constructor)
  Permutation(const char* name) : name_(name != nullptr ? name : "") {}  // NOLINT(google-explicit-constructor)
  Permutation(std::string_view name) : name_(name) {}                    // NOLINT(google-explicit-constructor)
  const std::optional<Operand>& axes() const { return axes_; }
  std::string_view name() const { return name_; }

 private:
  std::optional<Operand> axes_;
  std::string_view name_ = "transpose";
};
/// Axis i of the result is axis perm[i] of `x`.
Output Transpose(const Operand& x, const Permutation& perm = {}, std::string_view name = {},
                 Where where = Where::current());
Output Tile(const Operand& input, const Operand& multiples, std::string_view name = "Tile",
            Where where = Where::current());
/// paddings: int32 or int64 [rank, 2], zeros before and after each axis.
Output Pad(const Operand& tensor, const Operand& paddings, std::string_view name = "Pad",
           Where where = Where::current());
/// Joins along an axis that exists.
Output Concat(const std::vector<Operand>& values, int axis, std::string_view name = "concat",
              Where where = Where::current());
/// Joins along a new axis.
Output Stack(const std::vector<Operand>& values, int axis = 0, std::string_view name = "stack",
             Where where = Where::current());
/// Cuts into `num` equal pieces along `axis`, which may come first.
List<Output> Split(const Operand& value, int num, int axis = 0, std::string_view name = "split",
                   Where where = Where::current());
List<Output> Split(int axis, int num, const Output& value, std::string_view name = "split",
                   Where where = Where::current());
/// Cuts into pieces of the given extents; one may be -1.
List<Output> SplitV(const Operand& value, const std::vector<int>& sizes, int axis = 0, std::string_view name = "split",
                    Where where = Where::current());
/// Takes apart along an axis whose static extent is known, or is `num`.
List<Output> Unstack(const Operand& value, int axis = 0, int num = -1, std::string_view name = "unstack",
                     Where where = Where::current());

/// `size` elements from `begin` along each axis; a size of -1 takes the rest.
Output Slice(const Operand& input, const Operand& begin, const Operand& size, std::string_view name = "Slice",
             Where where = Where::current());

/// Rows of `params` (along `axis`) at `indices`.
Output Gather(const Operand& params, const Operand& indices, int axis = 0, std::string_view name = "GatherV2",
              Where where = Where::current());

struct OneHotOptions {
  Operand on_value = 1.0f;
  Operand off_value = 0.0f;
  int axis = -1;
  std::string_view name = "one_hot";
};
/// Vectors of length `depth` with on_value at the index and off_value elsewhere.
Output OneHot(const Operand& indices, const Operand& depth, const OneHotOptions& options = {},
              Where where = Where::current());

/// x where the condition holds, else y; of one shape, or the condition a vector over rows.
Output Select(const Operand& condition, const Operand& x, const Operand& y, std::string_view name = "Select",
              Where where = Where::current());
/// The same with broadcasting.
Output SelectV2(const Operand& condition, const Operand& x, const Operand& y, std::string_view name = "SelectV2",
                Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_ARRAY_OPS_H_
