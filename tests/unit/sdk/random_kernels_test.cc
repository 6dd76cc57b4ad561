// Random kernels compared with TensorFlow's numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

/// Shape [70], seed 123, seed2 456: elements kPositions of the first run, and the first six of the second, from
/// TensorFlow 2.17.1 on a CPU.
constexpr size_t kPositions[] = {0, 1, 2, 3, 4, 5, 6, 7, 62, 63, 64, 65, 66, 67, 68, 69};
struct Golden {
  const char* op;
  uint32_t dtype;
  std::vector<double> first, second;
};
const Golden kGolden[] = {
    {"RandomUniform",
     WEIR_FLOAT32,
     {0.08804428577423096, 0.13335824012756348, 0.8889684677124023, 0.9699921607971191, 0.8837165832519531,
      0.28676390647888184, 0.3580622673034668, 0.04189562797546387, 0.6406245231628418, 0.7601011991500854,
      0.02890455722808838, 0.15114617347717285, 0.24200737476348877, 0.9392795562744141, 0.15516984462738037,
      0.5890651941299438},
     {0.8653156757354736, 0.7573009729385376, 0.9839577674865723, 0.7611730098724365, 0.017524003982543945,
      0.9137290716171265}},
    {"RandomStandardNormal",
     WEIR_FLOAT32,
     {1.6384953260421753, 1.4748436212539673, -0.09093482047319412, 0.4765688478946686, 0.4840232729911804,
      -0.11383864283561707, 0.3729337751865387, 1.3838415145874023, -0.9418284296989441, 0.05985590070486069,
      2.1650092601776123, 1.5492730140686035, -0.6271927356719971, 1.5633947849273682, -1.0247725248336792,
      -1.6359435319900513},
     {-0.5373205542564392, 0.02466590516269207, -0.17940306663513184, 0.012615164741873741, -1.4672187566757202,
      2.4363162517547607}},
    {"TruncatedNormal",
     WEIR_FLOAT32,
     {1.6384953260421753, 1.4748436212539673, -0.09093482047319412, 0.4765688478946686, 0.17675837874412537,
      -0.1707981526851654, -1.6687309741973877, 0.03813483193516731, 1.0437688827514648, -0.35783883929252625,
      -0.6684014201164246, -1.6530359983444214, -1.4289015531539917, 0.8793829083442688, 0.688010573387146,
      -0.5862976908683777},
     {-0.5373205542564392, 0.02466590516269207, -0.17940306663513184, 0.012615164741873741, -1.9858015775680542,
      -0.13646705448627472}},
    {"RandomUniform",
     WEIR_FLOAT64,
     {0.7043545546631482, 0.11174857238306135, 0.0697327913469894, 0.8644983806496405, 0.890934817486716,
      0.22505595247181054, 0.29829032992812565, 0.6125804468451654, 0.9720489775264858, 0.605499610826657,
      0.695624579501608, 0.6903447811619563, 0.473290156566347, 0.7779606347530943, 0.36373624235306656,
      0.14719567691869972},
     {0.9225260275552067, 0.8716629422477875, 0.1401926091196557, 0.8685174944332668, 0.8326219892405038,
      0.4530769492036728}},
    {"RandomStandardNormal",
     WEIR_FLOAT64,
     {0.540722770357069, 0.6391914636919254, -1.7359450879327358, 1.5207445108245452, 0.4747008494566468,
      0.0750141657360201, -1.0107715139921867, -1.1822508012335105, -0.14653151912010204, -0.18768774249584913,
      -0.792839687817075, -0.3119223498039962, -1.204321715382967, 0.21378139613127525, 1.1356765746462714,
      0.8560906982572961},
     {-0.2898625533576152, 0.2779551740622315, -1.4576047833654702, 1.3434523960447349, 0.17587529916590808,
      -0.5791536476824869}},
    {"TruncatedNormal",
     WEIR_FLOAT64,
     {0.540722770357069, 0.6391914636919254, -0.24922186840968688, 1.8797671672885283, -0.06239155116553913,
      0.7347456551901064, -0.863503288047441, 0.47847919158632174, 0.8456635437977992, 0.16049597521013453,
      -0.25009947463482785, 0.924783515369203, -0.4279784092615596, -0.8060436650640225, 0.44391280531959926,
      -1.5601551179569406},
     {-0.2898625533576152, 0.2779551740622315, 0.9460020817667403, -0.2928760387875693, 0.045300243077888415,
      -0.42077130187888223}},
    {"RandomUniform",
     WEIR_FLOAT16,
     {0.2587890625, 0.470703125, 0.4296875, 0.17578125, 0.40625, 0.169921875, 0.24609375, 0.208984375, 0.99609375,
      0.7490234375, 0.7861328125, 0.189453125, 0.5244140625, 0.578125, 0.1513671875, 0.6220703125},
     {0.666015625, 0.8095703125, 0.58203125, 0.529296875, 0.556640625, 0.2685546875}},
    {"RandomStandardNormal",
     WEIR_FLOAT16,
     {1.638671875, 1.474609375, -0.0909423828125, 0.4765625, 0.484130859375, -0.11383056640625, 0.373046875,
      1.3837890625, -0.94189453125, 0.059844970703125, 2.1640625, 1.548828125, -0.626953125, 1.5634765625,
      -1.0244140625, -1.6357421875},
     {-0.537109375, 0.0246734619140625, -0.179443359375, 0.01261138916015625, -1.466796875, 2.435546875}},
    {"TruncatedNormal",
     WEIR_FLOAT16,
     {1.638671875, 1.474609375, -0.0909423828125, 0.4765625, 0.1767578125, -0.1707763671875, -1.6689453125,
      0.03814697265625, 1.0439453125, -0.35791015625, -0.66845703125, -1.6533203125, -1.4287109375, 0.87939453125,
      0.68798828125, -0.58642578125},
     {-0.537109375, 0.0246734619140625, -0.179443359375, 0.01261138916015625, -1.9853515625, -0.136474609375}},
    {"RandomUniform",
     WEIR_BFLOAT16,
     {0.0703125, 0.765625, 0.4375, 0.40625, 0.25, 0.359375, 0.96875, 0.671875, 0.96875, 0.9921875, 0.2890625, 0.515625,
      0.1953125, 0.625, 0.2109375, 0.9765625},
     {0.328125, 0.4765625, 0.65625, 0.234375, 0.453125, 0.1484375}},
    {"RandomStandardNormal",
     WEIR_BFLOAT16,
     {1.640625, 1.4765625, -0.0908203125, 0.4765625, 0.484375, -0.11376953125, 0.373046875, 1.3828125, -0.94140625,
      0.059814453125, 2.171875, 1.546875, -0.62890625, 1.5625, -1.0234375, -1.6328125},
     {-0.5390625, 0.024658203125, -0.1796875, 0.01263427734375, -1.46875, 2.4375}},
    {"TruncatedNormal",
     WEIR_BFLOAT16,
     {1.640625, 1.4765625, -0.0908203125, 0.4765625, 0.1767578125, -0.1708984375, -1.671875, 0.0380859375, 1.046875,
      -0.357421875, -0.66796875, -1.65625, -1.4296875, 0.87890625, 0.6875, -0.5859375},
     {-0.5390625, 0.024658203125, -0.1796875, 0.01263427734375, -1.984375, -0.13671875}},
};

