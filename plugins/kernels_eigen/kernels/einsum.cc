// Einsum: each operand becomes a batch of matrices with the summed axes of its own gone, and their products are taken.
#include <algorithm>
#include <map>
#include <numeric>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;

/// A label of an axis: a character, or beyond those an axis of the ellipsis, counted from the last one.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kFirstOfEllipsis = 256;

bool Has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

/// The product of extents; 0 if one is 0, whatever the others are.
int64_t Volume(const std::vector<int64_t>& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Labels of a term such as "ab...c", for an array with `axes` axes in its ellipsis.
Labels TermLabels(std::string_view term, int axes) {
  Labels labels;
  const size_t dots = term.find("...");
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int k = axes; k-- > 0;) labels.push_back(kFirstOfEllipsis + k);
      i += 2;
    } else {
      labels.push_back(static_cast<unsigned char>(term[i]));
    }
  }
  return labels;
}

/// Calls body(from, to, n, from_step, to_step) for each innermost row of a box.
template <class Body>
void ForRows(const std::vector<int64_t>& dims, const std::vector<int64_t>& from_steps,
             const std::vector<int64_t>& to_steps, Body&& body) {
  if (Volume(dims) == 0) return;
  const size_t rank = dims.size();
  if (rank == 0) return body(int64_t{0}, int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0});
  std::vector<int64_t> index(rank, 0);
  int64_t from = 0, to = 0;
  while (true) {
    body(from, to, dims[rank - 1], from_steps[rank - 1], to_steps[rank - 1]);
    size_t i = rank - 1;
    for (; i-- > 0;) {
      from += from_steps[i];
      to += to_steps[i];
      if (++index[i] < dims[i]) break;
      from -= dims[i] * from_steps[i];
      to -= dims[i] * to_steps[i];
      index[i] = 0;
    }
    if (i == static_cast<size_t>(-1)) return;
  }
}

/// An operand with one step per distinct label, and the box of its elements in packed order.
struct Term {
  std::map<Label, int64_t> steps;    // repeated labels: along the diagonal
  std::map<Label, int64_t> extents;  // of this operand: 1 where it broadcasts
  std::vector<int64_t> dims, from, summed_dims, summed_from;
  bool direct = false;  // the array is packed as it is

  /// Packs the labels `order`; all others are summed.
  void Pack(const Labels& order) {
    dims.clear();
    from.clear();
    summed_dims.clear();
    summed_from.clear();
    for (const Label label : order) {
      dims.push_back(extents.at(label));
      from.push_back(steps.at(label));
    }
    for (const auto& [label, step] : steps) {
      if (Has(order, label)) continue;
      summed_dims.push_back(extents.at(label));
      summed_from.push_back(step);
    }
    direct = summed_dims.empty();
    const std::vector<int64_t> dense = StepsOf(dims);
    for (size_t i = 0; i < dims.size(); ++i) direct = direct && (dims[i] == 1 || from[i] == dense[i]);
  }

  template <class T, class C>
  void Gather(const T* x, C* packed) const {
    using Sum = std::conditional_t<std::is_same_v<C, float>, double, C>;
    const std::vector<int64_t> none(summed_dims.size(), 0);
    ForRows(dims, from, StepsOf(dims), [&](int64_t at, int64_t to, int64_t n, int64_t step, int64_t to_step) {
      for (int64_t i = 0; i < n; ++i) {
        if (summed_dims.empty()) {
          packed[to + i * to_step] = static_cast<C>(x[at + i * step]);
          continue;
        }
        Sum sum(0);
        ForRows(summed_dims, summed_from, none, [&](int64_t first, int64_t, int64_t m, int64_t inner, int64_t) {
          const T* const row = x + at + i * step + first;
          for (int64_t k = 0; k < m; ++k) sum = Total(sum, static_cast<Sum>(static_cast<C>(row[k * inner])));
        });
        packed[to + i * to_step] = static_cast<C>(sum);
      }
    });
  }
  template <class T>
  static T Total(T a, T b) {
    return kernels_eigen::Sum(a, b);
  }
};

template <class T>
constexpr bool kEinsumGemm =
    std::is_floating_point_v<T> || std::is_same_v<T, sdk::complex64> || std::is_same_v<T, sdk::complex128>;
