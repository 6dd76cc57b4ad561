#include "plugins/compiler_nvrtc/source.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "plugins/functors/region_ops.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_nvrtc {
namespace {

using functors::FindOp;
using functors::Form;
using functors::Op;
using functors::OpRule;

constexpr uint64_t kMostAxes = 16;
constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kNarrowElements = int64_t{1} << 30;  // up to which places are counted in 32 bits

/// The function of the prelude; null if it is not called by one name.
const char* FunctionOf(Op op) {
  static const std::map<Op, const char*> names = {
      {Op::kIdentity, "Identity"},       {Op::kNeg, "Neg"},
      {Op::kAbs, "Abs"},                 {Op::kSign, "Sign"},
      {Op::kSquare, "Square"},           {Op::kReciprocal, "Reciprocal"},
      {Op::kSqrt, "Sqrt"},               {Op::kRsqrt, "Rsqrt"},
      {Op::kFloor, "Floor"},             {Op::kCeil, "Ceil"},
      {Op::kRound, "Round"},             {Op::kExp, "Exp"},
      {Op::kExpm1, "Expm1"},             {Op::kLog, "Log"},
      {Op::kLog1p, "Log1p"},             {Op::kTanh, "Tanh"},
      {Op::kSigmoid, "Sigmoid"},         {Op::kErf, "Erf"},
      {Op::kRelu, "Relu"},               {Op::kRelu6, "Relu6"},
      {Op::kElu, "Elu"},                 {Op::kSelu, "Selu"},
      {Op::kSoftplus, "Softplus"},       {Op::kSoftsign, "Softsign"},
      {Op::kLeakyRelu, "LeakyRelu"},     {Op::kIsFinite, "IsFinite"},
      {Op::kIsNan, "IsNan"},             {Op::kIsInf, "IsInf"},
      {Op::kLogicalNot, "LogicalNot"},   {Op::kInvert, "Invert"},
      {Op::kAdd, "Add"},                 {Op::kPopulationCount, "PopulationCount"},
      {Op::kSub, "Sub"},                 {Op::kMul, "Mul"},
      {Op::kDiv, "Div"},                 {Op::kDivNoNan, "DivNoNan"},
      {Op::kFloorDiv, "FloorDiv"},       {Op::kTruncateDiv, "TruncateDiv"},
      {Op::kMaximum, "Maximum"},         {Op::kSquaredDifference, "SquaredDifference"},
      {Op::kMinimum, "Minimum"},         {Op::kXlogy, "Xlogy"},
      {Op::kXlog1py, "Xlog1py"},         {Op::kXdivy, "Xdivy"},
      {Op::kEqual, "Equal"},             {Op::kNotEqual, "NotEqual"},
      {Op::kLess, "Less"},               {Op::kLessEqual, "LessEqual"},
      {Op::kGreater, "Greater"},         {Op::kGreaterEqual, "GreaterEqual"},
      {Op::kLogicalAnd, "LogicalAnd"},   {Op::kLogicalOr, "LogicalOr"},
      {Op::kBitwiseAnd, "BitwiseAnd"},   {Op::kBitwiseOr, "BitwiseOr"},
      {Op::kBitwiseXor, "BitwiseXor"},   {Op::kLeftShift, "LeftShift"},
      {Op::kRightShift, "RightShift"},   {Op::kTanhGrad, "TanhGrad"},
      {Op::kSigmoidGrad, "SigmoidGrad"}, {Op::kReciprocalGrad, "ReciprocalGrad"},
      {Op::kSqrtGrad, "SqrtGrad"},       {Op::kRsqrtGrad, "RsqrtGrad"},
      {Op::kReluGrad, "ReluGrad"},       {Op::kRelu6Grad, "Relu6Grad"},
      {Op::kEluGrad, "EluGrad"},         {Op::kSeluGrad, "SeluGrad"},
      {Op::kClip, "ClipByValue"},        {Op::kSoftplusGrad, "SoftplusGrad"},
      {Op::kSelect, "Select"},           {Op::kSoftsignGrad, "SoftsignGrad"},
      {Op::kAddN, "Add"},                {Op::kLeakyReluGrad, "LeakyReluGrad"},
  };
  const auto found = names.find(op);
  return found == names.end() ? nullptr : found->second;
}

/// How an element is stored, and the type that the code computes with.
struct ElementText {
  const char* stored;
  const char* held;
};
ElementText TextOf(uint32_t dtype) {
  switch (dtype) {
    case WEIR_FLOAT32:
      return {"float", "float"};
    case WEIR_FLOAT64:
      return {"double", "double"};
    case WEIR_FLOAT16:
    case WEIR_BFLOAT16:
      return {"unsigned short", "float"};
    case WEIR_INT8:
      return {"signed char", "signed char"};
    case WEIR_INT16:
      return {"short", "short"};
    case WEIR_INT32:
      return {"int", "int"};
    case WEIR_INT64:
      return {"long long", "long long"};
    case WEIR_UINT8:
      return {"unsigned char", "unsigned char"};
    case WEIR_UINT16:
      return {"unsigned short", "unsigned short"};
    case WEIR_UINT32:
      return {"unsigned int", "unsigned int"};
    case WEIR_UINT64:
      return {"unsigned long long", "unsigned long long"};
    default:
      return {"unsigned char", "bool"};
  }
}

/// `x` as it is computed with; the reverse; and `x` with the bits that its type stores.
std::string Loaded(uint32_t dtype, const std::string& x) {
  if (dtype == WEIR_FLOAT16) return "HalfIn(" + x + ")";
  if (dtype == WEIR_BFLOAT16) return "BrainIn(" + x + ")";
  return dtype == WEIR_BOOL ? x + " != 0" : x;
}
std::string Stored(uint32_t dtype, const std::string& x) {
  if (dtype == WEIR_FLOAT16) return "HalfOut(" + x + ")";
  if (dtype == WEIR_BFLOAT16) return "BrainOut(" + x + ")";
  return dtype == WEIR_BOOL ? x + " ? 1 : 0" : x;
}
std::string Rounded(uint32_t dtype, const std::string& x) {
  if (dtype == WEIR_FLOAT16) return "HalfRound(" + x + ")";
  return dtype == WEIR_BFLOAT16 ? "BrainRound(" + x + ")" : x;
}

std::string Hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}
std::string LiteralOfReal(bool wide, double x) {
  if (wide) return "Real64(" + Hex(std::bit_cast<uint64_t>(x)) + "ull)";
  return "Real32(" + Hex(std::bit_cast<uint32_t>(static_cast<float>(x))) + "u)";
}
std::string LiteralOf(uint32_t dtype, const void* constant) {
  uint64_t bits = 0;
  std::memcpy(&bits, constant, sdk::SizeOf(dtype));
  if (dtype == WEIR_FLOAT32) return "Real32(" + Hex(bits) + "u)";
  if (dtype == WEIR_FLOAT64) return "Real64(" + Hex(bits) + "ull)";
  if (dtype == WEIR_BOOL) return bits != 0 ? "true" : "false";
  if (dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16) return Loaded(dtype, Hex(bits));
  return "(" + std::string(TextOf(dtype).held) + ")" + Hex(bits) + "ull";
}

