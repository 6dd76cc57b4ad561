// Graphs around matrix products: a single node, and the training step of a three-layer network.
#ifndef WEIR_TESTS_BENCH_GEMM_GRAPHS_H_
#define WEIR_TESTS_BENCH_GEMM_GRAPHS_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/gemm_libraries.h"
#include "tests/bench/workloads.h"

namespace weir::bench {

/// Feeds a and b (b is a constant if the shape says so) and fetches their MatMul.
Result<Program> OneProduct(const std::shared_ptr<session::Runtime>& runtime, const GemmShape& shape,
                           const std::string& profile_file);

enum class Training { kGradientDescent, kAdam };

/// One step of 784-512-512-10 with softmax cross entropy on a fed batch.
Result<Program> MlpStep(const std::shared_ptr<session::Runtime>& runtime, int64_t batch, Training training);
/// The same network with constant weights, from images to logits.
Result<Program> FrozenMlp(const std::shared_ptr<session::Runtime>& runtime, int64_t batch);
/// The matrix products of such a step, forward and backward, and its parameters.
std::vector<GemmShape> MlpProducts(int64_t batch);
int64_t MlpParameters();

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_GEMM_GRAPHS_H_
