// A device as a class. Members marked optional may be omitted; the comments give the default.
//
// ```cpp
// class ToyDevice {  // one object per open device
//  public:
//   static void Enumerate(const Options&, const Emit& emit) {
//     emit({.uid = "toy-0", .kind = "TOY", .platform = "toy/1", .memory_bytes = uint64_t{1} << 20});
//   }
//   static std::unique_ptr<ToyDevice> Open(std::string_view uid, const Options&, const Error&);  // null after Fail
//   void* Alloc(uint64_t bytes, uint32_t space);  // null if memory is exhausted
//   void Free(void* block, uint64_t bytes);
//   void Copy(void* to, const void* from, uint64_t bytes);          // default: memcpy; any direction
//   void Fill(void* block, uint8_t value, uint64_t bytes);          // default: memset
//   void MemInfo(uint32_t space, uint64_t& free, uint64_t& total, uint64_t& largest) const;  // default: not known
//   int32_t Health() const;                                         // default: WEIR_HEALTH_OK
//   void SetOptions(const Options&);                                // reserved: not called
//   static std::span<const weir_option_spec* const> OptionSpecs();  // default: no options
//   void Profile(weir_profile& profile) const;                      // default: no "cost/1"
// };
// ```
//
// This wrapper is for devices whose memory has addresses and whose work is complete when a call returns;
// stream_device.h is for all others. Copy and Fill may return void, or a code with a trailing `const Error&` parameter.
// Every member may throw; no exception crosses the boundary.
#ifndef WEIR_SDK_CPP_DEVICE_H_
#define WEIR_SDK_CPP_DEVICE_H_

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/plugin.h"
#include "sdk/cpp/options.h"
#include "sdk/cpp/status.h"

namespace weir::sdk {

/// Description of one device. Texts are borrowed until Emit returns; an empty class or name defaults to the uid.
struct DeviceInfo {
  std::string_view uid;
  std::string_view class_id = {};
  std::string_view kind;
  std::string_view platform;
  std::string_view name = {};
  std::string_view driver_version = {};
  uint32_t flags = WEIR_DEVICE_SYNC_ONLY;
  uint64_t memory_bytes = 0;
  uint64_t alignment = 64;
  int32_t numa_node = -1;
  uint64_t largest_allocation = 0;  // 0: no limit but the memory's
};

/// Reports one device to the core.
class Emit {
 public:
  Emit(void (*emit)(void*, const weir_device_record*), void* ctx) : emit_(emit), ctx_(ctx) {}
  void operator()(const DeviceInfo& info) const {
    weir_device_record record{};
    record.struct_size = sizeof record;
    record.flags = info.flags;
    record.uid = Str(info.uid);
    record.class_id = Str(info.class_id.empty() ? info.uid : info.class_id);
    record.kind = Str(info.kind);
    record.platform = Str(info.platform);
    record.name = Str(info.name.empty() ? info.uid : info.name);
    record.driver_version = Str(info.driver_version);
    record.numa_node = info.numa_node;
    record.memory_bytes = info.memory_bytes;
    record.alignment = info.alignment;
    record.largest_allocation = info.largest_allocation;
    emit_(ctx_, &record);
  }

 private:
  void (*emit_)(void*, const weir_device_record*);
  void* ctx_;
};

/// A profile with all values unknown.
inline weir_profile UnknownProfile() {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  weir_profile profile{};
  profile.struct_size = sizeof profile;
  for (double& peak : profile.peak_flops_per_ns) peak = kUnknown;
  for (double& efficiency : profile.compute_efficiency) efficiency = kUnknown;
  for (double& efficiency : profile.memory_efficiency) efficiency = kUnknown;
  for (double* value : {&profile.bandwidth_bytes_per_ns, &profile.cache_bytes, &profile.cache_bandwidth_bytes_per_ns,
                        &profile.launch_ns, &profile.issue_gap_ns, &profile.sync_wake_ns,
                        &profile.half_saturation_flops, &profile.half_saturation_bytes}) {
    *value = kUnknown;
  }
  profile.queues = 1;
  return profile;
}

/// "device/1", and "cost/1" if the class has Profile.
template <class D>
struct Devices {
  static constexpr uint32_t kKind = WEIR_KIND_DEVICE;

  static std::span<const weir_option_spec* const> Options() {
    if constexpr (requires { D::OptionSpecs(); }) {
      return D::OptionSpecs();
    } else {
      return {};
    }
  }

  static const void* Interface(std::string_view id, std::string_view) {
    if (id == WEIR_DEVICE_INTERFACE) {
      static const weir_device_api api = {sizeof(weir_device_api),
                                          0,
                                          &Enumerate,
                                          &Open,
                                          &Close,
                                          nullptr,
                                          &Alloc,
                                          &Free,
                                          kHasMemInfo ? &MemInfo : nullptr,
                                          &Memset,
                                          &Copy,
                                          &Health,
                                          kHasSetOptions ? &SetOptions : nullptr};
      return &api;
    }
    return id == WEIR_COST_INTERFACE ? CostTable() : nullptr;
  }

 protected:
  static const weir_cost_api* CostTable() {
    if constexpr (requires(const D& device, weir_profile& profile) { device.Profile(profile); }) {
      static const weir_cost_api api = {sizeof(weir_cost_api), 0, &Profile, nullptr, nullptr};
      return &api;
    } else {
      return nullptr;
    }
  }
  static constexpr bool kHasMemInfo = requires(D & d, uint32_t space, uint64_t& n) { d.MemInfo(space, n, n, n); };
  static constexpr bool kHasSetOptions = requires(D & d, const sdk::Options& options) { d.SetOptions(options); };

