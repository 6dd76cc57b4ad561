// What a session keeps for one combination of feeds, fetches and targets: a plan for each combination of fed shapes.
#ifndef WEIR_CORE_SESSION_SIGNATURE_H_
#define WEIR_CORE_SESSION_SIGNATURE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/execute/plan_runner.h"
#include "core/session/pinned_slot.h"
#include "core/session/resolve.h"
#include "core/tensor/tensor.h"

namespace weir::session {

/// A plan for one combination of fed types and shapes.
struct Specialisation {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  std::unique_ptr<execute::PlanRunner> runner;
  uint64_t shapes_version = 0;  // what was known of variables' shapes; a plan for another version fits nothing

  bool Fits(std::span<const Tensor> feeds, uint64_t version) const;
};

class Signature;
using PlanVisitor = std::function<void(const Signature&, const Specialisation&)>;

/// Thread-safe. Looking for a plan takes no lock.
class Signature {
 public:
  using Pin = PinnedSlot<Specialisation>::Pin;

  /// How the step is to be compiled.
  enum class Ops { kAsConfigured, kAllRun };

  explicit Signature(ResolvedNames names, Ops ops = Ops::kAsConfigured) : names_(std::move(names)), ops_(ops) {}

  const ResolvedNames& names() const { return names_; }
  Ops ops() const { return ops_; }
  /// The plan for feeds of these types and shapes and this version of variables' shapes; empty when there is none yet.
  Pin Find(std::span<const Tensor> feeds, uint64_t version);
  /// Adds a plan, in place of the one that was found least recently when there are 16. The caller holds `compiling`.
  Pin Add(std::unique_ptr<Specialisation> made);
  void ForEach(const PlanVisitor& visit);
  /// Each dies with its last run.
  void DropPlans();

  std::mutex compiling;  // one compilation at a time

 private:
  struct Slot {
    PinnedSlot<Specialisation> plan;
    std::atomic<uint64_t> found{0};  // when it was found last by somebody who was looking for another one before
  };
  const ResolvedNames names_;
  const Ops ops_;
  std::array<Slot, 16> slots_;
  std::atomic<size_t> last_{0};  // where to look first
  std::atomic<uint64_t> clock_{0};
};

/// Signatures by handle. Thread-safe; Find takes no lock.
class CallableTable {
 public:
  CallableTable() = default;
  ~CallableTable();
  CallableTable(const CallableTable&) = delete;
  CallableTable& operator=(const CallableTable&) = delete;

  /// ResourceExhausted after a million handles, which are never used twice.
  Result<int64_t> Add(std::unique_ptr<Signature> signature);
  PinnedSlot<Signature>::Pin Find(int64_t handle) const;
  void ForEach(const PlanVisitor& visit);
  /// Of all signatures, whose handles stay.
  void DropPlans();
  /// Running calls go on; what they use goes with the last of them. False for an unknown handle.
  bool Remove(int64_t handle);

 private:
  static constexpr size_t kChunk = 1024;
  using Chunk = std::array<PinnedSlot<Signature>, kChunk>;
  PinnedSlot<Signature>* SlotOf(int64_t handle) const;
  void ForEachSignature(const std::function<void(Signature&)>& visit);

  std::mutex mutex_;  // protects next_ and filling chunks_
  int64_t next_ = 1;
  std::array<std::atomic<Chunk*>, 1024> chunks_{};
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_SIGNATURE_H_
