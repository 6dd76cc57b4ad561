#include "tests/pipeline/stage_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace weir::testing {
namespace {

std::string Trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(Trimmed(part));
  return parts;
}

/// "float" as "DT_FLOAT".
std::string TypeName(std::string dtype) {
  std::transform(dtype.begin(), dtype.end(), dtype.begin(), [](unsigned char c) { return std::toupper(c); });
  return "DT_" + dtype;
}

/// "[2,?]" as extents, -1 for "?".
std::vector<int64_t> Extents(const std::string& shape) {
  std::vector<int64_t> extents;
  for (const std::string& extent : Split(shape.substr(1, shape.size() - 2), ',')) {
    extents.push_back(extent == "?" ? -1 : std::stoll(extent));
  }
  return extents;
}

std::string ShapeText(const std::string& shape) {
  std::string text;
  for (const int64_t extent : Extents(shape)) text += " dim { size: " + std::to_string(extent) + " }";
  return text + " ";
}

/// The AttrValue of "float", "true", "-2", "0.5", "\"v\"", "[2,3]", a list of types, "{float,int32}", or of integers,
/// "(1,2)".
std::string AttrText(const std::string& value) {
  if (value[0] == '"') return "s: " + value;
  if (value == "[*]") return "shape { unknown_rank: true }";
  if (value[0] == '[') return "shape {" + ShapeText(value) + "}";
  if (value[0] == '{') {
    std::string list;
    for (const std::string& type : Split(value.substr(1, value.size() - 2), ',')) list += " type: " + TypeName(type);
    return "list {" + list + " }";
  }
  if (value[0] == '(') {
    std::string list;
    for (const std::string& number : Split(value.substr(1, value.size() - 2), ',')) list += " i: " + number;
    return "list {" + list + " }";
  }
  if (value == "true" || value == "false") return "b: " + value;
  if (value[0] == '-' || std::isdigit(static_cast<unsigned char>(value[0]))) {
    return (value.find('.') == std::string::npos ? "i: " : "f: ") + value;
  }
  return "type: " + TypeName(value);
}

std::string Attr(const std::string& key, const std::string& value) {
  return " attr { key: \"" + key + "\" value { " + value + " } }";
}

/// The rest of a node line: "key=value" words and "@device".
std::string AttrsText(std::istringstream& words) {
  std::string text;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (word[0] == '@') {
      text += " device: \"" + word.substr(1) + "\"";
    } else if (equals == std::string::npos) {
      ADD_FAILURE() << "'" << word << "' is no attribute KEY=VALUE";
    } else {
      text += Attr(word.substr(0, equals), AttrText(word.substr(equals + 1)));
    }
  }
  return text;
}

/// "w = const float [2] 1 2.5 ^init @device": `words` stands behind "const".
std::string ConstText(const std::string& name, std::istringstream& words) {
  std::string dtype, shape, inputs, values, device;
  words >> dtype >> shape;
  const std::string field = dtype == "int32" ? "int_val" : dtype + "_val";
  for (std::string word; words >> word;) {
    if (word[0] == '^') {
      inputs += " input: \"" + word + "\"";
    } else if (word[0] == '@') {
      device = " device: \"" + word.substr(1) + "\"";
    } else {
      values += " " + field + ": " + word;
    }
  }
  return "node { name: \"" + name + "\" op: \"Const\"" + inputs + Attr("dtype", "type: " + TypeName(dtype)) +
         Attr("value",
              "tensor { dtype: " + TypeName(dtype) + " tensor_shape {" + ShapeText(shape) + "}" + values + " }") +
         device + " }\n";
}

/// "y = MatMul(x, w, ^init) T=float @/device:CPU:0"
std::string NodeText(const std::string& line) {
  const size_t equals = line.find(" = "), open = line.find('(', equals), close = line.find(')', open);
  const std::string name = line.substr(0, equals);
  if (line.compare(equals + 3, 6, "const ") == 0) {
    std::istringstream words(line.substr(equals + 9));
    return ConstText(name, words);
  }
  std::string text = "node { name: \"" + name + "\" op: \"" + line.substr(equals + 3, open - equals - 3) + "\"";
  for (const std::string& input : Split(line.substr(open + 1, close - open - 1), ',')) {
    text += " input: \"" + input + "\"";
  }
  std::istringstream words(line.substr(close + 1));
  return text + AttrsText(words) + " }\n";
}

}  // namespace

bool StageCase::exact() const {
  return std::all_of(feeds.begin(), feeds.end(), [](const Feed& feed) { return feed.shape.fully_defined(); });
}

StageCase ParseStageCase(const std::string& text) {
  StageCase made;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string word, name, type, shape;
    words >> word >> name;
    if (name == "=") {
      made.graph += NodeText(line);
    } else if (word == "feed") {
      words >> type >> shape;
      made.feeds.push_back({name, ParseDType(type).value_or(DType::kInvalid), PartialShape::Of(Extents(shape))});
    } else if (word == "fetch") {
      made.fetches.push_back(name);
    } else if (word == "target") {
      made.targets.push_back(name);
    } else if (word == "threads") {
      made.threads = std::stoi(name);
    } else if (word == "devices") {
      made.devices = name;
    } else if (word == "kernels") {
      made.kernels = name;
    } else if (word == "cut") {
      made.cut = true;
    } else if (word == "deterministic") {
      made.deterministic = true;
    } else {
      ADD_FAILURE() << line;
    }
  }
  return made;
}

}  // namespace weir::testing
