// Builders that print while a step runs.
#ifndef WEIR_CORE_CLIENT_OPS_PRINT_OPS_H_
#define WEIR_CORE_CLIENT_OPS_PRINT_OPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

struct PrintOptions {
  std::string message = {};  // at the beginning of the line
  int64_t first_n = -1;      // negative: every time
  int64_t summarize = 3;     // elements of each value; negative: all
  std::string_view name = {};
};

/// `input`, whose gradient passes. Whenever a step computes it, a line with the values of `data` goes to stderr:
/// "message[[1 2][3...]...][3]".
Output Print(const Operand& input, const std::vector<Operand>& data, const PrintOptions& options = {},
             Where where = Where::current());

/// What PrintV2 prints: words of the model, or a value of the step.
class Printed {
 public:
  Printed(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Printed(const char* text) : text_(OrEmpty(text)) {}    // NOLINT(google-explicit-constructor)
  Printed(Output value) : value_(value) {}               // NOLINT(google-explicit-constructor)
  Printed(const Variable& value);                        // NOLINT(google-explicit-constructor)
  const std::string& text() const { return text_; }
  /// Does not exist for words.
  const Operand& value() const { return value_; }

 private:
  std::string text_;
  Operand value_ = Output();
};

struct PrintV2Options {
  /// "stdout", "stderr", "log(info)", "log(warning)", "log(error)", "file://PATH".
  std::string output_stream = "stderr";
  std::string sep = " ";
  std::string end = "\n";
  int64_t summarize = 3;  // elements from either end of each axis; negative: all
};

/// tf.print: running it prints `what` in order, tensors laid out as NumPy does, a scalar string alone without quotes.
Operation PrintV2(const std::vector<Printed>& what, const PrintV2Options& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_PRINT_OPS_H_
