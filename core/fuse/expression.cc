#include "core/fuse/expression_internal.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

constexpr std::string_view kLastDimension = "last";
constexpr std::string_view kFirstDimension = "first";
constexpr std::string_view kWith = " with ";

class TermParser {
 public:
  explicit TermParser(std::string_view text) : text_(text) {}

  Result<Term> Parse() {
    WEIR_ASSIGN(Term term, ParseOne());
    if (at_ != text_.size()) return Fault("the end");
    return term;
  }
  /// One or more terms with names and commas between them.
  Result<std::vector<Term>> ParseList() {
    std::vector<Term> terms;
    do {
      WEIR_ASSIGN(Term term, ParseOne());
      if (term.name.empty() || term.ops.empty()) return Fault("NAME=OP(...)");
      terms.push_back(std::move(term));
    } while (Take(','));
    if (at_ != text_.size()) return Fault("the end");
    return terms;
  }

 private:
  Status Fault(std::string_view wanted) const {
    return InvalidArgument("column {} of '{}': wanted {}", at_ + 1, text_, wanted);
  }
  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char wanted) {
    SkipBlanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::string Word() {
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the catalogue's expressions
  Result<Term> ParseOne() {
    Term term;
    std::string word = Word();
    if (word.empty()) return Fault("a name");
    if (Take('=')) {
      term.name = std::move(word);
      word = Word();
    }
    std::vector<std::string> ops = {word};
    while (Take('|')) ops.push_back(Word());
    while (Take('[')) {
      std::string attr = Word();
      if (attr.empty() || !Take('=')) return Fault("attribute=value");
      term.attrs.emplace_back(std::move(attr), Word());
      if (!Take(']')) return Fault("]");
    }
    if (!Take('(')) {
      if (!term.name.empty() || ops.size() > 1 || !term.attrs.empty()) return Fault("(");
      term.name = std::move(word);
      return term;
    }
    term.ops = std::move(ops);
    do {
      WEIR_ASSIGN(Term operand, ParseOne());
      term.operands.push_back(std::move(operand));
    } while (Take(','));
    if (!Take(')')) return Fault(")");
    return term;
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Matcher {
 public:
  Matcher(const Scene& scene, const op::OpDef& result, const IndexedVector<NodeId, char>& taken)
      : scene_(scene), result_(result), taken_(taken) {}

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the expression
  bool MatchNode(const Term& term, NodeId id, Bindings& bound) const {
    const StepNode& node = scene_.step.node(id);
    const bool is_op = node.kind == StepNode::Kind::kOp && node.values.empty() && taken_[id] == 0 &&
                       std::ranges::find(term.ops, node.source->op().name) != term.ops.end();
    if (!is_op || node.inputs.size() != term.operands.size() || node.types.size() != 1) return false;
    const auto has = [&](const std::pair<std::string, std::string>& attr) {
      const op::AttrValue* const value = node.source->attrs().Find(attr.first);
      return value != nullptr && *value == op::AttrValue(attr.second);
    };
    if (!std::ranges::all_of(term.attrs, has)) return false;
    bound.nodes.push_back(id);
    const bool swaps = node.source->op().commutative && term.operands.size() == 2;
    const Bindings before = bound;
    if (MatchOperands(term, node, false, bound)) return true;
    if (!swaps) return false;
    bound = before;
    return MatchOperands(term, node, true, bound);
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the expression
  bool MatchOperands(const Term& term, const StepNode& node, bool swapped, Bindings& bound) const {
    for (size_t i = 0; i < term.operands.size(); ++i) {
      const Endpoint& input = node.inputs[swapped ? term.operands.size() - 1 - i : i];
      if (!Match(term.operands[i], node, input, bound)) return false;
    }
    return true;
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the expression
  bool Match(const Term& term, const StepNode& user, const Endpoint& value, Bindings& bound) const {
    const auto known = term.name.empty() ? bound.values.end() : bound.values.find(term.name);
    if (known != bound.values.end()) return known->second == value;
    if (!term.ops.empty()) {
      if (value.index != 0 || !MatchNode(term, value.node, bound)) return false;
    } else if (term.name == kLastDimension) {
      return IsLastDimension(user, value);
    } else if (term.name == kFirstDimension) {
      return DimensionOf(value) == 0;
    } else if (result_.FindAttr(term.name) != nullptr) {
      return MatchNumber(term.name, value, bound);
    }
    if (!term.name.empty()) bound.values.emplace(term.name, value);
    return true;
  }

  /// The constant names the last dimension of the user's first operand, which the user's result keeps as 1.
  bool IsLastDimension(const StepNode& user, const Endpoint& value) const {
    const std::optional<int64_t> at = DimensionOf(value);
    const PartialShape &kept = user.shapes[0], &shape = scene_.step.ShapeOf(user.inputs[0]);
    // Of several operands with one rank, as of a concatenation, the first one's may be unknown.
    const bool joined = !user.source->op().inputs[0].number_attr.empty();
    if (!at || !kept.has_rank() || (!joined && !(shape.has_rank() && shape.rank() == kept.rank()))) return false;
    return *at == -1 || *at == kept.rank() - 1;
  }

  /// The value of a constant with one element.
  std::optional<int64_t> DimensionOf(const Endpoint& value) const {
    const std::optional<std::vector<int64_t>> axis = IntegersOf(scene_.step, value, 1);
    return axis && axis->size() == 1 ? std::optional<int64_t>((*axis)[0]) : std::nullopt;
  }

  bool MatchNumber(const std::string& attr, const Endpoint& value, Bindings& bound) const {
    const Tensor* const number = scene_.step.ValueOf(value);
    if (number == nullptr || number->shape().rank() != 0) return false;
    if (number->dtype() == DType::kFloat) {
      bound.attrs.emplace_back(attr, number->as<float>()[0]);
      return true;
    }
    if (number->dtype() != DType::kDouble) return false;
    bound.attrs.emplace_back(attr, static_cast<float>(number->as<double>()[0]));
    return true;
  }

  const Scene& scene_;
  const op::OpDef& result_;
  const IndexedVector<NodeId, char>& taken_;
};

/// Every use of an inner node is by a node of the expression.
bool InnerHaveNoOtherUsers(const Scene& scene, const Found& found, const std::vector<NodeId>& nodes) {
  std::map<NodeId, int> uses;
  for (const NodeId id : nodes) {
    for (const Endpoint& input : scene.step.node(id).inputs) ++uses[input.node];
  }
  return std::ranges::all_of(found.inner, [&](NodeId id) { return uses[id] == scene.users[id]; });
}

bool AreTogether(const Scene& scene, const std::vector<NodeId>& nodes) {
  const int device = scene.DeviceOf(nodes[0]);
  const graph::FrameId frame = scene.step.node(nodes[0]).frame;
  return device >= 0 && std::ranges::all_of(nodes, [&](NodeId id) {
           return scene.DeviceOf(id) == device && scene.step.node(id).frame == frame;
         });
}

std::set<std::string_view> OpsIn(const StepGraph& step) {
  std::set<std::string_view> names;
  const op::OpDef* last = nullptr;
  for (const StepNode& node : step.nodes) {
    if (node.kind != StepNode::Kind::kOp || &node.source->op() == last) continue;
    last = &node.source->op();
    names.insert(last->name);
  }
  return names;
}

/// One of the ops before the first operand or attribute of the text is in the set.
bool HasRootIn(std::string_view text, const std::set<std::string_view>& names) {
  std::string_view roots = text.substr(0, text.find_first_of("(["));
  while (!roots.empty()) {
    const size_t end = std::min(roots.find('|'), roots.size());
    if (names.contains(roots.substr(0, end))) return true;
    roots.remove_prefix(std::min(end + 1, roots.size()));
  }
  return false;
}

}  // namespace

Result<Term> ParseTerm(std::string_view text) { return TermParser(text).Parse(); }

Result<Expressions> Expressions::Of(const StepGraph& step) {
  const std::set<std::string_view> present = OpsIn(step);
  Expressions expressions;
  for (const op::OpDef* const result : step.graph->ops().FusedOps()) {
    for (const op::FusedExpression& expression : result->computes) {
      const std::string_view text = expression.text;
      if (!HasRootIn(text, present)) continue;
      const size_t with = text.find(kWith);
      Result<Term> term = ParseTerm(text.substr(0, with));
      if (!term.ok()) return Internal("op {}: {}", result->name, term.status().message());
      if (with == std::string_view::npos) {
        for (const std::string& root : term->ops) expressions.by_root_.emplace(root, Row{*term, result, &expression});
        continue;
      }
      Result<std::vector<Term>> parts = TermParser(text.substr(with + kWith.size())).ParseList();
      if (!parts.ok()) return Internal("op {}: {}", result->name, parts.status().message());
      Lift lift{*term, result, &expression, parts->front(), {parts->begin() + 1, parts->end()}};
      for (const std::string& root : term->ops) expressions.lifts_.emplace(root, lift);
    }
  }
  return expressions;
}

std::optional<Found> Expressions::At(const Scene& scene, NodeId root, const IndexedVector<NodeId, char>& taken) const {
  const StepNode& node = scene.step.node(root);
  if (node.kind != StepNode::Kind::kOp || taken[root] != 0) return std::nullopt;
  const auto [begin, end] = by_root_.equal_range(node.source->op().name);
  for (auto row = begin; row != end; ++row) {
    const op::OpDef& result = *row->second.result;
    Bindings bound;
    if (!Matcher(scene, result, taken).MatchNode(row->second.term, root, bound)) continue;
    Found found{&result, row->second.expression, root, {}, {}, std::move(bound.attrs)};
    std::vector<NodeId> nodes = std::move(bound.nodes);  // the root first
    const std::set<NodeId> inner(nodes.begin() + 1, nodes.end());
    found.inner.assign(inner.begin(), inner.end());
    bool complete = true;
    for (const op::ArgDef& arg : result.inputs) {
      const auto value = bound.values.find(arg.name);
      complete = complete && value != bound.values.end();
      if (complete) found.inputs.push_back(value->second);
    }
    const auto plain = [&](const Endpoint& input) { return IsPlain(scene.step, input); };
    if (!complete || !std::ranges::all_of(found.inputs, plain) || !AreTogether(scene, nodes) ||
        !InnerHaveNoOtherUsers(scene, found, nodes)) {
      continue;
    }
    for (const auto& attr : row->second.expression->attrs) found.attrs.push_back(attr);
    if (!AddAttrs(scene.step, nodes, result, found.attrs)) continue;
    if (SomeKernelTakes(scene, root, result, found.inputs, found.attrs)) return found;
  }
  return std::nullopt;
}

std::vector<const Lift*> Expressions::LiftsAt(const StepNode& node) const {
  std::vector<const Lift*> lifts;
  if (node.kind != StepNode::Kind::kOp) return lifts;
  const auto [begin, end] = lifts_.equal_range(node.source->op().name);
  for (auto row = begin; row != end; ++row) lifts.push_back(&row->second);
  return lifts;
}

bool MatchLift(const Scene& scene, const Lift& lift, NodeId root, Bindings& bound) {
  const IndexedVector<NodeId, char> taken(scene.step.nodes.size(), 0);
  return Matcher(scene, *lift.result, taken).MatchNode(lift.term, root, bound) && AreTogether(scene, bound.nodes);
}

bool AddAttrs(const StepGraph& step, const std::vector<NodeId>& nodes, const op::OpDef& result, op::AttrList& attrs) {
  for (const op::AttrDef& attr : result.attrs) {
    const auto is_it = [&](const auto& given) { return given.first == attr.name; };
    if (std::ranges::any_of(attrs, is_it)) continue;
    const op::AttrValue* first = nullptr;
    for (const NodeId id : nodes) {
      const op::AttrValue* const value = step.node(id).source->attrs().Find(attr.name);
      if (value == nullptr) continue;
      if (first != nullptr && !(*value == *first)) return false;
      first = value;
    }
    if (first != nullptr) attrs.emplace_back(attr.name, *first);
  }
  return true;
}

}  // namespace weir::fuse
