// Plans of one combination of feeds, fetches and targets: exact plans for single combinations of fed shapes, and a
// generic plan for all others.
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

#include "core/session/pinned_slot.h"
#include "core/session/program.h"
#include "core/session/resolve.h"
#include "core/tensor/tensor.h"

namespace weir::session {

struct Replacing;

/// A plan for one combination of fed types, and for exact shapes or a common partial shape.
struct Specialisation {
  std::vector<DType> types;
  std::vector<Shape> shapes;            // of an exact plan
  std::vector<PartialShape> any_shape;  // of a generic plan: feeds with compatible shapes
  Program program;
  std::shared_ptr<Replacing> replacing = {};  // with SessionOptions::replace_period
  uint64_t shapes_version = 0;                // version of known variable shapes; a plan for another version is invalid

  bool Fits(std::span<const Tensor> feeds, uint64_t version) const;         // of an exact plan
  bool FitsGeneric(std::span<const Tensor> feeds, uint64_t version) const;  // of a generic plan
};

class Signature;
using PlanVisitor = std::function<void(const Signature&, const Specialisation&)>;

/// Thread-safe. Look-up takes no lock.
///
/// The first `exact_plans` combinations of fed shapes get exact plans. The next one gets a generic plan for the common
/// part of all shapes so far, which serves all compatible shapes. An incompatible shape widens it: an extent that
/// differs becomes unknown, so a generic plan is replaced at most once per fed extent and rank. Shapes that the generic
/// plan served 32 times get an exact plan, while there is room for one.
class Signature {
 public:
  using Pin = PinnedSlot<Specialisation>::Pin;

  /// How the step is compiled.
  enum class Ops { kAsConfigured, kAllRun };

  explicit Signature(ResolvedNames names, Ops ops = Ops::kAsConfigured) : names_(std::move(names)), ops_(ops) {}

  const ResolvedNames& names() const { return names_; }
  Ops ops() const { return ops_; }
  /// The plan for feeds of these types and shapes and this version of variable shapes; empty if there is none yet.
  Pin Find(std::span<const Tensor> feeds, uint64_t version);
  /// The plan to create if Find found none, without its program. The caller holds `compiling`.
  std::unique_ptr<Specialisation> Wanted(std::span<const Tensor> feeds, uint64_t version, size_t exact_plans);
  /// Adds a plan. A generic plan replaces the previous one; an exact plan replaces the least recently found one if
  /// there are 16. The caller holds `compiling`.
  Pin Add(std::unique_ptr<Specialisation> made);
  /// Adds a plan in place of the one for the same shapes. The caller holds `compiling`.
  Pin Replace(std::unique_ptr<Specialisation> made);
  void ForEach(const PlanVisitor& visit);
  /// Each plan is destroyed with its last run.
  void DropPlans();

  std::mutex compiling;  // serializes compilation

 private:
  struct Slot {
    PinnedSlot<Specialisation> plan;
    std::atomic<uint64_t> found{0};  // time of the last successful look-up that had tried another plan first
  };
  /// Counts a run of the generic plan with these feeds; true if their shapes should get an exact plan.
  bool WorthExactPlan(std::span<const Tensor> feeds, uint64_t version);

  const ResolvedNames names_;
  const Ops ops_;
  std::array<Slot, 16> slots_;  // exact plans
  PinnedSlot<Specialisation> generic_;
  std::atomic<size_t> last_{0};  // the exact plan to try first
  std::atomic<uint64_t> clock_{0};
  std::atomic<size_t> exact_{0};                     // exact plans made for `version_`
  std::atomic<uint64_t> version_{0};                 // of the latest plan
  std::vector<PartialShape> common_;                 // by feed: common part of planned shapes; under `compiling`
  std::array<std::atomic<uint8_t>, 128> runs_of_{};  // runs of the generic plan, by hash of the fed shapes
};

/// Signatures by handle. Thread-safe; Find takes no lock.
class CallableTable {
 public:
  CallableTable() = default;
  ~CallableTable();
  CallableTable(const CallableTable&) = delete;
  CallableTable& operator=(const CallableTable&) = delete;

  /// Handles are never reused. ResourceExhausted after a million.
  Result<int64_t> Add(std::unique_ptr<Signature> signature);
  PinnedSlot<Signature>::Pin Find(int64_t handle) const;
  void ForEach(const PlanVisitor& visit);
  /// Drops the plans of all signatures; handles stay valid.
  void DropPlans();
  /// False for an unknown handle. Calls in progress continue and keep their resources.
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
