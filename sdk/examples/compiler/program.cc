#include "program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace toy {
namespace {

constexpr std::string_view kMagic = "toyprog1";
constexpr uint64_t kMost = 1 << 16;  // of any count in a file

struct Known {
  std::string_view op;
  Code code;
};
constexpr Known kKnown[] = {
    {"Add", Code::kAdd},         {"AddV2", Code::kAdd},       {"Sub", Code::kSub},   {"Mul", Code::kMul},
    {"Maximum", Code::kMaximum}, {"Minimum", Code::kMinimum}, {"Neg", Code::kNeg},   {"Abs", Code::kAbs},
    {"Square", Code::kSquare},   {"Relu", Code::kRelu},       {"Sqrt", Code::kSqrt}, {"Exp", Code::kExp},
    {"Tanh", Code::kTanh},
};

template <class Fn>
void Each(int64_t n, const float* x, const float* y, float* to, Fn&& fn) {
  for (int64_t i = 0; i < n; ++i) to[i] = fn(x[i], y[i]);
}

/// NaN if an operand is NaN, as in TensorFlow.
float Larger(float x, float y) { return x > y || x != x ? x : y; }
float Smaller(float x, float y) { return x < y || x != x ? x : y; }

void Apply(Code code, const float* x, const float* y, int64_t n, float* to) {
  switch (code) {
    case Code::kAdd:
      return Each(n, x, y, to, [](float a, float b) { return a + b; });
    case Code::kSub:
      return Each(n, x, y, to, [](float a, float b) { return a - b; });
    case Code::kMul:
      return Each(n, x, y, to, [](float a, float b) { return a * b; });
    case Code::kMaximum:
      return Each(n, x, y, to, Larger);
    case Code::kMinimum:
      return Each(n, x, y, to, Smaller);
    case Code::kNeg:
      return Each(n, x, y, to, [](float a, float) { return -a; });
    case Code::kAbs:
      return Each(n, x, y, to, [](float a, float) { return std::fabs(a); });
    case Code::kSquare:
      return Each(n, x, y, to, [](float a, float) { return a * a; });
    case Code::kRelu:
      return Each(n, x, y, to, [](float a, float) { return a > 0 || a != a ? a : 0.0f; });
    case Code::kSqrt:
      return Each(n, x, y, to, [](float a, float) { return std::sqrt(a); });
    case Code::kExp:
      return Each(n, x, y, to, [](float a, float) { return std::exp(a); });
    case Code::kTanh:
      return Each(n, x, y, to, [](float a, float) { return std::tanh(a); });
  }
}

template <class T>
void Put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Reads numbers, or fails once for all.
struct Reader {
  std::string_view rest;
  bool ok = true;

  template <class T>
  T Get() {
    T number{};
    ok = ok && rest.size() >= sizeof number;
    if (!ok) return T{};
    std::memcpy(&number, rest.data(), sizeof number);
    rest.remove_prefix(sizeof number);
    return number;
  }
  uint64_t Count() {
    const auto count = Get<uint64_t>();
    ok = ok && count <= kMost && count <= rest.size();
    return ok ? count : 0;
  }
  std::vector<int64_t> Dims() {
    std::vector<int64_t> dims(Count());
    for (int64_t& dim : dims) dim = Get<int64_t>();
    return dims;
  }
};

void PutDims(std::string& bytes, const std::vector<int64_t>& dims) {
  Put(bytes, static_cast<uint64_t>(dims.size()));
  for (const int64_t dim : dims) Put(bytes, dim);
}

}  // namespace

std::optional<Code> CodeOf(std::string_view op) {
  for (const Known& known : kKnown) {
    if (known.op == op) return known.code;
  }
  return std::nullopt;
}

int OperandsOf(Code code) { return code <= Code::kMinimum ? 2 : 1; }

double NanosecondsOf(Code code) { return code >= Code::kExp ? 10 : code == Code::kSqrt ? 1.5 : 0.4; }