bool HasOneElement(const weir_shape& shape) {
  return std::all_of(shape.dims, shape.dims + shape.rank, [](int64_t dim) { return dim == 1; });
}

/// An operand's extents aligned to the axes of the result; the vector of BiasAdd lies along the channels. Empty if it
/// is not broadcast to the result. Scalars of rank 0 give ones.
std::vector<int64_t> AlignedTo(const weir_shape& shape, const weir_shape& dims, bool is_bias, bool channels_first) {
  std::vector<int64_t> aligned(dims.rank, 1);
  if (is_bias) {
    if (shape.rank != 1 || dims.rank < 2) return {};
    const uint32_t axis = channels_first ? 1 : dims.rank - 1;
    if (shape.dims[0] != dims.dims[axis]) return {};
    aligned[axis] = shape.dims[0];
    return aligned;
  }
  if (shape.rank > dims.rank) return {};
  const uint32_t ahead = dims.rank - shape.rank;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] != 1 && shape.dims[i] != dims.dims[ahead + i]) return {};
    aligned[ahead + i] = shape.dims[i];
  }
  return aligned;
}

bool IsChannelsFirst(const weir_region_node& node) {
  return functors::StringAttr(node, "data_format", "NHWC").starts_with("NC");
}

/// The place in an operand of these extents of the element `i` of the result: a sum over runs of axes that are all
/// broadcast or all not.
std::string PlaceText(const std::vector<int64_t>& aligned, const weir_shape& dims, const std::string& suffix) {
  std::string text;
  int64_t inner = 1, step = 1;  // elements of the result, and of the operand, behind the axis
  for (size_t axis = aligned.size(); axis > 0;) {
    const bool advances = aligned[axis - 1] != 1;
    int64_t run = 1;
    size_t next = axis;
    while (next > 0 && (dims.dims[next - 1] == 1 || (aligned[next - 1] != 1) == advances)) run *= dims.dims[--next];
    if (advances && run > 1) {
      std::string term = inner == 1 ? "i" : "i / " + std::to_string(inner) + suffix;
      if (next > 0) term += " % " + std::to_string(run) + suffix;
      if (step != 1) term = "(" + term + ") * " + std::to_string(step) + suffix;
      text = text.empty() ? term : term + " + " + text;
      step *= run;
    }
    inner *= run;
    axis = next;
  }
  return text.empty() ? "0" : text;
}

