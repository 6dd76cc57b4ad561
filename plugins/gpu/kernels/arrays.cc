// Kernels that move elements: parts of arrays, other orders, copies, joins, fills.
#include "plugins/functors/arithmetic.h"
#include "plugins/functors/fill.h"
#include "plugins/functors/join_plans.h"
#include "plugins/functors/strided_plans.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/moves.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Steering;
using sdk::AnyInput;
using sdk::AnyInputs;
using sdk::AnyOutput;
using sdk::AnyOutputs;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// A plan of functors/strided_plans.h whose copy has few enough axes.
template <class Plan>
struct Checked : Plan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan::Prepare(prep);
    return code != WEIR_OK ? code : this->copy.Check(prep);
  }
};

struct Slice : Checked<functors::SlicePlan<DeviceCopy>> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, AnyOutput y) const {
    return copy.Run(env, x.data(), y.data());
  }
};
struct StridedSlice : Checked<functors::StridedSlicePlan<DeviceCopy>> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, HostIntegers, AnyOutput y) const {
    return copy.Run(env, x.data(), y.data());
  }
};
struct StridedSliceGrad : Checked<functors::StridedSliceGradPlan<DeviceCopy>> {
  int32_t Run(Env& env, HostIntegers, HostIntegers, HostIntegers, HostIntegers, AnyInput dy, AnyOutput dx) const {
    const uint64_t bytes = static_cast<uint64_t>(dx.size()) * sdk::SizeOf(dx.dtype());
    if (!covers) {
      if (const int32_t code = Fill(env, dx.data(), 0, bytes); code != WEIR_OK) return code;
    }
    return copy.Run(env, dy.data(), dx.data());
  }
};
struct SliceAssign : Checked<functors::SliceAssignPlan<DeviceCopy>> {
  template <class E>
  int32_t Run(Env& env, sdk::Variable<E> variable, HostIntegers, HostIntegers, HostIntegers, AnyInput value) const {
    return copy.Run(env, value.data(), variable.data());
  }
};
struct SliceUpdate : Checked<functors::SliceAssignPlan<DeviceCopy>> {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return Checked::Prepare(prep);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, HostIntegers, AnyInput value, AnyOutput y) const {
    if (x.data() != y.data()) {
      const int32_t code = Copy(env, y.data(), x.data(), static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
      if (code != WEIR_OK) return code;
    }
    return copy.Run(env, value.data(), y.data());
  }
};
/// Transpose, Reverse, Tile, BroadcastTo: an array, integers that steer, and the result.
template <class Plan>
struct Rearranged : Checked<Plan> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const { return this->copy.Run(env, x.data(), y.data()); }
};

/// Negates the imaginary part of each complex number, in place.
template <class R>
struct ConjugateWork {
  Ptr<R> parts;
  WEIR_GPU_FN void operator()(int64_t i) const { parts[2 * i + 1] = -parts[2 * i + 1]; }
};
struct ConjugateTranspose : Checked<functors::TransposePlan<DeviceCopy>> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const {
    if (const int32_t code = copy.Run(env, x.data(), y.data()); code != WEIR_OK) return code;
    if (y.dtype() == WEIR_COMPLEX64) return Launch(env, y.size(), ConjugateWork<float>{static_cast<float*>(y.data())});
    if (y.dtype() != WEIR_COMPLEX128) return WEIR_OK;
    return Launch(env, y.size(), ConjugateWork<double>{static_cast<double*>(y.data())});
  }
};

struct Pad : functors::PadPlan<DeviceCopy> {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep);
    return code != WEIR_OK ? code : copy.Check(prep);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const {
    if (pads) {
      const int32_t code = Fill(env, y.data(), 0, static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
      if (code != WEIR_OK) return code;
    }
    return copy.Run(env, x.data(), y.data());
  }
};
struct PadV2 : functors::PadPlan<DeviceCopy> {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(2).rank != 0) {
      return prep.error().InvalidArgument("constant_values must be a scalar. Found: ", prep.shape(2));
    }
    const int32_t code = Plan(prep);
    return code != WEIR_OK ? code : copy.Check(prep);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyInput constant, AnyOutput y) const {
    if (pads) {
      const int32_t code = FillWithDeviceElement(env, constant.data(), y.data(), y.size(), sdk::SizeOf(y.dtype()));
      if (code != WEIR_OK) return code;
    }
    return copy.Run(env, x.data(), y.data());
  }
};