  static D& Of(weir_device* device) { return *reinterpret_cast<D*>(device); }

  static int32_t Enumerate(const weir_opt* options, uint64_t count, void (*emit)(void*, const weir_device_record*),
                           void* ctx, weir_error* error) noexcept {
    return Guard(error, [&] {
      D::Enumerate(sdk::Options(options, count), Emit(emit, ctx));
      return WEIR_OK;
    });
  }
  static int32_t Open(weir_str uid, const weir_opt* options, uint64_t count, weir_device** device,
                      weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      *device = nullptr;
      weir_error local{};
      local.struct_size = sizeof local;
      weir_error* record = error != nullptr ? error : &local;
      record->code = WEIR_OK;
      std::unique_ptr<D> opened = D::Open(ToView(uid), sdk::Options(options, count), Error(record));
      if (opened == nullptr) {
        if (record->code != WEIR_OK) return record->code;
        return Error(record).Fail(WEIR_NOT_FOUND, "there is no device '", uid, "'");
      }
      *device = reinterpret_cast<weir_device*>(opened.release());
      return WEIR_OK;
    });
  }
  static void Close(weir_device* device) noexcept {
    (void)Guard(nullptr, [&] {
      delete &Of(device);
      return WEIR_OK;
    });
  }
  static int32_t Alloc(weir_device* device, uint64_t bytes, uint32_t space, weir_buf* buf, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      void* block = Of(device).Alloc(bytes, space);
      if (block == nullptr) return Error(error).ResourceExhausted("no memory left for ", bytes, " bytes");
      const uint32_t capacity = buf->struct_size;
      *buf = {capacity, space, reinterpret_cast<uint64_t>(block), 0, bytes, block};
      return WEIR_OK;
    });
  }
  static void Free(weir_device* device, const weir_buf* buf) noexcept {
    (void)Guard(nullptr, [&] {
      Of(device).Free(reinterpret_cast<void*>(buf->handle), buf->bytes);
      return WEIR_OK;
    });
  }
  static int32_t MemInfo(weir_device* device, uint32_t space, uint64_t* free_bytes, uint64_t* total_bytes,
                         uint64_t* largest_bytes) noexcept {
    return Guard(nullptr, [&] {
      if constexpr (kHasMemInfo) Of(device).MemInfo(space, *free_bytes, *total_bytes, *largest_bytes);
      return WEIR_OK;
    });
  }
  /// The address of a buffer: `host` of host memory, handle plus offset of device memory.
  static char* Address(const weir_buf& buf) {
    return buf.host != nullptr ? static_cast<char*>(buf.host) : reinterpret_cast<char*>(buf.handle + buf.offset);
  }
  static int32_t Memset(weir_device* device, weir_stream*, const weir_buf* buf, uint8_t value, uint64_t bytes,
                        weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (bytes > buf->bytes)
        return Error(error).InvalidArgument("fill of ", bytes, " bytes, the buffer has ", buf->bytes);
      if constexpr (requires(D & d, const Error& e) {
                      { d.Fill(nullptr, value, bytes, e) } -> std::same_as<int32_t>;
                    }) {
        return Of(device).Fill(Address(*buf), value, bytes, Error(error));
      } else if constexpr (requires(D & d) { d.Fill(nullptr, value, bytes); }) {
        Of(device).Fill(Address(*buf), value, bytes);
      } else {
        std::memset(Address(*buf), value, bytes);
      }
      return WEIR_OK;
    });
  }
  static int32_t Copy(weir_device* device, weir_stream*, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                      weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (bytes > to->bytes || bytes > from->bytes) {
        return Error(error).InvalidArgument("copy of ", bytes, " bytes from ", from->bytes, " to ", to->bytes);
      }
      if (bytes == 0) return WEIR_OK;
      if constexpr (requires(D & d, const Error& e) {
                      { d.Copy(nullptr, nullptr, bytes, e) } -> std::same_as<int32_t>;
                    }) {
        return Of(device).Copy(Address(*to), Address(*from), bytes, Error(error));
      } else if constexpr (requires(D & d) { d.Copy(nullptr, nullptr, bytes); }) {
        Of(device).Copy(Address(*to), Address(*from), bytes);
      } else {
        std::memmove(Address(*to), Address(*from), bytes);
      }
      return WEIR_OK;
    });
  }
  static int32_t Health(weir_device* device) noexcept {
    return Guard(nullptr, [&]() -> int32_t {
      if constexpr (requires(const D& d) { d.Health(); }) {
        return Of(device).Health();
      } else {
        return WEIR_HEALTH_OK;
      }
    });
  }
  static int32_t SetOptions(weir_device* device, const weir_opt* options, uint64_t count, weir_error* error) noexcept {
    return Guard(error, [&] {
      if constexpr (kHasSetOptions) Of(device).SetOptions(sdk::Options(options, count));
      return WEIR_OK;
    });
  }
  static int32_t Profile(weir_device* device, weir_profile* profile, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if (profile->struct_size < sizeof(weir_profile))
        return Error(error).InvalidArgument("the profile record is too small");
      if constexpr (requires(const D& d) { d.Profile(*profile); }) {
        *profile = UnknownProfile();
        Of(device).Profile(*profile);
      }
      return WEIR_OK;
    });
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_DEVICE_H_
