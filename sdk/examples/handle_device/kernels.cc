#include "kernels.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "sdk/cpp/broadcast.h"
#include "submit.h"

// A kernel reads its geometry in Prepare, where all shapes are known, and gives the queue a function that holds what it
// needs by value. Run itself touches no element.
namespace handle_device {
namespace {

using weir::sdk::Broadcast;
using weir::sdk::Buffer;
using weir::sdk::Env;
using weir::sdk::HostIntegers;
using weir::sdk::KernelTable;
using weir::sdk::Prep;
using weir::sdk::Types;
using weir::sdk::VariableBuffer;

struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t rows = 0, columns = 0, depth = 0;

  int32_t Prepare(Prep& prep) {
    transpose_a = prep.node().Bool("transpose_a");
    transpose_b = prep.node().Bool("transpose_b");
    if (prep.shape(0).rank != 2 || prep.shape(1).rank != 2) return prep.error().InvalidArgument("wanted two matrices");
    rows = prep.shape(0).dims[transpose_a ? 1 : 0];
    depth = prep.shape(0).dims[transpose_a ? 0 : 1];
    columns = prep.shape(1).dims[transpose_b ? 0 : 1];
    const int64_t other = prep.shape(1).dims[transpose_b ? 1 : 0];
    if (other != depth) return prep.error().InvalidArgument("inner dimensions ", depth, " and ", other, " differ");
    return WEIR_OK;
  }
  int32_t Run(Env& env, Buffer<const float> a, Buffer<const float> b, Buffer<float> c) const {
    auto run = [self = *this](const float* x, const float* y, float* z) {
      const int64_t x_row = self.transpose_a ? 1 : self.depth, x_step = self.transpose_a ? self.rows : 1;
      for (int64_t i = 0; i < self.rows; ++i) {
        const float* const left = x + i * x_row;
        float* const row = z + i * self.columns;
        std::fill(row, row + self.columns, 0.0f);
        // Along the rows of y as it is stored.
        for (int64_t j = 0; self.transpose_b && j < self.columns; ++j) {
          for (int64_t k = 0; k < self.depth; ++k) row[j] += left[k * x_step] * y[j * self.depth + k];
        }
        for (int64_t k = 0; !self.transpose_b && k < self.depth; ++k) {
          for (int64_t j = 0; j < self.columns; ++j) row[j] += left[k * x_step] * y[k * self.columns + j];
        }
      }
    };
    return Submit(env.native_stream(), "MatMul", env.error(), run, a, b, c);
  }
  /// Without it, the work would be the record's flops for each element of the largest operand.
  static weir::sdk::Cost Estimate(const Prep& prep) {
    weir::sdk::Cost cost;
    if (prep.shape(0).rank != 2 || prep.shape(1).rank != 2) return cost;
    const int64_t depth = prep.shape(0).dims[prep.node().Bool("transpose_a") ? 0 : 1];
    const int64_t results = weir::sdk::SizeOf(prep.output(0).shape);
    cost.flops = 2.0 * static_cast<double>(results) * static_cast<double>(depth);
    cost.bytes = static_cast<double>(prep.size(0) + prep.size(1) + results) * sizeof(float);
    return cost;
  }
};

/// z = F(x, y) with broadcasting.
template <class F>
struct Pair {
  Broadcast<2> walk;

  int32_t Prepare(Prep& prep) {
    if (walk.Plan({prep.shape(0), prep.shape(1)}, prep.output(0).shape)) return WEIR_OK;
    return prep.error().Unimplemented("no broadcast of ", prep.shape(0), " and ", prep.shape(1));
  }
  int32_t Run(Env& env, Buffer<const float> x, Buffer<const float> y, Buffer<float> z) const {
    const int64_t runs = z.size() == 0 ? 0 : walk.runs;
    auto run = [walk = walk, runs](const float* a, const float* b, float* c) {
      walk.ForRuns(0, runs, [&](const std::array<int64_t, 2>& at) {
        for (int64_t i = 0; i < walk.run; ++i) {
          *c++ = F()(a[at[0] + (walk.advances[0] ? i : 0)], b[at[1] + (walk.advances[1] ? i : 0)]);
        }
        return true;
      });
    };
    return Submit(env.native_stream(), "an elementwise kernel", env.error(), run, x, y, z);
  }
};

struct Plus {
  float operator()(float x, float y) const { return x + y; }
};
struct Minus {
  float operator()(float x, float y) const { return x - y; }
};
struct Times {
  float operator()(float x, float y) const { return x * y; }
};
/// The gradient of Relu; what is not a number stays none.
struct WherePositive {
  float operator()(float gradient, float x) const { return gradient * (x > 0 ? 1.0f : 0.0f); }
};

struct Rectify {
  void Prepare(Prep& prep) { prep.MayAlias(0, 0); }
  int32_t Run(Env& env, Buffer<const float> x, Buffer<float> y) const {
    auto run = [n = x.size()](const float* from, float* to) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] < 0 ? 0 : from[i];
    };
    return Submit(env.native_stream(), "Relu", env.error(), run, x, y);
  }
};

int32_t RefuseChannelsFirst(const Prep& prep) {
  if (prep.node().String("data_format", "NHWC") == "NHWC") return WEIR_OK;
  return prep.error().Unimplemented("bias of NCHW");
}

