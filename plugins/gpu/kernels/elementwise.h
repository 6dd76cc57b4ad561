// Elementwise kernels from the functors of plugins/functors. A functor that can fail on the CPU gives 0 here: as in
// TensorFlow, kernels of a GPU do not report elements.
#ifndef WEIR_PLUGINS_GPU_KERNELS_ELEMENTWISE_H_
#define WEIR_PLUGINS_GPU_KERNELS_ELEMENTWISE_H_

#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {

template <class F, class C>
WEIR_HD auto Apply(C x) {
  if constexpr (requires(F f, bool& fault) { f(x, fault); }) {
    bool fault = false;
    return F{}(x, fault);
  } else {
    return F{}(x);
  }
}
template <class F, class C>
WEIR_HD auto Apply(C x, C y) {
  if constexpr (requires(F f, bool& fault) { f(x, y, fault); }) {
    bool fault = false;
    return F{}(x, y, fault);
  } else {
    return F{}(x, y);
  }
}

template <class F, class S>
struct UnaryWork {
  Ptr<const char> x;
  Ptr<char> y;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const { Put(storage, y.get(), i, Apply<F>(storage.Load(x.get(), i))); }
};

template <class F, class S>
struct PairWork {
  Ptr<const char> x, y;
  Ptr<char> z;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    Put(storage, z.get(), i, Apply<F>(storage.Load(x.get(), i), storage.Load(y.get(), i)));
  }
};

template <class F, class S>
struct BroadcastWork {
  Ptr<const char> x, y;
  Ptr<char> z;
  S storage;
  Broadcasting<2> places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at[2];
    places.At(i, at);
    Put(storage, z.get(), i, Apply<F>(storage.Load(x.get(), at[0]), storage.Load(y.get(), at[1])));
  }
};

/// y = F(x)
template <class F, unsigned kKinds>
struct Unary {
  int32_t Prepare(sdk::Prep& prep) {
    if (sdk::SizeOf(prep.input(0).dtype) == sdk::SizeOf(prep.output(0).dtype)) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  int32_t Run(sdk::Env& env, sdk::AnyInput x, sdk::AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(x.dtype(), [&](auto storage) {
      code = Launch(env, y.size(), UnaryWork<F, decltype(storage)>{From(x), To(y), storage});
    });
    return code;
  }
};

/// z = F(x, y) with broadcasting.
template <class F, unsigned kKinds>
struct Binary {
  Broadcasting<2> places;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& out = prep.output(0).shape;
    if (!places.Plan({prep.shape(0), prep.shape(1)}, out)) {
      return prep.error().InvalidArgument("Incompatible shapes: ", prep.shape(0), " vs. ", prep.shape(1));
    }
    if (sdk::SizeOf(prep.input(0).dtype) != sdk::SizeOf(prep.output(0).dtype)) return WEIR_OK;
    const int64_t n = sdk::SizeOf(out);
    for (const uint32_t i : {0u, 1u}) {
      if (prep.size(i) == n) prep.MayAlias(i, 0);
    }
    return WEIR_OK;
  }
  int32_t Run(sdk::Env& env, sdk::AnyInput x, sdk::AnyInput y, sdk::AnyOutput z) const {
    int32_t code = WEIR_OK;
    const int64_t n = z.size();
    WithStorage<kKinds>(x.dtype(), [&](auto storage) {
      code = places.same
                 ? Launch(env, n, PairWork<F, decltype(storage)>{From(x), From(y), To(z), storage})
                 : Launch(env, n, BroadcastWork<F, decltype(storage)>{From(x), From(y), To(z), storage, places});
    });
    return code;
  }
};

/// z = F(x, y) of operands with the same element count, without broadcasting; of the same shape, if F demands it.
template <class F, unsigned kKinds>
struct Pairwise {
  int32_t Prepare(sdk::Prep& prep) {
    if constexpr (requires { F::kSameShape; }) {
      if (!sdk::SameShape(prep.shape(0), prep.shape(1))) {
        return prep.error().InvalidArgument("Inputs to operation ", prep.node().name(), " of type ", prep.node().op(),
                                            " must have the same size and shape.  Input 0: ", prep.shape(0),
                                            " != input 1: ", prep.shape(1));
      }
    }
    if (prep.size(0) != prep.size(1)) {
      return prep.error().InvalidArgument("The two arguments to a cwise op must have same number of elements, got ",
                                          prep.size(0), " and ", prep.size(1));
    }
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
    return WEIR_OK;
  }
  int32_t Run(sdk::Env& env, sdk::AnyInput x, sdk::AnyInput y, sdk::AnyOutput z) const {
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(x.dtype(), [&](auto storage) {
      code = Launch(env, z.size(), PairWork<F, decltype(storage)>{From(x), From(y), To(z), storage});
    });
    return code;
  }
};

/// Registers one of these for the types of its kinds that are also in `dtypes`.
template <class F, unsigned kKinds>
sdk::Kernel& AddUnary(sdk::KernelTable& k, const char* op, uint64_t dtypes, double flops = 1) {
  return k.Add<Unary<F, kKinds>>(op).Restrict("T", dtypes & BitsOf(kKinds)).Class(WEIR_CLASS_ELEMENTWISE, flops);
}
template <class F, unsigned kKinds>
sdk::Kernel& AddBinary(sdk::KernelTable& k, const char* op, uint64_t dtypes, double flops = 1) {
  return k.Add<Binary<F, kKinds>>(op).Restrict("T", dtypes & BitsOf(kKinds)).Class(WEIR_CLASS_ELEMENTWISE, flops);
}
template <class F, unsigned kKinds>
sdk::Kernel& AddPairwise(sdk::KernelTable& k, const char* op, uint64_t dtypes, double flops = 1) {
  return k.Add<Pairwise<F, kKinds>>(op).Restrict("T", dtypes & BitsOf(kKinds)).Class(WEIR_CLASS_ELEMENTWISE, flops);
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_ELEMENTWISE_H_