class SourceWriter {
 public:
  SourceWriter(const weir_region& region, const weir_shape& dims, int64_t elements)
      : region_(region), dims_(dims), suffix_(elements <= kNarrowElements ? "u" : "ull"), elements_(elements) {}

  std::string Write(std::string_view name) {
    std::string body;
    for (uint32_t n = 0; n < region_.node_count; ++n) body += NodeText(n);
    for (uint32_t k = 0; k < region_.output_count; ++k) {
      const uint32_t value = region_.outputs[k];
      const std::string held = "v" + std::to_string(value);
      body += "    out" + std::to_string(k) + "[i] = " + Stored(ValueOf(region_, value).dtype, held) + ";\n";
    }
    const std::string type = suffix_ == "u" ? "unsigned int" : "unsigned long long";
    const std::string first = "(" + type + ")blockIdx.x * blockDim.x + threadIdx.x";
    std::string text = "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kThreads) + ")\n";
    text += std::string(name) + "(" + Parameters() + ") {\n";
    text += "  const " + type + " step = (" + type + ")gridDim.x * blockDim.x;\n";
    text += "  for (" + type + " i = " + first + "; i < " + std::to_string(elements_) + suffix_ + "; i += step) {\n";
    return text + loads_ + body + "  }\n}\n";
  }

 private:
  std::string Parameters() const {
    std::string text;
    const auto add = [&](const std::string& parameter) { text += (text.empty() ? "" : ", ") + parameter; };
    for (uint32_t i = 0; i < region_.input_count; ++i) {
      add("const " + std::string(TextOf(region_.inputs[i]->dtype).stored) + "* in" + std::to_string(i));
    }
    for (uint32_t k = 0; k < region_.output_count; ++k) {
      const uint32_t dtype = ValueOf(region_, region_.outputs[k]).dtype;
      add(std::string(TextOf(dtype).stored) + "* out" + std::to_string(k));
    }
    return text;
  }

  /// A name or literal with the operand's element; an input is loaded once for each way in which it is broadcast.
  std::string OperandText(const weir_region_node& node, uint32_t k) {
    const uint32_t number = node.operands[k];
    if (number >= region_.input_count) return "v" + std::to_string(number);
    const weir_region_value& value = *region_.inputs[number];
    if (value.constant != nullptr && HasOneElement(value.shape)) return LiteralOf(value.dtype, value.constant);
    const OpRule& rule = *FindOp(sdk::ToView(node.op));
    const std::vector<int64_t> aligned =
        AlignedTo(value.shape, dims_, rule.form == Form::kBias && k == 1, IsChannelsFirst(node));
    const std::string place = PlaceText(aligned, dims_, suffix_);
    const auto [known, is_new] = loaded_.emplace(std::pair(number, place), "");
    if (is_new) {
      known->second = "a" + std::to_string(loaded_.size() - 1);
      const std::string element = "in" + std::to_string(number) + "[" + place + "]";
      loads_ += "    const " + std::string(TextOf(value.dtype).held) + " " + known->second + " = " +
                Loaded(value.dtype, element) + ";\n";
    }
    return known->second;
  }

  std::string NodeText(uint32_t n) {
    const weir_region_node& node = *region_.nodes[n];
    const OpRule& rule = *FindOp(sdk::ToView(node.op));
    const uint32_t dtype = node.result.dtype;
    const std::string held = TextOf(dtype).held;
    std::vector<std::string> operands;
    for (uint32_t k = 0; k < node.operand_count; ++k) operands.push_back(OperandText(node, k));
    std::string text;
    if (rule.op == Op::kAddN) {  // rounds once
      text = operands[0];
      for (size_t k = 1; k < operands.size(); ++k) text = "Add<" + held + ">(" + text + ", " + operands[k] + ")";
    } else if (rule.op == Op::kCast) {
      text = (dtype == WEIR_BOOL ? "Truth(" : "Cast<" + held + ">(") + operands[0] + ")";
    } else {
      if (rule.op == Op::kLeakyRelu || rule.op == Op::kLeakyReluGrad) {
        operands.push_back(LiteralOfReal(dtype == WEIR_FLOAT64, functors::FloatAttr(node, "alpha", 0.2)));
      }
      for (const std::string& operand : operands) text += (text.empty() ? "" : ", ") + operand;
      text = std::string(FunctionOf(rule.op)) + "(" + text + ")";
    }
    const std::string value = "v" + std::to_string(region_.input_count + n);
    return "    const " + held + " " + value + " = " + Rounded(dtype, text) + ";\n";
  }

  const weir_region& region_;
  const weir_shape& dims_;
  const std::string suffix_;
  const int64_t elements_;
  std::map<std::pair<uint32_t, std::string>, std::string> loaded_;  // by input and place
  std::string loads_;
};

}  // namespace

