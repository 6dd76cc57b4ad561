// Kernels as ordinary C++: a struct whose Run has typed inputs and outputs, registered with one line.
//
// ```cpp
// struct Clip {
//   float limit = 0;                                        // state of the node, filled by Prepare (optional)
//   int32_t Prepare(Prep& prep) {                           // once per node and shapes: attributes, checks, scratch
//     limit = static_cast<float>(prep.node().Float("limit"));
//     if (!(limit > 0)) return prep.error().InvalidArgument("limit must be positive, got ", limit);
//     prep.MayAlias(0, 0);
//     return WEIR_OK;
//   }
//   template <class T>                                      // every step: no allocation, no look-up
//   int32_t Run(Env& env, View<const T> x, View<T> y) const {
//     for (int64_t i = 0, n = x.size(); i < n; ++i) {
//       if (x[i] != x[i]) return env.error().InvalidArgument("x[", i, "] is not a number");
//       y[i] = x[i] < T(limit) ? x[i] : T(limit);
//     }
//     return WEIR_OK;
//   }
// };
// void AddClip(KernelTable& k) { k.Add<Clip>("Clip", Types<float, double>()).Class(WEIR_CLASS_ELEMENTWISE); }
// ```
//
// clang-format off
// Run's parameters, inputs in the op's order, then outputs in the op's order (a list argument counts once):
//   View<const T>              input                          View<T>     output
//   Views<const T>             list of inputs                 Views<T>    list of outputs
//   Host<const T>              input in host memory           HostViews<const T>    list of inputs in host memory
//   Integers, HostIntegers     int input of any width         Scratch<T>  memory of Prep::Scratch
//   Variable<T>                updated in place               Variable<const T>     read only
//   AnyInput, AnyInputs, AnyOutput, AnyOutputs, AnyVariable   the same, of any type
//   Env&                       the step (optional)
// On a device whose memory has no address, where View and the like would hold no pointer:
//   Buffer<const T>, Buffer<T>, Buffers<const T>, Buffers<T>   input, output, lists of both; T may be void: any type
//   VariableBuffer<T>, VariableBuffer<const T>                 a variable
//   ScratchBuffer              memory of Prep::Scratch
// clang-format on
// All lists of a node have the same length. Run returns int32_t or void. A const Run may be called concurrently. A
// non-const Run makes the kernel STATEFUL: calls are serialized and may change members. The extra output of a Ref op
// (ApplyAdam's `out`) is not a parameter: outputs without a parameter become MUST aliases of input 0.
// Type attributes: k.Add<Gather>("Gather", Attr("Tparams", kAnyBits), Attr("Tindices", Types<int32_t, int64_t>()))
// calls template <class T, class I> Run; a bare Types<…>() means attribute "T"; without a list Run is not a template.
// If output shapes depend on data, write `template <class T> int32_t Compute(Context& ctx)` instead of Run; then
// Prepare takes (const Node&, const Error&) or (const Node&, weir_device*, const Error&). On a device with streams
// Compute runs when earlier work is done and completes its own; with .Flags(WEIR_KERNEL_STREAM) it enqueues on
// ctx.stream(). `static Cost Estimate(const Prep&)` is optional: see Cost in prepare.h.
// Elementwise kernels: k.Unary<F>("Neg", list), k.Binary<F>("AddV2", list), see elementwise.h.
#ifndef WEIR_SDK_CPP_KERNEL_H_
#define WEIR_SDK_CPP_KERNEL_H_

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk/abi/kernel.h"
#include "sdk/cpp/context.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/signature.h"
#include "sdk/cpp/types.h"
#include "sdk/cpp/views.h"

namespace weir::sdk {

class Kernel;

namespace internal {

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

}  // namespace internal

/// One registered kernel. Its setters must be called before the table is finished.
class Kernel {
 public:
  Kernel& Class(uint32_t cost_class, double flops_per_element = 1) {
    record.cost_class = cost_class;
    record.flops_per_element = flops_per_element;
    return *this;
  }
  Kernel& Priority(int32_t priority) {
    record.priority = priority;
    return *this;
  }
  /// Allowed types of an attribute that does not affect the code.
  Kernel& Restrict(const char* attr, std::initializer_list<uint32_t> dtypes) {
    uint64_t set = 0;
    for (const uint32_t dtype : dtypes) set |= WEIR_DTYPE_BIT(dtype);
    return Restrict(attr, set);
  }
  Kernel& Restrict(const char* attr, uint64_t dtypes) {
    types.push_back({Str(attr), dtypes});
    return *this;
  }
  /// Outputs in host memory on every platform: bit i is the i-th output argument.
  Kernel& HostOutputs(uint64_t mask) {
    record.host_outputs = mask;
    return *this;
  }
  Kernel& Flags(uint32_t flags) {
    record.flags |= flags;
    return *this;
  }

  weir_kernel record{};
  std::string op;
  std::vector<std::string> attrs;  // type attributes, in the order of the variants' dtypes
  std::vector<internal::Variant> variants;
  std::vector<weir_type_constraint> types;
  bool by_operand = false;  // input 0's type selects the variant, not the attributes

