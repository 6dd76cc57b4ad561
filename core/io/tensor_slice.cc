#include "core/io/tensor_slice.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <set>

#include "core/base/errors.h"

namespace weir::io {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool ParseExtent(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

// LevelDB's order-preserving encodings: the byte order of the results is the order of the values.

void AppendOrderedNumber(std::string& out, uint64_t value) {
  const int bytes = (static_cast<int>(std::bit_width(value)) + 7) / 8;
  out.push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void AppendOrderedString(std::string& out, std::string_view text) {
  for (const char c : text) {
    out.push_back(c);
    if (c == '\0') out.push_back('\xff');
    if (c == '\xff') out.push_back('\0');
  }
  out.append("\0\1", 2);
}

void AppendOrderedSigned(std::string& out, int64_t value) {
  const auto magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  if (magnitude < 64) {
    out.push_back(static_cast<char>(0x80 ^ (value & 0xff)));
    return;
  }
  // `size` bytes of the sign-extended big-endian value, prefixed by `size` one bits and a zero bit (inverted if
  // negative).
  const int size = static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
  unsigned char bytes[10];
  std::fill(bytes, bytes + 2, value < 0 ? 0xff : 0);
  for (int i = 0; i < 8; ++i) bytes[2 + i] = static_cast<unsigned char>(static_cast<uint64_t>(value) >> (8 * (7 - i)));
  const uint32_t lead = 0xffffu << (16 - size);
  bytes[10 - size] ^= static_cast<unsigned char>(lead >> 8);
  bytes[11 - size] ^= static_cast<unsigned char>(lead);
  out.append(reinterpret_cast<const char*>(bytes + 10 - size), static_cast<size_t>(size));
}

// The dimension with the most distinct slice starts: a sweep along it has the fewest active slices.
size_t SweepDimension(const std::vector<TensorSlice>& slices) {
  size_t best = 0, most = 0;
  for (size_t dim = 0; dim < slices.front().size(); ++dim) {
    std::set<int64_t> starts;
    for (const TensorSlice& slice : slices) starts.insert(slice[dim].start);
    if (starts.size() > most) {
      most = starts.size();
      best = dim;
    }
  }
  return best;
}

// Appends the remainder of `box` without `taken`: at most two boxes per dimension.
void Subtract(TensorSlice box, const TensorSlice& taken, std::vector<TensorSlice>& rest) {
  const std::optional<TensorSlice> both = Intersect(box, taken);
  if (!both) return rest.push_back(std::move(box));
  for (size_t i = 0; i < box.size(); ++i) {
    const SliceExtent all = box[i], cut = (*both)[i];
    for (const SliceExtent part :
         {SliceExtent{all.start, cut.start - all.start},
          SliceExtent{cut.start + cut.length, all.start + all.length - cut.start - cut.length}}) {
      if (part.length == 0) continue;
      rest.push_back(box);
      rest.back()[i] = part;
    }
    box[i] = cut;
  }
}

}  // namespace

std::string ToString(const TensorSlice& slice) {
  std::string text;
  for (const SliceExtent& extent : slice) {
    if (&extent != &slice.front()) text += ':';
    text += extent.length == SliceExtent::kWholeDim ? "-" : fmt::format("{},{}", extent.start, extent.length);
  }
  return text;
}

Result<TensorSlice> Resolve(const TensorSlice& slice, const Shape& full) {
  if (static_cast<int>(slice.size()) != full.rank()) {
    return InvalidArgument("slice {} has {} dimensions, the shape {} has {}", ToString(slice), slice.size(),
                           full.ToString(), full.rank());
  }
  TensorSlice resolved = slice;
  for (int i = 0; i < full.rank(); ++i) {
    SliceExtent& extent = resolved[static_cast<size_t>(i)];
    if (extent.length == SliceExtent::kWholeDim) extent = {0, full.dim(i)};
    if (extent.start < 0 || extent.length < 0 || extent.start > full.dim(i) ||
        extent.length > full.dim(i) - extent.start) {
      return InvalidArgument("slice {} does not fit into shape {}", ToString(slice), full.ToString());
    }
  }
  return resolved;
}

Result<Shape> ShapeOf(const TensorSlice& resolved) {
  std::vector<int64_t> dims;
  for (const SliceExtent& extent : resolved) dims.push_back(extent.length);
  return Shape::Make(dims);
}

std::optional<TensorSlice> Intersect(const TensorSlice& a, const TensorSlice& b) {
  TensorSlice both(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t start = std::max(a[i].start, b[i].start);
    const int64_t end = std::min(a[i].start + a[i].length, b[i].start + b[i].length);
    if (start >= end) return std::nullopt;
    both[i] = {start, end - start};
  }
  return both;
}

Result<std::optional<std::pair<size_t, size_t>>> FindOverlap(const std::vector<TensorSlice>& resolved) {
  constexpr size_t kMaxSteps = 50'000'000;
  using Found = std::optional<std::pair<size_t, size_t>>;
  if (resolved.size() < 2) return Found();
  const size_t rank = resolved.front().size();
  if (rank == 0) return Found({0, 1});
  const size_t dim = SweepDimension(resolved);
  std::vector<size_t> order(resolved.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return resolved[i][dim].start; });
  size_t steps = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const TensorSlice& slice = resolved[order[i]];
    const int64_t end = slice[dim].start + slice[dim].length;
    for (size_t j = i + 1; j < order.size() && resolved[order[j]][dim].start < end; ++j) {
      if (Intersect(slice, resolved[order[j]])) return Found(std::minmax(order[i], order[j]));
      steps += rank;
      if (steps > kMaxSteps) return ResourceExhausted("{} slices are too many to compare", resolved.size());
    }
  }
  return Found();
}

