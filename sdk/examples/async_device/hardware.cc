#include "hardware.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

namespace async_device {
namespace {

using weir::sdk::Str;

// Hardware of all devices, by uid; never destroyed, since streams may outlive static destruction.
struct AllHardware {
  std::mutex mutex;  // protects by_uid
  std::map<std::string, Hardware*, std::less<>> by_uid;
  static AllHardware& Get() {
    static auto* const all = new AllHardware;
    return *all;
  }
};

weir_option_spec Number(const char* key, int64_t otherwise, double minimum, double maximum, const char* doc) {
  weir_option_spec spec{};
  spec.struct_size = sizeof spec;
  spec.type = WEIR_VALUE_INT;
  spec.flags = WEIR_OPTION_DYNAMIC;
  spec.has_range = 1;
  spec.key = Str(key);
  spec.doc = Str(doc);
  spec.default_value.key = spec.key;
  spec.default_value.type = WEIR_VALUE_INT;
  spec.default_value.value.i = otherwise;
  spec.minimum = minimum;
  spec.maximum = maximum;
  return spec;
}

weir_option_spec Switch(const char* key, const char* doc) {
  weir_option_spec spec = Number(key, 0, 0, 0, doc);
  spec.type = spec.default_value.type = WEIR_VALUE_BOOL;
  spec.has_range = 0;
  return spec;
}

}  // namespace

std::shared_ptr<Block> Block::Make(uint64_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  return std::shared_ptr<Block>(new Block(static_cast<char*>(base), bytes));
}

Block::Block(char* base, uint64_t bytes)
    : base_(base), bytes_(bytes), number_([] {
        static std::atomic<uint64_t> next{1};
        return next.fetch_add(1);
      }()) {}

Block::~Block() { munmap(base_, bytes_); }

Hardware& Hardware::Of(std::string_view uid) {
  AllHardware& all = AllHardware::Get();
  const std::lock_guard lock(all.mutex);
  auto found = all.by_uid.find(uid);
  if (found == all.by_uid.end()) found = all.by_uid.emplace(uid, new Hardware(uid)).first;
  return *found->second;
}

bool Hardware::Configure(std::string_view uid, const weir::sdk::Options& options) {
  std::vector<Hardware*> meant;
  {
    AllHardware& all = AllHardware::Get();
    const std::lock_guard lock(all.mutex);
    for (const auto& [name, hardware] : all.by_uid) {
      if (uid.empty() || name == uid) meant.push_back(hardware);
    }
  }
  for (Hardware* hardware : meant) hardware->Configure(options);
  return !meant.empty();
}

std::span<const weir_option_spec* const> Hardware::OptionSpecs() {
  static const std::deque<weir_option_spec> specs = {
      Number("devices", 2, 0, 16, "how many devices there are"),
      Number("latency_us", 0, 0, 1e7, "microseconds that every operation takes at least"),
      Number("jitter_us", 0, 0, 1e7, "up to so many microseconds more, by chance"),
      Number("bytes_per_us", 0, 0, 1e12, "bandwidth of copies in bytes per microsecond; 0 = as fast as memory is"),
      Number("seed", 1, 0, 1e9, "of the chance in jitter_us"),
      Switch("fail_alloc", "every allocation fails"),
      Number("lose_at", -1, -1, 1e15, "the device is lost at the operation with this number, counted from now"),
      Number("hang_at", -1, -1, 1e15, "the operation with this number, counted from now, does not end; -1 lets it go"),
  };
  static const std::vector<const weir_option_spec*> pointers = [] {
    std::vector<const weir_option_spec*> all;
    for (const weir_option_spec& spec : specs) all.push_back(&spec);
    return all;
  }();
  return pointers;
}

void Hardware::Configure(const weir::sdk::Options& options) {
  const std::lock_guard lock(mutex_);
  latency_us_ = options.Int("latency_us", latency_us_);
  jitter_us_ = options.Int("jitter_us", jitter_us_);
  bytes_per_us_ = options.Int("bytes_per_us", bytes_per_us_);
  fail_alloc_ = options.Bool("fail_alloc", fail_alloc_);
  if (const int64_t seed = options.Int("seed", -1); seed >= 0) random_.seed(static_cast<uint32_t>(seed));
  constexpr int64_t kNotGiven = -2;
  const auto counted = [&](const char* key, int64_t& at) {
    const int64_t given = options.Int(key, kNotGiven);
    if (given != kNotGiven) at = given < 0 ? -1 : static_cast<int64_t>(begun_) + given;
  };
  counted("lose_at", lose_at_);
  counted("hang_at", hang_at_);
  if (hang_at_ < 0) hanging_ = false;
  changed_.notify_all();
}

void Hardware::Revive() {
  const std::lock_guard lock(mutex_);
  lost_ = hanging_ = false;
  lose_at_ = hang_at_ = -1;
}

void Hardware::Unhang() {
  const std::lock_guard lock(mutex_);
  hanging_ = false;
  hang_at_ = -1;
  changed_.notify_all();
}

Fault Hardware::Begin(uint64_t copied) {
  std::unique_lock lock(mutex_);
  const auto number = static_cast<int64_t>(begun_++);
  Journal::Get().Operation();
  if (number == hang_at_) {
    hanging_ = true;
    changed_.wait(lock, [&] { return !hanging_ || lost_; });
  }
  if (lose_at_ >= 0 && number >= lose_at_) {
    lost_ = true;
    changed_.notify_all();
  }
  if (lost_) return {WEIR_UNAVAILABLE, WEIR_ERROR_DEVICE_LOST, "device '" + uid_ + "' is lost"};
  int64_t microseconds = latency_us_;
  if (jitter_us_ > 0) microseconds += std::uniform_int_distribution<int64_t>(0, jitter_us_)(random_);
  if (bytes_per_us_ > 0) microseconds += static_cast<int64_t>(copied) / bytes_per_us_;
  lock.unlock();
  if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  return {};
}

std::shared_ptr<Block> Hardware::Allocate(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (fail_alloc_ || lost_ || bytes > kCapacity - allocated_) return nullptr;
    allocated_ += bytes;
  }
  std::shared_ptr<Block> block = Block::Make(bytes);
  const std::lock_guard lock(mutex_);
  if (block == nullptr) {
    allocated_ -= bytes;
    return nullptr;
  }
  blocks_.emplace(block->handle(), block);
  return block;
}

