// The ELF note that describes a plugin file, read without running its code.
#ifndef WEIR_CORE_PLUGIN_NOTE_H_
#define WEIR_CORE_PLUGIN_NOTE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "sdk/abi/plugin.h"

namespace weir::plugin {

/// Contents of a plugin file's note.
struct PluginNote {
  uint16_t record_format = 0;
  uint16_t abi_major = 0;
  uint16_t built_minor = 0;
  uint16_t needs_minor = 0;  // the maximum over all records of the file
  uint32_t kinds = 0;        // WEIR_KIND_*
  uint32_t machine = 0;
  uint32_t isa = 0;  // WEIR_ISA_*
  uint32_t sanitizer = 0;
  uint32_t must_understand = 0;
  uint32_t op_set_min = 0;
  uint32_t op_set_max = 0;
  std::string name;
  std::string version;
  std::string vendor;
  std::vector<std::string> targets;  // platforms served by its kernels
};

/// The records of owner "weir" from a file's note segments.
struct NoteRecords {
  std::vector<weir_note_desc> descriptions;
  uint32_t uses_minor = 0;
};

/// Random access to the bytes of a file. A short count from ReadAt means the end of the file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const = 0;
};

/// The bytes of memory that outlives the source.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const override;

 private:
  std::span<const std::byte> bytes_;
};

/// A file by descriptor, which must outlive the source. Uses pread, because access to a mapping raises a signal if the
/// file shrinks. Keeps a block for short reads, so it is not thread-safe.
class FileSource final : public ByteSource {
 public:
  /// InvalidArgument if `fd` is not a regular file.
  static Result<FileSource> Of(int fd);
  uint64_t size() const override { return size_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const override;

 private:
  FileSource(int fd, uint64_t size) : fd_(fd), size_(size) {}
  Result<size_t> Pread(uint64_t offset, std::span<std::byte> into) const;

  int fd_;
  uint64_t size_;
  mutable std::vector<std::byte> block_;  // the bytes from block_at_ on
  mutable uint64_t block_at_ = 0;
};

/// Parses one note segment and appends the records of owner "weir". `alignment` is the segment's p_align: records are
/// padded to 8 bytes if it is 8, otherwise to 4. Skips records of other owners and types; stops at a record that
/// overruns the segment. InvalidArgument for a description that is too short or whose text is not terminated.
Status ParseNoteSegment(std::span<const std::byte> bytes, uint64_t alignment, NoteRecords& records);

/// Reads the note of an ELF shared library. NotFound if the file is not ELF or has no note of owner "weir", so it is
/// not a plugin. InvalidArgument for an ELF file of another class, byte order or type, a damaged file, or a bad note.
Result<PluginNote> ReadNote(const ByteSource& file);
/// As ReadNote, for a path; does not follow a symbolic link in its last component.
Result<PluginNote> ReadNoteFile(const std::string& path);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_NOTE_H_
