#include "plugins/remote/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "plugins/remote/fields.h"
#include "plugins/remote/handshake.h"
#include "plugins/remote/secrets.h"

namespace weir_remote {
namespace {

constexpr int kMostShared = 128;  // memories of this process, of both kinds
constexpr size_t kMostReason = 512;

std::atomic<int> shared_count{0};

enum : uint32_t { kProcess = 1, kDescriptor = 2, kBytes = 3, kSecret = 4, kReason = 5 };
enum : uint32_t { kSlot = 1, kLength = 2 };

/// A descriptor that is closed at the end.
struct OpenFile {
  explicit OpenFile(int opened) : number(opened) {}
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int Release() { return std::exchange(number, -1); }
  int number;
};

WireError NotShared(const std::string& what) {
  return {WEIR_RESOURCE_EXHAUSTED, what + ": " + std::generic_category().message(errno)};
}

WireError Refused(const std::string& why) { return {WEIR_FAILED_PRECONDITION, why}; }

std::unique_ptr<SharedMapping> Map(int file, int access) {
  void* const at = ::mmap(nullptr, kSharedBytes, access, MAP_SHARED | MAP_POPULATE, file, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::make_unique<SharedMapping>(static_cast<std::byte*>(at), kSharedBytes);
}

/// Other threads see the bytes as after memcpy.
void CopyPastCaches(std::byte* to, const std::byte* from, size_t size) {
#if defined(__SSE2__)
  constexpr size_t kUnit = sizeof(__m128i), kLine = 4 * kUnit;
  const size_t front = std::min(size, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  if (front > 0) std::memcpy(to, from, front);
  size_t at = front;
  for (; size - at >= kLine; at += kLine) {
    __m128i line[4];
    std::memcpy(line, from + at, kLine);
    for (size_t i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + i * kUnit), line[i]);
  }
  _mm_sfence();
  to += at;
  from += at;
  size -= at;
#endif
  if (size > 0) std::memcpy(to, from, size);
}

std::string LinkText(const char* path) {
  char text[128];
  const ssize_t size = ::readlink(path, text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

}  // namespace

const std::string& HostId() {
  static const std::string id = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string boot;
    const std::string processes = LinkText("/proc/self/ns/pid"), network = LinkText("/proc/self/ns/net");
    if (!std::getline(file, boot) || boot.empty() || processes.empty() || network.empty()) return std::string();
    // Strangers need not know what it is made of.
    const MacBytes mac = HmacSha256("host", boot + "/" + std::to_string(::geteuid()) + "/" + processes + "/" + network);
    return std::string(reinterpret_cast<const char*>(mac.data()), mac.size() / 2);
  }();
  return id;
}

std::string EncodeOffer(const SharedOffer& offer) {
  FieldWriter writer;
  writer.Number(kProcess, offer.process);
  writer.Number(kDescriptor, offer.descriptor);
  writer.Number(kBytes, offer.bytes);
  writer.Text(kSecret, offer.secret);
  return writer.bytes();
}

std::string EncodeAnswer(const SharedAnswer& answer) {
  FieldWriter writer;
  writer.Text(kReason, std::string_view(answer.reason).substr(0, kMostReason));
  return writer.bytes();
}

std::string EncodeChunk(const SharedChunk& chunk) {
  FieldWriter writer;
  writer.Number(kSlot, chunk.slot);
  writer.Number(kLength, chunk.bytes);
  return writer.bytes();
}

WireError DecodeOffer(std::string_view meta, SharedOffer& offer) {
  offer = {};
  FieldReader reader(meta);
  while (reader.Next()) {
    const bool text = reader.is_text();
    const bool small = !text && reader.number() <= INT32_MAX;
    bool good = true;
    switch (reader.field()) {
      case kProcess:
        good = small;
        offer.process = static_cast<uint32_t>(reader.number());
        break;
      case kDescriptor:
        good = small;
        offer.descriptor = static_cast<uint32_t>(reader.number());
        break;
      case kBytes:
        good = !text;
        offer.bytes = reader.number();
        break;
      case kSecret:
        good = text && reader.text().size() == kSecretBytes;
        if (good) offer.secret = reader.text();
        break;
      default:
        break;  // of a later minor
    }
    if (!good) return Malformed("field " + std::to_string(reader.field()) + " of an offer of memory is malformed");
  }
  if (reader.bad() || offer.process == 0 || offer.secret.empty()) return Malformed("an offer of memory is malformed");
  if (offer.bytes == kSharedBytes) return {};
  return Malformed("memory of " + std::to_string(offer.bytes) + " bytes was offered, wanted " +
                   std::to_string(kSharedBytes));
}

bool IsAnswer(std::string_view meta) {
  FieldReader reader(meta);
  while (reader.Next()) {
    if (reader.field() == kReason) return true;
  }
  return false;
}

WireError DecodeAnswer(std::string_view meta, SharedAnswer& answer) {
  answer = {};
  FieldReader reader(meta);
  bool good = true;
  while (reader.Next()) {
    if (reader.field() != kReason) continue;
    good = good && reader.is_text() && reader.text().size() <= kMostReason;
    answer.reason = reader.text();
  }
  return good && !reader.bad() ? WireError() : Malformed("the answer to an offer of memory is malformed");
}

WireError DecodeChunk(std::string_view meta, SharedChunk& chunk) {
  uint64_t slot = UINT64_MAX, bytes = 0;
  FieldReader reader(meta);
  while (reader.Next()) {
    if (reader.field() == kSlot) slot = reader.is_text() ? UINT64_MAX : reader.number();
    if (reader.field() == kLength) bytes = reader.number();
  }
  if (reader.bad() || slot >= kSlots || bytes == 0 || bytes > kSlotBytes) {
    return Malformed("a chunk in shared memory is not within a slot");
  }
  chunk = {static_cast<uint32_t>(slot), bytes};
  return {};
}

SharedMapping::~SharedMapping() { ::munmap(at_, bytes_); }

SharedSource::SharedSource(std::unique_ptr<SharedMapping> mapping, int descriptor, std::string secret)
    : mapping_(std::move(mapping)), descriptor_(descriptor), secret_(std::move(secret)) {
  std::memcpy(mapping_->at(), secret_.data(), secret_.size());
  ++shared_count;
}

SharedSource::~SharedSource() {
  Opened();
  --shared_count;
}

WireError SharedSource::Make(std::unique_ptr<SharedSource>& to) {
  if (shared_count >= kMostShared) return {WEIR_RESOURCE_EXHAUSTED, "this process shares memory with too many peers"};
  std::string secret = RandomBytes(kSecretBytes);
  if (secret.size() != kSecretBytes) return {WEIR_RESOURCE_EXHAUSTED, "no random bytes"};
  OpenFile file(::memfd_create("weir", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Its pages exist before the first write, which could otherwise end the process.
  if (file.number < 0 || ::fallocate(file.number, 0, 0, kSharedBytes) != 0) return NotShared("no memory to share");
  if (::fcntl(file.number, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return NotShared("memory cannot be sealed");
  }
  std::unique_ptr<SharedMapping> mapping = Map(file.number, PROT_READ | PROT_WRITE);
  if (!mapping) return NotShared("memory cannot be mapped");
  to.reset(new SharedSource(std::move(mapping), file.Release(), std::move(secret)));
  return {};
}

SharedOffer SharedSource::offer() const {
  return {static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(descriptor_), kSharedBytes, secret_};
}

void SharedSource::Opened() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

SharedChunk SharedSource::Put(std::span<const std::byte> bytes) {
  const SharedChunk chunk{next_, std::min<uint64_t>(bytes.size(), kSlotBytes)};
  std::memcpy(mapping_->at() + kSharedHead + next_ * kSlotBytes, bytes.data(), chunk.bytes);
  next_ = (next_ + 1) % kSlots;
  --free_;
  return chunk;
}

WireError SharedSource::Release(uint64_t slots) {
  if (slots > kSlots - free_) {
    return Malformed(std::to_string(slots) + " slots were released, " + std::to_string(kSlots - free_) +
                     " were in use");
  }
  free_ += static_cast<uint32_t>(slots);
  return {};
}

SharedView::SharedView(std::unique_ptr<SharedMapping> mapping) : mapping_(std::move(mapping)) { ++shared_count; }

SharedView::~SharedView() { --shared_count; }

WireError SharedView::Open(const SharedOffer& offer, std::unique_ptr<SharedView>& to) {
  if (shared_count >= kMostShared) return Refused("this process shares memory with too many peers");
  const std::string path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.descriptor);
  // A path alone has no effect on what it names, which may be anything.
  const OpenFile named(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (named.number < 0) {
    return Refused("the offered memory cannot be opened: " + std::generic_category().message(errno));
  }
  struct stat about {};
  struct statfs system {};
  if (::fstat(named.number, &about) != 0 || ::fstatfs(named.number, &system) != 0 || !S_ISREG(about.st_mode) ||
      system.f_type != TMPFS_MAGIC || about.st_uid != ::geteuid() ||
      static_cast<uint64_t>(about.st_size) != kSharedBytes) {
    return Refused("what was offered is no memory of this user and size");
  }
  const std::string own = "/proc/self/fd/" + std::to_string(named.number);
  const OpenFile file(::open(own.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.number < 0) return Refused("the offered memory cannot be read");
  const int seals = ::fcntl(file.number, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Refused("the offered memory could become smaller: it is not sealed");
  }
  // Only a size that was read after the seal is final.
  if (::fstat(file.number, &about) != 0 || static_cast<uint64_t>(about.st_size) != kSharedBytes) {
    return Refused("the offered memory has another size");
  }
  std::unique_ptr<SharedMapping> mapping = Map(file.number, PROT_READ);
  if (!mapping) return Refused("the offered memory cannot be mapped");
  const std::string_view begin(reinterpret_cast<const char*>(mapping->at()), kSecretBytes);
  if (!SameSecret(begin, offer.secret)) return Refused("the offered memory is not that of the peer");
  to.reset(new SharedView(std::move(mapping)));
  return {};
}

void SharedView::Take(const SharedChunk& chunk, std::span<std::byte> to, uint64_t body_bytes) {
  const std::byte* const from = mapping_->at() + kSharedHead + chunk.slot * kSlotBytes;
  if (body_bytes >= kPastCaches) {
    CopyPastCaches(to.data(), from, to.size());
  } else if (!to.empty()) {
    std::memcpy(to.data(), from, to.size());
  }
  ++taken_;
}

uint32_t SharedView::TakeReleased() { return taken_ < kSlots / 4 ? 0 : std::exchange(taken_, 0); }

}  // namespace weir_remote
