#include "core/client/ops/print_ops.h"

#include <algorithm>

#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/variables/variable.h"

namespace weir {

Printed::Printed(const Variable& value) : value_(value) {}

Output Print(const Operand& input, const std::vector<Operand>& data, const PrintOptions& options, Where where) {
  std::vector<Operand> all = {input};
  all.insert(all.end(), data.begin(), data.end());
  return BuildOp("Print", all,
                 {{"message", options.message}, {"first_n", options.first_n}, {"summarize", options.summarize}},
                 options.name, where)
      .output(0);
}

Operation PrintV2(const std::vector<Printed>& what, const PrintV2Options& options, Where where) {
  const op::AttrList stream = {{"output_stream", options.output_stream}, {"end", options.end}};
  const auto is_text = [](const Operand& v) {
    return v.exists() && BaseType(v.dtype()) == DType::kString && v.shape().rank() == 0;
  };
  if (what.size() == 1 && is_text(what[0].value())) return BuildOp("PrintV2", {what[0].value()}, stream, {}, where);
  // A mark for values that none of the words contains.
  std::string mark = "{}";
  const auto has_mark = [&](const Printed& each) { return each.text().find(mark) != std::string::npos; };
  while (std::ranges::any_of(what, has_mark)) mark += '9';
  std::string form;
  std::vector<Operand> values;
  for (const Printed& each : what) {
    if (&each != what.data()) form += options.sep;
    form += each.value().exists() ? mark : each.text();
    if (each.value().exists()) values.push_back(each.value());
  }
  const Output text = BuildOp("StringFormat", values,
                              {{"template", form}, {"placeholder", mark}, {"summarize", options.summarize}}, {}, where)
                          .output(0);
  return BuildOp("PrintV2", {text}, stream, {}, where);
}

}  // namespace weir