  /// Null if the kernel has no variant for these types.
  const internal::Variant* Find(const Node& node, uint32_t operand_dtype) const {
    std::array<uint32_t, 3> wanted{};
    for (size_t i = 0; i < attrs.size(); ++i) {
      wanted[i] = by_operand ? operand_dtype : attrs[i].empty() ? uint32_t{WEIR_INVALID} : node.DType(attrs[i]);
    }
    for (const internal::Variant& variant : variants) {
      bool same = true;
      for (size_t i = 0; i < attrs.size(); ++i) {
        same = same && (attrs[i].empty() && !by_operand ? true : variant.dtypes[i] == wanted[i]);
      }
      if (same) return &variant;
    }
    return nullptr;
  }
};

/// The kernels of a plugin. Single-threaded until `Finish`, read-only afterwards.
class KernelTable {
 public:
  /// `platforms`: separated by ';', as in the plugin's note.
  explicit KernelTable(std::string_view platforms) : platforms_(platforms) {}
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  /// See the top of this file.
  template <class K, class... Lists>
  Kernel& Add(std::string_view op, Lists... lists) {
    Kernel& kernel = New(op);
    (kernel.attrs.push_back(AttrName(lists)), ...);
    Expand<K>(kernel, {}, 0, ListOf(lists)...);
    return kernel;
  }

  /// y = F(x) element by element; needs elementwise.h.
  template <class F, class List>
  Kernel& Unary(std::string_view op, List list);
  /// z = F(x, y) with broadcasting; needs elementwise.h.
  template <class F, class List>
  Kernel& Binary(std::string_view op, List list);
  /// z = F(x, y) of operands with the same element count, without broadcasting; needs elementwise.h.
  template <class F, class List>
  Kernel& Pairwise(std::string_view op, List list);

  /// A kernel whose variants the caller fills in.
  Kernel& New(std::string_view op) {
    Kernel& kernel = kernels_.emplace_back();
    kernel.op = op;
    return kernel;
  }

  /// Completes the records and returns them; no kernel is added afterwards.
  const weir_kernels_api* Finish();

  template <class... E>
  static const char* AttrName(Types<E...>) {
    return "T";
  }
  template <class List>
  static const char* AttrName(AttrTypes<List> list) {
    return list.attr;
  }
  template <class... E>
  static Types<E...> ListOf(Types<E...>) {
    return {};
  }
  template <class List>
  static List ListOf(AttrTypes<List>) {
    return {};
  }

 private:
  template <class K, class... T>
  static void Expand(Kernel& kernel, std::array<uint32_t, 3> dtypes, size_t) {
    internal::Variant variant;
    variant.dtypes = dtypes;
    if constexpr (internal::Dynamic<K, T...>) {
      variant.create = &internal::DynamicRunner<K, T...>::Create;
    } else {
      using Sig = typename internal::Runner<K, T...>::Sig;
      variant.data = &internal::Runner<K, T...>::kForm;
      variant.prepare = &internal::PrepareBound<K>;
      kernel.record.host_inputs = Sig::kParams.Mask(internal::Param::kHostInput, internal::Param::kHostInputList);
      kernel.record.variable_reads = Sig::kParams.Mask(internal::Param::kRead, internal::Param::kRead);
      kernel.record.variable_writes = Sig::kParams.Mask(internal::Param::kWrite, internal::Param::kWrite);
      if (!Sig::kConst) kernel.record.flags |= WEIR_KERNEL_STATEFUL;
    }
    if constexpr (internal::kEstimates<K> || internal::kEstimatesByProfile<K>) kernel.record.estimate = &Estimate<K>;
    kernel.variants.push_back(variant);
  }
  template <class K, class... T, class... E, class... Rest>
  static void Expand(Kernel& kernel, std::array<uint32_t, 3> dtypes, size_t at, Types<E...>, Rest... rest) {
    static_assert(sizeof...(T) < 3, "at most three type attributes");
    const auto with = [&](uint32_t dtype) {
      auto copy = dtypes;
      copy[at] = dtype;
      return copy;
    };
    (Expand<K, T..., typename Element<E>::Type>(kernel, with(Element<E>::kNumber), at + 1, rest...), ...);
  }

  static int32_t Prepare(const void* user, const weir_prep_args* args, weir_prepared* prepared,
                         weir_error* record) noexcept;
  static void Unprepare(weir_prepared* prepared) noexcept;
  template <class K>
  static int32_t Estimate(const weir_prep_args* args, const weir_profile* profile, weir_cost* cost,
                          weir_error* record) noexcept {
    return Guard(record, [&]() -> int32_t {
      if (!internal::Concrete(*args)) return Error(record).Unimplemented("the shapes are not known");
      const Prep prep(*args, Error(record));
      Cost answer;
      if constexpr (internal::kEstimatesByProfile<K>) {
        answer = K::Estimate(prep, profile);
      } else {
        answer = K::Estimate(prep);
      }
      cost->whole_ns = answer.whole_ns;
      cost->flops = answer.flops;
      cost->bytes = answer.bytes;
      cost->fixed_ns = answer.fixed_ns;
      return WEIR_OK;
    });
  }
  static int32_t Create(const void* user, const weir_node* node, weir_device* device, void** state,
                        weir_error* record) noexcept;
  static int32_t Compute(void* state, weir_ctx* ctx, weir_error* record) noexcept;
  static void Destroy(void* state) noexcept;

