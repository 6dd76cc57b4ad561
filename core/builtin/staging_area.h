// Staging areas: tuples that one step puts and another takes. Waiting ops hold no thread.
#ifndef WEIR_CORE_BUILTIN_STAGING_AREA_H_
#define WEIR_CORE_BUILTIN_STAGING_AREA_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/builtin/waiting_list.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// What an area may hold; 0: any number.
struct StagingLimits {
  int64_t capacity = 0;  // in tuples
  int64_t memory_limit = 0;  // in bytes
};

/// What both areas have: room, of which a put waits. A put of more than the limit of memory is ResourceExhausted. Texts
/// of errors are TensorFlow's. Thread-safe. In all calls `cancellation` may be null; otherwise it must outlive the
/// completion.
class StagingBase : public Resource, public std::enable_shared_from_this<StagingBase> {
 public:
  using Tuple = std::vector<Tensor>;

  uint64_t MemoryBytes() const override;
  /// Whole tuples.
  int64_t size() const;
  /// Drops all tuples.
  void Empty();

 protected:
  using Answer = WaitingList::Answer;
  explicit StagingBase(StagingLimits limits) : limits_(limits) {}

  void Clear() override;
  void Run(WaitingList::Attempt attempt, runtime::Cancellation* cancellation, runtime::Completion done) {
    waiting_.Run(shared_from_this(), std::move(attempt), cancellation, std::move(done));
  }
  static int64_t Bytes(const Tuple& tuple);
  Status CheckMemory(int64_t bytes) const;
  // Under the mutex.
  /// True if there is memory for so many more bytes, and room for a tuple if it is `whole`.
  bool HasRoom(int64_t bytes, bool whole) const;
  virtual int64_t Count() const = 0;
  virtual void Drop() = 0;

  const StagingLimits limits_;
  WaitingList waiting_{WaitingList::Order::kAny};  // its mutex protects all below and the content of subclasses
  int64_t bytes_ = 0;
};

/// First in, first out.
class StagingArea final : public StagingBase {
 public:
  static constexpr std::string_view kTypeName = "weir::StagingArea";

  explicit StagingArea(StagingLimits limits) : StagingBase(limits) {}
  ~StagingArea() override { Clear(); }
  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;

  void Put(Tuple tuple, runtime::Cancellation* cancellation, runtime::Completion done);
  /// `types`: of the components; InvalidArgument if the first tuple has others, which then stays.
  void Take(std::vector<DType> types, runtime::Cancellation* cancellation, runtime::Completion done);
  /// The tuple number `index` from the front, which stays.
  void Peek(size_t index, std::vector<DType> types, runtime::Cancellation* cancellation, runtime::Completion done);

 private:
  int64_t Count() const override { return static_cast<int64_t>(tuples_.size()); }
  void Drop() override { tuples_.clear(); }

  std::deque<Tuple> tuples_;
};

/// By key. Components of a tuple may come and go one by one; a tuple can be taken once it is whole. `indices` say which
/// components are meant and have to ascend.
class StagingMap final : public StagingBase {
 public:
  static constexpr std::string_view kTypeName = "weir::StagingMap";

  /// `types`: of a whole tuple.
  StagingMap(StagingLimits limits, std::vector<DType> types) : StagingBase(limits), types_(std::move(types)) {}
  ~StagingMap() override { Clear(); }
  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  int64_t incomplete_size() const;

  /// A whole tuple whose key is there is dropped.
  void Put(int64_t key, std::vector<int32_t> indices, Tuple values, runtime::Cancellation* cancellation,
           runtime::Completion done);
  enum class Use : uint8_t { kPeek, kTake };
  /// `types`: of the components with these indices, as the caller wants them.
  void Get(int64_t key, std::vector<int32_t> indices, std::vector<DType> types, Use use,
           runtime::Cancellation* cancellation, runtime::Completion done);
  /// Takes from the tuple with the least key; completes with key and components.
  void TakeFirst(std::vector<int32_t> indices, std::vector<DType> types, runtime::Cancellation* cancellation,
                 runtime::Completion done);

 private:
  using Tuples = std::map<int64_t, Tuple>;  // invalid tensors have been taken or have not come

  Status CheckPut(int64_t key, const std::vector<int32_t>& indices, const Tuple& values) const;
  // Under the mutex.
  Status PutParts(int64_t key, const std::vector<int32_t>& indices, Tuple& values);
  Answer Found(Tuples::iterator at, const std::vector<int32_t>& indices, const std::vector<DType>& types, Use use);
  int64_t Count() const override { return static_cast<int64_t>(whole_.size()); }
  void Drop() override {
    whole_.clear();
    incomplete_.clear();
  }

  const std::vector<DType> types_;
  Tuples whole_, incomplete_;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_STAGING_AREA_H_
