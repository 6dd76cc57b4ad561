// A device with streams as a class: work is enqueued and runs later, in the order of its stream. Enumerate, Open,
// Health, MemInfo, SetOptions, OptionSpecs and Profile are those of device.h.
//
// ```cpp
// class MyDevice {
//  public:
//   class Event {                                             // binary: each record replaces the one before
//    public:
//     int32_t Query();                                        // WEIR_EVENT_*
//     int32_t Sync(const Error&);
//     int32_t OnComplete(void (*fn)(void* arg, int32_t code), void* arg, const Error&);
//   };
//   class Stream {                                            // the destructor waits for the stream's work
//    public:
//     int32_t Record(Event&, const Error&);
//     int32_t Wait(Event&, const Error&);
//     void Poison(int32_t code, std::string_view text);
//     void Mark(uint64_t mark);                               // optional, both: late errors name their node
//     uint64_t FailedMark() const;
//   };
//   std::unique_ptr<Stream> NewStream(int32_t priority, const Error&);    // null after Fail
//   std::unique_ptr<Event> NewEvent(const Error&);
//   int32_t Alloc(uint64_t bytes, uint32_t space, weir_buf& buf, const Error&);   // fills buf, except struct_size
//   void Free(const weir_buf& buf);
//   // With a null stream the work is complete when the call returns.
//   int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error&);
//   int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const Error&);
//
//   int32_t AllocOrdered(Stream&, uint64_t bytes, weir_buf& buf, const Error&);   // optional, both: "memory/1"
//   int32_t FreeOrdered(Stream&, const weir_buf& buf, const Error&);
//   int32_t AllocPinned(uint64_t bytes, weir_buf& buf, const Error&);             // optional, both: "memory/1"
//   void FreePinned(const weir_buf& buf);
//   static int32_t CanCopy(MyDevice& from, MyDevice& to);                         // optional, both: "copy/1"
//   int32_t CopyPeer(const weir_buf& to, MyDevice& source, const weir_buf& from, uint64_t bytes, Stream* stream,
//                    const Error&);
//   static constexpr std::string_view kPlatformAbi = "my/1";                      // optional, both: "native/1"
//   int32_t Native(uint32_t kind, const void* object, uint64_t& value, const Error&);
//   int32_t StartProfiling(uint32_t kinds, const Error&);                         // optional, all: "profiler/1"
//   int32_t StopProfiling(const Error&);
//   uint64_t DrainActivities(const EmitActivity&);                                // returns the number of lost records
//   int32_t ReadClocks(uint64_t& device_ns, uint64_t& host_ns, const Error&);
// };
// ```
//
// Before Copy, Fill and CopyPeer are called, ranges are checked against their buffers; empty ranges are skipped. Every
// member may throw; no exception crosses the boundary.
#ifndef WEIR_SDK_CPP_STREAM_DEVICE_H_
#define WEIR_SDK_CPP_STREAM_DEVICE_H_

#include <memory>
#include <string_view>

#include "sdk/abi/copy.h"
#include "sdk/abi/memory.h"
#include "sdk/abi/native.h"
#include "sdk/abi/profiler.h"
#include "sdk/abi/stream.h"
#include "sdk/cpp/device.h"

namespace weir::sdk {

/// Reports one piece of work to the core; struct_size need not be set.
class EmitActivity {
 public:
  EmitActivity(void (*emit)(void*, const weir_activity*), void* ctx) : emit_(emit), ctx_(ctx) {}
  void operator()(weir_activity activity) const {
    activity.struct_size = sizeof activity;
    emit_(ctx_, &activity);
  }

 private:
  void (*emit_)(void*, const weir_activity*);
  void* ctx_;
};

/// "device/1", "stream/1", and each optional table whose members the class has.
template <class D>
struct StreamDevices : Devices<D> {
  using Stream = typename D::Stream;
  using Event = typename D::Event;
  using Base = Devices<D>;

