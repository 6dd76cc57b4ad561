#include "core/plugin/note.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/errors.h"

namespace weir::plugin {
namespace {

static_assert(std::endian::native == std::endian::little, "notes are little-endian and read as they are");

constexpr uint64_t kMaxSegment = 64 * 1024;
constexpr uint32_t kMaxProgramHeaders = 512;
constexpr uint32_t kRecordHeader = 12;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

template <class T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Reads a struct at `offset` of the file; InvalidArgument names `what` if it is truncated.
template <class T>
Result<T> ReadStruct(const ByteSource& file, uint64_t offset, std::string_view what) {
  std::byte bytes[sizeof(T)];
  WEIR_ASSIGN(const size_t got, file.ReadAt(offset, bytes));
  if (got != sizeof(T)) return InvalidArgument("damaged ELF file: {} at byte {} is truncated", what, offset);
  return Load<T>(bytes, 0);
}

// Printable ASCII in a fixed-size array, up to the first NUL.
template <size_t n>
Result<std::string> ReadText(const char (&text)[n], std::string_view field) {
  const auto* end = static_cast<const char*>(std::memchr(text, 0, n));
  if (end == nullptr) return InvalidArgument("bad plugin note: {} is not terminated", field);
  const std::string_view found(text, static_cast<size_t>(end - text));
  for (const char c : found) {
    if (c < 0x20 || c > 0x7e)
      return InvalidArgument("bad plugin note: {} holds the byte {:#04x}", field, static_cast<uint8_t>(c));
  }
  return std::string(found);
}

bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

Result<PluginNote> Interpret(const NoteRecords& records) {
  if (records.descriptions.empty()) return NotFound("not a plugin: the file has no note of weir");
  if (records.descriptions.size() > 1) {
    return InvalidArgument("bad plugin note: {} descriptions, wanted one", records.descriptions.size());
  }
  const weir_note_desc& desc = records.descriptions.front();
  if (std::memcmp(desc.magic, WEIR_NOTE_MAGIC, sizeof(WEIR_NOTE_MAGIC)) != 0) {
    return InvalidArgument("bad plugin note: its magic is wrong");
  }
  PluginNote note;
  note.record_format = desc.record_format;
  note.abi_major = desc.abi_major;
  note.built_minor = desc.built_minor;
  note.needs_minor = static_cast<uint16_t>(std::max<uint32_t>(desc.needs_minor, std::min(records.uses_minor, 0xffffu)));
  note.kinds = desc.kinds;
  note.machine = desc.machine;
  note.isa = desc.isa;
  note.sanitizer = desc.sanitizer;
  note.must_understand = desc.must_understand;
  note.op_set_min = desc.op_set_min;
  note.op_set_max = desc.op_set_max;
  WEIR_ASSIGN(note.name, ReadText(desc.name, "name"));
  WEIR_ASSIGN(note.version, ReadText(desc.version, "version"));
  WEIR_ASSIGN(note.vendor, ReadText(desc.vendor, "vendor"));
  WEIR_ASSIGN(const std::string targets, ReadText(desc.targets, "targets"));
  if (!IsName(note.name)) {
    return InvalidArgument("bad plugin note: name '{}', wanted letters, digits, '_', '-' and '.'", note.name);
  }
  for (size_t begin = 0; begin < targets.size();) {
    const size_t end = std::min(targets.find(';', begin), targets.size());
    if (end > begin) note.targets.push_back(targets.substr(begin, end - begin));
    begin = end + 1;
  }
  return note;
}

Result<Elf64_Ehdr> ReadElfHeader(const ByteSource& file) {
  std::byte ident[EI_NIDENT] = {};
  WEIR_ASSIGN(const size_t got, file.ReadAt(0, ident));
  if (got < SELFMAG || std::memcmp(ident, ELFMAG, SELFMAG) != 0) return NotFound("not a plugin: no ELF file");
  const auto at = [&ident](int i) { return static_cast<int>(ident[i]); };
  if (at(EI_CLASS) != ELFCLASS64) return InvalidArgument("ELF class {}, wanted a 64-bit library", at(EI_CLASS));
  if (at(EI_DATA) != ELFDATA2LSB) return InvalidArgument("ELF byte order {}, wanted little-endian", at(EI_DATA));
  WEIR_ASSIGN(const Elf64_Ehdr header, ReadStruct<Elf64_Ehdr>(file, 0, "the header"));
  if (header.e_type != ET_DYN) return InvalidArgument("ELF type {}, wanted a shared library (3)", header.e_type);
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) {
    return InvalidArgument("damaged ELF file: program headers of {} bytes, wanted {}", header.e_phentsize,
                           sizeof(Elf64_Phdr));
  }
  if (header.e_phnum > kMaxProgramHeaders) {
    return InvalidArgument("damaged ELF file: {} program headers, at most {} are read", header.e_phnum,
                           kMaxProgramHeaders);
  }
  const uint64_t table = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phoff > file.size() || table > file.size() - header.e_phoff) {
    return InvalidArgument("damaged ELF file: program headers at byte {} lie outside its {} bytes", header.e_phoff,
                           file.size());
  }
  return header;
}

}  // namespace

