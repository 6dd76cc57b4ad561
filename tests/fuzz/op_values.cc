#include "tests/fuzz/op_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensor/resource.h"

namespace weir::fuzz {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

const std::vector<int64_t> kAbsurd = {-1,
                                      -2,
                                      0,
                                      1,
                                      127,
                                      255,
                                      65536,
                                      (1ll << 24) + 1,
                                      (1ll << 31) - 1,
                                      1ll << 31,
                                      1ll << 32,
                                      (1ll << 40) + 3,
                                      1ll << 60,
                                      1ll << 61,
                                      (1ll << 61) + 1,
                                      1ll << 62,
                                      kInt64Max,
                                      kInt64Min,
                                      kInt64Min + 1,
                                      -(1ll << 31) - 1};

const std::vector<double> kReals = {0.0,
                                    -0.0,
                                    1.0,
                                    -1.0,
                                    0.5,
                                    2.0,
                                    3.75,
                                    -1e30,
                                    1e-40,
                                    4.9e-324,
                                    65504.0,
                                    1e308,
                                    2147483648.0,
                                    9223372036854775808.0,
                                    std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity()};

/// Bits of halves and of smaller numbers: zeros, ones, subnormals, infinities and NaNs of several formats.
const std::vector<uint16_t> kBits = {0,      0x8000, 0x3c00, 0x3f80, 1,      0x7c00,
                                     0xfc00, 0x7e01, 0x7f80, 0x7fc0, 0xffff, 0x38};

/// The choice of a tensor's elements.
enum class Fill { kSmall, kSpecial, kCounting, kShuffled, kZero };

template <class T>
void FillIntegers(Tensor& tensor, Fill fill, Dice& dice) {
  const std::span<T> to = tensor.mutable_as<T>();
  for (size_t i = 0; i < to.size(); ++i) {
    if (fill == Fill::kSmall) to[i] = static_cast<T>(dice.Between(std::is_signed_v<T> ? -2 : 0, 5));
    if (fill == Fill::kSpecial) to[i] = static_cast<T>(static_cast<uint64_t>(dice.Of(kAbsurd)));
    if (fill == Fill::kCounting || fill == Fill::kShuffled) to[i] = static_cast<T>(i);
    if (fill == Fill::kZero) to[i] = T(0);
  }
  if (fill != Fill::kShuffled) return;
  for (size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[dice.Below(i)]);
}

/// Writes `parts` numbers for each element.
template <class T>
void FillReals(Tensor& tensor, Fill fill, Dice& dice, int64_t parts = 1) {
  T* const to = reinterpret_cast<T*>(tensor.mutable_raw());
  for (int64_t i = 0; i < tensor.elements() * parts; ++i) {
    double value = 0;
    if (fill == Fill::kSmall || fill == Fill::kShuffled) value = static_cast<double>(dice.Between(-20, 40)) / 8;
    if (fill == Fill::kSpecial) value = dice.Of(kReals);
    if (fill == Fill::kCounting) value = static_cast<double>(i);
    if (std::is_same_v<T, float> && std::isfinite(value)) value = std::clamp(value, -3.4e38, 3.4e38);
    to[i] = static_cast<T>(value);
  }
}

void FillBits(Tensor& tensor, Fill fill, Dice& dice) {
  auto* const to = reinterpret_cast<unsigned char*>(tensor.mutable_raw());
  for (uint64_t i = 0; i < tensor.bytes(); ++i) {
    const uint16_t bits = fill == Fill::kZero ? uint16_t{0} : dice.Of(kBits);
    to[i] = static_cast<unsigned char>(i % 2 == 0 ? bits & 0xff : bits >> 8);
  }
}

}  // namespace

int64_t ElementsOf(const std::vector<int64_t>& dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) return -1;
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) return -1;
    if (dim == 0) return Shape::Make(dims).ok() ? 0 : -1;
    if (dim > kMostElements || (elements *= dim) > kMostElements) {
      return std::ranges::find(dims, 0) != dims.end() && Shape::Make(dims).ok() ? 0 : -1;
    }
  }
  return elements;
}

