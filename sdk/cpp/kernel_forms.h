// The forms of a kernel, one per choice of element types: their functions and parameters, and a summary of all of them.
// For kernel.h.
#ifndef WEIR_SDK_CPP_KERNEL_FORMS_H_
#define WEIR_SDK_CPP_KERNEL_FORMS_H_

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk/abi/kernel.h"
#include "sdk/cpp/context.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/signature.h"
#include "sdk/cpp/types.h"
#include "sdk/cpp/views.h"

namespace weir::sdk::internal {

/// The object behind weir_prepared.state.
struct State {
  virtual ~State() = default;
  std::vector<weir_alias> aliases;
  uint64_t tiles = 1;
};

inline bool Concrete(const weir_prep_args& args) {
  const auto concrete = [](const weir_operand* operand) {
    const weir_shape& shape = operand->shape;
    return shape.rank != WEIR_UNKNOWN_RANK &&
           std::all_of(shape.dims, shape.dims + shape.rank, [](int64_t dim) { return dim >= 0; });
  };
  return std::all_of(args.inputs, args.inputs + args.input_count, concrete) &&
         std::all_of(args.outputs, args.outputs + args.output_count, concrete);
}

/// One choice of element types, with the functions that prepare it or create its dynamic form.
struct Variant {
  std::array<uint32_t, 3> dtypes{};
  const void* data = nullptr;  // private data of `prepare`
  int32_t (*prepare)(const Variant& variant, Prep& prep, weir_kernel_fn* fn, std::unique_ptr<State>* state) = nullptr;
  int32_t (*create)(const Node& node, weir_device* device, const Error& error, void** state) = nullptr;
};

/// What a table says of a kernel's variants before there is one: most kernels of a process are never prepared.
struct Summary {
  std::array<uint64_t, 3> dtypes{};  // of each type attribute
  uint64_t host_inputs = 0, variable_reads = 0, variable_writes = 0;
  bool prepared = false, dynamic = false, stateful = false;
};

/// Positions of a node's registers, given the lengths of its lists.
struct Layout {
  uint32_t list = 0;      // length of each input list
  uint32_t out_list = 0;  // length of each output list
  uint32_t inputs = 0;
  uint32_t scratch = 0;  // index of the scratch register
};

/// Compares the node's operands with the parameters and finds their registers. Outputs that are not parameters become
/// aliases of the variable.
inline int32_t FindLayout(const ParamList& params, Prep& prep, Layout* layout) {
  const uint32_t input_lists = params.Count(IsInputList), inputs = params.Count(IsInput) - input_lists;
  const uint32_t output_lists = params.Count(IsOutputList), outputs = params.Count(IsOutput) - output_lists;
  bool fits = prep.inputs() >= inputs && prep.outputs() >= outputs;
  layout->inputs = prep.inputs();
  layout->scratch = prep.inputs() + prep.outputs();
  layout->list = fits && input_lists > 0 ? (prep.inputs() - inputs) / input_lists : 0;
  layout->out_list = fits && output_lists > 0 ? (prep.outputs() - outputs) / output_lists : 0;
  fits = fits && prep.inputs() == inputs + input_lists * layout->list;
  const uint32_t named = outputs + output_lists * layout->out_list;
  fits = fits && (named == prep.outputs() || (named == 0 && (params.Mask(Param::kWrite, Param::kWrite) & 1) != 0));
  if (!fits) {
    return prep.error().Fail(WEIR_INTERNAL, "the node has ", prep.inputs(), " inputs and ", prep.outputs(),
                             " outputs; the kernel takes ", inputs, " inputs and ", input_lists, " lists, and gives ",
                             outputs, " outputs and ", output_lists, " lists");
  }
  uint32_t in = 0, out = 0;
  for (uint32_t i = 0; i < params.count; ++i) {
    const Param kind = params.kinds[i];
    const bool input = IsInput(kind);
    if (!input && !IsOutput(kind)) continue;
    const uint32_t n = IsInputList(kind) ? layout->list : IsOutputList(kind) ? layout->out_list : 1;
    for (uint32_t j = 0; j < n; ++j) {
      const uint32_t at = input ? in++ : out++;
      const uint32_t bytes = SizeOf(input ? prep.input(at).dtype : prep.output(at).dtype);
      if (bytes != 0 && (params.bytes[i] == 0 || params.bytes[i] == bytes)) continue;
      return prep.error().Fail(WEIR_INTERNAL, input ? "input " : "output ", at, " has elements of ", bytes,
                               " bytes, the kernel takes ", params.bytes[i]);
    }
  }
  for (uint32_t i = named; i < prep.outputs(); ++i) prep.MustAlias(0, i);
  return WEIR_OK;
}

/// One typed form of a kernel: its function and parameters.
struct RunForm {
  weir_kernel_fn fn;
  ParamList params;
};

/// A kernel of class K bound to a node.
template <class K>
struct Bound : State {
  K kernel;
  Layout layout;
};

template <class K>
int32_t PrepareBound(const Variant& variant, Prep& prep, weir_kernel_fn* fn, std::unique_ptr<State>* state) {
  const auto& form = *static_cast<const RunForm*>(variant.data);
  auto bound = std::make_unique<Bound<K>>();
  if (const int32_t code = FindLayout(form.params, prep, &bound->layout); code != WEIR_OK) return code;
  if constexpr (requires {
                  { bound->kernel.Prepare(prep) } -> std::same_as<int32_t>;
                }) {
    if (const int32_t code = bound->kernel.Prepare(prep); code != WEIR_OK) return code;
  } else if constexpr (requires { bound->kernel.Prepare(prep); }) {
    bound->kernel.Prepare(prep);
  }
  const bool scratch = form.params.Count([](Param p) { return p == Param::kScratch; }) != 0;
  if (scratch && prep.scratch_bytes() == 0) prep.Scratch(64);
  *fn = form.fn;
  *state = std::move(bound);
  return WEIR_OK;
}

/// Calls K::Run<T...> on registers.
template <class K, class... T>
struct Runner {
  using Sig = typename SignatureOf<decltype(RunOf<K, T...>())>::Type;