/// The pieces of a joined array. Each is a box of `rows` rows in it.
struct Pieces : functors::JoinPlan {
  /// The largest element size that divides the sizes of the rows and of the piece.
  uint32_t UnitOf(size_t piece, size_t start, const void* a, const void* b) const {
    const uint64_t all = row_bytes | piece | start | reinterpret_cast<uint64_t>(a) | reinterpret_cast<uint64_t>(b);
    return static_cast<uint32_t>(std::min<uint64_t>(8, all & (~all + 1)));
  }
  /// Copies between piece i and its place in the whole.
  int32_t Move(const Env& env, uint32_t i, size_t start, const void* whole, const void* piece, bool join) const {
    const size_t bytes = piece_bytes[i];
    if (bytes == 0 || rows == 0) return WEIR_OK;
    const uint32_t unit = UnitOf(bytes, start, whole, piece);
    const auto units = [unit](size_t n) { return static_cast<int64_t>(n / unit); };
    DeviceCopy copy;
    const std::vector<int64_t> dims = {rows, units(bytes)}, in_whole = {units(row_bytes), 1},
                               in_piece = {units(bytes), 1};
    if (join) {
      copy.Plan(dims, in_piece, in_whole, unit, 0, units(start));
      return copy.Run(env, piece, const_cast<void*>(whole));
    }
    copy.Plan(dims, in_whole, in_piece, unit, units(start), 0);
    return copy.Run(env, whole, const_cast<void*>(piece));
  }
  int32_t Join(const Env& env, const AnyInputs& pieces, const AnyOutput& whole) const {
    size_t start = 0;
    for (uint32_t i = 0; i < pieces.size(); start += piece_bytes[i++]) {
      const int32_t code = Move(env, i, start, whole.data(), pieces[i].data(), true);
      if (code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
  int32_t Cut(const Env& env, const AnyInput& whole, const AnyOutputs& pieces) const {
    size_t start = 0;
    for (uint32_t i = 0; i < pieces.size(); start += piece_bytes[i++]) {
      const int32_t code = Move(env, i, start, whole.data(), pieces[i].data(), false);
      if (code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
};

struct ConcatV2 : functors::ConcatPlan<Pieces> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, prep.inputs() - 1, 0); }
  int32_t Run(Env& env, AnyInputs values, HostIntegers, AnyOutput y) const { return blocks.Join(env, values, y); }
};
struct Concat : functors::ConcatPlan<Pieces> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, 0, 1); }
  int32_t Run(Env& env, HostIntegers, AnyInputs values, AnyOutput y) const { return blocks.Join(env, values, y); }
};
struct Pack : functors::PackPlan<Pieces> {
  int32_t Run(Env& env, AnyInputs values, AnyOutput y) const { return blocks.Join(env, values, y); }
};
struct Split : functors::SplitPlan<Pieces> {
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 0, "split_dim", &axis); code != WEIR_OK) return code;
    return PrepareWith(prep, 1, axis);
  }
  int32_t Run(Env& env, HostIntegers, AnyInput x, AnyOutputs parts) const { return blocks.Cut(env, x, parts); }
};
struct SplitV : functors::SplitPlan<Pieces> {
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 2, "split_dim", &axis); code != WEIR_OK) return code;
    return PrepareWith(prep, 0, axis);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, AnyOutputs parts) const {
    return blocks.Cut(env, x, parts);
  }
};
struct Unpack : functors::SplitPlan<Pieces> {
  int32_t Prepare(Prep& prep) { return PrepareWith(prep, 0, prep.node().Int("axis")); }
  int32_t Run(Env& env, AnyInput x, AnyOutputs parts) const { return blocks.Cut(env, x, parts); }
};

