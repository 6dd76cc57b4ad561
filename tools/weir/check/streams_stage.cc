// Stage streams: order on a stream and between streams, events, poison, memory and copies in stream order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/device/error_record.h"
#include "core/device/stream.h"
#include "tools/weir/check/device_memory.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using device::CallPlugin;
using device::ErrorRecord;

constexpr uint64_t kBytes = uint64_t{4} << 20;  // large enough that a copy takes some time
constexpr int kStreamRounds = 20;

/// A device with the tables for its streams.
struct Lanes {
  const OpenedDevice* device = nullptr;
  const weir_stream_api* api = nullptr;
  const weir_memory_api* memory = nullptr;
  const weir_copy_api* copy = nullptr;

  Status Copy(weir_stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes) const {
    return CallPlugin("copy", [&](weir_error* error) {
      return device->api().copy(device->handle(), stream, &to, &from, bytes, error);
    });
  }
  Status Record(weir_stream* stream, weir_event* event) const {
    return CallPlugin("record", [&](weir_error* error) { return api->record(stream, event, error); });
  }
  Status Wait(weir_stream* stream, weir_event* event) const {
    return CallPlugin("wait", [&](weir_error* error) { return api->wait(stream, event, error); });
  }
  Status Sync(weir_event* event) const {
    return CallPlugin("sync", [&](weir_error* error) { return api->sync(event, error); });
  }
};

/// A stream and an event of it, destroyed with the object.
class Lane {
 public:
  static Result<std::unique_ptr<Lane>> Make(const Lanes& lanes) {
    std::unique_ptr<Lane> lane(new Lane(lanes));
    WEIR_TRY(CallPlugin("stream_create", [&](weir_error* error) {
      return lanes.api->stream_create(lanes.device->handle(), 0, &lane->stream_, error);
    }));
    WEIR_TRY(CallPlugin("event_create", [&](weir_error* error) {
      return lanes.api->event_create(lanes.device->handle(), &lane->event_, error);
    }));
    if (lane->stream_ == nullptr || lane->event_ == nullptr) return Internal("a null stream or event without an error");
    return lane;
  }
  ~Lane() {
    if (stream_ != nullptr) lanes_.api->stream_destroy(lanes_.device->handle(), stream_);
    if (event_ != nullptr) lanes_.api->event_destroy(lanes_.device->handle(), event_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  weir_stream* stream() const { return stream_; }
  weir_event* event() const { return event_; }
  Status Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes) const {
    return lanes_.Copy(stream_, to, from, bytes);
  }
  Status Record() const { return lanes_.Record(stream_, event_); }
  /// Waits for all enqueued work.
  Status Finish() const {
    WEIR_TRY(Record());
    return lanes_.Sync(event_);
  }

 private:
  explicit Lane(const Lanes& lanes) : lanes_(lanes) {}
  const Lanes& lanes_;
  weir_stream* stream_ = nullptr;
  weir_event* event_ = nullptr;
};

Status Expect(const std::vector<uint8_t>& bytes, uint8_t wanted, std::string_view what) {
  if (bytes.empty()) return {};
  // A single call for megabytes, since sanitizers check every access of a loop.
  if (bytes[0] == wanted && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0) return {};
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [&](uint8_t byte) { return byte != wanted; });
  return DataLoss("{}: byte {} is {:#x}, wanted {:#x}", what, wrong - bytes.begin(), *wrong, wanted);
}

// Two copies onto one block, then one back: once the event is reached, the result is that of the second copy.
Status CheckOrder(const Lanes& lanes) {
  WEIR_ASSIGN(const auto block, Block::Make(*lanes.device, kBytes));
  std::vector<uint8_t> first(kBytes, 1), second(kBytes, 2), back(kBytes);
  WEIR_ASSIGN(const auto lane, Lane::Make(lanes));  // here and below: destroyed first: its work uses the others
  for (int round = 0; round < kStreamRounds; ++round) {
    std::fill(back.begin(), back.end(), uint8_t{0xcc});
    WEIR_TRY(lane->Copy(block->Range(0, kBytes), HostRange(first.data(), kBytes), kBytes));
    WEIR_TRY(lane->Copy(block->Range(0, kBytes), HostRange(second.data(), kBytes), kBytes));
    WEIR_TRY(lane->Copy(HostRange(back.data(), kBytes), block->Range(0, kBytes), kBytes));
    WEIR_TRY(lane->Finish());
    if (lanes.api->query(lane->event()) != WEIR_EVENT_DONE)
      return Internal("query of a reached event does not return WEIR_EVENT_DONE");
    WEIR_TRY(Expect(back, 2, "three copies in a row"));
  }
  return {};
}

