// Random tensors with TensorFlow's numbers: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal,
// RandomShuffle.
#include <cstring>
#include <numeric>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
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
  void Run(HostIntegers, View<T> output) const {
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
  int32_t Run(sdk::Env& env, HostIntegers, Host<const T> low, Host<const T> high, View<T> output) const {
    const int64_t n = output.size();
    if (n == 0) return WEIR_OK;
    if (low[0] >= high[0]) {
      return env.error().InvalidArgument("Need minval < maxval, got ", low[0], " >= ", high[0]);
    }
    DrawIntegers(stream.generator(), stream.ReserveFor(n), low[0], high[0], output.data(), n);
    return WEIR_OK;
  }
};

/// Swaps each row but the last with one that is not before it.
struct Shuffle {
  NodeStream stream;
  int64_t rows = 0, row_bytes = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (const int32_t code = stream.Open(prep); code != WEIR_OK || prep.size(0) == 0) return code;
    rows = shape.rank == 0 ? 1 : shape.dims[0];
    row_bytes = prep.size(0) / rows * static_cast<int64_t>(sdk::SizeOf(prep.input(0).dtype));
    prep.Scratch(static_cast<uint64_t>(rows) * sizeof(int64_t));
    return WEIR_OK;
  }

  void Run(sdk::AnyInput input, sdk::AnyOutput output, sdk::Scratch<int64_t> order) const {
    if (rows == 0) return;
    std::iota(order.data(), order.data() + rows, int64_t{0});
    if (rows > 1) {
      Words words(stream.generator(), stream.Reserve((static_cast<uint64_t>(rows) - 1 + 3) / 4));
      for (int64_t i = 0; i + 1 < rows; ++i) {
        std::swap(order.data()[i],
                  order.data()[i + static_cast<int64_t>(words.Next() % static_cast<uint64_t>(rows - i))]);
      }
    }
    const auto* from = static_cast<const std::byte*>(input.data());
    auto* to = static_cast<std::byte*>(output.data());
    ForBlock(static_cast<size_t>(row_bytes), [&](auto bytes) {
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(order.data()[i]) * bytes, bytes);
      }
    });
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
