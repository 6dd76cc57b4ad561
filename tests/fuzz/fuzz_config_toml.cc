// Arbitrary bytes as a configuration file: the result is an error that names the file, or a Config that can be shown.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/config/document.h"
#include "core/config/toml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::config::Settings settings;
  const weir::Status read =
      weir::config::ReadToml(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml", settings);
  if (!read.ok()) {
    if (!read.message().starts_with("fuzz.toml:")) std::abort();
    return 0;
  }
  const weir::Result<weir::config::Config> config = settings.Build();
  if (!config.ok()) return 0;
  if (weir::config::List(*config, weir::config::Show::kSet).size() != settings.all().size()) std::abort();
  return 0;
}
