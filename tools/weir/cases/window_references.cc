#include "tools/weir/cases/window_references.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/tensor/number.h"
#include "tools/weir/cases/case_values.h"

namespace weir::cases {
namespace {

/// The shapes of a convolution y = x * w, with the spatial axes in the order of the attributes.
struct Convolved {
  Shape x, w, y;
  bool channels_first = false, depthwise = false;
  std::vector<int64_t> strides, dilations, paddings;  // by axis of images; the two sides of explicit paddings
  std::string padding;

  int spatial() const { return x.rank() - 2; }
  int channel() const { return channels_first ? 1 : x.rank() - 1; }
  int axis(int i) const { return i + (channels_first ? 2 : 1); }
  /// Padding in front of spatial axis i.
  int64_t Before(int i) const {
    const auto at = static_cast<size_t>(axis(i));
    if (padding == "EXPLICIT") return paddings[2 * at];
    if (padding == "VALID") return 0;
    const int64_t reach = (w.dim(i) - 1) * dilations[at] + 1;
    return std::max<int64_t>(0, (y.dim(axis(i)) - 1) * strides[at] + reach - x.dim(axis(i))) / 2;
  }
};

int64_t Flat(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (int i = 0; i < shape.rank(); ++i) at = at * shape.dim(i) + index[static_cast<size_t>(i)];
  return at;
}

bool NextIndex(const Shape& shape, std::vector<int64_t>& index) {
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (++index[static_cast<size_t>(i)] < shape.dim(i)) return true;
    index[static_cast<size_t>(i)] = 0;
  }
  return false;
}

/// Calls visit(x, w, y) with the elements of every product x * w that y sums.
template <class Visit>
void ForProducts(const Convolved& c, Visit&& visit) {
  if (c.w.elements() == 0 || c.y.elements() == 0) return;
  const int n = c.spatial();
  const auto channel = static_cast<size_t>(c.channel()), filter_in = static_cast<size_t>(n), filter_out = filter_in + 1;
  const int64_t in = c.w.dim(n), out = c.w.dim(n + 1);
  const int64_t group_out = c.depthwise ? 1 : out / (c.x.dim(c.channel()) / in);
  std::vector<int64_t> summed(c.w.dims().begin(), c.w.dims().end() - 1);  // taps, channels of a group
  if (c.depthwise) summed.back() = 1;
  const Shape terms = *Shape::Make(summed);
  std::vector<int64_t> y(static_cast<size_t>(c.y.rank())), x = y;
  do {
    const int64_t output = y[channel];
    std::vector<int64_t> term(summed.size()), w(summed.size() + 1);
    do {
      std::copy(term.begin(), term.end(), w.begin());
      if (c.depthwise) w[filter_in] = output / out;
      w[filter_out] = c.depthwise ? output % out : output;
      x[0] = y[0];
      x[channel] = c.depthwise ? w[filter_in] : output / group_out * in + w[filter_in];
      bool inside = true;
      for (int i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(c.axis(i));
        x[at] = y[at] * c.strides[at] - c.Before(i) + w[static_cast<size_t>(i)] * c.dilations[at];
        inside = inside && x[at] >= 0 && x[at] < c.x.dim(c.axis(i));
      }
      if (inside) visit(Flat(c.x, x), Flat(c.w, w), Flat(c.y, y));
    } while (NextIndex(terms, term));
  } while (NextIndex(c.y, y));
}

double Activated(const std::string& activation, double x, double alpha) {
  if (std::isnan(x)) return x;
  if (activation == "Relu") return std::max(x, 0.0);
  if (activation == "Relu6") return std::clamp(x, 0.0, 6.0);
  if (activation == "Tanh") return std::tanh(x);
  if (activation == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (activation == "Elu") return x < 0 ? std::expm1(x) : x;
  if (activation == "LeakyRelu") return x < 0 ? alpha * x : x;
  return x;
}

/// What fused ops do with the sums of products: a bias for each channel, an addend, an activation.
void FinishSums(const OpCase& c, const Convolved& conv, std::vector<double>& sums) {
  const std::string activation = *c.view().String("activation");
  const double alpha = static_cast<double>(*c.view().Float("alpha"));
  std::vector<int64_t> y(static_cast<size_t>(conv.y.rank()));
  for (double& sum : sums) {
    const auto at = &sum - sums.data();
    sum += ElementAsDouble(c.inputs[2], y[static_cast<size_t>(conv.channel())]);
    if (c.inputs.size() > 3) sum += ElementAsDouble(c.inputs[3], at);
    sum = Activated(activation, sum, alpha);
    (void)NextIndex(conv.y, y);
  }
}

}  // namespace

bool ConvolutionReference(const OpCase& c, Tensor& result) {
  std::string op = c.def->name;
  const bool fused = op[0] == '_';
  for (const char* prefix : {"_Biased", "_Residual"}) {
    if (op.starts_with(prefix)) op = op.substr(std::string(prefix).size());
  }
  const bool by_input = op.find("BackpropInput") != std::string::npos;
  const bool by_filter = op.find("BackpropFilter") != std::string::npos;
  Convolved conv;
  conv.depthwise = op.starts_with("DepthwiseConv2");
  if (!conv.depthwise && !op.starts_with("Conv2D") && !op.starts_with("Conv3D")) return false;
  conv.x = by_input ? result.shape() : c.inputs[0].shape();
  conv.w = by_filter ? result.shape() : c.inputs[1].shape();
  conv.y = by_input || by_filter ? c.inputs[2].shape() : result.shape();
  if (fused && c.inputs.size() < 3) return false;
  conv.channels_first = c.view().Has("data_format") && c.view().String("data_format")->starts_with("NC");
  conv.strides = *c.view().Ints("strides");
  conv.dilations = *c.view().Ints("dilations");
  conv.padding = *c.view().String("padding");
  if (conv.padding == "EXPLICIT") conv.paddings = *c.view().Ints("explicit_paddings");
  std::vector<double> sums(static_cast<size_t>(result.elements()));
  std::vector<std::vector<double>> values;
  for (const Tensor& input : c.inputs) {
    std::vector<double>& of = values.emplace_back();
    for (int64_t i = 0; i < input.elements(); ++i) of.push_back(ElementAsDouble(input, i));
  }
  ForProducts(conv, [&](int64_t x, int64_t w, int64_t y) {
    const auto at = static_cast<size_t>(by_input ? x : by_filter ? w : y);
    const double left = by_input ? values[2][static_cast<size_t>(y)] : values[0][static_cast<size_t>(x)];
    const double right = by_filter ? values[2][static_cast<size_t>(y)] : values[1][static_cast<size_t>(w)];
    sums[at] += left * right;
  });
  if (fused) FinishSums(c, conv, sums);
  for (int64_t i = 0; i < result.elements(); ++i) SetNumber(result, i, sums[static_cast<size_t>(i)]);
  return true;
}

}  // namespace weir::cases