constexpr double kWorthPacking = 32 * 32 * 32;

/// c = op(a) op(b) by plain loops.
template <class T>
void PlainProduct(const sdk::Product& p, const T* a, const T* b, T* c) {
  std::fill_n(c, p.m * p.n, T(0));
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = c + i * p.n;
    for (int64_t q = 0; q < p.k; ++q) {
      const T factor = a[p.transpose_a ? q * p.m + i : i * p.k + q];
      const T* const right = p.transpose_b ? b + q : b + q * p.n;
      const int64_t step = p.transpose_b ? p.k : 1;
      for (int64_t j = 0; j < p.n; ++j) row[j] = Sum(row[j], Product(factor, right[j * step]));
    }
  }
}

struct Einsum {
  std::vector<Term> terms;
  Labels batch;                                     // of both operands and of the output
  std::vector<int64_t> batch_dims, batch_steps[2];  // steps in matrices; 0 where an operand broadcasts
  sdk::Product product;
  GemmBlocks blocks;
  std::vector<int64_t> result_dims, result_to;      // the products' axes in the output
  int64_t packed[2] = {}, result = 0, packing = 0;  // elements of scratch memory
  bool empty = false, result_direct = false, diagonal = false;

  int32_t Prepare(Prep& prep) {
    empty = HasNoElements(prep.output(0).shape);
    Labels output;
    std::map<Label, int64_t> extents;
    if (const int32_t code = Read(prep, &output, &extents); code != WEIR_OK) return code;
    if (empty) return WEIR_OK;
    const Labels result_labels = terms.size() == 1 ? PlanOne(output) : PlanProduct(output, extents);
    PlanResult(prep.output(0).shape, output, result_labels, extents);
    const uint32_t dtype = prep.input(0).dtype;
    const bool widened = dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
    for (size_t i = 0; i < terms.size(); ++i) packed[i] = terms[i].direct && !widened ? 0 : Volume(terms[i].dims);
    result = terms.size() == 1 || (result_direct && !widened) ? 0 : Volume(result_dims);
    const uint64_t bytes = widened ? 4 : sdk::SizeOf(dtype);
    if (terms.size() == 2) PlanPacking(dtype);
    prep.Scratch((Aligned(packed[0]) + Aligned(packed[1]) + Aligned(result) + Aligned(packing)) * bytes);
    return WEIR_OK;
  }

  template <class T>
  void Run(sdk::Views<const T> inputs, sdk::View<T> output, sdk::Scratch<char> scratch) const {
    using C = sdk::Compute<T>;
    if (empty) return;
    C* memory = reinterpret_cast<C*>(scratch.data());
    T* const to = output.data();
    if (diagonal) std::fill_n(to, output.size(), T());
    if (terms.size() == 1) {
      C* const one = memory;
      const C* values = one;
      if constexpr (std::is_same_v<C, T>) {
        if (terms[0].direct) values = inputs[0].data();
      }
      if (values == one) terms[0].Gather(inputs[0].data(), one);
      return Scatter(values, to);
    }
    const C* sides[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
      if constexpr (std::is_same_v<C, T>) {
        if (terms[i].direct) sides[i] = inputs[i].data();
      }
      if (sides[i] != nullptr) continue;
      terms[i].Gather(inputs[i].data(), memory);
      sides[i] = memory;
      memory += Aligned(packed[i]);
    }
    C* products = memory;
    if constexpr (std::is_same_v<C, T>) {
      if (result_direct) products = to;
    }
    Multiply(sides[0], sides[1], products, memory + Aligned(result));
    if (static_cast<void*>(products) != static_cast<void*>(to)) Scatter(static_cast<const C*>(products), to);
  }

 private:
  static uint64_t Aligned(int64_t elements) { return static_cast<uint64_t>(elements + 63) / 64 * 64; }

