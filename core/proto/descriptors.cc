#include "core/proto/descriptors.h"

#include <google/protobuf/generated_message_reflection.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace weir::proto {
namespace {

// Filled while static objects are made, by one thread.
constinit std::array<const google::protobuf::internal::DescriptorTable*, 64> tables{};
constinit size_t table_count = 0;

std::atomic<bool> registered{false};

}  // namespace

LateDescriptors::LateDescriptors(const google::protobuf::internal::DescriptorTable* table) {
  if (table_count < tables.size()) tables[table_count++] = table;  // the first use of a message registers others
}

void NeedDescriptors() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (size_t i = 0; i < table_count; ++i) google::protobuf::internal::AddDescriptorsRunner runner(tables[i]);
    registered.store(true, std::memory_order_release);
  });
}

bool HasDescriptors() { return registered.load(std::memory_order_acquire); }

}  // namespace weir::proto