Values::Values(Dice& dice, int wild) : dice_(dice), wild_(wild), base_(SmallShape()) {}

std::vector<int64_t> Values::SmallShape() {
  const size_t rank = dice_.Percent(wild_) ? dice_.Below(9) : dice_.Of({0u, 1u, 1u, 2u, 2u, 2u, 3u, 3u, 4u, 4u});
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(dice_.Percent(30) && i > 0 ? dims.back() : dice_.Of({1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 0}));
  }
  if (dice_.Percent(3) && rank > 0) dims.back() = dice_.Of({64, 129, 1000, 4096});
  while (ElementsOf(dims) < 0) dims.pop_back();
  return dims;
}

std::vector<int64_t> Values::Related() {
  if (Wild()) return dice_.Percent(50) ? AbsurdShape() : SmallShape();
  std::vector<int64_t> dims = base_;
  switch (dice_.Below(16)) {
    case 0:
      return {};
    case 1:
      for (int64_t& dim : dims) dim = dice_.Percent(50) ? 1 : dim;
      return dims;
    case 2:
      if (!dims.empty()) dims.erase(dims.begin());
      return dims;
    case 3:
      return dims.empty() ? dims : std::vector<int64_t>{dims.back()};
    case 4:
      return dims.empty() ? dims : std::vector<int64_t>{dims.front()};
    case 5:
      if (dims.size() > 1) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
      return dims;
    default:
      return dims;
  }
}

int64_t Values::Absurd() { return dice_.Of(kAbsurd); }

std::vector<int64_t> Values::AbsurdShape() {
  std::vector<int64_t> dims(dice_.Percent(2) ? dice_.Of({9u, 254u, 255u, 300u}) : dice_.Below(6));
  for (int64_t& dim : dims) dim = dice_.Percent(50) ? Absurd() : dice_.Between(0, 4);
  return dims;
}

Tensor Values::Random(DType dtype, const std::vector<int64_t>& dims) {
  const std::vector<int64_t> small = ElementsOf(dims) < 0 ? SmallShape() : dims;
  Result<Tensor> made = Tensor::Make(dtype, Shape::Of(small));
  if (!made.ok()) return Tensor::Scalar(1.0f);
  Tensor& tensor = *made;
  if (tensor.elements() == 0) return tensor;
  const auto fill = Wild() ? Fill::kSpecial
                           : dice_.Of({Fill::kSmall, Fill::kSmall, Fill::kSmall, Fill::kSpecial, Fill::kCounting,
                                       Fill::kShuffled, Fill::kZero});
  switch (dtype) {
    case DType::kFloat:
      FillReals<float>(tensor, fill, dice_);
      break;
    case DType::kDouble:
      FillReals<double>(tensor, fill, dice_);
      break;
    case DType::kComplex64:
      FillReals<float>(tensor, fill, dice_, 2);
      break;
    case DType::kComplex128:
      FillReals<double>(tensor, fill, dice_, 2);
      break;
    case DType::kInt32:
      FillIntegers<int32_t>(tensor, fill, dice_);
      break;
    case DType::kInt64:
      FillIntegers<int64_t>(tensor, fill, dice_);
      break;
    case DType::kInt16:
      FillIntegers<int16_t>(tensor, fill, dice_);
      break;
    case DType::kInt8:
      FillIntegers<int8_t>(tensor, fill, dice_);
      break;
    case DType::kUint8:
      FillIntegers<uint8_t>(tensor, fill, dice_);
      break;
    case DType::kBool:
      for (bool& value : tensor.mutable_as<bool>()) value = fill != Fill::kZero && dice_.Percent(50);
      break;
    case DType::kString:
      for (std::string& value : tensor.mutable_as<std::string>()) value = Text();
      break;
    case DType::kResource:
      for (ResourceHandle& value : tensor.mutable_as<ResourceHandle>()) {
        value = {"/job:localhost/replica:0/task:0/device:CPU:0", "localhost", Text(), dice_.Next(), Text()};
      }
      break;
    default:
      FillBits(tensor, fill, dice_);
  }
  return tensor;
}