  /// Parameter i of type P from its register.
  template <size_t kIndex, class P>
  static decltype(auto) Argument(const Layout& layout, const weir_reg* regs, Env& env) {
    constexpr Param kKind = ParamOf<P>::kKind;
    if constexpr (kKind == Param::kEnv) {
      return static_cast<Env&>(env);
    } else if constexpr (kKind == Param::kScratch) {
      return P(regs[layout.scratch]);
    } else if constexpr (IsInput(kKind)) {
      constexpr uint32_t kLists = Sig::kParams.Count(IsInputList, kIndex);
      const weir_reg* reg = regs + (Sig::kParams.Count(IsInput, kIndex) - kLists) + kLists * layout.list;
      if constexpr (IsInputList(kKind)) {
        return P(reg, layout.list);
      } else {
        return P(*reg);
      }
    } else {
      constexpr uint32_t kLists = Sig::kParams.Count(IsOutputList, kIndex);
      const weir_reg* reg =
          regs + layout.inputs + (Sig::kParams.Count(IsOutput, kIndex) - kLists) + kLists * layout.out_list;
      if constexpr (kKind == Param::kOutputList) {
        return P(reg, layout.out_list);
      } else {
        return P(*reg);
      }
    }
  }

  template <class R, bool kConst, class... P, size_t... kIndex>
  static int32_t Call(Bound<K>& bound, const weir_reg* regs, Env& env, Signature<R, kConst, P...>,
                      std::index_sequence<kIndex...>) {
    const auto run = RunOf<K, T...>();
    const auto call = [&]() -> R {
      if constexpr (std::is_member_pointer_v<decltype(run)>) {
        return (bound.kernel.*run)(Argument<kIndex, P>(bound.layout, regs, env)...);
      } else {
        return run(Argument<kIndex, P>(bound.layout, regs, env)...);
      }
    };
    if constexpr (std::is_void_v<R>) {
      call();
      return WEIR_OK;
    } else {
      return call();
    }
  }

