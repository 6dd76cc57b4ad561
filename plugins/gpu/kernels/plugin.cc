// The entry of the kernel sets for GPUs: kernels_cuda, kernels_rocm and kernels_gpu_emulated.
#include "sdk/cpp/plugin.h"

#include <algorithm>
#include <span>
#include <vector>

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/library_products.h"
#include "plugins/gpu/platform/platform.h"

namespace weir::gpu {
namespace {

void AddAll(sdk::KernelTable& k) {
  AddArrays(k);
  AddBessel(k);
  AddBinaryFunctions(k);
  AddBlocks(k);
  AddCategorical(k);
  AddChosen(k);
  AddColours(k);
  AddComplex(k);
  AddConvolutions(k);
  AddCounting(k);
  AddCrop(k);
  AddDiagonals(k);
  AddDilation(k);
  AddDraws(k);
  AddEigenPairs(k);
  AddEinsum(k);
  AddFourier(k);
  AddGru(k);
  AddLayouts(k);
  AddLinearAlgebra(k);
  AddLocalNorm(k);
  AddLstm(k);
  AddMirror(k);
  AddNormalisation(k);
  AddPartition(k);
  AddPooling(k);
  AddProducts(k);
  AddProjective(k);
  AddQuantised(k);
  AddReductions(k);
  AddResize(k);
  AddRows(k);
  AddScans(k);
  AddSegments(k);
  AddSelection(k);
  AddShapeArgs(k);
  AddSoftmax(k);
  AddSparse(k);
  AddSparseParts(k);
  AddSparseRows(k);
  AddSpecial(k);
  AddSteps(k);
  AddSuppress(k);
  AddSvd(k);
  AddTridiagonal(k);
  AddUnaryFunctions(k);
  AddUnique(k);
  AddUpdates(k);
}

bool HostOperandsAreKnown(const weir_prep_args& args) {
  return std::all_of(args.inputs, args.inputs + args.input_count, [](const weir_operand* operand) {
    return operand->space != WEIR_SPACE_HOST || operand->value != nullptr;
  });
}

/// The set with a promise added: what a prepared kernel enqueues depends on its addresses alone, so that it may be
/// recorded and launched again. A kernel that reads host memory promises it for a node whose operands there are known
/// constants; kernels that keep state between calls do not promise it.
struct KernelSet : sdk::Kernels<AddAll> {
  static std::span<const weir_option_spec* const> Options() {
    static const weir_option_spec tf32 = [] {
      weir_option_spec spec{};
      spec.struct_size = sizeof spec;
      spec.type = WEIR_VALUE_BOOL;
      spec.key = sdk::Str("allow_tf32");
      spec.doc = sdk::Str("products of floats may round their operands to TF32, which has 10 bits of mantissa");
      spec.default_value.key = spec.key;
      spec.default_value.type = WEIR_VALUE_BOOL;
      return spec;
    }();
    static const weir_option_spec* const specs[] = {&tf32};
    return {specs, kHasProductLibrary ? size_t{1} : size_t{0}};
  }
  static int32_t Start(const sdk::Options& options, const sdk::Error&) {
    AllowTf32(options.Bool("allow_tf32", false));
    return WEIR_OK;
  }
  static const void* Interface(std::string_view id, std::string_view targets) {
    const auto* const made = static_cast<const weir_kernels_api*>(sdk::Kernels<AddAll>::Interface(id, targets));
    if (made == nullptr) return nullptr;
    // Never destroyed: the host may read them at exit.
    static auto* const records = new std::vector<weir_kernel>;
    static auto* const pointers = new std::vector<const weir_kernel*>;
    static decltype(weir_kernel::prepare) prepare = nullptr;  // that of all records
    static const weir_kernels_api api = [made] {
      for (uint64_t i = 0; i < made->kernel_count; ++i) {
        weir_kernel& record = records->emplace_back(*made->kernels[i]);
        const bool stays = record.host_outputs == 0 && (record.flags & WEIR_KERNEL_STATEFUL) == 0;
        if (record.prepare == nullptr || !stays) continue;
        prepare = record.prepare;
        record.prepare = [](const void* user, const weir_prep_args* args, weir_prepared* prepared, weir_error* error) {
          const int32_t code = prepare(user, args, prepared, error);
          if (code == WEIR_OK && HostOperandsAreKnown(*args)) prepared->flags |= WEIR_KERNEL_CAPTURABLE;
          return code;
        };
      }
      for (const weir_kernel& record : *records) pointers->push_back(&record);
      weir_kernels_api with = *made;
      with.kernels = pointers->data();
      return with;
    }();
    return &api;
  }
};

}  // namespace
}  // namespace weir::gpu

WEIR_PLUGIN("kernels_" WEIR_GPU_NAME, "0.1.0", "weir", WEIR_GPU_PLATFORM, weir::gpu::KernelSet)
