#include "core/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/io/files.h"
#include "core/tensor/number.h"

namespace weir::io {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kHeaderAlignment = 64;
constexpr size_t kMaxHeaderBytes = 1 << 20;

struct NpyType {
  const char* code;
  DType dtype;
};
// Codes without byte order. The first code of a type is used for writing.
constexpr NpyType kTypes[] = {
    {"b1", DType::kBool},      {"i1", DType::kInt8},        {"i2", DType::kInt16},   {"i4", DType::kInt32},
    {"i8", DType::kInt64},     {"u1", DType::kUint8},       {"u2", DType::kUint16},  {"u4", DType::kUint32},
    {"u8", DType::kUint64},    {"f2", DType::kHalf},        {"f4", DType::kFloat},   {"f8", DType::kDouble},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"i1", DType::kQint8},   {"i2", DType::kQint16},
    {"i4", DType::kQint32},    {"u1", DType::kQuint8},      {"u2", DType::kQuint16}, {"i1", DType::kInt4},
    {"u1", DType::kUint4},
};

struct Header {
  std::string descr;  // including the byte order
  bool fortran_order = false;
  std::vector<int64_t> dims;
};

// Parses the header: a Python dictionary literal with the keys descr, fortran_order and shape, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  std::optional<Header> Parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return std::nullopt;
    while (!Take('}')) {
      const std::optional<std::string> key = Text();
      if (!key || !Take(':')) return std::nullopt;
      if (*key == "descr" && !descr) {
        const std::optional<std::string> value = Text();
        if (!value) return std::nullopt;
        header.descr = *value;
        descr = true;
      } else if (*key == "fortran_order" && !order) {
        if (!Bool(header.fortran_order)) return std::nullopt;
        order = true;
      } else if (*key == "shape" && !shape) {
        if (!Tuple(header.dims)) return std::nullopt;
        shape = true;
      } else {
        return std::nullopt;
      }
      if (!Take(',') && !Peek('}')) return std::nullopt;
    }
    return descr && order && shape ? std::optional(header) : std::nullopt;
  }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool Peek(char c) {
    SkipBlanks();
    return !rest_.empty() && rest_.front() == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> Text() {
    const char quote = Peek('\'') ? '\'' : '"';
    if (!Take(quote)) return std::nullopt;
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool Bool(bool& value) {
    SkipBlanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      value = word == "True";
      return true;
    }
    return false;
  }
  bool Tuple(std::vector<int64_t>& dims) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      SkipBlanks();
      int64_t dim = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (error != std::errc() || dims.size() > 255) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (Peek('L')) Take('L');
      dims.push_back(dim);
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

// Maps element `i` of a row-major tensor to its index in Fortran order.
size_t FortranIndex(size_t i, std::span<const int64_t> dims) {
  size_t index = 0;
  size_t stride = 1;
  for (const int64_t dim : dims) stride *= static_cast<size_t>(dim);
  for (size_t k = dims.size(); k-- > 0;) {
    const auto dim = static_cast<size_t>(dims[k]);
    stride /= dim;
    index += i % dim * stride;
    i /= dim;
  }
  return index;
}

void AppendUtf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3f))); };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (c >> 6)));
    tail(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (c >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | ((c >> 18) & 7)));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Text of one "U" element: UCS-4 units, padded with NULs.
std::string FromUcs4(std::string_view units, bool swapped) {
  std::string text;
  size_t end = units.size();
  while (end >= 4 && units.substr(end - 4, 4) == std::string_view("\0\0\0\0", 4)) end -= 4;
  for (size_t i = 0; i < end; i += 4) {
    char unit[4];
    std::memcpy(unit, units.data() + i, 4);
    if (swapped) std::reverse(unit, unit + 4);
    uint32_t c;
    std::memcpy(&c, unit, 4);
    AppendUtf8(text, c);
  }
  return text;
}

