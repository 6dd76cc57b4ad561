// The op registry, and the builder that declares an op.
#ifndef WEIR_CORE_OP_REGISTRY_H_
#define WEIR_CORE_OP_REGISTRY_H_

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/op/op_def.h"

namespace weir::op {

class OpRegistry;
struct OpRecord;

/// Builds one OpDef by chained calls. OpRegistry::Freeze reports the errors with op and column.
///
///   ops.Declare("Relu").In("features: T").Out("activations: T").Attr("T: realnumbertype")
///      .Doc("max(features, 0), element by element").Shape(SameAs(0)).Grad(…);
///
/// Arguments: "name: T", "name: N*T", "name: float", "name: Ref(T)", "name: list" where list is a list(type) attribute.
/// Attributes: "name: type", "name: int >= 1 = 3", "name: {float, int32} = DT_FLOAT", "name: list(int) = []",
/// "name: {'SAME', 'VALID'}", and the named sets numbertype, realnumbertype, quantizedtype.
class OpBuilder {
 public:
  OpBuilder(OpRegistry& registry, OpRecord& record) : registry_(&registry), record_(&record) {}

  OpBuilder& In(std::string_view signature);
  OpBuilder& Out(std::string_view signature);
  OpBuilder& Attr(std::string_view signature);
  OpBuilder& Doc(std::string_view text);
  OpBuilder& Is(Category category);
  OpBuilder& RunsOn(RunBy run_by);
  /// The op is run by the core on every device (Universal), or by the executor (Flow).
  OpBuilder& RunsAs(Universal universal);
  OpBuilder& RunsAs(Flow flow);
  OpBuilder& PassesValue();
  OpBuilder& MovesElements();
  OpBuilder& ChecksOnly();
  OpBuilder& HandlesFromAnywhere();
  OpBuilder& Stack(StackRole role);
  OpBuilder& SameIfEmpty(int input);
  OpBuilder& ShapeQuery(ShapeQueryFn fn);  // implies RunsAs(Universal::kShapeQuery)
  OpBuilder& KnownInts(KnownIntsFn fn);
  OpBuilder& Refusal(RefusalFn fn);
  OpBuilder& Fuses(std::string_view consumer, int input, std::string_view producer);
  OpBuilder& Computes(std::string_view expression, AttrList attrs = {});
  OpBuilder& MeasuredAs(std::string_view op, int inputs);
  OpBuilder& Elementwise();
  OpBuilder& Region();
  OpBuilder& Stateful();
  OpBuilder& Commutative();
  OpBuilder& Aggregate();
  OpBuilder& AllowsUninitialized();
  OpBuilder& Shape(ShapeFn fn);
  OpBuilder& Grad(GradFn fn);
  OpBuilder& NoGradient(std::string_view why);

 private:
  /// The record to change; null, with a fault recorded, if the registry is frozen.
  OpDef* Open();

  OpRegistry* registry_;
  OpRecord* record_;
};

/// A text of a declaration that is parsed, or copied into the op, when the op is first looked up.
struct OpText {
  enum class Kind : uint8_t { kInput, kOutput, kAttr, kDoc, kNoGradient } kind;
  std::string_view text;
  int next = -1;  // of the same op; -1: the last
};

/// An op of a registry. A process uses few ops of a large catalogue, so their texts are parsed on use.
struct OpRecord {
  OpDef def;
  int first = -1, last = -1;  // of the texts
  std::atomic<bool> complete{false};
  bool faulty = false;  // read once `complete` is seen
};

/// All ops by name. Filled by explicit calls, frozen once, then read-only and thread-safe. Not movable.
class OpRegistry {
 public:
  /// Records that Freeze checks: all, or none, and each when it is first looked up.
  enum class Checks { kNow, kOnUse };

  /// Starts the record of a new op. Freeze reports names that are declared twice.
  OpBuilder Declare(std::string_view name);

  /// Checks records and forbids further changes. Attributes named in signatures must exist, and each op needs a shape
  /// function and either a gradient or a reason for none. InvalidArgument lists all faults.
  Status Freeze(Checks checks = Checks::kNow);

  /// Null if there is no such op, or if its check on use failed.
  const OpDef* Find(std::string_view name) const;
  /// NotFound with TensorFlow's text and the nearest names; InvalidArgument with the faults that a check on use found.
  Result<const OpDef*> Get(std::string_view name) const;
  /// All ops sorted by name, but those that failed a check on use.
  std::vector<const OpDef*> All() const;
  /// True if the name is declared; checks nothing.
  bool Has(std::string_view name) const;
  /// The ops that fuse others, in declaration order; empty before Freeze.
  const std::vector<const OpDef*>& Fusions() const { return fusions_; }

  /// The ops that compute expressions of others, in declaration order; empty before Freeze.
  const std::vector<const OpDef*>& FusedOps() const { return fused_ops_; }
  /// The op with the trait `region`; null if there is none, and before Freeze.
  const OpDef* RegionOp() const { return region_op_; }

  /// Records a fault of a declaration; called by OpBuilder.
  void AddFault(std::string fault);
  bool frozen() const { return frozen_; }

 private:
  friend class OpBuilder;
  void AddText(OpRecord& record, OpText::Kind kind, std::string_view text);
  /// Parses the texts of a record, and once the registry is frozen checks it; null if it is faulty.
  const OpDef* Complete(OpRecord& record) const;
  void ParseTexts(OpRecord& record, std::vector<std::string>& faults) const;
  std::vector<OpRecord*> Sorted() const;

  std::deque<OpRecord> records_;
  std::unordered_map<std::string_view, OpRecord*> by_name_;
  std::vector<OpText> texts_;
  std::deque<std::string> text_blocks_;  // hold the texts; never reallocated
  mutable std::mutex completing_;        // protects the completion of records, and late_faults_
  mutable std::vector<std::string> late_faults_;
  std::vector<const OpDef*> fusions_;
  std::vector<const OpDef*> fused_ops_;
  const OpDef* region_op_ = nullptr;
  std::vector<std::string> faults_;
  bool frozen_ = false;
};

/// Parses an argument or attribute signature. InvalidArgument gives the column, counted from 1.
Result<ArgDef> ParseArg(std::string_view signature);
Result<AttrDef> ParseAttr(std::string_view signature);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_REGISTRY_H_
