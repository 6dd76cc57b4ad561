#include "core/compile/target.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "core/kernel/host.h"

namespace weir::compile {
namespace {

std::string ReadProcessor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text, line;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : " ") + std::string(word); };
  while (std::getline(file, line) && !line.empty()) {  // the first processor only
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = std::string_view(line).substr(0, line.find_first_of("\t:"));
    const std::string_view value = std::string_view(line).substr(std::min(colon + 2, line.size()));
    if (key == "vendor_id") add(value);
    if (key == "cpu family") add("family" + std::string(value));
    if (key == "model") add("model" + std::string(value));
    if (key == "flags" || key == "Features") add(value);
  }
  return text;
}

}  // namespace

const std::string& ProcessorText() {
  static const std::string text = ReadProcessor();
  return text;
}

weir_compile_target Target::View() const {
  weir_compile_target view{};
  view.struct_size = sizeof view;
  view.platform = kernel::ViewOf(std::string_view(platform));
  view.isa = kernel::ViewOf(std::string_view(isa));
  view.cpu = kernel::ViewOf(std::string_view(cpu));
  view.profile = profile ? &*profile : nullptr;
  return view;
}

}  // namespace weir::compile
