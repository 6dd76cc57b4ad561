// Arrays made larger: Tile, BroadcastTo, Pad, PadV2.
#include <cstring>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Prep;

/// The result is treated as an array of twice the rank: repetition, original, repetition, original …
struct Tile {
  StridedCopy copy;

  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> multiples;
    if (const int32_t code = Steering(prep, 1, &multiples); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), steps = StepsOf(whole);
    if (multiples.size() != whole.size()) {
      return prep.error().InvalidArgument("Expected multiples argument to be a vector of length ", whole.size(),
                                          " but got length ", multiples.size());
    }
    std::vector<int64_t> out, dims, from;
    for (size_t i = 0; i < whole.size(); ++i) {
      int64_t extent = 0;
      if (multiples[i] < 0 || __builtin_mul_overflow(whole[i], multiples[i], &extent)) {
        return prep.error().InvalidArgument("Expected multiples[", i, "] >= 0, but got ", multiples[i]);
      }
      out.push_back(extent);
      dims.insert(dims.end(), {multiples[i], whole[i]});
      from.insert(from.end(), {0, steps[i]});
    }
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    copy.Plan(dims, from, StepsOf(dims), sdk::SizeOf(prep.input(0).dtype));
    if (out == whole && copy.dense()) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { copy.Run(input.data(), output.data()); }
};

struct BroadcastTo {
  StridedCopy copy;

  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> out;
    if (const int32_t code = Steering(prep, 1, &out); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), steps = StepsOf(whole);
    std::vector<int64_t> from(out.size(), 0);
    bool fits = whole.size() <= out.size();
    for (size_t i = 0; fits && i < whole.size(); ++i) {
      const size_t at = out.size() - whole.size() + i;
      fits = whole[i] == out[at] || whole[i] == 1;
      if (whole[i] != 1) from[at] = steps[i];
    }
    if (!fits) {
      return prep.error().InvalidArgument("Incompatible shapes: ", prep.shape(0), " vs. ", prep.output(0).shape);
    }
    copy.Plan(out, from, StepsOf(out), sdk::SizeOf(prep.input(0).dtype));
    if (copy.dense() && prep.size(0) == sdk::SizeOf(prep.output(0).shape)) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { copy.Run(input.data(), output.data()); }
};

struct PadPlan {
  StridedCopy copy;
  bool pads = false;

  int32_t Plan(Prep& prep) {
    std::vector<int64_t> paddings;
    if (const int32_t code = Steering(prep, 1, &paddings); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), out = DimsOf(prep.output(0).shape);
    if (paddings.size() != 2 * whole.size() || out.size() != whole.size()) {
      return prep.error().InvalidArgument("The first dimension of paddings must be the rank of inputs", prep.shape(1),
                                          " ", prep.shape(0));
    }
    const std::vector<int64_t> to = StepsOf(out);
    int64_t offset = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
      if (before < 0 || after < 0) {
        return prep.error().InvalidArgument("Paddings must be non-negative: ", before, " ", after);
      }
      // This order of comparisons avoids overflow.
      if (before > out[i] || after > out[i] - before || whole[i] != out[i] - before - after) {
        return prep.error().Fail(WEIR_INTERNAL, "output 0 has shape ", prep.output(0).shape, ", padding ",
                                 prep.shape(0), " by ", before, " and ", after, " along axis ", i, " gives another");
      }
      pads = pads || before != 0 || after != 0;
      offset += before * to[i];
    }
    copy.Plan(whole, StepsOf(whole), to, sdk::SizeOf(prep.input(0).dtype), 0, offset);
    if (!pads) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

struct Pad : PadPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const {
    const size_t bytes = static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype());
    if (pads && bytes != 0) std::memset(output.data(), 0, bytes);
    copy.Run(input.data(), output.data());
  }
};

struct PadV2 : PadPlan {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(2).rank == 0) return Plan(prep);
    return prep.error().InvalidArgument("constant_values must be a scalar. Found: ", prep.shape(2));
  }
  void Run(AnyInput input, HostIntegers, AnyInput constant, AnyOutput output) const {
    if (pads) FillWith(constant.data(), output);
    copy.Run(input.data(), output.data());
  }
};

}  // namespace

void AddRepeat(sdk::KernelTable& k) {
  k.Add<Tile>("Tile").Restrict("T", kPlainSet & ~DTypeSet({WEIR_UINT16})).Class(WEIR_CLASS_GATHER);
  k.Add<BroadcastTo>("BroadcastTo").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
  k.Add<PadV2>("PadV2").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<Pad>("Pad").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