  std::string platforms_;
  std::deque<Kernel> kernels_;
  std::deque<std::string> platform_names_;
  std::deque<weir_kernel> records_;
  std::vector<const weir_kernel*> pointers_;
  weir_kernels_api api_{};
};

inline int32_t KernelTable::Prepare(const void* user, const weir_prep_args* args, weir_prepared* prepared,
                                    weir_error* record) noexcept {
  return Guard(record, [&]() -> int32_t {
    const auto& kernel = *static_cast<const Kernel*>(user);
    const Error error(record);
    if (args->must != 0) return error.Unimplemented("the arguments carry unknown bits that must be understood");
    if (!internal::Concrete(*args)) return error.Unimplemented("the shapes of all operands must be known");
    Prep prep(*args, error);
    const internal::Variant* variant =
        kernel.Find(prep.node(), args->input_count ? args->inputs[0]->dtype : uint32_t{WEIR_INVALID});
    if (variant == nullptr || variant->prepare == nullptr) {
      return error.Unimplemented("kernel ", kernel.op, " has no form for these element types");
    }
    std::unique_ptr<internal::State> state;
    weir_kernel_fn fn = nullptr;
    if (const int32_t code = variant->prepare(*variant, prep, &fn, &state); code != WEIR_OK) return code;
    state->aliases = prep.aliases();
    state->tiles = prep.tiles();
    prepared->fn = fn;
    prepared->flags = 0;
    prepared->scratch_bytes = prep.scratch_bytes();
    prepared->scratch_alignment = prep.scratch_alignment();
    prepared->aliases = state->aliases.data();
    prepared->alias_count = static_cast<uint32_t>(state->aliases.size());
    prepared->tiles = state->tiles;
    prepared->state = state.release();
    return WEIR_OK;
  });
}

inline void KernelTable::Unprepare(weir_prepared* prepared) noexcept {
  delete static_cast<internal::State*>(prepared->state);
  prepared->state = nullptr;
}

inline int32_t KernelTable::Create(const void* user, const weir_node* node, weir_device* device, void** state,
                                   weir_error* record) noexcept {
  return Guard(record, [&]() -> int32_t {
    const auto& kernel = *static_cast<const Kernel*>(user);
    const Error error(record);
    const internal::Variant* variant = kernel.Find(Node(node), WEIR_INVALID);
    if (variant == nullptr || variant->create == nullptr) {
      return error.Unimplemented("kernel ", kernel.op, " has no form for these element types");
    }
    return variant->create(Node(node), device, error, state);
  });
}

inline int32_t KernelTable::Compute(void* state, weir_ctx* ctx, weir_error* record) noexcept {
  return Guard(record, [&] {
    Context context(ctx, record);
    return static_cast<internal::DynamicState*>(state)->Compute(context);
  });
}

inline void KernelTable::Destroy(void* state) noexcept { delete static_cast<internal::DynamicState*>(state); }

inline const weir_kernels_api* KernelTable::Finish() {
  if (api_.struct_size != 0) return &api_;
  for (size_t at = 0; at <= platforms_.size();) {
    const size_t end = std::min(platforms_.find(';', at), platforms_.size());
    platform_names_.push_back(platforms_.substr(at, end - at));
    at = end + 1;
  }
  for (Kernel& kernel : kernels_) {
    bool prepared = false, dynamic = false;
    for (const internal::Variant& variant : kernel.variants) {
      prepared = prepared || variant.prepare != nullptr;
      dynamic = dynamic || variant.create != nullptr;
    }
    for (size_t i = 0; i < kernel.attrs.size(); ++i) {
      if (kernel.attrs[i].empty()) continue;
      uint64_t dtypes = 0;
      for (const internal::Variant& variant : kernel.variants) dtypes |= WEIR_DTYPE_BIT(variant.dtypes[i]);
      kernel.types.push_back({Str(kernel.attrs[i]), dtypes});
    }
    for (const std::string& platform : platform_names_) {
      weir_kernel& record = records_.emplace_back(kernel.record);
      record.struct_size = sizeof record;
      record.op = Str(kernel.op);
      record.platform = Str(platform);
      record.types = kernel.types.data();
      record.type_count = static_cast<uint32_t>(kernel.types.size());
      record.user = &kernel;
      if (prepared) {
        record.prepare = &KernelTable::Prepare;
        record.unprepare = &KernelTable::Unprepare;
      }
      if (dynamic) {
        record.create = &KernelTable::Create;
        record.compute = &KernelTable::Compute;
        record.destroy = &KernelTable::Destroy;
      }
      pointers_.push_back(&record);
    }
  }
  api_.kernels = pointers_.data();
  api_.kernel_count = pointers_.size();
  api_.struct_size = sizeof api_;
  return &api_;
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_KERNEL_H_
