// Arithmetic on shape tensors in host memory, for kernels of any device: BroadcastArgs, BroadcastGradientArgs,
// ConcatOffset, InvertPermutation.
#ifndef WEIR_PLUGINS_FUNCTORS_SHAPE_ARGS_H_
#define WEIR_PLUGINS_FUNCTORS_SHAPE_ARGS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "sdk/cpp/kernel.h"

namespace weir::functors {

using sdk::Env;
using sdk::Host;
using sdk::View;

/// Two shapes aligned at their last axes; a missing axis has extent 1.
template <class T>
struct Aligned {
  Host<const T> a, b;

  int64_t rank() const { return std::max(a.size(), b.size()); }
  static T Extent(const Host<const T>& shape, int64_t i) { return i < 0 ? T(1) : shape[i]; }
  T A(int64_t i) const { return Extent(a, i + a.size() - rank()); }
  T B(int64_t i) const { return Extent(b, i + b.size() - rank()); }

  int32_t Check(const Env& env) const {
    if (a.rank() != 1 || b.rank() != 1) {
      return env.error().InvalidArgument("In[0] and In[1] must be vectors, got shapes ", a.shape(), " and ", b.shape());
    }
    for (int64_t i = 0; i < rank(); ++i) {
      if (A(i) == B(i) || A(i) == T(1) || B(i) == T(1)) continue;
      const std::vector<int64_t> x(a.data(), a.data() + a.size()), y(b.data(), b.data() + b.size());
      return env.error().InvalidArgument(
          "Incompatible shapes: ", weir_shape{static_cast<uint32_t>(x.size()), 0, x.data()}, " vs. ",
          weir_shape{static_cast<uint32_t>(y.size()), 0, y.data()});
    }
    return WEIR_OK;
  }
};

struct BroadcastArgs {
  template <class T>
  int32_t Run(Env& env, Host<const T> s0, Host<const T> s1, View<T> r0) const {
    const Aligned<T> shapes{s0, s1};
    if (const int32_t code = shapes.Check(env); code != WEIR_OK) return code;
    if (r0.size() != shapes.rank()) {
      return env.error().Fail(WEIR_INTERNAL, "output 0 has shape ", r0.shape(), " for shapes of rank ", shapes.rank());
    }
    for (int64_t i = 0; i < r0.size(); ++i) r0[i] = shapes.A(i) == T(1) ? shapes.B(i) : shapes.A(i);
    return WEIR_OK;
  }
};

/// For each of two shapes, the axes of the broadcast shape in which it has extent 1 or no axis. None if the shapes are
/// equal.
struct BroadcastGradientArgs {
  template <class T>
  int32_t Run(Env& env, Host<const T> s0, Host<const T> s1, View<T> r0, View<T> r1) const {
    const Aligned<T> shapes{s0, s1};
    if (const int32_t code = shapes.Check(env); code != WEIR_OK) return code;
    bool same = s0.size() == s1.size();
    for (int64_t i = 0; same && i < s0.size(); ++i) same = s0[i] == s1[i];
    int64_t n0 = 0, n1 = 0;
    for (int64_t i = 0; !same && i < shapes.rank(); ++i) {
      if (shapes.A(i) == T(1) && n0++ < r0.size()) r0[n0 - 1] = static_cast<T>(i);
      if (shapes.B(i) == T(1) && n1++ < r1.size()) r1[n1 - 1] = static_cast<T>(i);
    }
    if (n0 == r0.size() && n1 == r1.size()) return WEIR_OK;
    return env.error().Fail(WEIR_INTERNAL, "the outputs have shapes ", r0.shape(), " and ", r1.shape(), " for ", n0,
                            " and ", n1, " axes");
  }
};

/// A shape in the format of this op's errors.
template <class T>
std::string Spaced(const View<const T>& shape) {
  std::string text = "[";
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ' ';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

struct ConcatOffset {
  template <class T>
  int32_t Run(Env& env, sdk::HostIntegers concat_dim, sdk::HostViews<const T> shapes, sdk::Views<T> offsets) const {
    if (concat_dim.size() != 1) {
      return env.error().InvalidArgument("Concat dim tensor should be a scalar integer, but got shape ",
                                         concat_dim.shape());
    }
    const int64_t rank = shapes[0].size(), given = concat_dim[0], axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank)
      return env.error().InvalidArgument("Concat dim is out of range: ", given, " vs. ", rank);
    T total(0);
    for (uint32_t i = 0; i < shapes.size(); ++i) {
      const View<const T> shape = shapes[i];
      const View<T> offset = offsets[i];
      if (shape.rank() != 1)
        return env.error().InvalidArgument("input ", i, " should be a vector, but got shape ", shape.shape());
      if (shape.size() != rank || offset.size() != rank) {
        return env.error().InvalidArgument("input ", i, " should contain ", rank, " elements, but got ", shape.size());
      }
      for (int64_t k = 0; k < rank; ++k) {
        if (k != axis && shape[k] != shapes[0][k]) {
          return env.error().InvalidArgument("All dimensions except ", axis, " must match. Input ", i, " has shape ",
                                             Spaced(shape), " and doesn't match input 0 with shape ", Spaced(shapes[0]),
                                             ".");
        }
        offset[k] = k == axis ? total : T(0);
      }
      if (__builtin_add_overflow(total, shape[axis], &total)) {
        return env.error().InvalidArgument("the extents along ", axis, " add up to more than the type holds");
      }
    }
    return WEIR_OK;
  }
};

/// y[x[i]] = i
template <class T>
int32_t InvertPermutation(const Env& env, const View<const T>& x, const View<T>& y) {
  if (x.rank() != 1) return env.error().InvalidArgument("invert_permutation expects a 1D vector.");
  const int64_t n = x.size();
  std::fill(y.data(), y.data() + n, T(-1));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = x[i];
    if (at < 0 || at >= n) return env.error().InvalidArgument(at, " is not between 0 and ", n);
    if (y[at] != T(-1)) return env.error().InvalidArgument(at, " is duplicated in the input.");
    y[at] = static_cast<T>(i);
  }
  return WEIR_OK;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SHAPE_ARGS_H_
