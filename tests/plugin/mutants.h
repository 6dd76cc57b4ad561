// The broken plugins of broken.cc, with the rule of `weir check` that each one breaks.
#ifndef WEIR_TESTS_PLUGIN_MUTANTS_H_
#define WEIR_TESTS_PLUGIN_MUTANTS_H_

namespace weir {

struct Mutant {
  int number;
  const char* stage;
  const char* rule;
  const char* text;    // part of the message
  bool races = false;  // the fault is a data race, which a thread sanitizer reports before the checker
};

inline constexpr Mutant kMutants[] = {
    {1, "static", "WEIR-NOTE-01", "no note of weir"},
    {2, "static", "WEIR-NOTE-01", "magic"},
    {3, "static", "WEIR-NOTE-02", "ABI major 2"},
    {4, "static", "WEIR-NOTE-02", "sanitizer"},
    {5, "static", "WEIR-ELF-01", "broken_second_export"},
    {6, "static", "WEIR-ELF-01", "exports nothing"},
    {7, "load", "WEIR-LOAD-02", "WEIR_BROKEN_WAS_HERE"},
    {8, "load", "WEIR-LOAD-01", "it crashed"},
    {9, "load", "WEIR-LOAD-03", "hello from a plugin"},
    {10, "abi", "WEIR-ABI-01", "ABI major"},
    {11, "abi", "WEIR-ABI-02", "somebody_else"},
    {12, "abi", "WEIR-ABI-03", "get_interface"},
    {13, "abi", "WEIR-ABI-03", "no device/1"},
    {14, "abi", "WEIR-ABI-04", "close"},
    {15, "abi", "WEIR-ABI-05", "it "},
    {16, "abi", "WEIR-ABI-06", "a buffer of 0 bytes"},
    {17, "lifecycle", "WEIR-LIFE-01", "the card is on fire"},
    {18, "lifecycle", "WEIR-LIFE-02", "did not end"},
    {19, "lifecycle", "WEIR-LIFE-03", "no uid"},
    {20, "lifecycle", "WEIR-LIFE-03", "two devices"},
    {21, "lifecycle", "WEIR-LIFE-05", "too many contexts"},
    {22, "options", "WEIR-OPT-01", "default 11"},
    {23, "memory", "WEIR-MEM-01", "not aligned to 64"},
    {24, "memory", "WEIR-MEM-02", "is said to be there"},
    {25, "memory", "WEIR-MEM-03", "copy of 1 bytes"},
    {26, "memory", "WEIR-MEM-03", "at offset"},
    {27, "memory", "WEIR-MEM-04", "memset of 1 bytes"},
    {28, "lifecycle", "WEIR-LIFE-06", "threads run after shutdown"},
    {29, "lifecycle", "WEIR-LIFE-01", "did not end"},
    {31, "lifecycle", "WEIR-LIFE-04", "never told of"},
    {32, "kernels", "WEIR-KERNEL-02", "beside output 0"},
    {33, "kernels", "WEIR-KERNEL-03", "two calls"},
    {34, "kernels", "WEIR-KERNEL-04", "input 0's place"},
    {35, "kernels", "WEIR-KERNEL-05", "scratch"},
    {36, "kernels", "WEIR-KERNEL-06", "2 functions of the host"},
    {37, "kernels", "WEIR-KERNEL-07", "changes input 0"},
    {38, "kernels", "WEIR-KERNEL-02", "not written whole"},
    {39, "kernels", "WEIR-KERNEL-09", "it "},
    {40, "kernels", "WEIR-KERNEL-01", "the core runs this op itself"},
    {41, "lifecycle", "WEIR-LIFE-01", "the driver is too old"},
    {42, "options", "WEIR-OPT-02", "more than 5 is too much"},
    {43, "static", "WEIR-NOTE-02", "must-understand"},
    {44, "static", "WEIR-NOTE-01", "name is not terminated"},
    {45, "static", "WEIR-NOTE-02", "needs ABI 1.7"},
    {46, "load", "WEIR-LOAD-04", "/dev/null"},
    {48, "static", "WEIR-NOTE-03", "names no platform"},
    {49, "static", "WEIR-ELF-02", "weir_function_of_the_core"},
    {50, "static", "WEIR-ELF-03", "Shared"},
    {51, "static", "WEIR-ELF-04", "without -z relro -z now"},
    {52, "static", "WEIR-ELF-05", "/opt/elsewhere"},
    {53, "static", "WEIR-ELF-06", "broken.so"},
    {54, "abi", "WEIR-ABI-07", "not the host I know"},
    {55, "memory", "WEIR-MEM-00", "fallen off the bus"},
    {56, "kernels", "WEIR-KERNEL-00", "the driver is too old"},
    {57, "kernels", "WEIR-KERNEL-08", "the two forms differs"},
    {58, "lifecycle", "WEIR-LIFE-07", "init succeeds a second time"},
    {59, "kernels", "WEIR-KERNEL-03", "two calls"},
    {60, "kernels", "WEIR-KERNEL-02", "the unit is not powered"},
    {72, "costs", "WEIR-COST-03", "flops_per_element is -3"},
    {61, "kernels", "WEIR-KERNEL-02", "output 0 has shape [7]"},
};

/// Of broken_compiler.cc.
inline constexpr Mutant kCompilerMutants[] = {
    {1, "compiler", "WEIR-COMP-01", "is not convex"},
    {2, "compiler", "WEIR-COMP-02", "another shape than"},
    {3, "compiler", "WEIR-COMP-03", "the ops give"},
    {4, "compiler", "WEIR-COMP-04", "3 tiles in 2 calls give other bits"},
    {5, "compiler", "WEIR-COMP-05", "a deserialized executable gives other bits"},
    {6, "compiler", "WEIR-COMP-06", "deserialize takes the first 0 of"},
    {7, "compiler", "WEIR-COMP-07", "it compiles an op that does not exist"},
    {8, "compiler", "WEIR-COMP-00", "but not all"},
    {9, "compiler", "WEIR-COMP-08", "10 iterations at most, ends at 0, wanted 1"},
};

/// Of flawed.cc: values of its option `fault`.
inline constexpr Mutant kFlaws[] = {
    {1, "streams", "WEIR-STREAM-01", "three copies"},
    {2, "streams", "WEIR-STREAM-01", "three copies"},
    {3, "streams", "WEIR-STREAM-02", "stream's event", true},
    {4, "streams", "WEIR-STREAM-03", "in silence"},
    {5, "streams", "WEIR-STREAM-04", "ABORTED: second"},
    {6, "streams", "WEIR-STREAM-05", "2 times"},
    {7, "streams", "WEIR-STREAM-06", "behind its last use", true},
    {8, "streams", "WEIR-STREAM-07", "between devices"},
    {10, "values", "WEIR-VALUE-01", "MatMul"},
    {11, "values", "WEIR-VALUE-01", "Mul"},
    {12, "values", "WEIR-VALUE-01", "transpose_b=true"},
    {13, "values", "WEIR-VALUE-01", "Relu"},
    {14, "values", "WEIR-VALUE-01", "ReluGrad"},
    {14, "gradients", "WEIR-GRAD-01", "on the device"},
    {20, "order", "WEIR-ORDER-01", "MatMul", true},
    {21, "order", "WEIR-ORDER-01", "Neg", true},
    {22, "order", "WEIR-ORDER-01", "Mul", true},
    {23, "order", "WEIR-ORDER-02", "MatMul", true},
    {30, "costs", "WEIR-COST-01", "peak_flops_per_ns[float] is -1"},
    {31, "costs", "WEIR-COST-01", "bandwidth_bytes_per_ns is inf"},
    {32, "costs", "WEIR-COST-01", "bandwidth_bytes_per_ns is 0"},
    {33, "costs", "WEIR-COST-01", "launch_ns is 1e+09"},
    {34, "costs", "WEIR-COST-01", "bandwidth_bytes_per_ns is 1e-09"},
    {35, "costs", "WEIR-COST-02", "latency_ns is -1"},
    {36, "costs", "WEIR-COST-02", "bandwidth_pageable_bytes_per_ns is 0"},
    {37, "costs", "WEIR-COST-02", "bandwidth_pinned_bytes_per_ns is 1e+09"},
    {38, "costs", "WEIR-COST-03", "-1 is no cost"},
    {39, "costs", "WEIR-COST-03", "nothing but NaN"},
    {40, "costs", "WEIR-COST-03", "a second estimate differs"},
    {41, "costs", "WEIR-COST-03", "flops_per_element is nan"},
    {42, "costs", "WEIR-COST-04", "MatMul takes"},
    {43, "costs", "WEIR-COST-04", "MatMul takes"},
    {44, "costs", "WEIR-COST-05", "large copies"},
    {51, "lifecycle", "WEIR-LIFE-05", "while it is open 1 times"},
    {54, "memory", "WEIR-MEM-01", "offset 0x8 is not aligned"},
    {56, "lifecycle", "WEIR-LIFE-06", "1 run the plugin's own code"},
};

}  // namespace weir

#endif  // WEIR_TESTS_PLUGIN_MUTANTS_H_
