// Arrays joined and split along an axis: Concat, Pack, Split, Unpack.
#include <cstring>

#include "plugins/functors/join_plans.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInputs;
using sdk::AnyOutput;
using sdk::AnyOutputs;
using sdk::HostIntegers;
using sdk::Prep;

struct Blocks : functors::JoinPlan {
  /// `rows` blocks of n bytes.
  void CopyRows(const char* from, size_t from_step, char* to, size_t to_step, size_t n) const {
    if (n == 0) return;
    ForBlock(n, [&](auto size) {
      for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) std::memcpy(to, from, size);
    });
  }
  void Join(const AnyInputs& pieces, const AnyOutput& whole) const {
    auto* start = static_cast<char*>(whole.data());
    for (uint32_t i = 0; i < pieces.size(); ++i) {
      const size_t n = piece_bytes[i];
      CopyRows(static_cast<const char*>(pieces[i].data()), n, start, row_bytes, n);
      start += n;
    }
  }
  void Cut(const sdk::AnyInput& whole, const AnyOutputs& pieces) const {
    const auto* start = static_cast<const char*>(whole.data());
    for (uint32_t i = 0; i < pieces.size(); ++i) {
      const size_t n = piece_bytes[i];
      CopyRows(start, row_bytes, static_cast<char*>(pieces[i].data()), n, n);
      start += n;
    }
  }
};

struct ConcatV2 : functors::ConcatPlan<Blocks> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, prep.inputs() - 1, 0); }
  void Run(AnyInputs values, HostIntegers, AnyOutput output) const { blocks.Join(values, output); }
};
struct Concat : functors::ConcatPlan<Blocks> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, 0, 1); }
  void Run(HostIntegers, AnyInputs values, AnyOutput output) const { blocks.Join(values, output); }
};

struct Pack : functors::PackPlan<Blocks> {
  void Run(AnyInputs values, AnyOutput output) const { blocks.Join(values, output); }
};

struct Split : functors::SplitPlan<Blocks> {
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 0, "split_dim", &axis); code != WEIR_OK) return code;
    return PrepareWith(prep, 1, axis);
  }
  void Run(HostIntegers, sdk::AnyInput value, AnyOutputs output) const { blocks.Cut(value, output); }
};
/// The outputs' shapes, computed by the shape function, give the sizes.
struct SplitV : functors::SplitPlan<Blocks> {
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 2, "split_dim", &axis); code != WEIR_OK) return code;
    return PrepareWith(prep, 0, axis);
  }
  void Run(sdk::AnyInput value, HostIntegers, HostIntegers, AnyOutputs output) const { blocks.Cut(value, output); }
};
struct Unpack : functors::SplitPlan<Blocks> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, 0, prep.node().Int("axis")); }
  void Run(sdk::AnyInput value, AnyOutputs output) const { blocks.Cut(value, output); }
};

}  // namespace

void AddConcat(sdk::KernelTable& k) {
  constexpr uint64_t kJoined = kPlainSet | kQuantizedSet | kFloat8Set;
  constexpr uint64_t kSplit = kPlainSet | kFloat8Set | kInt4Set | DTypeSet({WEIR_QUINT8});
  k.Add<ConcatV2>("ConcatV2").Restrict("T", kJoined).Class(WEIR_CLASS_GATHER);
  k.Add<Concat>("Concat").Restrict("T", kJoined).Class(WEIR_CLASS_GATHER);
  k.Add<Pack>("Pack").Restrict("T", kJoined).Class(WEIR_CLASS_GATHER);
  k.Add<Split>("Split").Restrict("T", kSplit).Class(WEIR_CLASS_GATHER);
  k.Add<SplitV>("SplitV").Restrict("T", kSplit).Class(WEIR_CLASS_GATHER);
  k.Add<Unpack>("Unpack").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
