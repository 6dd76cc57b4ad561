// Graphs written in tests, in GraphDef's text format.
#ifndef WEIR_TESTS_SUPPORT_GRAPH_TEXT_H_
#define WEIR_TESTS_SUPPORT_GRAPH_TEXT_H_

#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

/// Attribute names with the inside of their `value { }`: {"T", "type: DT_FLOAT"}.
using AttrTexts = std::vector<std::pair<std::string, std::string>>;

inline std::string NodeText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
                            const AttrTexts& attrs = {}) {
  std::string text = "node { name: \"" + name + "\" op: \"" + op + "\"";
  for (const std::string& input : inputs) text += " input: \"" + input + "\"";
  for (const auto& [key, value] : attrs) text += " attr { key: \"" + key + "\" value { " + value + " } }";
  return text + " }\n";
}

inline std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += " dim { size: " + std::to_string(dim) + " }";
  return text;
}

inline std::string PlaceholderText(const std::string& name, const std::string& dtype,
                                   const std::vector<int64_t>& dims) {
  return NodeText(name, "Placeholder", {},
                  {{"dtype", "type: " + dtype}, {"shape", "shape {" + ShapeText(dims) + " }"}});
}

/// `content` is the rest of the TensorProto: "float_val: 1 float_val: 2".
inline std::string ConstText(const std::string& name, const std::string& dtype, const std::vector<int64_t>& dims,
                             const std::string& content) {
  const std::string tensor = "tensor { dtype: " + dtype + " tensor_shape {" + ShapeText(dims) + " } " + content + " }";
  return NodeText(name, "Const", {}, {{"dtype", "type: " + dtype}, {"value", tensor}});
}

/// An op with one type attribute T.
inline std::string TypedText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                             const std::string& dtype = "DT_FLOAT") {
  return NodeText(name, op, inputs, {{"T", "type: " + dtype}});
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_GRAPH_TEXT_H_