  static const void* Interface(std::string_view id, std::string_view) {
    if (id == WEIR_DEVICE_INTERFACE) return &DeviceTable();
    if (id == WEIR_STREAM_INTERFACE) return &StreamTable();
    if constexpr (kOrdered || kPinned) {
      if (id == WEIR_MEMORY_INTERFACE) return &MemoryTable();
    }
    if constexpr (requires(D & d) { D::CanCopy(d, d); }) {
      if (id == WEIR_COPY_INTERFACE) {
        static const weir_copy_api api = {sizeof(weir_copy_api), 0, &CanCopy, &CopyPeer};
        return &api;
      }
    }
    if constexpr (requires { D::kPlatformAbi; }) {
      if (id == WEIR_NATIVE_INTERFACE) {
        static const weir_native_api api = {sizeof(weir_native_api), 0, Str(D::kPlatformAbi), &Native};
        return &api;
      }
    }
    if constexpr (kProfiles) {
      if (id == WEIR_PROFILER_INTERFACE) {
        static const weir_profiler_api api = {sizeof(weir_profiler_api), 0, &StartProfiling, &StopProfiling, &Drain,
                                              &ReadClocks};
        return &api;
      }
    }
    return id == WEIR_COST_INTERFACE ? Base::CostTable() : nullptr;
  }

 private:
  static constexpr bool kProfiles = requires(D & d, uint64_t& ns, const EmitActivity& emit, const Error& e) {
    d.StartProfiling(uint32_t{}, e);
    d.StopProfiling(e);
    d.DrainActivities(emit);
    d.ReadClocks(ns, ns, e);
  };
  static constexpr bool kMarks = requires(Stream & s) {
    s.Mark(uint64_t{});
    s.FailedMark();
  };
  static constexpr bool kOrdered = requires(D & d, typename D::Stream& s, weir_buf& b, const Error& e) {
    d.AllocOrdered(s, uint64_t{}, b, e);
    d.FreeOrdered(s, b, e);
  };
  static constexpr bool kPinned = requires(D & d, weir_buf& b, const Error& e) {
    d.AllocPinned(uint64_t{}, b, e);
    d.FreePinned(b);
  };

  static const weir_device_api& DeviceTable() {
    static const weir_device_api api = {sizeof(weir_device_api),
                                        0,
                                        &Base::Enumerate,
                                        &Base::Open,
                                        &Base::Close,
                                        nullptr,
                                        &Alloc,
                                        &Free,
                                        Base::kHasMemInfo ? &Base::MemInfo : nullptr,
                                        &Memset,
                                        &Copy,
                                        &Base::Health,
                                        Base::kHasSetOptions ? &Base::SetOptions : nullptr};
    return api;
  }
  static const weir_stream_api& StreamTable() {
    static const weir_stream_api api = {sizeof(weir_stream_api),
                                        0,
                                        &StreamCreate,
                                        &StreamDestroy,
                                        &EventCreate,
                                        &EventDestroy,
                                        &Record,
                                        &Wait,
                                        &Query,
                                        &Sync,
                                        &OnComplete,
                                        &Poison,
                                        nullptr,
                                        nullptr,
                                        nullptr,
                                        nullptr,
                                        kMarks ? &Mark : nullptr,
                                        kMarks ? &FailedMark : nullptr};
    return api;
  }
  static const weir_memory_api& MemoryTable() {
    static const weir_memory_api api = [] {
      weir_memory_api made{};
      made.struct_size = sizeof made;
      if constexpr (kPinned) {
        made.pinned_alloc = &PinnedAlloc;
        made.pinned_free = &PinnedFree;
      }
      if constexpr (kOrdered) {
        made.alloc_async = &AllocAsync;
        made.free_async = &FreeAsync;
      }
      return made;
    }();
    return api;
  }

