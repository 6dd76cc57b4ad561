#include "core/tensor/resource.h"

namespace weir {
namespace {

std::atomic<uint64_t> made{0};

}  // namespace

Resource::Resource() : id_(made.fetch_add(1, std::memory_order_relaxed) + 1) {}

}  // namespace weir
