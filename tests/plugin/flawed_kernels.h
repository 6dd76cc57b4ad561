// Kernels and costs of flawed.cc.
#ifndef WEIR_TESTS_PLUGIN_FLAWED_KERNELS_H_
#define WEIR_TESTS_PLUGIN_FLAWED_KERNELS_H_

#include <functional>
#include <span>
#include <string_view>

#include "sdk/abi/kernel.h"
#include "sdk/abi/plugin.h"

namespace flawed {

inline constexpr char kPlatform[] = "flawed/1";

/// The number of the fault; 0 is none. Set in init.
int& Fault();
std::span<const weir_option_spec* const> OptionSpecs();

/// What a stream is for kernels: env.stream and the stream of a context point to one.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void Run(std::function<void()> work) = 0;
};

/// Rates measured with the device's own loops, so that they are right on every machine.
void DeclareProfile(weir_profile& profile);
int32_t DeclareLink(weir_device* device, uint32_t space, weir_device* peer, uint32_t peer_space, weir_link* link,
                    weir_error* error);

/// "kernels/1": MatMul, Mul, Relu and ReluGrad of float and double, prepared; Neg of float, dynamic.
struct Kernels {
  static constexpr uint32_t kKind = WEIR_KIND_KERNELS;
  static const void* Interface(std::string_view id, std::string_view targets);
};

}  // namespace flawed

#endif  // WEIR_TESTS_PLUGIN_FLAWED_KERNELS_H_