  static Stream& Of(weir_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static Event& Of(weir_event* event) { return *reinterpret_cast<Event*>(event); }

  // The handle of the object that a factory made, or the code that the factory put into the record.
  template <class Make, class Handle>
  static int32_t Give(Make&& make, Handle** handle, std::string_view what, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      *handle = nullptr;
      weir_error local{};
      local.struct_size = sizeof local;
      weir_error* record = error != nullptr ? error : &local;
      record->code = WEIR_OK;
      auto made = make(Error(record));
      if (made == nullptr) {
        if (record->code != WEIR_OK) return record->code;
        return Error(record).ResourceExhausted("no ", what, " left");
      }
      *handle = reinterpret_cast<Handle*>(made.release());
      return WEIR_OK;
    });
  }
  // Fills `buf` by `make(buf, error)`, keeping the caller's struct_size.
  template <class Make>
  static int32_t FillIn(weir_buf* buf, weir_error* error, Make&& make) noexcept {
    return Guard(error, [&]() -> int32_t {
      weir_buf made{};
      if (const int32_t code = make(made, Error(error)); code != WEIR_OK) return code;
      made.struct_size = buf->struct_size;
      *buf = made;
      return WEIR_OK;
    });
  }
  static int32_t CheckRanges(const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error& error) {
    if (bytes <= to.bytes && bytes <= from.bytes) return WEIR_OK;
    return error.InvalidArgument("copy of ", bytes, " bytes from ", from.bytes, " to ", to.bytes);
  }