std::shared_ptr<Block> Hardware::Find(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(handle);
  return found == blocks_.end() ? nullptr : found->second;
}

std::shared_ptr<Block> Hardware::Remove(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end()) return nullptr;
  std::shared_ptr<Block> block = std::move(found->second);
  blocks_.erase(found);
  allocated_ -= block->bytes();
  return block;
}

uint64_t Hardware::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

Journal& Journal::Get() {
  static auto* const journal = new Journal;
  return *journal;
}

void Journal::Race(const std::string& text) {
  ++races_;
  Note(text);
}

void Journal::Misuse(const std::string& text) {
  ++misuses_;
  Note(text);
}

void Journal::Note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (first_.empty()) first_ = text;
}

void Journal::Read(weir_async_counts* counts) {
  counts->operations = operations_;
  counts->waits = waits_;
  counts->races = races_;
  counts->misuses = misuses_;
  counts->allocated = 0;
  AllHardware& all = AllHardware::Get();
  const std::lock_guard lock(all.mutex);
  for (const auto& [uid, hardware] : all.by_uid) counts->allocated += hardware->allocated();
}

std::string Journal::first_fault() {
  const std::lock_guard lock(mutex_);
  return first_;
}

void Journal::Reset() {
  const std::lock_guard lock(mutex_);
  operations_ = waits_ = races_ = misuses_ = 0;
  first_.clear();
}

}  // namespace async_device