std::vector<TensorSlice> FindGaps(const std::vector<TensorSlice>& resolved, const Shape& full, size_t limit) {
  constexpr size_t kMaxBoxes = 4096;
  TensorSlice whole;
  for (const int64_t extent : full.dims()) whole.push_back({0, extent});
  std::vector<TensorSlice> rest;
  if (full.elements() > 0) rest.push_back(std::move(whole));
  for (const TensorSlice& taken : resolved) {
    std::vector<TensorSlice> left;
    for (TensorSlice& box : rest) Subtract(std::move(box), taken, left);
    rest = std::move(left);
    if (rest.size() > kMaxBoxes) break;
  }
  if (rest.size() > limit) rest.resize(limit);
  return rest;
}

Result<ShapeAndSlice> ParseShapeAndSlice(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return InvalidArgument("Expected a shape and slice such as '10 20 0,5:-' but got '{}': {}", text, why);
  };
  std::vector<std::string_view> words = Split(text, ' ');
  const std::string_view spec = words.back();
  words.pop_back();
  std::vector<int64_t> dims(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (!ParseExtent(words[i], dims[i])) return bad(fmt::format("'{}' is not an extent", words[i]));
  }
  ShapeAndSlice parsed;
  Result<Shape> full = Shape::Make(dims);
  if (!full.ok()) return bad(full.status().message());
  parsed.full = std::move(*full);
  if (!spec.empty()) {
    for (const std::string_view part : Split(spec, ':')) {
      SliceExtent extent;
      const size_t comma = part.find(',');
      if (part != "-" && (comma == std::string_view::npos || !ParseExtent(part.substr(0, comma), extent.start) ||
                          !ParseExtent(part.substr(comma + 1), extent.length))) {
        return bad(fmt::format("'{}' is neither '-' nor start,length", part));
      }
      parsed.slice.push_back(extent);
    }
  }
  const Result<TensorSlice> resolved = Resolve(parsed.slice, parsed.full);
  if (!resolved.ok()) return bad(resolved.status().message());
  return parsed;
}

std::string SliceKey(std::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendOrderedNumber(key, 0);
  AppendOrderedString(key, name);
  AppendOrderedNumber(key, slice.size());
  for (const SliceExtent& extent : slice) {
    AppendOrderedSigned(key, extent.start);
    AppendOrderedSigned(key, extent.length);
  }
  return key;
}

}  // namespace weir::io
