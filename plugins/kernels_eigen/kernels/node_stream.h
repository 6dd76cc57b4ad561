// Names of plugins/functors/node_stream.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NODE_STREAM_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NODE_STREAM_H_

#include "plugins/functors/node_stream.h"
#include "plugins/kernels_eigen/kernels/philox.h"

namespace weir::kernels_eigen {

using functors::KeptByNode;
using functors::NodeStream;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NODE_STREAM_H_