int64_t Program::Elements() const {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

void Program::Run(const weir_reg* regs, uint64_t begin, uint64_t end) const {
  const auto blocks = static_cast<uint64_t>(Blocks());
  const auto at = [&](uint64_t tile) {  // without overflow
    return static_cast<int64_t>(blocks / tiles * tile + blocks % tiles * tile / tiles);
  };
  for (int64_t block = at(begin); block < at(end); ++block) RunBlock(regs, block);
}

void Program::RunBlock(const weir_reg* regs, int64_t block) const {
  const size_t inputs = input_dims.size();
  const int64_t first = block * kBlock, n = std::min(kBlock, Elements() - first);
  auto* const scratch = reinterpret_cast<float*>(regs[inputs + outputs.size()].data);
  const auto result = [&](size_t instruction) {
    const auto output = std::lower_bound(outputs.begin(), outputs.end(), inputs + instruction);
    if (output == outputs.end() || *output != inputs + instruction) {
      return scratch + static_cast<int64_t>(instruction) * kBlock;
    }
    return reinterpret_cast<float*>(regs[inputs + static_cast<size_t>(output - outputs.begin())].data) + first;
  };
  const auto operand = [&](uint32_t value, int side) -> const float* {
    if (value >= inputs) return result(value - inputs);
    const auto* const data = reinterpret_cast<const float*>(regs[value].data);
    if (!IsScalar(value)) return data + first;
    float* const spread = scratch + static_cast<int64_t>(instructions.size() + static_cast<size_t>(side)) * kBlock;
    std::fill_n(spread, n, *data);
    return spread;
  };
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    Apply(instruction.code, operand(instruction.operands[0], 0), operand(instruction.operands[1], 1), n, result(i));
  }
}

std::string Program::ToBytes() const {
  std::string bytes(kMagic);
  PutDims(bytes, dims);
  Put(bytes, static_cast<uint64_t>(input_dims.size()));
  for (const std::vector<int64_t>& input : input_dims) PutDims(bytes, input);
  Put(bytes, static_cast<uint64_t>(instructions.size()));
  for (const Instruction& instruction : instructions) {
    Put(bytes, static_cast<uint8_t>(instruction.code));
    Put(bytes, instruction.operands[0]);
    Put(bytes, instruction.operands[1]);
  }
  Put(bytes, static_cast<uint64_t>(outputs.size()));
  for (const uint32_t output : outputs) Put(bytes, output);
  Put(bytes, tiles);
  return bytes;
}

std::optional<Program> Program::FromBytes(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  Reader reader{bytes.substr(kMagic.size())};
  Program program;
  program.dims = reader.Dims();
  program.input_dims.resize(reader.Count());
  for (std::vector<int64_t>& input : program.input_dims) input = reader.Dims();
  program.instructions.resize(reader.Count());
  for (Instruction& instruction : program.instructions) {
    instruction.code = static_cast<Code>(reader.Get<uint8_t>());
    for (uint32_t& operand : instruction.operands) operand = reader.Get<uint32_t>();
  }
  program.outputs.resize(reader.Count());
  for (uint32_t& output : program.outputs) output = reader.Get<uint32_t>();
  program.tiles = reader.Get<uint64_t>();
  if (!reader.ok || !reader.rest.empty() || !program.IsValid()) return std::nullopt;
  return program;
}

bool Program::IsValid() const {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 1 || elements > std::numeric_limits<int64_t>::max() / 8 / dim) return false;
    elements *= dim;
  }
  for (const std::vector<int64_t>& input : input_dims) {
    const bool scalar = std::ranges::all_of(input, [](int64_t dim) { return dim == 1; });
    if (input != dims && !scalar) return false;
  }
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].code > Code::kTanh) return false;
    for (const uint32_t operand : instructions[i].operands) {
      if (operand >= input_dims.size() + i) return false;
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool ascends = i == 0 || outputs[i] > outputs[i - 1];
    if (!ascends || outputs[i] < input_dims.size() || outputs[i] >= input_dims.size() + instructions.size())
      return false;
  }
  return !instructions.empty() && !outputs.empty() && tiles >= 1 && tiles <= static_cast<uint64_t>(Blocks());
}

}  // namespace toy
