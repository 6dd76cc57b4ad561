// Random tensors with TensorFlow's numbers: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal,
// RandomShuffle.
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/kernels/row_shuffle.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Host;
using sdk::HostIntegers;
using sdk::View;

template <class Distribution>
struct Random {
  NodeStream stream;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : ExpectOutput(prep, 0, dims);
  }

  template <class T>
  void Run(HostIntegers, View<T> output) {
    const int64_t n = output.size();
    Distribution::Draw(stream.generator(), stream.ReserveFor(n), output.data(), n);
  }
};

struct RandomIntegers {
  NodeStream stream;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (prep.shape(1).rank != 0) return prep.error().InvalidArgument("minval must be 0-D, got shape ", prep.shape(1));
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("maxval must be 0-D, got shape ", prep.shape(2));
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : ExpectOutput(prep, 0, dims);
  }

  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, Host<const T> low, Host<const T> high, View<T> output) {
    const int64_t n = output.size();
    if (n == 0) return WEIR_OK;
    if (low[0] >= high[0]) {
      return env.error().InvalidArgument("Need minval < maxval, got ", low[0], " >= ", high[0]);
    }
    DrawIntegers(stream.generator(), stream.ReserveFor(n), low[0], high[0], output.data(), n);
    return WEIR_OK;
  }
};

struct Shuffle : RowShuffle {
  NodeStream stream;

  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : Plan(prep);
  }
  void Run(sdk::AnyInput input, sdk::AnyOutput output, sdk::Scratch<int64_t> order) {
    const uint64_t blocks = rows > 1 ? (static_cast<uint64_t>(rows) - 1 + 3) / 4 : 0;
    Move(Words(stream.generator(), blocks == 0 ? 0 : stream.Reserve(blocks)), input, output, order.data());
  }
};

}  // namespace

void AddRandom(sdk::KernelTable& k) {
  constexpr auto kTypes = sdk::Attr("dtype", kFloating);
  k.Add<Random<UniformValues>>("RandomUniform", kTypes).Class(WEIR_CLASS_RNG, 4);
  k.Add<Random<NormalValues>>("RandomStandardNormal", kTypes).Class(WEIR_CLASS_RNG, 20);
  k.Add<Random<TruncatedValues>>("TruncatedNormal", kTypes).Class(WEIR_CLASS_RNG, 30);
  k.Add<RandomIntegers>("RandomUniformInt", sdk::Attr("Tout", kIndex)).Class(WEIR_CLASS_RNG, 4);
  k.Add<Shuffle>("RandomShuffle").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
