#include "core/ops/families.h"
namespace weir::ops {
void DeclareQuantize(op::OpRegistry&) {}
}
