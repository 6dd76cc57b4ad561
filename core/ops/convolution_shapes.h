// The shape function of convolutions, for the ops that compute one and more.
#ifndef WEIR_CORE_OPS_CONVOLUTION_SHAPES_H_
#define WEIR_CORE_OPS_CONVOLUTION_SHAPES_H_

#include "core/base/status.h"
#include "core/op/shape_context.h"

namespace weir::ops {

/// The result of Conv2D, DepthwiseConv2dNative or Conv3D from the images in input 0 and the filter in input 1.
Status Conv2DShape(op::ShapeContext& c);
Status DepthwiseShape(op::ShapeContext& c);
Status Conv3DShape(op::ShapeContext& c);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_CONVOLUTION_SHAPES_H_
