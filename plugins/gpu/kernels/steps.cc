// Optimiser steps, dense and of rows: in-place updates of variables and their slots by the rules of
// plugins/functors/optimisers.h.
#include "plugins/functors/optimisers.h"

#include <array>
#include <string>
#include <utility>

#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::Env;
using sdk::Variable;

template <class Rule>
inline constexpr size_t kSlotCount = Rule::kSlots.size();
template <class Rule>
inline constexpr size_t kNumberCount = Rule::kBefore.size() + Rule::kAfter.size();

/// The types of a rule. As in TensorFlow, three are for complex numbers too.
template <class Rule>
inline constexpr unsigned kStepKinds =
    std::is_same_v<Rule, functors::GradientDescent> || std::is_same_v<Rule, functors::Momentum> ||
            std::is_same_v<Rule, functors::Adam>
        ? kFloats | kComplexes
        : kFloats;

/// One element of the variable, its slots, and the gradient.
template <class Rule, class S>
struct StepChange {
  using C = typename S::C;
  Ptr<char> var;
  Ptr<char> slots[kSlotCount<Rule> + 1];
  Ptr<const char> grad;
  Ptr<const char> numbers[kNumberCount<Rule> + 1];
  Ptr<const int64_t> count;  // of AdagradDA: a last number
  functors::StepFlags flags;
  S storage;

  WEIR_GPU_FN void operator()(int64_t at, int64_t from) const {
    constexpr size_t kSlots = kSlotCount<Rule>, kNumbers = kNumberCount<Rule>;
    std::array<C, kSlots> own;
    std::array<C, kNumbers + functors::kCounted<Rule>> given;
    for (size_t s = 0; s < kSlots; ++s) own[s] = storage.Load(slots[s].get(), at);
    for (size_t p = 0; p < kNumbers; ++p) given[p] = storage.Load(numbers[p].get(), 0);
    if constexpr (functors::kCounted<Rule> != 0) given[kNumbers] = static_cast<C>(count[0]);
    C value = storage.Load(var.get(), at);
    Rule::Update(value, own, storage.Load(grad.get(), from), given, flags);
    storage.Store(var.get(), at, value);
    for (size_t s = 0; s < kSlots; ++s) storage.Store(slots[s].get(), at, own[s]);
  }
};

template <class Change>
struct DenseWork {
  Change change;
  WEIR_GPU_FN void operator()(int64_t i) const { change(i, i); }
};

/// Operands of a step in memory of the device.
struct StepMemory {
  void* var;
  const void* grad;
  std::vector<void*> slots;
  std::vector<const void*> numbers;
  const void* count = nullptr;
};

template <class Rule, class S>
StepChange<Rule, S> ChangeOf(const StepMemory& memory, const functors::StepFlags& flags, const S& storage) {
  StepChange<Rule, S> change{};
  change.var = static_cast<char*>(memory.var);
  change.grad = static_cast<const char*>(memory.grad);
  for (size_t s = 0; s < memory.slots.size(); ++s) change.slots[s] = static_cast<char*>(memory.slots[s]);
  for (size_t p = 0; p < memory.numbers.size(); ++p) {
    change.numbers[p] = static_cast<const char*>(memory.numbers[p]);
  }
  change.count = static_cast<const int64_t*>(memory.count);
  change.flags = flags;
  change.storage = storage;
  return change;
}

template <class T, size_t>
using Repeated = T;

