// What Einsum computes: each operand becomes a batch of matrices with the summed axes of its own gone, and their
// products are taken.
#ifndef WEIR_PLUGINS_FUNCTORS_EINSUM_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_EINSUM_PLAN_H_

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "sdk/cpp/products.h"

namespace weir::functors {

/// A label of an axis: a character, or beyond those an axis of the ellipsis, counted from the last one.
using EinsumLabel = int;
using EinsumLabels = std::vector<EinsumLabel>;
inline constexpr EinsumLabel kFirstOfEllipsis = 256;

inline bool Has(const EinsumLabels& labels, EinsumLabel label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The product of extents; 0 if one is 0, whatever the others are.
inline int64_t Volume(const std::vector<int64_t>& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Labels of a term such as "ab...c", for an array with `axes` axes in its ellipsis.
inline EinsumLabels TermLabels(std::string_view term, int axes) {
  EinsumLabels labels;
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

/// An operand with one step per distinct label, and the box of its elements in packed order.
struct EinsumTerm {
  std::map<EinsumLabel, int64_t> steps;    // repeated labels: along the diagonal
  std::map<EinsumLabel, int64_t> extents;  // of this operand: 1 where it broadcasts
  std::vector<int64_t> dims, from, summed_dims, summed_from;
  bool direct = false;  // the array is packed as it is

  /// Packs the labels `order`; all others are summed.
  void Pack(const EinsumLabels& order) {
    dims.clear();
    from.clear();
    summed_dims.clear();
    summed_from.clear();
    for (const EinsumLabel label : order) {
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
};

/// The plan of a node. With one operand the result is its packed elements, with two the products of the packed ones.
struct EinsumPlan {
  std::vector<EinsumTerm> terms;
  EinsumLabels batch;                               // of both operands and of the output
  std::vector<int64_t> batch_dims, batch_steps[2];  // steps in matrices; 0 where an operand broadcasts
  sdk::Product product;
  std::vector<int64_t> result_dims, result_to;  // the products' axes in the output
  bool empty = false, result_direct = false, diagonal = false;

  int32_t Plan(const sdk::Prep& prep) {
    empty = HasNoElements(prep.output(0).shape);
    EinsumLabels output;
    std::map<EinsumLabel, int64_t> extents;
    if (const int32_t code = Read(prep, &output, &extents); code != WEIR_OK) return code;
    if (empty) return WEIR_OK;
    const EinsumLabels result_labels = terms.size() == 1 ? PlanOne(output) : PlanProduct(output, extents);
    PlanResult(prep.output(0).shape, output, result_labels, extents);
    return WEIR_OK;
  }

 private:
  /// Reads the equation and the steps and extents of the operands. The shape function has checked them for nodes with
  /// known shapes.
  int32_t Read(const sdk::Prep& prep, EinsumLabels* output, std::map<EinsumLabel, int64_t>* extents) {
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
    for (const EinsumLabel label : *output) {
      const auto extent = extents->find(label);
      if (extent == extents->end()) {
        return prep.error().InvalidArgument("an output subscript of ", equation, " is not in the input subscripts");
      }
      dims.push_back(extent->second);
    }
    return ExpectOutput(prep, 0, dims);
  }

  int32_t ReadTerm(const sdk::Prep& prep, uint32_t i, const EinsumLabels& labels,
                   std::map<EinsumLabel, int64_t>* extents) {
    const weir_shape& shape = prep.shape(i);
    const std::vector<int64_t> steps = StepsOf(DimsOf(shape));
    EinsumTerm& term = terms.emplace_back();
    for (uint32_t axis = 0; axis < shape.rank; ++axis) {
      const EinsumLabel label = labels[axis];
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
  EinsumLabels PlanOne(const EinsumLabels& output) {
    EinsumLabels order;
    for (const EinsumLabel label : output) {
      if (!Has(order, label)) order.push_back(label);
    }
    terms[0].Pack(order);
    return order;
  }

  EinsumLabels PlanProduct(const EinsumLabels& output, const std::map<EinsumLabel, int64_t>& extents) {
    EinsumLabels contracted, free[2];
    for (const EinsumLabel label : output) {
      const bool in_x = terms[0].steps.contains(label), in_y = terms[1].steps.contains(label);
      EinsumLabels& kind = in_x && in_y ? batch : free[in_x ? 0 : 1];
      if (!Has(kind, label)) kind.push_back(label);
    }
    for (const auto& [label, step] : terms[0].steps) {
      if (terms[1].steps.contains(label) && !Has(output, label)) contracted.push_back(label);
    }
    const auto join = [&](const EinsumLabels& second, const EinsumLabels& third) {
      EinsumLabels all = batch;
      all.insert(all.end(), second.begin(), second.end());
      all.insert(all.end(), third.begin(), third.end());
      return all;
    };
    const auto volume = [&](const EinsumLabels& labels) {
      std::vector<int64_t> dims;
      for (const EinsumLabel label : labels) dims.push_back(extents.at(label));
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
    for (const EinsumLabel label : batch) batch_dims.push_back(extents.at(label));
    for (int i = 0; i < 2; ++i) {
      std::vector<int64_t> own;
      for (const EinsumLabel label : batch) own.push_back(terms[static_cast<size_t>(i)].extents.at(label));
      batch_steps[i] = StepsOf(own);
      for (size_t k = 0; k < own.size(); ++k) batch_steps[i][k] = own[k] == 1 ? 0 : batch_steps[i][k];
    }
    return join(free[0], free[1]);
  }

  /// Where the elements of the result, in the order of `labels`, are in the output.
  void PlanResult(const weir_shape& shape, const EinsumLabels& output, const EinsumLabels& labels,
                  const std::map<EinsumLabel, int64_t>& extents) {
    const std::vector<int64_t> steps = StepsOf(DimsOf(shape));
    diagonal = labels.size() < output.size();
    for (const EinsumLabel label : labels) {
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
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_EINSUM_PLAN_H_
