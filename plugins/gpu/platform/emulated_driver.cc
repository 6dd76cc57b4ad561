// driver.h for emulated cards.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "plugins/gpu/platform/driver.h"
#include "plugins/gpu/platform/emulated_stream.h"

namespace weir::gpu::driver {
namespace {

using Hardware = emulated::Card;

constexpr std::string_view kUid = "emulated-";

std::atomic<uint64_t> captures{0}, replays{0};

weir_option_spec Spec(const char* key, const char* doc, uint32_t type, int64_t value, double least, double most) {
  weir_option_spec spec{};
  spec.struct_size = sizeof spec;
  spec.type = type;
  spec.key = sdk::Str(key);
  spec.doc = sdk::Str(doc);
  spec.default_value.key = spec.key;
  spec.default_value.type = type;
  spec.default_value.value.i = value;
  if (type == WEIR_VALUE_STRING) spec.default_value.value.s = sdk::Str("");
  spec.has_range = type == WEIR_VALUE_INT;
  spec.minimum = least;
  spec.maximum = most;
  return spec;
}

// Factor number `card` of a list such as "1,0.5"; 1 where the list ends or holds no number.
double Factor(std::string_view list, int card) {
  for (int i = 0; i < card; ++i) {
    const size_t comma = list.find(',');
    if (comma == std::string_view::npos) return 1;
    list.remove_prefix(comma + 1);
  }
  double factor = 1;
  const auto [end, problem] = std::from_chars(list.data(), list.data() + list.size(), factor);
  return problem == std::errc() && factor > 0 ? factor : 1;
}

// The cards that the environment leaves, in its order, as drivers do it: indices or uids; an entry that names no card
// ends the list.
std::vector<int> Visible(int cards, std::string& why) {
  std::vector<int> visible;
  for (const char* const variable : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      std::string_view entry = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (entry.starts_with(kUid)) entry.remove_prefix(kUid.size());
      int card = -1;
      const auto [end, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), card);
      const bool known = problem == std::errc() && end == entry.data() + entry.size() && card >= 0 && card < cards;
      if (!known || std::find(visible.begin(), visible.end(), card) != visible.end()) break;
      visible.push_back(card);
    }
    if (visible.empty()) why = std::string(variable) + " = '" + value + "' hides all cards";
    return visible;
  }
  for (int i = 0; i < cards; ++i) visible.push_back(i);
  if (visible.empty()) why = "the option 'devices' is 0";
  return visible;
}

Hardware& CardOf(NativeStream stream) { return emulated::Stream::Of(stream).card(); }

// The memory that a copy reads or writes on a queue's thread.
char* Inside(const void* address, bool device) {
  return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(address) + (device ? WEIR_EMULATED_DISTANCE : 0));
}

}  // namespace

std::span<const weir_option_spec* const> OptionSpecs() {
  static const std::array<weir_option_spec, 9> specs = {
      Spec("devices", "number of emulated cards", WEIR_VALUE_INT, 2, 0, Hardware::kMostCards),
      Spec("memory_mb", "memory of each card in MiB", WEIR_VALUE_INT, 1024, 1, 16384),
      Spec("speed", "declared speed of each card relative to the first version's, as in 1,0.5; 1 if not given",
           WEIR_VALUE_STRING, 0, 0, 0),
      Spec("latency_us", "time that each piece of work takes at least, in microseconds", WEIR_VALUE_INT, 0, 0, 1e6),
      Spec("fault_device", "card with the faults below; -1 = all", WEIR_VALUE_INT, -1, -1, Hardware::kMostCards),
      Spec("fail_alloc_at", "allocations from this number on fail; -1 = none", WEIR_VALUE_INT, -1, -1, 1e9),
      Spec("lose_at", "the card is lost at this piece of work; -1 = never", WEIR_VALUE_INT, -1, -1, 1e9),
      Spec("hang_at", "this piece of work does not end; -1 = none", WEIR_VALUE_INT, -1, -1, 1e9),
      Spec("vanish", "the card is listed and cannot be opened", WEIR_VALUE_BOOL, 0, 0, 0)};
  static const std::array<const weir_option_spec*, 9> pointers = [] {
    std::array<const weir_option_spec*, 9> made{};
    for (size_t i = 0; i < specs.size(); ++i) made[i] = &specs[i];
    return made;
  }();
  return pointers;
}

std::vector<driver::Card> Cards(const sdk::Options& options, std::string& why) {
  std::vector<driver::Card> cards;
  for (const int i : Visible(static_cast<int>(options.Int("devices", 2)), why)) {
    const double speed = Factor(options.String("speed", ""), i);
    driver::Card card;
    card.ordinal = i;
    card.uid = std::string(kUid) + std::to_string(i);
    card.class_id = "emulated";
    if (speed != 1) card.class_id += " at " + std::to_string(speed);
    card.name = "emulated GPU";
    card.memory_bytes = static_cast<uint64_t>(options.Int("memory_mb", 1024)) << 20;
    card.flags = WEIR_DEVICE_OPT_IN;
    card.float32_flops_per_ns = 10000 * speed;
    card.float64_flops_per_ns = 5000 * speed;
    card.float16_flops_per_ns = 40000 * speed;
    card.bandwidth_bytes_per_ns = 500 * speed;
    card.cache_bytes = 1 << 22;
    card.launch_ns = 5000 / speed;
    card.link_bytes_per_ns = 12;
    card.link_latency_ns = 8000;
    cards.push_back(std::move(card));
  }
  return cards;
}