// A parsed descr: type, bytes of an element in the file, and size of the numbers to byte-swap.
struct Layout {
  DType dtype = DType::kInvalid;
  size_t item_bytes = 0;
  size_t number_bytes = 1;
  bool is_ucs4 = false;
  bool swapped = false;
};

std::optional<Layout> ParseDescr(std::string_view descr) {
  Layout layout;
  if (descr.size() < 2) return std::nullopt;
  const char order = descr.front();
  if (order == '<' || order == '>' || order == '|' || order == '=') descr.remove_prefix(1);
  layout.swapped = order == '>';
  if (descr.front() == 'S' || descr.front() == 'a' || descr.front() == 'U') {
    layout.is_ucs4 = descr.front() == 'U';
    const auto [end, error] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), layout.item_bytes);
    if (error != std::errc() || end != descr.data() + descr.size() || layout.item_bytes > (size_t{1} << 40)) {
      return std::nullopt;
    }
    layout.dtype = DType::kString;
    if (layout.is_ucs4) layout.item_bytes *= 4;
    return layout;
  }
  for (const NpyType& type : kTypes) {
    if (descr != type.code) continue;
    layout.dtype = type.dtype;
    layout.item_bytes = SizeOf(type.dtype);
    layout.number_bytes = IsComplex(type.dtype) ? layout.item_bytes / 2 : layout.item_bytes;
    return layout;
  }
  return std::nullopt;
}

void FillStrings(const Layout& layout, std::string_view data, const Header& header, Tensor& tensor) {
  const std::span<std::string> texts = tensor.mutable_as<std::string>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t from = header.fortran_order ? FortranIndex(i, header.dims) : i;
    const std::string_view item = data.substr(from * layout.item_bytes, layout.item_bytes);
    // If all bytes are NUL, find_last_not_of returns npos, and npos + 1 is 0.
    texts[i] =
        layout.is_ucs4 ? FromUcs4(item, layout.swapped) : std::string(item.substr(0, item.find_last_not_of('\0') + 1));
  }
}

void FillNumbers(const Layout& layout, std::string_view data, const Header& header, Tensor& tensor) {
  std::byte* to = tensor.mutable_raw();
  if (header.fortran_order && header.dims.size() > 1) {
    for (size_t i = 0; i < static_cast<size_t>(tensor.elements()); ++i) {
      std::memcpy(to + i * layout.item_bytes, data.data() + FortranIndex(i, header.dims) * layout.item_bytes,
                  layout.item_bytes);
    }
  } else {
    std::memcpy(to, data.data(), data.size());
  }
  if (layout.swapped && layout.number_bytes > 1) {
    for (size_t i = 0; i < data.size(); i += layout.number_bytes) std::reverse(to + i, to + i + layout.number_bytes);
  }
  if (layout.dtype == DType::kBool) {
    for (size_t i = 0; i < data.size(); ++i) to[i] = std::byte{to[i] != std::byte{0}};
  }
}

std::string HeaderText(std::string_view descr, const Shape& shape) {
  std::string dims;
  for (const int64_t dim : shape.dims()) dims += fmt::format("{}, ", dim);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.pop_back();
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
}

// Magic, version, header, and padding to align the data.
std::string Preamble(std::string_view descr, const Shape& shape) {
  std::string header = HeaderText(descr, shape);
  const bool wide = kNpyMagic.size() + 4 + header.size() + kHeaderAlignment > UINT16_MAX;
  const size_t before = kNpyMagic.size() + 2 + (wide ? 4 : 2);
  header.resize((before + header.size() + kHeaderAlignment) / kHeaderAlignment * kHeaderAlignment - before, ' ');
  header.back() = '\n';
  std::string out(kNpyMagic);
  out.push_back(wide ? 2 : 1);
  out.push_back(0);
  for (int i = 0; i < (wide ? 4 : 2); ++i) out.push_back(static_cast<char>(header.size() >> (8 * i)));
  return out + header;
}

}  // namespace