  static int32_t Alloc(weir_device* device, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error) noexcept {
    return FillIn(buf, error,
                  [&](weir_buf& made, const Error& e) { return Base::Of(device).Alloc(bytes, space, made, e); });
  }
  static void Free(weir_device* device, const weir_buf* buf) noexcept {
    (void)Guard(nullptr, [&] {
      Base::Of(device).Free(*buf);
      return WEIR_OK;
    });
  }
  static int32_t Memset(weir_device* device, weir_stream* stream, const weir_buf* buf, uint8_t value, uint64_t bytes,
                        weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (bytes > buf->bytes)
        return Error(error).InvalidArgument("fill of ", bytes, " bytes, the buffer has ", buf->bytes);
      if (bytes == 0) return WEIR_OK;
      return Base::Of(device).Fill(reinterpret_cast<Stream*>(stream), *buf, value, bytes, Error(error));
    });
  }
  static int32_t Copy(weir_device* device, weir_stream* stream, const weir_buf* to, const weir_buf* from,
                      uint64_t bytes, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (const int32_t code = CheckRanges(*to, *from, bytes, Error(error)); code != WEIR_OK) return code;
      if (bytes == 0) return WEIR_OK;
      return Base::Of(device).Copy(reinterpret_cast<Stream*>(stream), *to, *from, bytes, Error(error));
    });
  }

  static int32_t StreamCreate(weir_device* device, int32_t priority, weir_stream** stream, weir_error* error) noexcept {
    return Give([&](const Error& e) { return Base::Of(device).NewStream(priority, e); }, stream, "stream", error);
  }
  static void StreamDestroy(weir_device*, weir_stream* stream) noexcept {
    (void)Guard(nullptr, [&] {
      delete &Of(stream);
      return WEIR_OK;
    });
  }
  static int32_t EventCreate(weir_device* device, weir_event** event, weir_error* error) noexcept {
    return Give([&](const Error& e) { return Base::Of(device).NewEvent(e); }, event, "event", error);
  }
  static void EventDestroy(weir_device*, weir_event* event) noexcept {
    (void)Guard(nullptr, [&] {
      delete &Of(event);
      return WEIR_OK;
    });
  }
  static int32_t Record(weir_stream* stream, weir_event* event, weir_error* error) noexcept {
    return Guard(error, [&] { return Of(stream).Record(Of(event), Error(error)); });
  }
  static int32_t Wait(weir_stream* stream, weir_event* event, weir_error* error) noexcept {
    return Guard(error, [&] { return Of(stream).Wait(Of(event), Error(error)); });
  }
  static int32_t Query(weir_event* event) noexcept {
    int32_t state = WEIR_EVENT_FAILED;
    (void)Guard(nullptr, [&] {
      state = Of(event).Query();
      return WEIR_OK;
    });
    return state;
  }
  static int32_t Sync(weir_event* event, weir_error* error) noexcept {
    return Guard(error, [&] { return Of(event).Sync(Error(error)); });
  }
  static int32_t OnComplete(weir_event* event, void (*fn)(void*, int32_t), void* arg, weir_error* error) noexcept {
    return Guard(error, [&] { return Of(event).OnComplete(fn, arg, Error(error)); });
  }
  static void Poison(weir_stream* stream, int32_t code, weir_str message) noexcept {
    (void)Guard(nullptr, [&] {
      Of(stream).Poison(code, ToView(message));
      return WEIR_OK;
    });
  }

  static void Mark(weir_stream* stream, uint64_t mark) noexcept {
    if constexpr (kMarks) Of(stream).Mark(mark);
  }
  static uint64_t FailedMark(weir_stream* stream) noexcept {
    uint64_t mark = 0;
    (void)Guard(nullptr, [&] {
      if constexpr (kMarks) mark = Of(stream).FailedMark();
      return WEIR_OK;
    });
    return mark;
  }

  static int32_t StartProfiling(weir_device* device, uint32_t kinds, weir_error* error) noexcept {
    return Guard(error, [&] { return Base::Of(device).StartProfiling(kinds, Error(error)); });
  }
  static int32_t StopProfiling(weir_device* device, weir_error* error) noexcept {
    return Guard(error, [&] { return Base::Of(device).StopProfiling(Error(error)); });
  }
  static int32_t Drain(weir_device* device, void (*emit)(void*, const weir_activity*), void* ctx, uint64_t* lost,
                       weir_error* error) noexcept {
    return Guard(error, [&] {
      *lost += Base::Of(device).DrainActivities(EmitActivity(emit, ctx));
      return WEIR_OK;
    });
  }
  static int32_t ReadClocks(weir_device* device, uint64_t* device_ns, uint64_t* host_ns, weir_error* error) noexcept {
    return Guard(error, [&] { return Base::Of(device).ReadClocks(*device_ns, *host_ns, Error(error)); });
  }

  static int32_t PinnedAlloc(weir_device* device, uint64_t bytes, weir_buf* buf, weir_error* error) noexcept {
    return FillIn(buf, error,
                  [&](weir_buf& made, const Error& e) { return Base::Of(device).AllocPinned(bytes, made, e); });
  }
  static void PinnedFree(weir_device* device, const weir_buf* buf) noexcept {
    (void)Guard(nullptr, [&] {
      Base::Of(device).FreePinned(*buf);
      return WEIR_OK;
    });
  }
  static int32_t AllocAsync(weir_device* device, weir_stream* stream, uint64_t bytes, weir_buf* buf,
                            weir_error* error) noexcept {
    return FillIn(buf, error, [&](weir_buf& made, const Error& e) {
      return Base::Of(device).AllocOrdered(Of(stream), bytes, made, e);
    });
  }
  static int32_t FreeAsync(weir_device* device, weir_stream* stream, const weir_buf* buf, weir_error* error) noexcept {
    return Guard(error, [&] { return Base::Of(device).FreeOrdered(Of(stream), *buf, Error(error)); });
  }
  static int32_t CanCopy(weir_device* from, weir_device* to) noexcept {
    int32_t answer = WEIR_COPY_NO;
    (void)Guard(nullptr, [&] {
      answer = D::CanCopy(Base::Of(from), Base::Of(to));
      return WEIR_OK;
    });
    return answer;
  }
  static int32_t CopyPeer(weir_device* to, const weir_buf* to_buf, weir_device* from, const weir_buf* from_buf,
                          uint64_t bytes, weir_stream* stream, weir_event* done, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (const int32_t code = CheckRanges(*to_buf, *from_buf, bytes, Error(error)); code != WEIR_OK) return code;
      auto* on = reinterpret_cast<Stream*>(stream);
      if (bytes != 0) {
        const int32_t code = Base::Of(to).CopyPeer(*to_buf, Base::Of(from), *from_buf, bytes, on, Error(error));
        if (code != WEIR_OK) return code;
      }
      if (done == nullptr) return WEIR_OK;
      if (on == nullptr) return Error(error).InvalidArgument("an event is recorded on a stream, and there is none");
      return on->Record(Of(done), Error(error));
    });
  }
  static int32_t Native(weir_device* device, uint32_t kind, const void* object, uint64_t* value,
                        weir_error* error) noexcept {
    return Guard(error, [&] { return Base::Of(device).Native(kind, object, *value, Error(error)); });
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_STREAM_DEVICE_H_