const weir_region_value& ValueOf(const weir_region& region, uint32_t number) {
  return number < region.input_count ? *region.inputs[number] : region.nodes[number - region.input_count]->result;
}

std::optional<int64_t> ElementsOf(const weir_shape& shape) {
  if (shape.rank > kMostAxes) return std::nullopt;
  int64_t elements = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] < 1 || shape.dims[i] > kMostElements / elements) return std::nullopt;
    elements *= shape.dims[i];
  }
  return elements;
}

bool FitsKernel(const weir_region& region, const weir_region_node& node, const weir_shape& dims, std::string* why) {
  const OpRule* const rule = FindOp(sdk::ToView(node.op));
  const auto refuse = [&](std::string_view text) {
    *why = std::string(sdk::ToView(node.op)) + ": " + std::string(text);
    return false;
  };
  if (rule == nullptr) return refuse("no code for the op");
  if (rule->form == Form::kReduce) return refuse("no code for reductions");
  if (!sdk::SameShape(node.result.shape, dims)) return refuse("a result of another shape");
  std::vector<const weir_region_value*> operands;
  for (uint32_t k = 0; k < node.operand_count; ++k) operands.push_back(&ValueOf(region, node.operands[k]));
  if (!functors::FitsRule(*rule, node, operands.data(), why)) return false;
  const bool divides = rule->form == Form::kDivide || rule->op == Op::kFloorMod || rule->op == Op::kTruncateMod;
  if (divides && functors::IsInteger(node.result.dtype)) return refuse("no code for quotients of integers");
  for (uint32_t k = 0; k < node.operand_count; ++k) {
    const bool is_bias = rule->form == Form::kBias && k == 1;
    const bool scalar = dims.rank == 0 && operands[k]->shape.rank == 0;
    if (!scalar && AlignedTo(operands[k]->shape, dims, is_bias, IsChannelsFirst(node)).empty()) {
      return refuse("an operand that is not broadcast to the result");
    }
  }
  return true;
}

std::optional<std::string> SourceOf(const weir_region& region, std::string_view name, std::string* why) {
  const auto refuse = [why](std::string_view text) {
    *why = text;
    return std::nullopt;
  };
  if (region.loop != nullptr) return refuse("no code for loops");
  if (region.node_count == 0 || region.node_count > kMostNodes || region.output_count == 0 ||
      uint64_t{region.input_count} + region.output_count > kMostPointers) {
    return refuse("no code for so many or so few values");
  }
  const weir_shape& dims = region.nodes[0]->result.shape;
  const std::optional<int64_t> elements = ElementsOf(dims);
  if (!elements) return refuse("no code for a result of this size");
  for (uint32_t n = 0; n < region.node_count; ++n) {
    if (!FitsKernel(region, *region.nodes[n], dims, why)) return std::nullopt;
  }
  return SourceWriter(region, dims, *elements).Write(name);
}

}  // namespace weir::compiler_nvrtc