Result<Tensor> DecodeNpy(std::string_view file, const std::string& path) {
  const auto bad = [&](std::string_view why) { return InvalidArgument("{}: not a usable .npy file: {}", path, why); };
  if (!file.starts_with(kNpyMagic) || file.size() < kNpyMagic.size() + 4)
    return bad("it does not start with \\x93NUMPY");
  const int version = file[kNpyMagic.size()];
  if (version < 1 || version > 3) return bad(fmt::format("version {}, wanted 1 to 3", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  std::string_view rest = file.substr(kNpyMagic.size() + 2);
  if (rest.size() < length_bytes) return bad("the header is cut short");
  size_t header_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i) header_bytes |= size_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  rest.remove_prefix(length_bytes);
  if (header_bytes > rest.size() || header_bytes > kMaxHeaderBytes) return bad("the header is cut short");
  const std::optional<Header> header = HeaderParser(rest.substr(0, header_bytes)).Parse();
  if (!header) return bad("the header is not a dictionary with descr, fortran_order and shape");
  const std::string_view data = rest.substr(header_bytes);

  const std::optional<Layout> layout = ParseDescr(header->descr);
  if (!layout) {
    return bad(fmt::format("element type '{}'; wanted bool, integer, float, complex, S or U", header->descr));
  }
  const Result<Shape> shape = Shape::Make(header->dims);
  if (!shape.ok()) return bad(shape.status().message());
  const auto elements = static_cast<uint64_t>(shape->elements());
  // Strings of width 0 take no bytes, so their number needs its own bound.
  const uint64_t held = layout->item_bytes == 0 ? file.size() : data.size() / layout->item_bytes;
  if (held < elements || elements * layout->item_bytes != data.size()) {
    return DataLoss("{}: shape {} of {} needs {} elements of {} bytes, but {} bytes of data follow the header", path,
                    shape->ToString(), header->descr, elements, layout->item_bytes, data.size());
  }
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(layout->dtype, *shape));
  if (elements == 0) return tensor;
  if (layout->dtype == DType::kString) {
    FillStrings(*layout, data, *header, tensor);
  } else {
    FillNumbers(*layout, data, *header, tensor);
  }
  return tensor;
}

Result<Tensor> ReadNpy(const std::string& path, uint64_t limit_bytes) {
  WEIR_ASSIGN(const std::string file, ReadFile(path, limit_bytes));
  return DecodeNpy(file, path);
}

Result<std::string> EncodeNpy(const Tensor& tensor) {
  if (!tensor.valid() || !tensor.on_host()) return InvalidArgument("a tensor without a value in host memory");
  const DType dtype = tensor.dtype();
  if (dtype == DType::kString) {
    size_t width = 1;
    for (const std::string& text : tensor.as<std::string>()) width = std::max(width, text.size());
    std::string out = Preamble(fmt::format("|S{}", width), tensor.shape());
    for (const std::string& text : tensor.as<std::string>()) {
      out += text;
      out.append(width - text.size(), '\0');
    }
    return out;
  }
  for (const NpyType& type : kTypes) {
    if (type.dtype != dtype) continue;
    const char order = SizeOf(dtype) == 1 ? '|' : '<';
    std::string out = Preamble(fmt::format("{}{}", order, type.code), tensor.shape());
    if (tensor.raw() != nullptr) out.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
    return out;
  }
  if (!IsFloating(dtype)) return Unimplemented("type {} cannot be stored in .npy files", Name(dtype));
  std::string out = Preamble("<f4", tensor.shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto value = static_cast<float>(ElementAsDouble(tensor, i));
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return out;
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  WEIR_ASSIGN(const std::string bytes, EncodeNpy(tensor));
  WEIR_ASSIGN(OutputFile file, OutputFile::Create(path));
  WEIR_TRY(file.Append(bytes));
  return file.Close();
}

}  // namespace weir::io