Outcome Open(int card, const sdk::Options& options) { return Outcome(Hardware::Of(card).Open(options)); }
void Close(int card) { Hardware::Of(card).Close(); }
void Stop() {}
bool ResetNeeded(int card) { return Hardware::Of(card).lost(); }

Outcome Alloc(int card, uint64_t bytes, uint64_t& address) {
  Hardware& on = Hardware::Of(card);
  if (on.lost()) return Outcome(WEIR_EMULATED_LOST);
  address = on.MayAllocate() ? on.memory().Allocate(bytes) : 0;
  return Outcome(address == 0 ? WEIR_EMULATED_NO_MEMORY : WEIR_EMULATED_OK);
}
void Free(int card, uint64_t address) { Hardware::Of(card).memory().Free(address); }
Outcome MemInfo(int card, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) {
  Hardware::Of(card).memory().Info(free_bytes, total_bytes, largest_bytes);
  return {};
}
Outcome AllocPinned(int, uint64_t bytes, void*& host) {
  host = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return Outcome(host == nullptr ? WEIR_EMULATED_NO_MEMORY : WEIR_EMULATED_OK);
}
void FreePinned(int, void* host) { std::free(host); }
Outcome RegisterHost(int, void*, uint64_t) { return {}; }
void UnregisterHost(int, void*) {}

Outcome NewStream(int card, int, NativeStream& stream) {
  Hardware& on = Hardware::Of(card);
  if (on.lost()) return Outcome(WEIR_EMULATED_LOST);
  stream = (new emulated::Stream(on))->native();
  return {};
}
void DeleteStream(int, NativeStream stream) { delete &emulated::Stream::Of(stream); }
Outcome SyncStream(NativeStream stream) {
  EventObject event;
  if (const int32_t code = emulated::Stream::Of(stream).Record(event); code != WEIR_EMULATED_OK) return Outcome(code);
  return Sync(&event);
}
Outcome AllocOrdered(int card, NativeStream, uint64_t bytes, uint64_t& address) { return Alloc(card, bytes, address); }
Outcome FreeOrdered(int card, NativeStream stream, uint64_t address) {
  emulated::Memory& memory = Hardware::Of(card).memory();
  struct Release {  // frees also if the work before it fails
    emulated::Memory& memory;
    uint64_t address;
    ~Release() { memory.Free(address); }
  };
  return Outcome(emulated::Stream::Of(stream).Run(
      [release = std::shared_ptr<Release>(new Release{memory, address})] { (void)release; }));
}

Outcome NewEvent(int, EventObject*& event) {
  event = new EventObject;
  return {};
}
void DeleteEvent(EventObject* event) { delete event; }
Outcome Record(EventObject* event, NativeStream stream) { return Outcome(emulated::Stream::Of(stream).Record(*event)); }
Outcome Wait(NativeStream stream, EventObject* event) { return Outcome(emulated::Stream::Of(stream).Wait(*event)); }
Outcome Query(EventObject* event, bool& reached) {
  const auto mark = event->Latest();
  if (mark == nullptr) return Outcome(WEIR_EMULATED_INVALID);
  int32_t code = WEIR_EMULATED_OK;
  reached = mark->Reached(code);
  return Outcome(code);
}
Outcome Sync(EventObject* event) {
  const auto mark = event->Latest();
  return Outcome(mark == nullptr ? WEIR_EMULATED_INVALID : mark->Await());
}
Outcome Notify(EventObject* event, void (*fn)(void*, Outcome), void* arg) {
  const auto mark = event->Latest();
  if (mark == nullptr) return Outcome(WEIR_EMULATED_INVALID);
  mark->Then({fn, arg});
  return {};
}
uint64_t Native(EventObject* event) { return reinterpret_cast<uint64_t>(event); }

Outcome CopyAsync(NativeStream stream, Direction direction, void* to, const void* from, uint64_t bytes) {
  if (CardOf(stream).lost()) return Outcome(WEIR_EMULATED_LOST);
  char* const target = Inside(to, direction != Direction::kToHost);
  const char* const source = Inside(from, direction != Direction::kToDevice);
  return Outcome(emulated::Stream::Of(stream).Run([=] { std::memmove(target, source, bytes); }));
}
Outcome CopyPeerAsync(NativeStream stream, int, void* to, int, const void* from, uint64_t bytes) {
  return CopyAsync(stream, Direction::kWithin, to, from, bytes);
}
bool Peers(int, int) { return true; }

const weir_emulated_counts* EmulatedCounts() {
  static const weir_emulated_counts counts = {sizeof counts, 0, [] { return captures.load(); },
                                              [] { return replays.load(); }};
  return &counts;
}

Outcome BeginCapture(NativeStream stream) { return Outcome(emulated::Stream::Of(stream).BeginCapture()); }
Outcome EndCapture(NativeStream stream, CaptureObject*& capture) {
  std::shared_ptr<emulated::Recording> recording = emulated::Stream::Of(stream).EndCapture();
  if (recording == nullptr) return Outcome(WEIR_EMULATED_INVALID);
  capture = new CaptureObject{std::move(recording)};
  ++captures;
  return {};
}
Outcome Replay(CaptureObject* capture, NativeStream stream) {
  ++replays;
  return Outcome(emulated::Stream::Of(stream).Replay(capture->recording));
}
void DeleteCapture(CaptureObject* capture) { delete capture; }

}  // namespace weir::gpu::driver
