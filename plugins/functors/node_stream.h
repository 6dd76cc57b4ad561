// The generator of a stateful random node, which continues from call to call.
#ifndef WEIR_PLUGINS_FUNCTORS_NODE_STREAM_H_
#define WEIR_PLUGINS_FUNCTORS_NODE_STREAM_H_

#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include "plugins/functors/philox.h"
#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// An object that a node keeps between calls and shares among its prepared forms, or an own one if the host keeps none.
/// `make` returns a new T, or null. Null if memory runs out.
template <class T, class Make>
std::shared_ptr<T> KeptByNode(const sdk::Node& node, std::string_view key, Make make) {
  const weir_host* host = sdk::HostTable();
  if (WEIR_HAS(host, node_resource)) {
    void* const kept = host->node_resource(
        node.get(), sdk::Str(key), [](void* maker) -> void* { return (*static_cast<Make*>(maker))(); },
        [](void* object) { delete static_cast<T*>(object); }, &make);
    if (kept != nullptr) return std::shared_ptr<T>(std::shared_ptr<T>(), static_cast<T*>(kept));
  }
  return std::shared_ptr<T>(make());
}

/// Attributes seed and seed2 choose the generator; an arbitrary one is used if both are 0.
class NodeStream {
 public:
  int32_t Open(const sdk::Prep& prep) {
    const sdk::Node& node = prep.node();
    Philox seeded{static_cast<uint64_t>(node.Int("seed")), static_cast<uint64_t>(node.Int("seed2"))};
    if (seeded.key == 0 && seeded.stream == 0) {
      std::random_device device;
      const auto word = [&] { return uint64_t{device()} << 32 | device(); };
      seeded.key = word();
      seeded.stream = word();
    }
    stream_ = KeptByNode<Stream>(node, "philox", [seeded] { return new (std::nothrow) Stream(seeded); });
    if (stream_ != nullptr) return WEIR_OK;
    return prep.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a random generator");
  }

  const Philox& generator() const { return stream_->generator; }
  /// Reserves blocks for a call and returns the first. Thread-safe.
  uint64_t Reserve(uint64_t blocks) const { return stream_->next.fetch_add(blocks, std::memory_order_relaxed); }
  /// For `n` values that use an unknown number of blocks each: 256 per value, more than any uses.
  uint64_t ReserveFor(int64_t n) const { return Reserve(static_cast<uint64_t>(n) * 256); }

 private:
  struct Stream {
    explicit Stream(const Philox& seeded) : generator(seeded) {}
    const Philox generator;
    std::atomic<uint64_t> next{0};
  };
  std::shared_ptr<Stream> stream_;
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_NODE_STREAM_H_