Result<size_t> MemorySource::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  if (offset >= bytes_.size()) return size_t{0};
  const size_t count = std::min<size_t>(into.size(), bytes_.size() - offset);
  if (count > 0) std::memcpy(into.data(), bytes_.data() + offset, count);
  return count;
}

Result<FileSource> FileSource::Of(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return Unavailable("cannot stat: {}", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return InvalidArgument("not a regular file");
  return FileSource(fd, static_cast<uint64_t>(info.st_size));
}

Result<size_t> FileSource::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  constexpr size_t kBlock = 4096;
  if (into.size() > kBlock / 2) return Pread(offset, into);
  const bool kept =
      offset >= block_at_ && offset - block_at_ <= block_.size() && into.size() <= block_.size() - (offset - block_at_);
  if (!kept) {
    block_.resize(kBlock);
    block_at_ = offset;
    const Result<size_t> got = Pread(offset, block_);
    block_.resize(got.ok() ? *got : 0);
    WEIR_TRY(got.status());
  }
  const size_t from = static_cast<size_t>(offset - block_at_), count = std::min(into.size(), block_.size() - from);
  std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(from), count, into.begin());
  return count;
}

Result<size_t> FileSource::Pread(uint64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable("cannot read: {}", std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

Status ParseNoteSegment(std::span<const std::byte> bytes, uint64_t alignment, NoteRecords& records) {
  const uint64_t pad = alignment == 8 ? 8 : 4;
  const auto padded = [pad](uint64_t offset) { return (offset + pad - 1) / pad * pad; };
  uint64_t at = 0;
  while (at + kRecordHeader <= bytes.size()) {
    const uint64_t name_size = Load<uint32_t>(bytes, at);
    const uint64_t desc_size = Load<uint32_t>(bytes, at + 4);
    const auto type = Load<uint32_t>(bytes, at + 8);
    const uint64_t name_at = at + kRecordHeader;
    const uint64_t desc_at = padded(name_at + name_size);  // all terms are below 2^33
    if (name_at + name_size > bytes.size() || desc_at + desc_size > bytes.size()) break;
    const bool ours = name_size == sizeof(WEIR_NOTE_OWNER) &&
                      std::memcmp(bytes.data() + name_at, WEIR_NOTE_OWNER, sizeof(WEIR_NOTE_OWNER)) == 0;
    if (ours && type == WEIR_NOTE_DESCRIPTION) {
      if (desc_size < sizeof(weir_note_desc)) {
        return InvalidArgument("bad plugin note: a description of {} bytes, wanted at least {}", desc_size,
                               sizeof(weir_note_desc));
      }
      records.descriptions.push_back(Load<weir_note_desc>(bytes, desc_at));
    } else if (ours && type == WEIR_NOTE_USES_MINOR) {
      if (desc_size < sizeof(uint32_t)) return InvalidArgument("bad plugin note: a use record of {} bytes", desc_size);
      records.uses_minor = std::max(records.uses_minor, Load<uint32_t>(bytes, desc_at));
    }
    at = padded(desc_at + desc_size);
  }
  return {};
}

Result<PluginNote> ReadNote(const ByteSource& file) {
  WEIR_ASSIGN(const Elf64_Ehdr header, ReadElfHeader(file));
  NoteRecords records;
  std::vector<std::byte> segment;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr);
    WEIR_ASSIGN(const Elf64_Phdr program, ReadStruct<Elf64_Phdr>(file, at, "a program header"));
    if (program.p_type != PT_NOTE && program.p_type != PT_LOAD) continue;
    // Also checks loadable segments: the dynamic linker crashes on a truncated file.
    if (program.p_offset > file.size() || program.p_filesz > file.size() - program.p_offset) {
      return InvalidArgument("damaged ELF file: a segment lies outside its {} bytes", file.size());
    }
    if (program.p_type != PT_NOTE) continue;
    if (program.p_filesz > kMaxSegment) {
      return InvalidArgument("a note segment of {} bytes, at most {} are read", program.p_filesz, kMaxSegment);
    }
    segment.resize(program.p_filesz);
    WEIR_ASSIGN(const size_t got, file.ReadAt(program.p_offset, segment));
    WEIR_TRY(ParseNoteSegment(std::span(segment).first(got), program.p_align, records));
  }
  WEIR_ASSIGN(PluginNote note, Interpret(records));
  if (note.machine != header.e_machine) {
    return InvalidArgument("the note says machine {}, the ELF header {}", note.machine, header.e_machine);
  }
  return note;
}

Result<PluginNote> ReadNoteFile(const std::string& path) {
  // O_NONBLOCK, because opening a FIFO would otherwise wait for a writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return Unavailable("cannot open {}: {}", path, std::strerror(errno));
  WEIR_ASSIGN(const FileSource source, FileSource::Of(file.get()));
  return ReadNote(source);
}

}  // namespace weir::plugin
