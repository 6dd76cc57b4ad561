// Sums of arrays and in-place sums of variables: AddN, AccumulateNV2, AssignAdd, AssignSub and their handle forms.
#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;

constexpr uint32_t kMostTerms = 16;  // of one launch; the next ones add to its sum

template <class S>
struct TermsWork {
  Ptr<const char> terms[kMostTerms];
  uint32_t count;
  Ptr<char> sum;
  bool add;  // to what is there
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    typename S::C total = add ? storage.Load(sum.get(), i) : storage.Load(terms[0].get(), i);
    for (uint32_t k = add ? 0 : 1; k < count; ++k) total = functors::Sum(total, storage.Load(terms[k].get(), i));
    storage.Store(sum.get(), i, total);
  }
};

struct SumOfArrays {
  int32_t Prepare(sdk::Prep& prep) {
    for (uint32_t i = 1; i < prep.inputs(); ++i) {
      if (sdk::SameShape(prep.shape(i), prep.shape(0))) continue;
      return prep.error().InvalidArgument("Inputs to operation ", prep.node().name(), " of type ", prep.node().op(),
                                          " must have the same size and shape.  Input 0: ", prep.shape(0), " != input ",
                                          i, ": ", prep.shape(i));
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  int32_t Run(Env& env, sdk::AnyInputs values, AnyOutput sum) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kComplexes>(sum.dtype(), [&](auto storage) {
      for (uint32_t first = 0; first < values.size() && code == WEIR_OK; first += kMostTerms) {
        TermsWork<decltype(storage)> work{};
        work.count = std::min(kMostTerms, values.size() - first);
        for (uint32_t k = 0; k < work.count; ++k) work.terms[k] = From(values[first + k]);
        work.sum = To(sum);
        work.add = first > 0;
        work.storage = storage;
        code = Launch(env, sum.size(), work);
      }
    });
    return code;
  }
};

template <bool kAdd, class S>
struct UpdateWork {
  Ptr<char> variable;
  Ptr<const char> value;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const auto a = storage.Load(variable.get(), i), b = storage.Load(value.get(), i);
    storage.Store(variable.get(), i, kAdd ? functors::Sum(a, b) : functors::Difference(a, b));
  }
};

template <bool kAdd>
struct UpdateVariable {
  int32_t Prepare(const sdk::Prep& prep) {
    if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
    // The form for references, which returns the reference, has a different text.
    if (prep.outputs() > 0) return prep.error().InvalidArgument("Parameters and update must be the same size");
    return prep.error().InvalidArgument("Cannot update variable with shape ", prep.shape(0),
                                        " using a Tensor with shape ", prep.shape(1), ", shapes must be equal.");
  }
  template <class E>
  int32_t Run(Env& env, sdk::Variable<E> variable, AnyInput value) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kComplexes>(value.dtype(), [&](auto storage) {
      code = Launch(env, variable.size(),
                    UpdateWork<kAdd, decltype(storage)>{Ptr<char>(reinterpret_cast<char*>(variable.data())),
                                                        From(value), storage});
    });
    return code;
  }
};

}  // namespace

void AddUpdates(sdk::KernelTable& k) {
  for (const char* op : {"AddN", "AccumulateNV2"}) {
    k.Add<SumOfArrays>(op).Restrict("T", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
  }
  AddForVariables<UpdateVariable<true>>(k, "AssignAdd", "T", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
  AddForVariables<UpdateVariable<false>>(k, "AssignSub", "T", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
  AddForVariables<UpdateVariable<true>>(k, "AssignAddVariableOp", "dtype", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
  AddForVariables<UpdateVariable<false>>(k, "AssignSubVariableOp", "dtype", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::gpu