// One stream writes, another reads after an event; then with swapped roles and the same events.
Status CheckEvents(const Lanes& lanes) {
  WEIR_ASSIGN(const auto block, Block::Make(*lanes.device, kBytes));
  std::vector<uint8_t> sent(kBytes), back(kBytes);
  WEIR_ASSIGN(const auto writer, Lane::Make(lanes));
  WEIR_ASSIGN(const auto reader, Lane::Make(lanes));
  for (int round = 0; round < kStreamRounds; ++round) {
    const auto value = static_cast<uint8_t>(round + 1);
    std::fill(sent.begin(), sent.end(), value);
    std::fill(back.begin(), back.end(), uint8_t{0xcc});
    WEIR_TRY(writer->Copy(block->Range(0, kBytes), HostRange(sent.data(), kBytes), kBytes));
    WEIR_TRY(writer->Record());
    WEIR_TRY(lanes.Wait(reader->stream(), writer->event()));
    WEIR_TRY(reader->Copy(HostRange(back.data(), kBytes), block->Range(0, kBytes), kBytes));
    WEIR_TRY(reader->Record());
    WEIR_TRY(lanes.Wait(writer->stream(), reader->event()));
    WEIR_TRY(reader->Finish());
    WEIR_TRY(Expect(back, value, "a copy behind another stream's event"));
    WEIR_TRY(writer->Finish());
  }
  return {};
}

Status CheckUnrecorded(const Lanes& lanes) {
  WEIR_ASSIGN(const auto lane, Lane::Make(lanes));
  WEIR_ASSIGN(const auto other, Lane::Make(lanes));
  const Status waited = lanes.Wait(lane->stream(), other->event());
  const Status finished = lane->Finish();
  if (!waited.ok() || !finished.ok()) return {};
  return FailedPrecondition("a wait for an event that was never recorded passes in silence");
}

Status CheckPoison(const Lanes& lanes) {
  WEIR_ASSIGN(const auto block, Block::Make(*lanes.device, 64));
  std::vector<uint8_t> bytes(64);
  WEIR_ASSIGN(const auto lane, Lane::Make(lanes));
  if (!WEIR_HAS(lanes.api, poison)) return Unimplemented("there is no poison");
  lanes.api->poison(lane->stream(), WEIR_CANCELLED, {"first", 5});
  lanes.api->poison(lane->stream(), WEIR_ABORTED, {"second", 6});
  Status status = lane->Copy(block->Range(0, 64), HostRange(bytes.data(), 64), 64);
  if (status.ok()) status = lane->Finish();
  if (status.code() == Code::kCancelled && status.message().find("first") != std::string::npos) return {};
  return FailedPrecondition("work on a poisoned stream ended with '{}', wanted CANCELLED: first", status.ToString());
}

