#include "tools/weir/run_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/io/npy.h"
#include "core/tensor/number.h"
#include "tools/weir/literal.h"

namespace weir::cli {
namespace {

// The integer type that represents a quantised or sub-byte type in .npy files; kInvalid for all others.
DType HolderOf(DType dtype) {
  switch (dtype) {
    case DType::kQint8:
    case DType::kInt4:
      return DType::kInt8;
    case DType::kQuint8:
    case DType::kUint4:
      return DType::kUint8;
    case DType::kQint16:
      return DType::kInt16;
    case DType::kQuint16:
      return DType::kUint16;
    case DType::kQint32:
      return DType::kInt32;
    default:
      return DType::kInvalid;
  }
}

Result<Tensor> AsWanted(Tensor tensor, DType wanted) {
  if (tensor.dtype() == HolderOf(wanted)) return Tensor::Over(wanted, tensor.shape(), tensor.buffer(), tensor.offset());
  if (wanted != DType::kBfloat16 || tensor.dtype() != DType::kFloat) return tensor;
  WEIR_ASSIGN(Tensor narrow, Tensor::Make(wanted, tensor.shape()));
  const std::span<const float> values = tensor.as<float>();
  auto* to = reinterpret_cast<uint16_t*>(narrow.mutable_raw());
  for (size_t i = 0; i < values.size(); ++i) to[i] = FloatToBfloat16(values[i]);
  return narrow;
}

bool IsNpyName(std::string_view value) { return value.ends_with(".npy"); }

}  // namespace

std::pair<std::string, std::string> SplitFeed(const std::string& text) {
  const size_t at = text.find('=');
  return {text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
}

bool IsFile(const std::string& value) { return IsNpyName(value) && io::FileExists(value); }

Result<Tensor> ReadFeed(const std::string& name, const std::string& value, DType wanted) {
  const std::string context = fmt::format("feed '{}': ", name);
  Result<Tensor> tensor = IsFile(value) ? io::ReadNpy(value) : ParseLiteral(value, wanted);
  if (!tensor.ok()) {
    const bool missing = IsNpyName(value) && !IsFile(value);
    return tensor.status().Prepend(context).Append(missing ? "; nor is there a file of that name" : "");
  }
  Result<Tensor> converted = AsWanted(std::move(*tensor), wanted);
  if (!converted.ok()) return converted.status().Prepend(context);
  return converted;
}

Result<std::vector<std::string>> OutputFiles(const std::string& dir, const std::vector<std::string>& fetches) {
  std::vector<std::string> files;
  std::map<std::string, std::string> taken;
  for (const std::string& fetch : fetches) {
    std::string base = fetch;
    std::replace_if(
        base.begin(), base.end(), [](char c) { return c == '/' || c == ':'; }, '_');
    const auto [known, is_new] = taken.emplace(base, fetch);
    if (!is_new) {
      return InvalidArgument("fetches '{}' and '{}' would both be written to {}.npy; fetch them in two runs",
                             known->second, fetch, io::JoinPath(dir, base));
    }
    files.push_back(io::JoinPath(dir, base + ".npy"));
  }
  return files;
}

Status WriteOutput(const std::string& file, const Tensor& tensor) {
  WEIR_TRY(io::WriteNpy(file, tensor));
  const std::string side_file = file + ".json";
  const std::span<const std::string> texts =
      tensor.dtype() == DType::kString ? tensor.as<std::string>() : std::span<const std::string>();
  if (std::ranges::none_of(texts, [](const std::string& text) { return text.ends_with('\0'); })) {
    return io::RemoveFile(side_file);  // one from an earlier run would be out of date
  }
  nlohmann::ordered_json lengths = nlohmann::ordered_json::array();
  for (const std::string& text : texts) lengths.push_back(text.size());
  const nlohmann::ordered_json json = {{"schema", 1}, {"lengths", std::move(lengths)}};
  return io::WriteFileAtomically(side_file, json.dump() + "\n");
}

std::string ShellQuoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace weir::cli