Tensor Values::Near(const Tensor& value) {
  std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
  if (Wild()) return Random(dice_.Percent(20) ? AnyType() : value.dtype(), Related());
  if (dice_.Percent(70) || ElementsOf(dims) < 0) return value;
  if (!dims.empty() && dice_.Percent(60)) {
    int64_t& dim = dims[dice_.Below(dims.size())];
    dim = dice_.Of({int64_t{0}, int64_t{1}, dim + 1, std::max<int64_t>(dim - 1, 0)});
  } else if (dice_.Percent(30)) {
    dims.push_back(1);
  }
  return Random(value.dtype(), dims);
}

std::vector<int64_t> Values::IndexValues(std::string_view argument, std::vector<int64_t>& dims) {
  const auto rank = static_cast<int64_t>(base_.size());
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, argument) != names.end();
  };
  dims = {rank};
  std::vector<int64_t> values(base_.size());
  if (is({"axis", "dim", "split_dim", "concat_dim", "dimension", "reduction_indices", "axes"})) {
    dims = dice_.Percent(75) ? std::vector<int64_t>{} : std::vector<int64_t>{dice_.Between(0, 2)};
    values.resize(static_cast<size_t>(ElementsOf(dims)));
    for (int64_t& value : values) value = dice_.Between(-rank, std::max<int64_t>(rank - 1, 0));
  } else if (is({"perm"})) {
    std::iota(values.begin(), values.end(), 0);
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[dice_.Below(i)]);
  } else if (is({"shape", "dims", "s0", "s1", "size"}) && dice_.Percent(80)) {
    values = Related();
    dims = {static_cast<int64_t>(values.size())};
    if (!values.empty() && dice_.Percent(15)) values[dice_.Below(values.size())] = -1;
  } else if (is({"paddings"})) {
    dims = {rank, 2};
    values.resize(base_.size() * 2);
    for (int64_t& value : values) value = dice_.Between(0, 2);
  } else if (is({"begin", "end", "strides", "multiples", "size"}) && dice_.Percent(90)) {
    for (int64_t& value : values) value = dice_.Between(argument == "begin" ? 0 : 1, 2);
  } else {
    dims = dice_.Percent(25) ? std::vector<int64_t>{} : Related();
    if (ElementsOf(dims) < 0) dims = SmallShape();
    values.resize(static_cast<size_t>(ElementsOf(dims)));
    for (int64_t& value : values) value = dice_.Between(0, dice_.Percent(70) ? 1 : 4);
  }
  return values;
}

Tensor Values::Index(DType dtype, std::string_view argument) {
  std::vector<int64_t> dims;
  std::vector<int64_t> values = IndexValues(argument, dims);
  if (Wild()) {
    dims = {static_cast<int64_t>(dice_.Below(6))};
    values.resize(static_cast<size_t>(dims[0]));
  }
  if (Wild() || values.size() != static_cast<size_t>(std::max<int64_t>(ElementsOf(dims), 0))) {
    return Random(dtype, dims);
  }
  for (int64_t& value : values) value = Wild() ? Absurd() : value;
  const auto make = [&]<class T>(T) {
    std::vector<T> typed;
    for (const int64_t value : values) typed.push_back(static_cast<T>(value));
    return Tensor::Of<T>(Shape::Of(dims), typed);
  };
  if (dtype == DType::kInt64) return make(int64_t{});
  if (dtype == DType::kInt32) return make(int32_t{});
  if (dtype == DType::kInt16) return make(int16_t{});
  return Random(dtype, dims);
}

