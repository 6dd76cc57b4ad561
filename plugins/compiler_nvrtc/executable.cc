#include "plugins/compiler_nvrtc/executable.h"

#include <algorithm>
#include <cstring>

#include "plugins/compiler_nvrtc/prelude.h"
#include "plugins/compiler_nvrtc/source.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_nvrtc {
namespace {

using functors::Checksum;
using functors::Described;
using functors::Reader;
using functors::Writer;

constexpr std::string_view kMagic = "weirnvrt", kVersion = "0.1.0";
constexpr int64_t kMostBlocks = 1 << 16;  // threads of more blocks would run one after another on any card

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// The reader behind magic and checksum; none for bytes that are damaged.
bool ReadHead(std::span<const uint8_t> bytes, Reader* reader) {
  if (bytes.size() > functors::kMaxBytes || bytes.size() < kMagic.size() + 8) return false;
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return false;
  (void)reader->Number();  // the magic
  return reader->Number() == Checksum(bytes.subspan(reader->at()));
}

Described DescribedOf(const weir_region_value& value) {
  return {value.dtype, {value.shape.dims, value.shape.dims + value.shape.rank}};
}

}  // namespace

std::string BuildText() {
  const uint64_t prelude = Checksum(BytesOf(kPrelude)) ^ Checksum(BytesOf(kDevicePrelude));
  return "compiler_nvrtc " + std::string(kVersion) + " " + kArchitecture + " " + std::to_string(prelude);
}

Description Description::Of(const weir_region& region, std::string ptx) {
  Description made;
  for (uint32_t i = 0; i < region.input_count; ++i) made.inputs.push_back(DescribedOf(*region.inputs[i]));
  for (uint32_t k = 0; k < region.output_count; ++k) {
    made.outputs.push_back(DescribedOf(ValueOf(region, region.outputs[k])));
  }
  made.elements = ElementsOf(ValueOf(region, region.outputs[0]).shape).value_or(0);
  made.ptx = std::move(ptx);
  return made;
}

std::string Description::ToBytes() const {
  Writer body;
  body.Bytes(BuildText());
  for (const auto* list : {&inputs, &outputs}) {
    body.Number(list->size());
    for (const Described& value : *list) body.Value(value);
  }
  body.Number(static_cast<uint64_t>(elements));
  body.Bytes(ptx);
  const std::string rest = body.Take();
  Writer head;
  head.Number(Checksum(BytesOf(rest)));
  return std::string(kMagic) + head.Take() + rest;
}

bool Description::FromBytes(std::span<const uint8_t> bytes, Description* description, std::string* why) {
  Reader reader(bytes);
  const bool whole = ReadHead(bytes, &reader);
  const std::span<const uint8_t> build = whole ? reader.Bytes() : std::span<const uint8_t>();
  if (whole && reader.ok() && !std::ranges::equal(build, BytesOf(BuildText()))) {
    *why = "the compiled region is of another build";
    return false;
  }
  Description read;
  for (auto* list : {&read.inputs, &read.outputs}) {
    const uint64_t count = whole ? reader.Number(kMostPointers) : 0;
    for (uint64_t i = 0; reader.ok() && i < count; ++i) list->push_back(reader.Value());
  }
  read.elements = whole ? static_cast<int64_t>(reader.Number(functors::kMostElements)) : 0;
  const std::span<const uint8_t> text = whole ? reader.Bytes() : std::span<const uint8_t>();
  // The driver reads the text to its zero byte.
  const bool ends = !text.empty() && text.back() == 0;
  if (!whole || !reader.AtEnd() || !ends || read.elements < 1 || read.outputs.empty() ||
      read.inputs.size() + read.outputs.size() > kMostPointers) {
    *why = "the compiled region is damaged";
    return false;
  }
  read.ptx.assign(text.begin(), text.end());
  *description = std::move(read);
  return true;
}

int32_t Description::Compare(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  if (!ReadHead(bytes, &reader)) return WEIR_COMPAT_INCOMPATIBLE;
  const std::span<const uint8_t> build = reader.Bytes();
  return reader.ok() && std::ranges::equal(build, BytesOf(BuildText())) ? WEIR_COMPAT_SAME : WEIR_COMPAT_RECOMPILE;
}

Executable::Executable(Description description, std::unique_ptr<LoadedKernel> kernel)
    : description_(std::move(description)), kernel_(std::move(kernel)) {
  for (const auto* list : {&description_.inputs, &description_.outputs}) {
    for (const Described& value : *list) {
      const weir_shape shape{static_cast<uint32_t>(value.dims.size()), 0, value.dims.data()};
      values_.push_back({sizeof(weir_region_value), value.dtype, shape, nullptr});
    }
  }
  for (const weir_region_value& value : values_) pointers_.push_back(&value);
  // A thread reads its elements of an input with the results' shape before it writes those of the results.
  for (uint32_t i = 0; i < description_.inputs.size(); ++i) {
    for (uint32_t k = 0; k < description_.outputs.size(); ++k) {
      const Described &input = description_.inputs[i], &output = description_.outputs[k];
      if (input.dims == output.dims && sdk::SizeOf(input.dtype) == sdk::SizeOf(output.dtype)) {
        aliases_.push_back({i, k, WEIR_ALIAS_MAY, 0});
      }
    }
  }
}

void Executable::FillSpec(weir_executable_spec* spec) const {
  weir_executable_spec full{};
  full.struct_size = spec->struct_size;
  full.input_count = static_cast<uint32_t>(description_.inputs.size());
  full.output_count = static_cast<uint32_t>(description_.outputs.size());
  full.alias_count = static_cast<uint32_t>(aliases_.size());
  full.inputs = pointers_.data();
  full.outputs = pointers_.data() + description_.inputs.size();
  full.aliases = aliases_.data();
  full.tiles = 1;
  std::memcpy(spec, &full, std::min<size_t>(spec->struct_size, sizeof full));
}

int32_t Executable::Run(const weir_reg* regs, const weir_env* env) const {
  const sdk::Error error(env->error);
  if (kernel_ == nullptr) return error.Fail(WEIR_FAILED_PRECONDITION, "the compiled region is not loaded");
  uint64_t addresses[kMostPointers];
  void* arguments[kMostPointers];
  for (size_t i = 0; i < pointers_.size(); ++i) {
    addresses[i] = regs[i].handle + regs[i].data;
    arguments[i] = &addresses[i];
  }
  const int64_t blocks = std::min((description_.elements + kThreads - 1) / kThreads, kMostBlocks);
  const int code = kernel_->Launch(env->native_stream, static_cast<uint32_t>(blocks), kThreads, arguments);
  if (code == 0) return WEIR_OK;
  if (env->error != nullptr) env->error->vendor_code = code;
  return error.Fail(WEIR_INTERNAL, "launch of a compiled region: ", std::string_view(LoadedKernel::NameOf(code)), " (",
                    code, ")");
}

}  // namespace weir::compiler_nvrtc
