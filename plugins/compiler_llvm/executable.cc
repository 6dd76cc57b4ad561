#include "plugins/compiler_llvm/executable.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugins/compiler_llvm/build.h"
#include "plugins/compiler_llvm/plan.h"
#include "plugins/functors/kept_regions.h"

namespace weir::compiler_llvm {
namespace {

using functors::Checksum;
using functors::kMaxBytes;
using functors::Reader;
using functors::Writer;

constexpr std::string_view kMagic = "weirllvm";
constexpr uint64_t kMaxTiles = 1 << 20;
constexpr uint64_t kMaxScratchBytes = 1 << 28;

/// Magic, checksum of what follows, build, level.
struct Header {
  bool whole = false;  // undamaged
  bool same_build = false;
  uint64_t level = 0;
};

Header ReadHeader(Reader* reader, std::span<const uint8_t> bytes) {
  Header header;
  if (bytes.size() > kMaxBytes || bytes.size() < kMagic.size() + 8) return header;
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return header;
  (void)reader->Number();  // the magic
  const uint64_t checksum = reader->Number();
  if (checksum != Checksum(bytes.subspan(reader->at()))) return header;
  const std::span<const uint8_t> build = reader->Bytes();
  header.level = reader->Number(1);
  header.whole = reader->ok();
  header.same_build = build.size() == std::strlen(kBuild) && std::memcmp(build.data(), kBuild, build.size()) == 0;
  return header;
}

}  // namespace

std::unique_ptr<CodeMemory> CodeMemory::Make(const Code& code, std::string* why) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::unique_ptr<CodeMemory> memory(new CodeMemory);
  const size_t bytes = (code.bytes.size() + page - 1) / page * page;
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    *why = std::string("no memory for code: ") + std::strerror(errno);
    return nullptr;
  }
  memory->base_ = base;
  memory->mapped_ = bytes;
  memory->used_ = code.bytes.size();
  std::memcpy(base, code.bytes.data(), code.bytes.size());
  if (mprotect(base, bytes, PROT_READ | PROT_EXEC) != 0) {
    *why = std::string("the system gives no executable memory: ") + std::strerror(errno);
    return nullptr;
  }
  memory->entry_offset_ = code.entry;
  memory->entry_ = reinterpret_cast<CodeFn>(static_cast<char*>(base) + code.entry);
  return memory;
}

CodeMemory::~CodeMemory() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

Executable::Executable(Description description, std::unique_ptr<CodeMemory> code)
    : description_(std::move(description)), code_(std::move(code)) {
  for (const auto* list : {&description_.inputs, &description_.outputs}) {
    for (const Described& value : *list) {
      weir_region_value record{};
      record.struct_size = sizeof record;
      record.dtype = value.dtype;
      record.shape = {static_cast<uint32_t>(value.dims.size()), 0, value.dims.data()};
      values_.push_back(record);
    }
  }
  for (const weir_region_value& value : values_) pointers_.push_back(&value);
}

std::unique_ptr<Executable> Executable::Make(Description description, const Code& code, std::string* why) {
  std::unique_ptr<CodeMemory> memory = CodeMemory::Make(code, why);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<Executable>(new Executable(std::move(description), std::move(memory)));
}

void Executable::FillSpec(weir_executable_spec* spec) const {
  weir_executable_spec full{};
  full.struct_size = spec->struct_size;
  full.input_count = static_cast<uint32_t>(description_.inputs.size());
  full.output_count = static_cast<uint32_t>(description_.outputs.size());
  full.alias_count = static_cast<uint32_t>(description_.aliases.size());
  full.inputs = pointers_.data();
  full.outputs = pointers_.data() + description_.inputs.size();
  full.aliases = description_.aliases.data();
  full.scratch_bytes = description_.scratch_bytes;
  full.scratch_alignment = 64;
  full.tiles = description_.tiles;
  std::memcpy(spec, &full, std::min<size_t>(spec->struct_size, sizeof full));
}