std::string Values::Text() {
  if (Wild()) {
    return dice_.Of({std::string(5000, 'x'), std::string("\xff\xfe\x80"), std::string("a\0b", 3),
                     std::string("%n%s%999999999d"), std::string("\x1b[31m"), std::string("4 2,1:0,1"),
                     std::string("9223372036854775807 9223372036854775807 -:-"), std::string("(a*)*{900}")});
  }
  return dice_.Of({std::string(), std::string("a"), std::string("v"), std::string("ckpt"), std::string("{}"),
                   std::string("[a-z]+"), std::string("NHWC"), std::string("3 0,2"), std::string("%s")});
}

DType Values::AnyType() {
  if (dice_.Percent(80)) {
    return dice_.Of({DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64, DType::kBool, DType::kString,
                     DType::kComplex64, DType::kComplex128, DType::kHalf, DType::kBfloat16, DType::kInt8, DType::kUint8,
                     DType::kResource});
  }
  return static_cast<DType>(dice_.Of({dice_.Below(33), dice_.Below(33), 100 + dice_.Below(33), size_t{99}}));
}

int64_t Values::IntAttr(const op::AttrDef& attr) {
  if (Wild()) return Absurd();
  const int64_t low = attr.minimum.value_or(-1);
  return low > 1000 ? low : low + dice_.Between(0, 3);
}

PartialShape Values::ShapeAttr() {
  if (dice_.Percent(20)) return {};
  std::vector<int64_t> dims = Related();
  for (int64_t& dim : dims) dim = dice_.Percent(15) ? -1 : dim;
  Result<PartialShape> made = PartialShape::Make(dims);
  return made.ok() ? *made : PartialShape();
}

op::AttrValue Values::ListAttr(const op::AttrDef& attr) {
  const auto least = static_cast<size_t>(std::clamp<int64_t>(attr.minimum.value_or(0), 0, 8));
  const size_t count = Wild() ? dice_.Below(6) : least + dice_.Below(3);
  const auto list = [&]<class T>(const auto& one, T) {
    std::vector<T> values;
    for (size_t i = 0; i < count; ++i) values.push_back(one());
    return op::AttrValue(values);
  };
  if (attr.type == "list(int)") return list([&] { return Wild() ? Absurd() : dice_.Between(0, 3); }, int64_t{});
  if (attr.type == "list(float)") return list([&] { return static_cast<float>(dice_.Between(-4, 4)); }, float{});
  if (attr.type == "list(bool)") return list([&] { return dice_.Percent(50); }, bool{});
  if (attr.type == "list(string)") return list([&] { return Text(); }, std::string());
  if (attr.type == "list(shape)") return list([&] { return ShapeAttr(); }, PartialShape());
  return list([&] { return AnyType(); }, DType::kFloat);
}

op::AttrValue Values::Attr(const op::AttrDef& attr) {
  static const std::vector<std::string> kKinds = {"int", "float", "bool", "string", "shape", "tensor", "type"};
  const std::string type = dice_.Percent(wild_ / 10) ? dice_.Of(kKinds) : attr.type;
  if (type.starts_with("list(")) return ListAttr(attr);
  if (type == "int") return IntAttr(attr);
  if (type == "float") {
    const double real =
        Wild() ? std::clamp(dice_.Of(kReals), -3.4e38, 3.4e38) : 0.25 * static_cast<double>(dice_.Below(9));
    return static_cast<float>(real);
  }
  if (type == "bool") return dice_.Percent(50);
  if (type == "string") {
    const bool allowed = !attr.allowed_strings.empty() && !Wild();
    return allowed ? dice_.Of(attr.allowed_strings) : Text();
  }
  if (type == "shape") return ShapeAttr();
  if (type == "tensor") return Random(AnyType(), Related());
  if (type == "func") return op::FuncRef{Text(), nullptr};
  return AnyType();
}

}  // namespace weir::fuzz