struct FillValue : functors::FillPlan {
  int32_t Run(Env& env, HostIntegers, AnyInput value, AnyOutput y) const {
    return FillWithDeviceElement(env, value.data(), y.data(), y.size(), sdk::SizeOf(y.dtype()));
  }
};
struct ZerosLike {
  void Prepare(Prep& prep) { prep.MayAlias(0, 0); }
  int32_t Run(Env& env, AnyInput, AnyOutput y) const {
    return Fill(env, y.data(), 0, static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
  }
};
struct OnesLike {
  void Prepare(Prep& prep) { prep.MayAlias(0, 0); }
  int32_t Run(Env& env, AnyInput, AnyOutput y) const {
    return FillWithBits(env, functors::BitsOfOne(y.dtype()), y.data(), y.size(), sdk::SizeOf(y.dtype()));
  }
};

template <class T>
struct RangeWork {
  Ptr<T> y;
  T first, step;
  WEIR_GPU_FN void operator()(int64_t i) const {
    y[i] = functors::Sum(first, functors::Product(static_cast<T>(i), step));
  }
};
struct Range {
  template <class T>
  int32_t Run(Env& env, sdk::Host<const T> start, sdk::Host<const T>, sdk::Host<const T> delta, sdk::View<T> y) const {
    const int64_t n = y.size();
    if (n == 0 || start.size() != 1 || delta.size() != 1) return WEIR_OK;
    return Launch(env, n, RangeWork<T>{y.data(), start[0], delta[0]});
  }
};

template <class S>
struct LinSpaceWork {
  Ptr<const char> start, stop;
  Ptr<char> y;
  int64_t n;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const C first = storage.Load(start.get(), 0), last = storage.Load(stop.get(), 0);
    const C step = n > 1 ? (last - first) / static_cast<C>(n - 1) : C(0);
    storage.Store(y.get(), i, n > 1 && i == n - 1 ? last : first + step * static_cast<C>(i));
  }
};
struct LinSpace : functors::LinSpacePlan {
  int32_t Run(Env& env, AnyInput start, AnyInput stop, HostIntegers, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(y.dtype(), [&](auto storage) {
      code = Launch(env, y.size(), LinSpaceWork<decltype(storage)>{From(start), From(stop), To(y), y.size(), storage});
    });
    return code;
  }
};

}  // namespace

void AddArrays(sdk::KernelTable& k) {
  using functors::kPlainSet;
  const auto add = [](sdk::Kernel& kernel) { kernel.Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER); };
  add(k.Add<Slice>("Slice"));
  add(k.Add<StridedSlice>("StridedSlice"));
  add(k.Add<StridedSliceGrad>("StridedSliceGrad"));
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
    AddForVariables<SliceAssign>(k, op, "T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  add(k.Add<SliceUpdate>("TensorStridedSliceUpdate"));
  add(k.Add<Rearranged<functors::TransposePlan<DeviceCopy>>>("Transpose"));
  add(k.Add<ConjugateTranspose>("ConjugateTranspose"));
  add(k.Add<Rearranged<functors::ReversePlan<DeviceCopy>>>("ReverseV2"));
  add(k.Add<Rearranged<functors::TilePlan<DeviceCopy>>>("Tile"));
  add(k.Add<Rearranged<functors::BroadcastToPlan<DeviceCopy>>>("BroadcastTo"));
  add(k.Add<Pad>("Pad"));
  add(k.Add<PadV2>("PadV2"));
  add(k.Add<ConcatV2>("ConcatV2"));
  add(k.Add<Concat>("Concat"));
  add(k.Add<Pack>("Pack"));
  add(k.Add<Split>("Split"));
  add(k.Add<SplitV>("SplitV"));
  add(k.Add<Unpack>("Unpack"));
  add(k.Add<FillValue>("Fill"));
  add(k.Add<ZerosLike>("ZerosLike"));
  add(k.Add<OnesLike>("OnesLike"));
  k.Add<Range>("Range", sdk::Attr("Tidx", sdk::Types<float, double, int32_t, int64_t>())).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<LinSpace>("LinSpace").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::gpu
