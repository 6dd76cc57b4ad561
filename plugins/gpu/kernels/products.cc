// MatMul and the batched products: by the vendor's library where it has them, else by tiles in shared memory.
#include "sdk/cpp/products.h"

#include <algorithm>

#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/library_products.h"
#include "plugins/gpu/kernels/tiled.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

/// Where the matrices of a batch begin, in matrices.
struct Batches {
  Broadcasting<2> places;
  WEIR_HD void At(int64_t batch, int64_t (&at)[2]) const { places.At(batch, at); }
};

/// A stored matrix of each batch; its elements are `row_step` and `column_step` apart.
template <class S, int kSide>
struct Matrix {
  using C = typename S::C;
  static constexpr bool kRowsContiguous = false, kColumnsContiguous = true;
  Ptr<const char> data;
  int64_t size, row_step, column_step;
  bool conjugate;
  Batches batches;
  S storage;
  WEIR_GPU_FN C operator()(int64_t batch, int64_t i, int64_t j) const {
    int64_t at[2];
    batches.At(batch, at);
    const C x = storage.Load(data.get(), at[kSide] * size + i * row_step + j * column_step);
    if constexpr (functors::kIsDeviceComplex<C>) return conjugate ? functors::Conjugated(x) : x;
    return x;
  }
};

template <class S>
struct MatrixResult {
  Ptr<char> data;
  int64_t m, n;
  S storage;
  WEIR_GPU_FN void operator()(int64_t batch, int64_t i, int64_t j, typename S::C x) const {
    storage.Store(data.get(), (batch * m + i) * n + j, x);
  }
};

template <int32_t (sdk::Products::*kPlan)(const Prep&)>
struct MatMul {
  sdk::Products products;
  Batches batches;
  std::shared_ptr<const LibraryPlan> library;  // null: tiles

  int32_t Prepare(Prep& prep) {
    int32_t code = (products.*kPlan)(prep);
    if (code == WEIR_OK) code = PlanBatches(prep);
    if (code != WEIR_OK) return code;
    if constexpr (kHasProductLibrary) AskLibrary(prep);
    return WEIR_OK;
  }
  int32_t PlanBatches(Prep& prep) {
    if (products.count() == 1) {
      batches.places.same = true;
      return WEIR_OK;
    }
    const weir_shape &x = prep.shape(0), &y = prep.shape(1), &out = prep.output(0).shape;
    const weir_shape xb{x.rank - 2, 0, x.dims}, yb{y.rank - 2, 0, y.dims}, ob{out.rank - 2, 0, out.dims};
    if (batches.places.Plan({xb, yb}, ob)) return WEIR_OK;
    return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", x, " vs. ", y);
  }
  /// A library has strided batches only: every operand's matrices lie behind each other, or there is one.
  void AskLibrary(Prep& prep) {
    const sdk::Product& p = products.one();
    const int64_t count = products.count();
    const bool strided = count == 1 || batches.places.rank == 1;
    if (!strided || p.conjugate_a || p.conjugate_b || count == 0 || std::min({p.m, p.n, p.k}) == 0) return;
    LibraryProduct product{prep.input(0).dtype, p.m, p.n, p.k, p.transpose_a, p.transpose_b, count};
    product.a_step = count == 1 ? 0 : batches.places.steps[0][0] * products.a_size();
    product.b_step = count == 1 ? 0 : batches.places.steps[0][1] * products.b_size();
    product.alignment = std::min({prep.input(0).alignment, prep.input(1).alignment, prep.output(0).alignment});
    library = PlanInLibrary(product, prep.device());
    if (library != nullptr && library->workspace_bytes() > 0) prep.Scratch(library->workspace_bytes(), 256);
  }
  int32_t Run(Env& env, AnyInput x, AnyInput y, AnyOutput z, sdk::Scratch<char> scratch) const {
    const sdk::Product& p = products.one();
    if (products.c_size() == 0 || z.size() == 0) return WEIR_OK;
    if (library != nullptr) return library->Enqueue(env, x.data(), y.data(), z.data(), scratch.data());
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kComplexes>(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      using Left = Matrix<S, 0>;
      using Right = Matrix<S, 1>;
      const Left left{
          From(x), products.a_size(), p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1, p.conjugate_a, batches,
          storage};
      const Right right{
          From(y), products.b_size(), p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1, p.conjugate_b, batches,
          storage};
      S result = storage;
      if constexpr (std::is_same_v<S, Integer>) result.dtype = z.dtype();
      using Product = TiledProduct<typename S::C, Left, Right, MatrixResult<S>>;
      code =
          Product(p.m, p.n, p.k, left, right, MatrixResult<S>{To(z), p.m, p.n, result}).Enqueue(env, products.count());
    });
    return code;
  }

  static sdk::Cost Estimate(const Prep& prep) {
    sdk::Products products;
    sdk::Cost cost;
    if ((products.*kPlan)(prep) != WEIR_OK) return cost;
    cost.flops = static_cast<double>(products.count()) * products.one().Flops();
    cost.bytes = static_cast<double>(prep.size(0) + prep.size(1) + sdk::SizeOf(prep.output(0).shape)) *
                 sdk::SizeOf(prep.input(0).dtype);
    return cost;
  }
};

}  // namespace

void AddProducts(sdk::KernelTable& k) {
  using Batched = MatMul<&sdk::Products::PlanBatchMatMul>;
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr uint64_t kTypes = kFloatBits | kIndexBits;
#else
  constexpr uint64_t kTypes = kFloatingBits | kComplexBits | DTypes({WEIR_INT16, WEIR_INT32, WEIR_INT64});
#endif
  k.Add<MatMul<&sdk::Products::PlanMatMul>>("MatMul")
      .Restrict("T", kTypes & ~DTypes({WEIR_INT16}))
      .Class(WEIR_CLASS_GEMM);
  k.Add<Batched>("BatchMatMul").Restrict("T", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<Batched>("BatchMatMulV2").Restrict("T", kTypes).Class(WEIR_CLASS_GEMM);
  const auto add = [&](uint32_t operand, uint32_t result) {
    k.Add<Batched>("BatchMatMulV3")
        .Restrict("Ta", {operand})
        .Restrict("Tb", {operand})
        .Restrict("Tout", {result})
        .Class(WEIR_CLASS_GEMM);
  };
  for (uint32_t dtype = 0; dtype < 64; ++dtype) {
    if ((kTypes & WEIR_DTYPE_BIT(dtype)) != 0) add(dtype, dtype);
  }
  if constexpr (!kShort) add(WEIR_INT8, WEIR_INT32);
}

}  // namespace weir::gpu