struct Bias {
  int32_t Prepare(Prep& prep) {
    const weir_shape &x = prep.shape(0), &bias = prep.shape(1);
    if (x.rank < 2 || bias.rank != 1 || bias.dims[0] != x.dims[x.rank - 1]) {
      return prep.error().InvalidArgument("wanted a bias for each element of the last axis, got ", x, " and ", bias);
    }
    return RefuseChannelsFirst(prep);
  }
  int32_t Run(Env& env, Buffer<const float> x, Buffer<const float> bias, Buffer<float> y) const {
    auto run = [n = x.size(), columns = bias.size()](const float* from, const float* add, float* to) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] + add[i % columns];
    };
    return Submit(env.native_stream(), "BiasAdd", env.error(), run, x, bias, y);
  }
};

struct BiasGradient {
  int32_t Prepare(Prep& prep) { return RefuseChannelsFirst(prep); }
  int32_t Run(Env& env, Buffer<const float> gradient, Buffer<float> sums) const {
    auto run = [n = gradient.size(), columns = sums.size()](const float* from, float* to) {
      std::vector<double> totals(static_cast<size_t>(columns), 0.0);
      for (int64_t i = 0; i < n; ++i) totals[static_cast<size_t>(i % columns)] += static_cast<double>(from[i]);
      std::transform(totals.begin(), totals.end(), to, [](double total) { return static_cast<float>(total); });
    };
    return Submit(env.native_stream(), "BiasAddGrad", env.error(), run, gradient, sums);
  }
};

/// The axes are a constant in host memory, so all that is needed of them is known in Prepare.
struct SumOf {
  std::vector<int64_t> dims, steps;  // of the operand, and how far the result moves along each

  int32_t Prepare(Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    const std::optional<weir::sdk::Integers> axes = prep.Constant(1);
    if (!axes) return prep.error().Unimplemented("axes that are no constant");
    dims.assign(shape.dims, shape.dims + shape.rank);
    steps.assign(shape.rank, 1);
    for (int64_t i = 0; i < axes->size(); ++i) {
      const int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + shape.rank : (*axes)[i];
      if (axis < 0 || axis >= shape.rank) return prep.error().InvalidArgument("axis ", (*axes)[i], " of ", shape);
      if (steps[static_cast<size_t>(axis)] == 0) return prep.error().InvalidArgument("axis ", axis, " comes twice");
      steps[static_cast<size_t>(axis)] = 0;
    }
    int64_t step = 1;
    for (size_t d = dims.size(); d-- > 0;) {
      if (steps[d] == 0) continue;
      steps[d] = step;
      step *= dims[d];
    }
    return WEIR_OK;
  }
  int32_t Run(Env& env, Buffer<const float> x, HostIntegers, Buffer<float> y) const {
    auto run = [dims = dims, steps = steps, n = x.size(), sums = y.size()](const float* from, float* to) {
      std::vector<double> totals(static_cast<size_t>(sums), 0.0);
      std::vector<int64_t> index(dims.size(), 0);
      for (int64_t i = 0, at = 0; i < n; ++i) {
        totals[static_cast<size_t>(at)] += static_cast<double>(from[i]);
        for (size_t d = dims.size(); d-- > 0;) {
          at += steps[d];
          if (++index[d] < dims[d]) break;
          at -= steps[d] * dims[d];
          index[d] = 0;
        }
      }
      std::transform(totals.begin(), totals.end(), to, [](double total) { return static_cast<float>(total); });
    };
    return Submit(env.native_stream(), "Sum", env.error(), run, x, y);
  }
};

/// sum(x * x) / 2
struct HalfSquares {
  int32_t Run(Env& env, Buffer<const float> x, Buffer<float> y) const {
    auto run = [n = x.size()](const float* from, float* to) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(from[i]) * static_cast<double>(from[i]);
      *to = static_cast<float>(sum / 2);
    };
    return Submit(env.native_stream(), "L2Loss", env.error(), run, x, y);
  }
};

struct Descent {
  int32_t Prepare(Prep& prep) {
    const weir_shape &value = prep.shape(0), &rate = prep.shape(1), &delta = prep.shape(2);
    if (weir::sdk::SameShape(value, delta) && rate.rank == 0) return WEIR_OK;
    return prep.error().InvalidArgument("wanted a rate and a change of shape ", value, ", got ", rate, " and ", delta);
  }
  int32_t Run(Env& env, VariableBuffer<float> variable, Buffer<const float> rate, Buffer<const float> delta) const {
    auto run = [n = delta.size()](float* value, const float* step, const float* by) {
      for (int64_t i = 0; i < n; ++i) value[i] -= *step * by[i];
    };
    const Buffer<float>& value = variable;
    return Submit(env.native_stream(), "ApplyGradientDescent", env.error(), run, value, rate, delta);
  }
};

}  // namespace

void AddKernels(KernelTable& k) {
  k.Add<Product>("MatMul").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM, 2);
  k.Add<Pair<Plus>>("AddV2").Restrict("T", {WEIR_FLOAT32});
  k.Add<Pair<Minus>>("Sub").Restrict("T", {WEIR_FLOAT32});
  k.Add<Pair<Times>>("Mul").Restrict("T", {WEIR_FLOAT32});
  k.Add<Rectify>("Relu").Restrict("T", {WEIR_FLOAT32});
  k.Add<Pair<WherePositive>>("ReluGrad").Restrict("T", {WEIR_FLOAT32});
  k.Add<Bias>("BiasAdd").Restrict("T", {WEIR_FLOAT32});
  k.Add<BiasGradient>("BiasAddGrad").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_REDUCE);
  k.Add<SumOf>("Sum").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_REDUCE);
  k.Add<HalfSquares>("L2Loss").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_REDUCE);
  for (const char* op : {"ApplyGradientDescent", "ResourceApplyGradientDescent"}) {
    k.Add<Descent>(op).Restrict("T", {WEIR_FLOAT32});
  }
}

}  // namespace handle_device