Outcome Draw(const std::string& op, uint32_t dtype, int64_t n, int64_t seed, int64_t seed2,
             const std::string& node = {}) {
  Attributes attributes = {{"dtype", Type(dtype)},
                           {"seed", {WEIR_VALUE_INT, seed}},
                           {"seed2", {WEIR_VALUE_INT, seed2}},
                           {"T", Type(WEIR_INT64)}};
  if (!node.empty()) attributes["node"] = Text(node);
  return Kernels().Call(op, attributes, {Of<int64_t>({1}, {n})}, {Blank(dtype, {n})});
}

/// Uniform numbers to the last bit; normal ones to 1e-6, or to a unit in the last place of a shorter type.
double Tolerance(const Golden& row) {
  if (std::string(row.op) == "RandomUniform") return 0;
  return row.dtype == WEIR_FLOAT16 ? 2e-3 : row.dtype == WEIR_BFLOAT16 ? 1.6e-2 : 1e-6;
}

TEST(Random, TensorFlowsNumbersFromRunToRun) {
  int compared = 0;
  for (const Golden& row : kGolden) {
    if (Kernels().Find(row.op, {{"dtype", Type(row.dtype)}}) == nullptr) continue;  // short element type lists
    const std::string what = std::string(row.op) + " of type " + std::to_string(row.dtype);
    const Outcome first = Draw(row.op, row.dtype, 70, 123, 456, what),
                  second = Draw(row.op, row.dtype, 70, 123, 456, what);
    ASSERT_EQ(first.code, WEIR_OK) << first.message;
    ASSERT_EQ(second.code, WEIR_OK) << second.message;
    const std::vector<double> a = Numbers(first.outputs[0]), b = Numbers(second.outputs[0]);
    for (size_t i = 0; i < row.first.size(); ++i)
      EXPECT_NEAR(a[kPositions[i]], row.first[i], Tolerance(row)) << what << " [" << i;
    for (size_t i = 0; i < row.second.size(); ++i)
      EXPECT_NEAR(b[i], row.second[i], Tolerance(row)) << what << " second [" << i;
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(Random, SeedsTakeAllTheirBits) {
  const std::vector<float> wanted = {0.4316580295562744f, 0.39285385608673096f, 0.5540323257446289f,
                                     0.9115585088729858f, 0.32516658306121826f, 0.6601037979125977f};
  EXPECT_EQ(Elements<float>(Draw("RandomUniform", WEIR_FLOAT32, 6, -5, (int64_t{1} << 40) + 7).outputs[0]), wanted);
}

/// Without node resources of the host, each preparation has its own stream.
TEST(Random, StreamsBelongToTheNode) {
  const auto numbers = [](const std::string& node) {
    return Elements<float>(Draw("RandomUniform", WEIR_FLOAT32, 5, 1, 2, node).outputs[0]);
  };
  const std::vector<float> alone = numbers({});
  EXPECT_EQ(numbers({}), alone);
  EXPECT_EQ(numbers("left"), alone);
  EXPECT_EQ(numbers("right"), alone);
  EXPECT_NE(numbers("left"), alone);
}

TEST(Random, WithoutSeedsEveryNodeDiffers) {
  const auto numbers = [] { return Elements<float>(Draw("RandomUniform", WEIR_FLOAT32, 8, 0, 0).outputs[0]); };
  EXPECT_NE(numbers(), numbers());
}

TEST(Random, EmptyTensorsUseNothing) {
  EXPECT_EQ(Draw("TruncatedNormal", WEIR_FLOAT32, 0, 5, 6, "empty").code, WEIR_OK);
  EXPECT_EQ(Elements<float>(Draw("RandomUniform", WEIR_FLOAT32, 4, 5, 6).outputs[0]),
            Elements<float>(Draw("RandomUniform", WEIR_FLOAT32, 4, 5, 6, "empty").outputs[0]));
}

TEST(Random, MomentsOfManyNumbers) {
  struct Row {
    const char* op;
    double mean, deviation, limit;
  };
  for (const Row& row : {Row{"RandomUniform", 0.5, std::sqrt(1.0 / 12), 1}, Row{"RandomStandardNormal", 0, 1, 7},
                         Row{"TruncatedNormal", 0, 0.8796, 2}}) {
    const std::vector<double> x = Numbers(Draw(row.op, WEIR_FLOAT32, 100000, 7, 8).outputs[0]);
    double sum = 0, squares = 0;
    for (const double value : x) {
      ASSERT_LT(std::fabs(value), row.limit) << row.op;
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(x.size()), mean = sum / n;
    EXPECT_NEAR(mean, row.mean, 0.02) << row.op;
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean), row.deviation, 0.02) << row.op;
  }
}

}  // namespace
}  // namespace weir::sdk::test
