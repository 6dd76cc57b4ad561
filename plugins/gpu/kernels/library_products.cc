#include "plugins/gpu/kernels/library_products.h"

#if defined(WEIR_GPU_CUDA) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "sdk/cpp/native.h"

namespace weir::gpu {
namespace {

constexpr uint64_t kMostWorkspaceBytes = 32 << 20;
std::atomic<bool> tf32_allowed{false};

/// The functions that are called, with the types of the header.
struct CublasLt {
  decltype(&cublasLtCreate) Create = nullptr;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) MatrixLayoutSetAttribute = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) PreferenceCreate = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) PreferenceDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) PreferenceSetAttribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) AlgoGetHeuristic = nullptr;
  decltype(&cublasLtMatmul) Matmul = nullptr;
  decltype(&cublasLtGetStatusName) GetStatusName = nullptr;
  std::string why;  // not empty: it cannot be used

  template <class Fn>
  void Find(void* library, const char* symbol, Fn* fn) {
    *fn = reinterpret_cast<Fn>(dlsym(library, symbol));
    if (*fn == nullptr && why.empty()) why = "cuBLASLt has no " + std::string(symbol);
  }
  static CublasLt Open() {
    CublasLt api;
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) {
      api.why = "cuBLASLt is not installed (libcublasLt.so.13)";
      return api;
    }
    api.Find(library, "cublasLtCreate", &api.Create);
    api.Find(library, "cublasLtMatmulDescCreate", &api.MatmulDescCreate);
    api.Find(library, "cublasLtMatmulDescDestroy", &api.MatmulDescDestroy);
    api.Find(library, "cublasLtMatmulDescSetAttribute", &api.MatmulDescSetAttribute);
    api.Find(library, "cublasLtMatrixLayoutCreate", &api.MatrixLayoutCreate);
    api.Find(library, "cublasLtMatrixLayoutDestroy", &api.MatrixLayoutDestroy);
    api.Find(library, "cublasLtMatrixLayoutSetAttribute", &api.MatrixLayoutSetAttribute);
    api.Find(library, "cublasLtMatmulPreferenceCreate", &api.PreferenceCreate);
    api.Find(library, "cublasLtMatmulPreferenceDestroy", &api.PreferenceDestroy);
    api.Find(library, "cublasLtMatmulPreferenceSetAttribute", &api.PreferenceSetAttribute);
    api.Find(library, "cublasLtMatmulAlgoGetHeuristic", &api.AlgoGetHeuristic);
    api.Find(library, "cublasLtMatmul", &api.Matmul);
    api.Find(library, "cublasLtGetStatusName", &api.GetStatusName);
    return api;
  }
};

/// Opened once. Never closed: kernels use it until the process ends.
const CublasLt* Library() {
  static const CublasLt* const api = [] {
    auto* const made = new CublasLt(CublasLt::Open());
    if (!made->why.empty()) {
      const std::string text = made->why + "; products are computed by kernels of weir's own";
      sdk::HostTable()->log(WEIR_LOG_INFO, __FILE__, __LINE__, sdk::Str(text));
    }
    return made;
  }();
  return api->why.empty() ? api : nullptr;
}

/// The card's handle, made when it is first needed; null if the library gives none.
cublasLtHandle_t HandleOf(const CublasLt& api, int card) {
  static std::mutex mutex;  // protects `handles`
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = handles->emplace(card, nullptr);
  if (is_new && (cudaSetDevice(card) != cudaSuccess || api.Create(&found->second) != CUBLAS_STATUS_SUCCESS)) {
    found->second = nullptr;
  }
  return found->second;
}

