#include "core/session/signature.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/tensor/common_shape.h"

namespace weir::session {
namespace {

constexpr uint8_t kWorthExactPlan = 32;  // runs of a generic plan with equal shapes

size_t HashOfShapes(std::span<const Tensor> feeds) {
  uint64_t hash = 0;
  const auto add = [&hash](int64_t number) {
    hash = (hash ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (const Tensor& feed : feeds) {
    add(feed.shape().rank());
    for (const int64_t dim : feed.shape().dims()) add(dim);
  }
  return hash;
}

}  // namespace

bool Specialisation::Fits(std::span<const Tensor> feeds, uint64_t version) const {
  if (shapes_version != version) return false;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (types[i] != feeds[i].dtype() || !(shapes[i] == feeds[i].shape())) return false;
  }
  return true;
}

bool Specialisation::FitsGeneric(std::span<const Tensor> feeds, uint64_t version) const {
  if (shapes_version != version) return false;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (types[i] != feeds[i].dtype() || !any_shape[i].CompatibleWith(feeds[i].shape())) return false;
  }
  return true;
}

Signature::Pin Signature::Find(std::span<const Tensor> feeds, uint64_t version) {
  const size_t last = last_.load(std::memory_order_relaxed);
  if (Pin pin = slots_[last].plan.Take(); pin && pin->Fits(feeds, version)) return pin;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (i == last || slots_[i].plan.empty()) continue;
    Pin pin = slots_[i].plan.Take();
    if (!pin || !pin->Fits(feeds, version)) continue;
    slots_[i].found.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    last_.store(i, std::memory_order_relaxed);
    return pin;
  }
  if (generic_.empty()) return Pin();
  Pin generic = generic_.Take();
  if (!generic || !generic->FitsGeneric(feeds, version) || WorthExactPlan(feeds, version)) return Pin();
  return generic;
}

bool Signature::WorthExactPlan(std::span<const Tensor> feeds, uint64_t version) {
  if (exact_.load(std::memory_order_relaxed) >= slots_.size() || version_.load(std::memory_order_relaxed) != version) {
    return false;
  }
  std::atomic<uint8_t>& runs = runs_of_[HashOfShapes(feeds) % runs_of_.size()];
  const uint8_t before = runs.load(std::memory_order_relaxed);  // concurrent increments may be lost
  if (before < kWorthExactPlan) runs.store(before + 1, std::memory_order_relaxed);
  return before == kWorthExactPlan;
}

std::unique_ptr<Specialisation> Signature::Wanted(std::span<const Tensor> feeds, uint64_t version, size_t exact_plans) {
  if (version_.exchange(version, std::memory_order_relaxed) != version) exact_.store(0, std::memory_order_relaxed);
  auto made = std::make_unique<Specialisation>();
  made->shapes_version = version;
  const bool first = common_.empty();
  for (size_t i = 0; i < feeds.size(); ++i) {
    made->types.push_back(feeds[i].dtype());
    if (first) common_.emplace_back(feeds[i].shape());
    common_[i] = CommonShape(common_[i], feeds[i].shape());
  }
  const Pin generic = generic_.Take();
  const bool served = generic && generic->FitsGeneric(feeds, version);
  if (!served && exact_.load(std::memory_order_relaxed) >= exact_plans) {
    made->any_shape = common_;
    return made;
  }
  for (const Tensor& feed : feeds) made->shapes.push_back(feed.shape());
  return made;
}

Signature::Pin Signature::Add(std::unique_ptr<Specialisation> made) {
  if (!made->any_shape.empty()) {
    generic_.Put(std::move(made));
    return generic_.Take();
  }
  exact_.fetch_add(1, std::memory_order_relaxed);
  size_t place = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].plan.empty()) {
      place = i;
      break;
    }
    if (slots_[i].found.load(std::memory_order_relaxed) < slots_[place].found.load(std::memory_order_relaxed))
      place = i;
  }
  const Pin replaced = slots_[place].plan.Put(std::move(made));
  slots_[place].found.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  last_.store(place, std::memory_order_relaxed);
  return slots_[place].plan.Take();
}

Signature::Pin Signature::Replace(std::unique_ptr<Specialisation> made) {
  if (!made->any_shape.empty()) {
    generic_.Put(std::move(made));
    return generic_.Take();
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Pin old = slots_[i].plan.Take();
    if (!old || old->types != made->types || old->shapes != made->shapes) continue;
    slots_[i].plan.Put(std::move(made));
    return slots_[i].plan.Take();
  }
  return Add(std::move(made));
}

void Signature::ForEach(const PlanVisitor& visit) {
  for (Slot& slot : slots_) {
    if (const Pin pin = slot.plan.Take()) visit(*this, *pin);
  }
  if (const Pin pin = generic_.Take()) visit(*this, *pin);
}

void Signature::DropPlans() {
  for (Slot& slot : slots_) slot.plan.Put(nullptr);
  generic_.Put(nullptr);
  exact_.store(0, std::memory_order_relaxed);
}

void CallableTable::ForEachSignature(const std::function<void(Signature&)>& visit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int64_t handle = 1; handle < next_; ++handle) {
    if (const PinnedSlot<Signature>::Pin signature = Find(handle)) visit(*signature);
  }
}

void CallableTable::ForEach(const PlanVisitor& visit) {
  ForEachSignature([&visit](Signature& signature) { signature.ForEach(visit); });
}

void CallableTable::DropPlans() {
  ForEachSignature([](Signature& signature) { signature.DropPlans(); });
}

CallableTable::~CallableTable() {
  for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load();
}

Result<int64_t> CallableTable::Add(std::unique_ptr<Signature> signature) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = static_cast<size_t>(next_) / kChunk;
  if (at >= chunks_.size()) return ResourceExhausted("the session has made {} callables, more than it can name", next_);
  if (chunks_[at].load(std::memory_order_relaxed) == nullptr) chunks_[at].store(new Chunk, std::memory_order_release);
  const int64_t handle = next_++;
  SlotOf(handle)->Put(std::move(signature));
  return handle;
}

PinnedSlot<Signature>* CallableTable::SlotOf(int64_t handle) const {
  if (handle <= 0 || static_cast<size_t>(handle) / kChunk >= chunks_.size()) return nullptr;
  Chunk* const chunk = chunks_[static_cast<size_t>(handle) / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[static_cast<size_t>(handle) % kChunk];
}

PinnedSlot<Signature>::Pin CallableTable::Find(int64_t handle) const {
  PinnedSlot<Signature>* const slot = SlotOf(handle);
  return slot == nullptr ? PinnedSlot<Signature>::Pin() : slot->Take();
}

bool CallableTable::Remove(int64_t handle) {
  PinnedSlot<Signature>* const slot = SlotOf(handle);
  return slot != nullptr && slot->Put(nullptr);
}

}  // namespace weir::session