  static int32_t Fn(void* state, const weir_reg* regs, const weir_env* raw) noexcept {
    auto& bound = *static_cast<Bound<K>*>(static_cast<State*>(state));
    return Guard(raw->error, [&] {
      Env env(raw, bound.tiles);
      return Call(bound, regs, env, Sig(), std::make_index_sequence<Sig::kCount>());
    });
  }

  static constexpr RunForm kForm = {&Fn, Sig::kParams};
};

/// A dynamic kernel for one choice of element types.
struct DynamicState {
  virtual ~DynamicState() = default;
  virtual int32_t Compute(Context& ctx) = 0;
};

template <class K, class... T>
struct DynamicRunner final : DynamicState {
  K kernel;
  int32_t Compute(Context& ctx) override {
    if constexpr (sizeof...(T) == 0) {
      return kernel.Compute(ctx);
    } else {
      return kernel.template Compute<T...>(ctx);
    }
  }
  static int32_t Create(const Node& node, weir_device* device, const Error& error, void** state) {
    auto made = std::make_unique<DynamicRunner>();
    if constexpr (requires { made->kernel.Prepare(node, device, error); }) {
      if (const int32_t code = made->kernel.Prepare(node, device, error); code != WEIR_OK) return code;
    } else if constexpr (requires { made->kernel.Prepare(node, error); }) {
      if (const int32_t code = made->kernel.Prepare(node, error); code != WEIR_OK) return code;
    }
    *state = static_cast<DynamicState*>(made.release());
    return WEIR_OK;
  }
};

template <class K>
constexpr bool kEstimates = requires(const Prep& prep) {
  { K::Estimate(prep) } -> std::same_as<Cost>;
};
template <class K>
constexpr bool kEstimatesByProfile = requires(const Prep& prep, const weir_profile* profile) {
  { K::Estimate(prep, profile) } -> std::same_as<Cost>;
};

template <class K, class... T>
concept Dynamic = requires(K k, Context& ctx) {
  k.template Compute<T...>(ctx);
}
|| requires(K k, Context& ctx) {
  requires sizeof...(T) == 0;
  k.Compute(ctx);
};

constexpr Summary Merge(std::initializer_list<Summary> all) {
  Summary merged;
  for (const Summary& one : all) {
    const bool prepared = merged.prepared || one.prepared, dynamic = merged.dynamic || one.dynamic;
    const bool stateful = merged.stateful || one.stateful;
    if (one.prepared) merged = one;
    merged.prepared = prepared;
    merged.dynamic = dynamic;
    merged.stateful = stateful;
  }
  return merged;
}

template <class... E>
constexpr uint64_t DTypesOf(Types<E...>) {
  return (WEIR_DTYPE_BIT(Element<E>::kNumber) | ... | uint64_t{0});
}

/// The summary, without dtypes, of class K with the types `Chosen` and one of each of `Lists`.
template <class K, class Chosen, class... Lists>
struct SummaryOf;
template <class K, class... T>
requires Dynamic<K, T...>
struct SummaryOf<K, Types<T...>> {
  static constexpr Summary kValue = {.dynamic = true};
};
template <class K, class... T>
requires(!Dynamic<K, T...>) struct SummaryOf<K, Types<T...>> {
  using Sig = typename Runner<K, T...>::Sig;
  static constexpr Summary kValue = {.host_inputs = Sig::kParams.Mask(Param::kHostInput, Param::kHostInputList),
                                     .variable_reads = Sig::kParams.Mask(Param::kRead, Param::kRead),
                                     .variable_writes = Sig::kParams.Mask(Param::kWrite, Param::kWrite),
                                     .prepared = true,
                                     .stateful = !Sig::kConst};
};
template <class K, class... T, class... E, class... Rest>
struct SummaryOf<K, Types<T...>, Types<E...>, Rest...> {
  static constexpr Summary kValue = Merge({SummaryOf<K, Types<T..., typename Element<E>::Type>, Rest...>::kValue...});
};

}  // namespace weir::sdk::internal

#endif  // WEIR_SDK_CPP_KERNEL_FORMS_H_
