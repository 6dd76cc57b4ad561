// Classes drawn with given probabilities, Multinomial and StatelessMultinomial: the CPU's numbers. A thread sums the
// exponentials of a row, then a thread draws a sample.
#include "plugins/functors/categorical_plan.h"

#include <limits>

#include "plugins/functors/draws.h"
#include "plugins/functors/node_stream.h"
#include "plugins/functors/seeds.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Philox;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Host;
using sdk::HostIntegers;
using sdk::Prep;

template <class S>
struct ClassSumsWork {
  Ptr<const char> logits;
  Ptr<double> sums;
  int64_t classes;
  double least;
  S storage;

  struct Logits {
    const char* from;
    int64_t first;
    S storage;
    WEIR_HD double operator()(int64_t i) const { return static_cast<double>(storage.Load(from, first + i)); }
  };
  WEIR_GPU_FN void operator()(int64_t row) const {
    functors::AccumulateClasses(classes, least, Logits{logits.get(), row * classes, storage},
                                sums.get() + row * classes);
  }
};

/// The words of the generator lie behind each other, two for each sample of a row.
struct DrawClassWork {
  Ptr<const double> sums;
  Ptr<char> to;
  Philox generator;
  uint64_t first;
  int64_t classes, samples;
  Integer storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    uint32_t words[Philox::kWords];
    generator.Blocks<1>(first + static_cast<uint64_t>(i) / 2, words);
    const uint32_t* const own = words + i % 2 * 2;
    const double* const row = sums.get() + i / samples * classes;
    const double place = functors::UniformDouble(own[0], own[1]) * row[classes - 1];
    int64_t begin = 0, end = classes;  // the first sum above the place
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (place < row[middle]) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    storage.Store(to.get(), i, begin);
  }
};

struct Categorical : functors::CategoricalPlan {
  int32_t PlanDraws(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    if (rows > 0 && samples > 0) prep.Scratch(static_cast<uint64_t>(rows * classes) * sizeof(double));
    return WEIR_OK;
  }
  int32_t Draw(const Env& env, const Philox& generator, uint64_t first, const AnyInput& logits, const AnyOutput& out,
               double* sums) const {
    if (out.size() == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(logits.dtype(), [&](auto storage) {
      using S = decltype(storage);
      double least = static_cast<double>(std::numeric_limits<float>::lowest());
      if (logits.dtype() == WEIR_FLOAT16) least = -65504;
      if (logits.dtype() == WEIR_FLOAT64) least = std::numeric_limits<double>::lowest();
      code = Launch(env, rows, ClassSumsWork<S>{From(logits), sums, classes, least, storage});
    });
    if (code != WEIR_OK) return code;
    return Launch(env, out.size(),
                  DrawClassWork{sums, To(out), generator, first, classes, samples, Integer{out.dtype()}});
  }
};

struct Multinomial : Categorical {
  functors::NodeStream stream;

  int32_t Prepare(Prep& prep) {
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : PlanDraws(prep);
  }
  int32_t Run(Env& env, AnyInput logits, HostIntegers, AnyOutput out, sdk::Scratch<double> sums) {
    if (out.size() == 0) return WEIR_OK;
    return Draw(env, stream.generator(), stream.ReserveFor(Reserved()), logits, out, sums.data());
  }
};

struct SeededMultinomial : Categorical {
  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::CheckSeed(prep, 2);
    return code != WEIR_OK ? code : PlanDraws(prep);
  }
  template <class I>
  int32_t Run(Env& env, AnyInput logits, HostIntegers, Host<const I> seed, AnyOutput out,
              sdk::Scratch<double> sums) const {
    const Philox generator = functors::FromSeedWords(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1]));
    return Draw(env, generator, 0, logits, out, sums.data());
  }
};

}  // namespace

void AddCategorical(sdk::KernelTable& k) {
  constexpr sdk::Types<int32_t, int64_t> kIndexTypes;
  const auto add = [](sdk::Kernel& kernel) {
    kernel.Restrict("T", kFloatingBits).Restrict("output_dtype", kIndexBits).Class(WEIR_CLASS_RNG, 20);
  };
  add(k.Add<Multinomial>("Multinomial"));
  add(k.Add<SeededMultinomial>("StatelessMultinomial", sdk::Attr("Tseed", kIndexTypes)));
}

}  // namespace weir::gpu