struct NumberTypes {
  cudaDataType_t stored, scaled;
  cublasComputeType_t computed;
};
bool TypesOf(uint32_t dtype, NumberTypes* types) {
  const bool tf32 = tf32_allowed.load(std::memory_order_relaxed);
  switch (dtype) {
    case WEIR_FLOAT32:
      *types = {CUDA_R_32F, CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
      return true;
    case WEIR_FLOAT64:
      *types = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
      return true;
    case WEIR_FLOAT16:
      *types = {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case WEIR_BFLOAT16:
      *types = {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    default:
      return false;
  }
}

/// The library counts columns first, so the row-major product c = a b is given to it as c' = b' a'.
class CublasPlan : public LibraryPlan {
 public:
  explicit CublasPlan(const CublasLt& api) : api_(api) {}
  ~CublasPlan() override {
    for (cublasLtMatrixLayout_t layout : layouts_) {
      if (layout != nullptr) api_.MatrixLayoutDestroy(layout);
    }
    if (desc_ != nullptr) api_.MatmulDescDestroy(desc_);
  }
  CublasPlan(const CublasPlan&) = delete;
  CublasPlan& operator=(const CublasPlan&) = delete;

  bool Plan(const LibraryProduct& p, cublasLtHandle_t handle) {
    NumberTypes types{};
    handle_ = handle;
    dtype_ = p.dtype;
    if (!TypesOf(p.dtype, &types)) return false;
    if (api_.MatmulDescCreate(&desc_, types.computed, types.scaled) != CUBLAS_STATUS_SUCCESS) return false;
    const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    return SetDesc(CUBLASLT_MATMUL_DESC_TRANSA, first) && SetDesc(CUBLASLT_MATMUL_DESC_TRANSB, second) &&
           Layout(0, types.stored, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.count, p.b_step) &&
           Layout(1, types.stored, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.count, p.a_step) &&
           Layout(2, types.stored, p.n, p.m, p.count, p.m * p.n) && Choose(p);
  }
  uint64_t workspace_bytes() const override { return chosen_.workspaceSize; }
  int32_t Enqueue(const sdk::Env& env, const void* a, const void* b, void* c, void* workspace) const override {
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const bool wide = dtype_ == WEIR_FLOAT64;
    auto* const stream = reinterpret_cast<cudaStream_t>(env.native_stream());
    int card = 0;
    if (cudaStreamGetDevice(stream, &card) != cudaSuccess || cudaSetDevice(card) != cudaSuccess) {
      return env.error().Fail(WEIR_INTERNAL, "the card of a stream is not known");
    }
    const cublasStatus_t status =
        api_.Matmul(handle_, desc_, wide ? static_cast<const void*>(&wide_one) : &one, b, layouts_[0], a, layouts_[1],
                    wide ? static_cast<const void*>(&wide_zero) : &zero, c, layouts_[2], c, layouts_[2], &chosen_.algo,
                    workspace, chosen_.workspaceSize, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return WEIR_OK;
    return env.error().Fail(WEIR_INTERNAL, "cuBLASLt: ", std::string_view(api_.GetStatusName(status)));
  }

 private:
  bool SetDesc(cublasLtMatmulDescAttributes_t attribute, cublasOperation_t operation) {
    return api_.MatmulDescSetAttribute(desc_, attribute, &operation, sizeof operation) == CUBLAS_STATUS_SUCCESS;
  }
  bool Layout(size_t i, cudaDataType_t type, int64_t rows, int64_t columns, int64_t count, int64_t step) {
    const auto batch = static_cast<int32_t>(count);
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t bytes) {
      return api_.MatrixLayoutSetAttribute(layouts_[i], attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
    };
    return count == batch &&
           api_.MatrixLayoutCreate(&layouts_[i], type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                   rows) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch) &&
           set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
  }
  bool Choose(const LibraryProduct& p) {
    cublasLtMatmulPreference_t preference = nullptr;
    if (api_.PreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    const uint64_t most = kMostWorkspaceBytes;
    const auto alignment = static_cast<uint32_t>(p.alignment);
    bool ok = Prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      ok = ok && Prefer(preference, attribute, &alignment, sizeof alignment);
    }
    int found = 0;
    ok = ok && api_.AlgoGetHeuristic(handle_, desc_, layouts_[0], layouts_[1], layouts_[2], layouts_[2], preference, 1,
                                     &chosen_, &found) == CUBLAS_STATUS_SUCCESS;
    api_.PreferenceDestroy(preference);
    return ok && found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS;
  }
  bool Prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
              size_t bytes) const {
    return api_.PreferenceSetAttribute(preference, attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
  }

  const CublasLt& api_;
  cublasLtHandle_t handle_ = nullptr;
  uint32_t dtype_ = 0;
  cublasLtMatmulDesc_t desc_ = nullptr;
  std::array<cublasLtMatrixLayout_t, 3> layouts_{};  // b', a', c'
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace

std::shared_ptr<const LibraryPlan> PlanInLibrary(const LibraryProduct& product, weir_device* device) {
  const CublasLt* const api = Library();
  if (api == nullptr || device == nullptr) return nullptr;
  uint64_t card = 0;
  const sdk::NativeDevice native(device, "cuda/13");
  const sdk::Error unheard(nullptr);
  if (native.Get(WEIR_NATIVE_DEVICE, device, &card, unheard) != WEIR_OK) return nullptr;
  cublasLtHandle_t const handle = HandleOf(*api, static_cast<int>(card));
  auto plan = std::make_shared<CublasPlan>(*api);
  return handle != nullptr && plan->Plan(product, handle) ? plan : nullptr;
}

void AllowTf32(bool allowed) { tf32_allowed.store(allowed, std::memory_order_relaxed); }

}  // namespace weir::gpu

#else

namespace weir::gpu {

std::shared_ptr<const LibraryPlan> PlanInLibrary(const LibraryProduct&, weir_device*) { return nullptr; }
void AllowTf32(bool) {}

}  // namespace weir::gpu

#endif