Status CheckCallbacks(const Lanes& lanes) {
  WEIR_ASSIGN(const auto block, Block::Make(*lanes.device, kBytes));
  std::vector<uint8_t> bytes(kBytes);
  struct Calls {
    std::atomic<int> count{0};
    std::atomic<int32_t> code{-1};
  } before, after;
  WEIR_ASSIGN(const auto lane, Lane::Make(lanes));
  const auto fn = [](void* arg, int32_t code) {
    auto& calls = *static_cast<Calls*>(arg);
    calls.code = code;
    ++calls.count;
  };
  const auto ask = [&](Calls& calls) {
    return CallPlugin("on_complete",
                      [&](weir_error* error) { return lanes.api->on_complete(lane->event(), fn, &calls, error); });
  };
  WEIR_TRY(lane->Copy(block->Range(0, kBytes), HostRange(bytes.data(), kBytes), kBytes));
  WEIR_TRY(lane->Record());
  WEIR_TRY(ask(before));
  WEIR_TRY(lanes.Sync(lane->event()));
  WEIR_TRY(ask(after));
  for (int i = 0; i < 1000 && (before.count == 0 || after.count == 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& [calls, when] : {std::pair(&before, "before"), std::pair(&after, "after")}) {
    if (calls->count != 1)
      return Internal("a callback registered {} the event is called {} times", when, calls->count.load());
    if (calls->code != WEIR_OK) return Internal("a callback gets code {} although nothing failed", calls->code.load());
  }
  return {};
}

Finding CheckOrderedMemory(const Lanes& lanes) {
  if (!WEIR_HAS(lanes.memory, alloc_async) || !WEIR_HAS(lanes.memory, free_async)) {
    return Finding::Skip("it has no stream-ordered memory");
  }
  const auto body = [&]() -> Status {
    std::vector<uint8_t> sent(kBytes), back(kBytes);
    WEIR_ASSIGN(const auto lane, Lane::Make(lanes));
    weir_device* const handle = lanes.device->handle();
    for (int round = 0; round < kStreamRounds; ++round) {
      weir_buf memory{};
      memory.struct_size = sizeof(memory);
      WEIR_TRY(CallPlugin("alloc_async", [&](weir_error* error) {
        return lanes.memory->alloc_async(handle, lane->stream(), kBytes, &memory, error);
      }));
      if (memory.bytes < kBytes) return Internal("alloc_async returns {} bytes for {}", memory.bytes, kBytes);
      std::fill(sent.begin(), sent.end(), static_cast<uint8_t>(round));
      std::fill(back.begin(), back.end(), uint8_t{0xcc});
      WEIR_TRY(lane->Copy(memory, HostRange(sent.data(), kBytes), kBytes));
      WEIR_TRY(lane->Copy(HostRange(back.data(), kBytes), memory, kBytes));
      WEIR_TRY(CallPlugin("free_async", [&](weir_error* error) {
        return lanes.memory->free_async(handle, lane->stream(), &memory, error);
      }));
      WEIR_TRY(lane->Finish());
      WEIR_TRY(Expect(back, static_cast<uint8_t>(round), "memory that is freed behind its last use"));
    }
    return {};
  };
  return body();
}

Finding CheckPeers(const Lanes& from, const Lanes& to) {
  const weir_copy_api* api = to.copy;
  if (!WEIR_HAS(api, can_copy) || !WEIR_HAS(api, copy_peer))
    return Finding::Skip("it does not support copies between devices");
  if (api->can_copy(from.device->handle(), to.device->handle()) != WEIR_COPY_DIRECT) {
    return Finding::Skip("these devices cannot copy directly");
  }
  const auto body = [&]() -> Status {
    WEIR_ASSIGN(const auto there, Block::Make(*from.device, kBytes));
    WEIR_ASSIGN(const auto here, Block::Make(*to.device, kBytes));
    std::vector<uint8_t> sent(kBytes, 9), back(kBytes, 0xcc);
    WEIR_ASSIGN(const auto source, Lane::Make(from));
    WEIR_ASSIGN(const auto target, Lane::Make(to));
    WEIR_TRY(source->Copy(there->Range(0, kBytes), HostRange(sent.data(), kBytes), kBytes));
    WEIR_TRY(source->Record());
    WEIR_TRY(to.Wait(target->stream(), source->event()));
    const weir_buf to_range = here->Range(1, kBytes - 1), from_range = there->Range(0, kBytes - 1);
    WEIR_TRY(CallPlugin("copy_peer", [&](weir_error* error) {
      return api->copy_peer(to.device->handle(), &to_range, from.device->handle(), &from_range, kBytes - 1,
                            target->stream(), target->event(), error);
    }));
    WEIR_TRY(target->Copy(HostRange(back.data(), kBytes - 1), to_range, kBytes - 1));
    WEIR_TRY(target->Finish());
    back.pop_back();
    WEIR_TRY(Expect(back, 9, "a copy between devices"));
    return source->Finish();
  };
  return body();
}

}  // namespace

std::vector<RuleResult> StreamsStage(const Target& target) {
  return RunInChild("WEIR-STREAM-00", target.time_limit_ms, [&](Recorder& recorder) {
    std::vector<std::unique_ptr<OpenedDevice>> devices;
    std::vector<Lanes> all;
    recorder.Try("WEIR-STREAM-00", [&]() -> Finding {
      const Result<Subject> subject = Subject::Start(target);
      if (!subject.ok()) return subject.status();
      const auto* api = subject->Interface<weir_stream_api>(WEIR_STREAM_INTERFACE);
      if (subject->devices() == nullptr || api == nullptr) return Finding::Skip("its devices have no streams");
      if (!device::StreamApis{api, nullptr, nullptr, nullptr}.Complete()) {
        return FailedPrecondition("the table {} lacks functions", WEIR_STREAM_INTERFACE);
      }
      const Result<std::vector<FoundDevice>> found = Enumerate(*subject);
      if (!found.ok()) return found.status();
      for (const FoundDevice& device : *found) {
        if ((device.flags & WEIR_DEVICE_SYNC_ONLY) != 0) continue;
        Result<std::unique_ptr<OpenedDevice>> open = OpenedDevice::Open(*subject, device);
        if (!open.ok()) return open.status();
        devices.push_back(std::move(*open));
        all.push_back({devices.back().get(), api, subject->Interface<weir_memory_api>(WEIR_MEMORY_INTERFACE),
                       subject->Interface<weir_copy_api>(WEIR_COPY_INTERFACE)});
      }
      if (all.empty()) return Finding::Skip("it finds no device with streams here");
      return Status();
    });
    for (const Lanes& lanes : all) {
      recorder.Try("WEIR-STREAM-01", [&] { return CheckOrder(lanes); });
      recorder.Try("WEIR-STREAM-02", [&] { return CheckEvents(lanes); });
      recorder.Try("WEIR-STREAM-03", [&] { return CheckUnrecorded(lanes); });
      recorder.Try("WEIR-STREAM-04", [&] { return CheckPoison(lanes); });
      recorder.Try("WEIR-STREAM-05", [&] { return CheckCallbacks(lanes); });
      recorder.Try("WEIR-STREAM-06", [&] { return CheckOrderedMemory(lanes); });
      recorder.Try("WEIR-STREAM-07", [&] { return CheckPeers(all.front(), lanes); });
    }
  });
}

}  // namespace weir::check
