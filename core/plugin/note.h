// The ELF note that describes a plugin file, read without running any of the file's code.
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

/// What a plugin file says of itself.
struct PluginNote {
  uint16_t record_format = 0;
  uint16_t abi_major = 0;
  uint16_t built_minor = 0;
  uint16_t needs_minor = 0;  // the most that any record of the file asks for
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
  std::vector<std::string> targets;  // platforms that its kernels serve
};

/// The records of owner "weir" gathered from a file's note segments.
struct NoteRecords {
  std::vector<weir_note_desc> descriptions;
  uint32_t uses_minor = 0;
};

/// Random access to the bytes of a file. A short count from ReadAt means that the file ends there.
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

/// A file by descriptor, which outlives the source: pread into buffers, since a mapping of a file that shrinks dies by
/// a signal.
class FileSource final : public ByteSource {
 public:
  /// InvalidArgument for what is no regular file.
  static Result<FileSource> Of(int fd);
  uint64_t size() const override { return size_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const override;

 private:
  FileSource(int fd, uint64_t size) : fd_(fd), size_(size) {}
  int fd_;
  uint64_t size_;
};

/// Walks one note segment, adding the records of owner "weir". `alignment` is the segment's p_align: records are padded
/// to 8 where it is 8, else to 4. Records of other owners and types are skipped; a record that overruns the segment
/// ends the walk. InvalidArgument for a description that is too short or whose text is not terminated.
Status ParseNoteSegment(std::span<const std::byte> bytes, uint64_t alignment, NoteRecords& records);

/// The note of an ELF shared library. NotFound when the file is no ELF file or has no note of owner "weir": it is no
/// plugin. InvalidArgument for an ELF file of another class, byte order or type, a damaged one, or a bad note.
Result<PluginNote> ReadNote(const ByteSource& file);
/// The same for a path, which is opened without following a link at its end.
Result<PluginNote> ReadNoteFile(const std::string& path);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_NOTE_H_