/// The kernel of a rule: by slot (A), number before the gradient (B), indices (I), number behind it (D), counter (G).
template <class Rule, class A, class B, class I, class D, class G>
struct Step;
template <class Rule, size_t... A, size_t... B, size_t... I, size_t... D, size_t... G>
struct Step<Rule, std::index_sequence<A...>, std::index_sequence<B...>, std::index_sequence<I...>,
            std::index_sequence<D...>, std::index_sequence<G...>> {
  static constexpr bool kSparse = sizeof...(I) != 0;
  functors::StepFlags flags;
  functors::Places places;

  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = functors::PrepareStep<Rule, kSparse>(prep, &flags, &places);
    if (kSparse) PrepareChangedRows(prep, places);
    return code != WEIR_OK ? code : DevicePlaces::Check(prep, places);
  }
  template <class E>
  int32_t Run(Env& env, Variable<E> var, Repeated<Variable<E>, A>... slots, Repeated<AnyInput, B>... before,
              AnyInput grad, Repeated<AnyInput, I>... indices, Repeated<AnyInput, D>... after,
              Repeated<AnyInput, G>... count, Repeated<sdk::Scratch<char>, I>... scratch) const {
    StepMemory memory{var.data(), grad.data(), {slots.data()...}, {}, nullptr};
    (memory.numbers.push_back(before.data()), ...);
    (memory.numbers.push_back(after.data()), ...);
    ((memory.count = count.data()), ...);
    int32_t code = WEIR_OK;
    WithStorage<kStepKinds<Rule>>(grad.dtype(), [&](auto storage) {
      const auto change = ChangeOf<Rule>(memory, flags, storage);
      if constexpr (kSparse) {
        code = (LaunchChangedRows(env, DevicePlaces(places, indices), change, scratch.data()), ...);
      } else {
        code = Launch(env, var.size(), DenseWork<std::remove_const_t<decltype(change)>>{change});
      }
    });
    return code;
  }
};

template <class Rule, size_t kIndices>
using StepOf = Step<Rule, std::make_index_sequence<Rule::kSlots.size()>, std::make_index_sequence<Rule::kBefore.size()>,
                    std::make_index_sequence<kIndices>, std::make_index_sequence<Rule::kAfter.size()>,
                    std::make_index_sequence<functors::kCounted<Rule>>>;

template <class Rule>
void AddDenseSteps(sdk::KernelTable& k, const std::string& name, double flops) {
  for (const char* prefix : {"Apply", "ResourceApply"}) {
    AddForVariables<StepOf<Rule, 0>>(k, prefix + name, "T", BitsOf(kStepKinds<Rule>))
        .Class(WEIR_CLASS_ELEMENTWISE, flops);
  }
}
template <class Rule>
void AddSparseSteps(sdk::KernelTable& k, const std::string& name, double flops) {
  for (const char* prefix : {"SparseApply", "ResourceSparseApply"}) {
    AddForVariables<StepOf<Rule, 1>>(k, prefix + name, "T", BitsOf(kStepKinds<Rule>)).Class(WEIR_CLASS_GATHER, flops);
  }
}
template <class Rule>
void AddAllSteps(sdk::KernelTable& k, const std::string& name, double flops) {
  AddDenseSteps<Rule>(k, name, flops);
  AddSparseSteps<Rule>(k, name, flops);
}

}  // namespace

void AddSteps(sdk::KernelTable& k) {
  namespace f = functors;
  AddDenseSteps<f::GradientDescent>(k, "GradientDescent", 2);
  AddAllSteps<f::Momentum>(k, "Momentum", 4);
  AddDenseSteps<f::Adam>(k, "Adam", 14);
  AddForVariables<StepOf<f::KerasMomentum, 0>>(k, "ResourceApplyKerasMomentum", "T", kFloatingBits)
      .Class(WEIR_CLASS_ELEMENTWISE, 4);
  AddForVariables<StepOf<f::KerasMomentum, 1>>(k, "ResourceSparseApplyKerasMomentum", "T", kFloatingBits)
      .Class(WEIR_CLASS_GATHER, 4);
  AddAllSteps<f::Adagrad>(k, "Adagrad", 10);
  AddAllSteps<f::AdagradV2>(k, "AdagradV2", 11);
  AddAllSteps<f::RmsProp>(k, "RMSProp", 15);
  AddAllSteps<f::CenteredRmsProp>(k, "CenteredRMSProp", 20);
  AddAllSteps<f::Adadelta>(k, "Adadelta", 25);
  AddDenseSteps<f::AdaMax>(k, "AdaMax", 12);
  AddDenseSteps<f::AddSign>(k, "AddSign", 10);
  AddDenseSteps<f::PowerSign>(k, "PowerSign", 20);
  AddAllSteps<f::ProximalDescent>(k, "ProximalGradientDescent", 8);
  AddAllSteps<f::ProximalAdagrad>(k, "ProximalAdagrad", 15);
  AddAllSteps<f::AdagradDa>(k, "AdagradDA", 15);
  AddAllSteps<f::Ftrl>(k, "Ftrl", 25);
  AddAllSteps<f::FtrlV2>(k, "FtrlV2", 27);
}

}  // namespace weir::gpu