  /// Reads the equation and the steps and extents of the operands. The shape function has checked them for nodes with
  /// known shapes.
  int32_t Read(const Prep& prep, Labels* output, std::map<Label, int64_t>* extents) {
    const std::string_view equation = prep.node().String("equation");
    const size_t arrow = equation.find("->");
    if (arrow == equation.npos) {
      return prep.error().InvalidArgument("Expecting exactly one '->' in einsum equation: ", equation);
    }
    std::vector<std::string_view> texts;
    for (size_t begin = 0; begin <= arrow;) {
      const size_t end = std::min(equation.find(',', begin), arrow);
      texts.push_back(equation.substr(begin, end - begin));
      begin = end + 1;
    }
    if (texts.size() != prep.inputs() || texts.size() > 2) {
      return prep.error().InvalidArgument("Expected ", texts.size(), " inputs but got: ", prep.inputs());
    }
    int broadcast = 0;
    for (uint32_t i = 0; i < texts.size(); ++i) {
      const weir_shape& shape = prep.shape(i);
      const bool ellipsis = texts[i].find("...") != texts[i].npos;
      const int named = static_cast<int>(texts[i].size()) - (ellipsis ? 3 : 0), rank = static_cast<int>(shape.rank);
      if (ellipsis ? rank < named : rank != named) {
        return prep.error().InvalidArgument("Expected input ", i, " to have rank ", ellipsis ? "at least " : "", named,
                                            " but got: ", rank);
      }
      broadcast = std::max(broadcast, rank - named);
      if (const int32_t code = ReadTerm(prep, i, TermLabels(texts[i], rank - named), extents); code != WEIR_OK) {
        return code;
      }
    }
    const std::string_view out = equation.substr(arrow + 2);
    if (broadcast > 0 && out.find("...") == out.npos) {
      return prep.error().InvalidArgument("Output contains ", broadcast,
                                          " broadcasting dimension(s) but no ellipsis (...) was found in the output "
                                          "subscripts.");
    }
    *output = TermLabels(out, broadcast);
    std::vector<int64_t> dims;
    for (const Label label : *output) {
      const auto extent = extents->find(label);
      if (extent == extents->end()) {
        return prep.error().InvalidArgument("an output subscript of ", equation, " is not in the input subscripts");
      }
      dims.push_back(extent->second);
    }
    return ExpectOutput(prep, 0, dims);
  }

