// Names of plugins/functors/operands.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_OPERANDS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_OPERANDS_H_

#include "plugins/functors/operands.h"

namespace weir::kernels_eigen {

using functors::DimsOf;
using functors::DTypeSet;
using functors::ExpectOutput;
using functors::FillWith;
using functors::ForBlock;
using functors::ForBytes;
using functors::IndexOutOfRange;
using functors::kCommonQuantizedSet;
using functors::kFloat8Set;
using functors::kInt4Set;
using functors::kPlainSet;
using functors::kQuantizedSet;
using functors::ShapeOf;
using functors::SizeOf;
using functors::Steering;
using functors::StepsOf;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_OPERANDS_H_
