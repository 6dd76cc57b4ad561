// The ops that the compiler knows, with the rules of their operands.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_OPS_H_
#define WEIR_PLUGINS_COMPILER_LLVM_OPS_H_

#include <string>
#include <string_view>

#include "plugins/compiler_llvm/program.h"
#include "sdk/abi/compiler.h"

namespace weir::compiler_llvm {

/// Types of operands and result.
enum class Form : uint8_t {
  kPlain,   // all of one type
  kTest,    // operands of one type; the result is bool
  kCount,   // one integer; the result is uint8
  kCast,    // any two types
  kSelect,  // bool, then two of the result's type
  kBias,    // kPlain; operand 1 is a vector along the channels
  kDivide,  // kPlain; an integer divisor must be a known scalar other than 0, since kernels report others
  kReduce,  // one operand of the result's type, with axes
};

struct OpRule {
  std::string_view name;
  Op op;
  Form form;
  uint32_t operands;  // 0: one or more
  uint64_t dtypes;    // of the operands (kSelect, kCast: of the result)
  double cost;        // in additions of the same type
};

/// Null for an op that the compiler does not know.
const OpRule* FindOp(std::string_view name);

bool IsFloating(uint32_t dtype);
bool IsInteger(uint32_t dtype);
bool IsUnsigned(uint32_t dtype);

/// Whether the node's operand types and attributes are those that the rule's code has; else `why` says what is not.
/// `operands` are the node's operands.
bool FitsRule(const OpRule& rule, const weir_region_node& node, const weir_region_value* const* operands,
              std::string* why);

/// The attribute, or `otherwise`.
double FloatAttr(const weir_region_node& node, std::string_view key, double otherwise);
int64_t IntAttr(const weir_region_node& node, std::string_view key, int64_t otherwise);
std::string_view StringAttr(const weir_region_node& node, std::string_view key, std::string_view otherwise);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_OPS_H_
