// Parameters of a test program, which may run for several devices and instruction sets.
#ifndef WEIR_TESTS_SUPPORT_TEST_DEVICE_H_
#define WEIR_TESTS_SUPPORT_TEST_DEVICE_H_

#include <cstdlib>
#include <string>

namespace weir::testing {

/// The device from WEIR_TEST_DEVICE, for example "ASYNC:0"; empty = none in particular.
inline std::string TestDevice() {
  const char* device = std::getenv("WEIR_TEST_DEVICE");
  return device == nullptr ? std::string() : device;
}

/// The value of plugins.isa for tests that load plugins without the process's configuration.
inline std::string TestIsa() {
  const char* isa = std::getenv("WEIR_PLUGINS_ISA");
  return isa == nullptr ? std::string("auto") : isa;
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_TEST_DEVICE_H_