  int32_t ReadTerm(const Prep& prep, uint32_t i, const Labels& labels, std::map<Label, int64_t>* extents) {
    const weir_shape& shape = prep.shape(i);
    const std::vector<int64_t> steps = StepsOf(DimsOf(shape));
    Term& term = terms.emplace_back();
    for (uint32_t axis = 0; axis < shape.rank; ++axis) {
      const Label label = labels[axis];
      const int64_t extent = shape.dims[axis];
      int64_t& whole = extents->try_emplace(label, extent).first->second;
      if (label >= kFirstOfEllipsis && whole == 1) whole = extent;
      if (whole != extent && !(label >= kFirstOfEllipsis && extent == 1)) {
        if (label >= kFirstOfEllipsis) {
          return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", prep.shape(0),
                                              " vs. ", prep.shape(1));
        }
        return prep.error().InvalidArgument("Expected dimension ", whole, " at axis ", axis, " of the input shaped ",
                                            shape, " but got dimension ", extent);
      }
      term.extents[label] = extent;
      term.steps[label] += steps[axis];
    }
    return WEIR_OK;
  }

  /// One operand: its elements in the output's order. Returns the labels of the result.
  Labels PlanOne(const Labels& output) {
    Labels order;
    for (const Label label : output) {
      if (!Has(order, label)) order.push_back(label);
    }
    terms[0].Pack(order);
    return order;
  }

  Labels PlanProduct(const Labels& output, const std::map<Label, int64_t>& extents) {
    Labels contracted, free[2];
    for (const Label label : output) {
      const bool in_x = terms[0].steps.contains(label), in_y = terms[1].steps.contains(label);
      Labels& kind = in_x && in_y ? batch : free[in_x ? 0 : 1];
      if (!Has(kind, label)) kind.push_back(label);
    }
    for (const auto& [label, step] : terms[0].steps) {
      if (terms[1].steps.contains(label) && !Has(output, label)) contracted.push_back(label);
    }
    const auto join = [&](const Labels& second, const Labels& third) {
      Labels all = batch;
      all.insert(all.end(), second.begin(), second.end());
      all.insert(all.end(), third.begin(), third.end());
      return all;
    };
    const auto volume = [&](const Labels& labels) {
      std::vector<int64_t> dims;
      for (const Label label : labels) dims.push_back(extents.at(label));
      return Volume(dims);
    };
    product.m = volume(free[0]);
    product.n = volume(free[1]);
    product.k = volume(contracted);
    // An operand that is in memory the other way round is taken as its transpose.
    terms[0].Pack(join(contracted, free[0]));
    product.transpose_a = terms[0].direct;
    if (!terms[0].direct) terms[0].Pack(join(free[0], contracted));
    terms[1].Pack(join(free[1], contracted));
    product.transpose_b = terms[1].direct;
    if (!terms[1].direct) terms[1].Pack(join(contracted, free[1]));
    for (const Label label : batch) batch_dims.push_back(extents.at(label));
    for (int i = 0; i < 2; ++i) {
      std::vector<int64_t> own;
      for (const Label label : batch) own.push_back(terms[static_cast<size_t>(i)].extents.at(label));
      batch_steps[i] = StepsOf(own);
      for (size_t k = 0; k < own.size(); ++k) batch_steps[i][k] = own[k] == 1 ? 0 : batch_steps[i][k];
    }
    return join(free[0], free[1]);
  }

  /// Where the elements of the result, in the order of `labels`, are in the output.
  void PlanResult(const weir_shape& shape, const Labels& output, const Labels& labels,
                  const std::map<Label, int64_t>& extents) {
    const std::vector<int64_t> steps = StepsOf(DimsOf(shape));
    diagonal = labels.size() < output.size();
    for (const Label label : labels) {
      int64_t step = 0;
      for (size_t i = 0; i < output.size(); ++i) step += output[i] == label ? steps[i] : 0;
      result_dims.push_back(extents.at(label));
      result_to.push_back(step);
    }
    const std::vector<int64_t> dense = StepsOf(result_dims);
    result_direct = !diagonal;
    for (size_t i = 0; i < dense.size(); ++i) {
      result_direct = result_direct && (result_dims[i] == 1 || dense[i] == result_to[i]);
    }
  }

  bool Packs() const { return product.m > 1 && product.n > 1 && product.k > 0 && product.Flops() / 2 > kWorthPacking; }
  void PlanPacking(uint32_t dtype) {
    if (!Packs()) return;
    switch (dtype) {
      case WEIR_FLOAT16:
      case WEIR_BFLOAT16:
      case WEIR_FLOAT32:
        blocks = PlanGemm<float>(product);
        break;
      case WEIR_FLOAT64:
        blocks = PlanGemm<double>(product);
        break;
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
      case WEIR_COMPLEX64:
        blocks = PlanGemm<sdk::complex64>(product);
        break;
      case WEIR_COMPLEX128:
        blocks = PlanGemm<sdk::complex128>(product);
        break;
#endif
      default:
        return;
    }
    packing = blocks.Elements();
  }

  template <class C>
  void Multiply(const C* x, const C* y, C* products, C* memory) const {
    const sdk::Product& p = product;
    std::vector<int64_t> strides[2];
    const int64_t sizes[2] = {p.m * p.k, p.k * p.n};
    for (int i = 0; i < 2; ++i) {
      for (const int64_t step : batch_steps[i]) strides[i].push_back(step * sizes[i]);
    }
    C* to = products;
    ForRows(batch_dims, strides[0], strides[1],
            [&](int64_t a, int64_t b, int64_t count, int64_t a_step, int64_t b_step) {
              for (int64_t i = 0; i < count; ++i, to += p.m * p.n) {
                if constexpr (kEinsumGemm<C>) {
                  if (Packs()) {
                    Gemm(p, blocks, x + a + i * a_step, y + b + i * b_step, to, memory);
                    continue;
                  }
                }
                PlainProduct(p, x + a + i * a_step, y + b + i * b_step, to);
              }
            });
  }

  template <class C, class T>
  void Scatter(const C* values, T* to) const {
    ForRows(result_dims, StepsOf(result_dims), result_to,
            [&](int64_t from, int64_t at, int64_t n, int64_t step, int64_t to_step) {
              for (int64_t i = 0; i < n; ++i) to[at + i * to_step] = static_cast<T>(values[from + i * step]);
            });
  }
};

}  // namespace

void AddEinsum(sdk::KernelTable& k) { k.Add<Einsum>("Einsum", kFloatingOrComplex + kIndex).Class(WEIR_CLASS_GEMM); }

}  // namespace weir::kernels_eigen