void Executable::Run(const weir_reg* regs, const weir_env* env) const {
  uint64_t begin = 0, end = description_.units;
  const uint64_t tiles = description_.tiles;
  if (tiles > 1) {
    const uint64_t whole = end / tiles, rest = end % tiles;  // without overflow
    begin = whole * env->tile_begin + rest * env->tile_begin / tiles;
    end = whole * env->tile_end + rest * env->tile_end / tiles;
  }
  char* scratch = nullptr;
  if (description_.scratch_bytes > 0) scratch = reinterpret_cast<char*>(regs[pointers_.size()].data);
  code_->entry()(regs, static_cast<int64_t>(begin), static_cast<int64_t>(end), scratch);
}

std::string Executable::Serialize() const {
  Writer body;
  body.Bytes(kBuild);
  body.Number(static_cast<uint64_t>(description_.level));
  for (const auto* list : {&description_.inputs, &description_.outputs}) {
    body.Number(list->size());
    for (const Described& value : *list) body.Value(value);
  }
  body.Number(description_.aliases.size());
  for (const weir_alias& alias : description_.aliases) {
    body.Number(alias.input);
    body.Number(alias.output);
  }
  body.Number(description_.scratch_bytes);
  body.Number(description_.units);
  body.Number(description_.tiles);
  body.Number(code_->entry_offset());
  const std::span<const uint8_t> code = code_->bytes();
  body.Bytes({reinterpret_cast<const char*>(code.data()), code.size()});
  const std::string rest = body.Take();
  Writer head;
  head.Number(Checksum({reinterpret_cast<const uint8_t*>(rest.data()), rest.size()}));
  return std::string(kMagic) + head.Take() + rest;
}

std::unique_ptr<Executable> Executable::Deserialize(std::span<const uint8_t> bytes, Level highest, std::string* why) {
  Reader reader(bytes);
  const Header header = ReadHeader(&reader, bytes);
  const auto refuse = [why](const char* text) {
    *why = text;
    return nullptr;
  };
  if (!header.whole) return refuse("the compiled region is damaged");
  if (!header.same_build) return refuse("the compiled region is of another build");
  if (header.level > static_cast<uint64_t>(highest)) return refuse("the compiled region needs another processor");
  Description description;
  description.level = static_cast<Level>(header.level);
  for (auto* list : {&description.inputs, &description.outputs}) {
    const uint64_t count = reader.Number(kMaxAccesses);
    for (uint64_t i = 0; reader.ok() && i < count; ++i) list->push_back(reader.Value());
  }
  const uint64_t aliases = reader.Number(kMaxAccesses * kMaxAccesses);
  for (uint64_t i = 0; reader.ok() && i < aliases; ++i) {
    const auto input = static_cast<uint32_t>(reader.Number(kMaxAccesses));
    description.aliases.push_back({input, static_cast<uint32_t>(reader.Number(kMaxAccesses)), WEIR_ALIAS_MAY, 0});
  }
  description.scratch_bytes = reader.Number(kMaxScratchBytes);
  description.units = reader.Number(static_cast<uint64_t>(kMaxElements));
  description.tiles = reader.Number(kMaxTiles);
  Code code;
  code.entry = reader.Number(kMaxBytes);
  const std::span<const uint8_t> text = reader.Bytes();
  if (!reader.AtEnd() || code.entry >= text.size()) return refuse("the compiled region is damaged");
  code.bytes.assign(text.begin(), text.end());
  return Make(std::move(description), code, why);
}

int32_t Executable::Compare(std::span<const uint8_t> bytes, Level level) {
  Reader reader(bytes);
  const Header header = ReadHeader(&reader, bytes);
  if (!header.whole) return WEIR_COMPAT_INCOMPATIBLE;
  return header.same_build && header.level == static_cast<uint64_t>(level) ? WEIR_COMPAT_SAME : WEIR_COMPAT_RECOMPILE;
}

}  // namespace weir::compiler_llvm
