// Graphs and fetched values as std::cout shows them.
#include <ostream>

#include "core/client/session/session.h"
#include "core/client/variables/variable.h"

namespace weir {

std::ostream& operator<<(std::ostream& out, const Output& output) { return out << output.ToString(); }
std::ostream& operator<<(std::ostream& out, const Operation& operation) { return out << operation.ToString(); }
std::ostream& operator<<(std::ostream& out, const Variable& variable) { return out << variable.ToString(); }

std::ostream& operator<<(std::ostream& out, const Fetched& fetched) {
  const char* separator = "";
  if (!fetched.map_.empty()) {
    out << "{";
    for (const auto& [key, entry] : fetched.map_) {
      out << separator << "'" << key << "': " << entry;
      separator = ", ";
    }
    return out << "}";
  }
  if (!fetched.is_list_) return out << fetched.tensor_;
  out << "[";
  for (const Fetched& element : fetched.list_) {
    out << separator << element;
    separator = ", ";
  }
  return out << "]";
}

}  // namespace weir
