// The few elementwise ops on strings, in dynamic form: elements are accessed through the host.
#include <string>
#include <vector>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;

/// A string input with its shape.
struct Texts {
  std::vector<std::string_view> elements;
  weir_shape shape{};
};

/// The common broadcast shape of `shapes`; false if there is none.
bool CommonShape(std::initializer_list<weir_shape> shapes, std::vector<int64_t>* dims) {
  dims->clear();
  for (const weir_shape& shape : shapes) {
    if (shape.rank > dims->size()) dims->insert(dims->begin(), shape.rank - dims->size(), 1);
    const size_t shift = dims->size() - shape.rank;
    for (uint32_t i = 0; i < shape.rank; ++i) {
      int64_t& dim = (*dims)[shift + i];
      if (dim == 1) {
        dim = shape.dims[i];
      } else if (shape.dims[i] != 1 && shape.dims[i] != dim) {
        return false;
      }
    }
  }
  return true;
}

/// Two string inputs broadcast to one shape; `body` is called for each pair of elements.
struct Pairs {
  Texts x, y;
  std::vector<int64_t> dims;
  sdk::Broadcast<2> plan;
  bool compatible = true;

  int32_t Read(Context& ctx) {
    if (const int32_t code = ctx.Input(0, &x.elements, &x.shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &y.elements, &y.shape); code != WEIR_OK) return code;
    compatible = CommonShape({x.shape, y.shape}, &dims) && plan.Plan({x.shape, y.shape}, ShapeOf(dims));
    return WEIR_OK;
  }
  int32_t Refuse(Context& ctx) const {
    return ctx.error().InvalidArgument("Incompatible shapes: ", x.shape, " vs. ", y.shape);
  }
  template <class Body>
  void ForEach(Body&& body) const {
    if (sdk::SizeOf(ShapeOf(dims)) == 0) return;
    plan.ForRuns(0, plan.runs, [&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < plan.run; ++i) {
        body(x.elements[at[0] + (plan.advances[0] ? i : 0)], y.elements[at[1] + (plan.advances[1] ? i : 0)]);
      }
      return true;
    });
  }
};

/// Concatenates x and y.
struct Concatenate {
  int32_t Compute(Context& ctx) {
    Pairs pairs;
    if (const int32_t code = pairs.Read(ctx); code != WEIR_OK) return code;
    if (!pairs.compatible) return pairs.Refuse(ctx);
    std::vector<std::string> joined;
    pairs.ForEach([&](std::string_view x, std::string_view y) { joined.push_back(std::string(x).append(y)); });
    return ctx.OutputTexts(0, ShapeOf(pairs.dims), joined);
  }
};

template <bool kEqual>
struct Equality {
  bool refuse = true;  // whether operands that do not broadcast are an error; else the result is one scalar

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    refuse = node.Bool("incompatible_shape_error", true);
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    Pairs pairs;
    if (const int32_t code = pairs.Read(ctx); code != WEIR_OK) return code;
    if (!pairs.compatible && refuse) return pairs.Refuse(ctx);
    sdk::View<bool> out;
    if (!pairs.compatible) pairs.dims.clear();
    if (const int32_t code = ctx.Output(0, ShapeOf(pairs.dims), &out); code != WEIR_OK) return code;
    int64_t at = 0;
    if (!pairs.compatible) {
      out[0] = !kEqual;
    } else {
      pairs.ForEach([&](std::string_view x, std::string_view y) { out[at++] = (x == y) == kEqual; });
    }
    return WEIR_OK;
  }
};

/// Select (kBroadcast false: the condition is a scalar, a vector of rows or of the operands' shape) and SelectV2.
template <bool kBroadcast>
struct SelectTexts {
  int32_t Compute(Context& ctx) {
    sdk::View<const sdk::boolean> condition;
    Texts yes, no;
    if (const int32_t code = ctx.Input(0, &condition); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &yes.elements, &yes.shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &no.elements, &no.shape); code != WEIR_OK) return code;
    std::vector<int64_t> dims, padded;
    weir_shape c = condition.shape();
    if (!kBroadcast && c.rank == 1 && yes.shape.rank > 1) {  // a condition [n] selects rows of [n, …]
      padded.assign(yes.shape.rank, 1);
      padded[0] = c.dims[0];
      c = ShapeOf(padded);
    }
    sdk::Broadcast<3> plan;
    const bool fits = CommonShape({c, yes.shape, no.shape}, &dims) &&
                      plan.Plan({c, yes.shape, no.shape}, ShapeOf(dims)) &&
                      (kBroadcast || (sdk::SameShape(yes.shape, no.shape) && sdk::SameShape(yes.shape, ShapeOf(dims))));
    if (!fits) {
      return ctx.error().InvalidArgument("condition ", condition.shape(), ", then ", yes.shape, " and else ", no.shape,
                                         " do not fit each other");
    }
    std::vector<std::string_view> chosen;
    if (sdk::SizeOf(ShapeOf(dims)) != 0) {
      plan.ForRuns(0, plan.runs, [&](const std::array<int64_t, 3>& at) {
        for (int64_t i = 0; i < plan.run; ++i) {
          const auto index = [&](int k) { return at[k] + (plan.advances[k] ? i : 0); };
          chosen.push_back(condition[index(0)] ? yes.elements[index(1)] : no.elements[index(2)]);
        }
        return true;
      });
    }
    return ctx.OutputTexts(0, ShapeOf(dims), chosen);
  }
};

}  // namespace

void AddStrings(sdk::KernelTable& k) {
  k.Add<Concatenate>("Add").Restrict("T", {WEIR_STRING});
  k.Add<Equality<true>>("Equal").Restrict("T", {WEIR_STRING});
  k.Add<Equality<false>>("NotEqual").Restrict("T", {WEIR_STRING});
  k.Add<SelectTexts<false>>("Select").Restrict("T", {WEIR_STRING});
  k.Add<SelectTexts<true>>("SelectV2").Restrict("T", {WEIR_STRING});
}

}  // namespace weir::kernels_eigen
