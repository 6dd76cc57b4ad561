#include "plugins/kernels_eigen/families.h"
namespace weir::kernels_eigen {
void AddQuantize(sdk::KernelTable&) {}
}
