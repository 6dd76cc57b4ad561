// Updates of rows given by indices: Scatter… and ResourceScatter…, their Nd forms, ScatterNd, TensorScatter….
#include <algorithm>
#include <cstring>
#include <string>

#include "plugins/functors/row_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/merge_rows.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Integers;
using sdk::View;

template <class Change>
struct ScatterRows : functors::ScatterRowsPlan {
  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    return Put<Change>(env, places, params.data(), params.size(), indices, updates);
  }
};

/// Divides rows of a handle's variable. TensorFlow allows no zero of any type there, wherever it would go; of a
/// reference's only integers are checked.
struct DivideRows : ScatterRows<Divide> {
  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    const T* const end = updates.data() + updates.size();
    if (std::any_of(updates.data(), end, [](T x) { return static_cast<sdk::Compute<T>>(x) == sdk::Compute<T>(0); })) {
      return env.error().InvalidArgument("updates must not contain 0");
    }
    return ScatterRows<Divide>::Run(env, params, indices, updates);
  }
};

template <class Change>
struct ScatterSlices : functors::ScatterSlicesPlan {
  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    return Put<Change>(env, places, params.data(), params.size(), indices, updates);
  }
};

template <class Change>
struct ScatterNd : functors::ScatterNdPlan {
  template <class T>
  int32_t Run(Env& env, Integers indices, View<const T> updates, sdk::HostIntegers, View<T> output) const {
    std::fill_n(output.data(), output.size(), T());
    return Put<Change>(env, places, output.data(), output.size(), indices, updates);
  }
};

template <class Change>
struct TensorScatter : functors::TensorScatterPlan {
  template <class T>
  int32_t Run(Env& env, View<const T> tensor, Integers indices, View<const T> updates, View<T> output) const {
    const int64_t size = output.size();
    if (size == 0) return WEIR_OK;
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    if (tensor.data() != output.data()) std::copy_n(tensor.data(), size, output.data());
    return Put<Change>(env, places, output.data(), size, indices, updates);
  }
};

/// Registers the row forms, for references and for handles.
template <class Change, class OfHandle = ScatterRows<Change>, class List, class HandleList>
void AddRows(sdk::KernelTable& k, const std::string& name, List list, HandleList of_handles) {
  k.Add<ScatterRows<Change>>("Scatter" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<OfHandle>("ResourceScatter" + name, sdk::Attr("dtype", of_handles)).Class(WEIR_CLASS_GATHER, 1);
}
template <class Change, class List>
void AddSlices(sdk::KernelTable& k, const std::string& name, List list) {
  k.Add<ScatterSlices<Change>>("ScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterSlices<Change>>("ResourceScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace

void AddScatter(sdk::KernelTable& k) {
  AddRows<Replace>(k, "Update", kAnyBits, kAnyBits);
  AddRows<Add>(k, "Add", kNumbers, kNumbers);
  AddRows<Sub>(k, "Sub", kNumbers, kNumbers);
  AddRows<Mul>(k, "Mul", kNumbers, kNumbers);
  AddRows<Divide, DivideRows>(k, "Div", kNumbers, kNumbers);
  AddRows<Lower>(k, "Min", kFloating + kIndex, kReal);
  AddRows<Raise>(k, "Max", kFloating + kIndex, kReal);
  AddSlices<Replace>(k, "Update", kAnyBits);
  AddSlices<Add>(k, "Add", kNumbers);
  AddSlices<Sub>(k, "Sub", kNumbers);
  AddSlices<Lower>(k, "Min", kReal);
  AddSlices<Raise>(k, "Max", kReal);
  k.Add<ScatterSlices<Either>>("ResourceScatterNdAdd", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterSlices<Differs>>("ResourceScatterNdSub", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterNd<Add>>("ScatterNd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterNd<Either>>("ScatterNd", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Replace>>("TensorScatterUpdate", kAnyBits).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Add>>("TensorScatterAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Sub>>("TensorScatterSub", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Lower>>("TensorScatterMin", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Raise>>("TensorScatterMax", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Add>>("ScatterNdNonAliasingAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Either>>("ScatterNdNonAliasingAdd", kBool).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
