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
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk/abi/kernel.h"
#include "sdk/cpp/context.h"
#include "sdk/cpp/kernel_forms.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/types.h"
#include "sdk/cpp/views.h"

namespace weir::sdk {

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
  std::array<const char*, 3> attrs{};  // type attributes, in the order of the variants' dtypes
  size_t attr_count = 0;
  std::vector<weir_type_constraint> types;
  bool by_operand = false;  // input 0's type selects the variant, not the attributes
  internal::Summary summary;
  void (*expand)(std::vector<internal::Variant>& variants) = nullptr;

  /// All variants, made by the first call. Until the table is finished they may be changed. Thread-safe.
  std::vector<internal::Variant>& Variants() const {
    std::call_once(expanded_, [this] {
      if (expand != nullptr) expand(variants_);
    });
    return variants_;
  }

  /// Null if the kernel has no variant for these types.
  const internal::Variant* Find(const Node& node, uint32_t operand_dtype) const {
    std::array<uint32_t, 3> wanted{};
    for (size_t i = 0; i < attr_count; ++i) {
      wanted[i] = by_operand ? operand_dtype : *attrs[i] == '\0' ? uint32_t{WEIR_INVALID} : node.DType(attrs[i]);
    }
    for (const internal::Variant& variant : Variants()) {
      bool same = true;
      for (size_t i = 0; i < attr_count; ++i) {
        same = same && (*attrs[i] == '\0' && !by_operand ? true : variant.dtypes[i] == wanted[i]);
      }
      if (same) return &variant;
    }
    return nullptr;
  }

 private:
  mutable std::once_flag expanded_;
  mutable std::vector<internal::Variant> variants_;
};

/// The kernels of a plugin. Single-threaded until `Finish`, read-only afterwards. Functions that add kernels are cold:
/// the linker puts them side by side, so that a start of the process reads few pages of the plugin.
class KernelTable {
 public:
  /// `platforms`: separated by ';', as in the plugin's note.
  explicit KernelTable(std::string_view platforms) : platforms_(platforms) {}
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  /// See the top of this file.
  template <class K, class... Lists>
  [[gnu::cold]] Kernel& Add(std::string_view op, Lists... lists) {
    Kernel& kernel = New(op, lists...);
    kernel.summary = internal::SummaryOf<K, Types<>, decltype(ListOf(lists))...>::kValue;
    size_t at = 0;
    ((kernel.summary.dtypes[at++] = internal::DTypesOf(ListOf(lists))), ...);
    kernel.record.host_inputs = kernel.summary.host_inputs;
    kernel.record.variable_reads = kernel.summary.variable_reads;
    kernel.record.variable_writes = kernel.summary.variable_writes;
    if (kernel.summary.stateful) kernel.record.flags |= WEIR_KERNEL_STATEFUL;
    if constexpr (internal::kEstimates<K> || internal::kEstimatesByProfile<K>) kernel.record.estimate = &Estimate<K>;
    kernel.expand = &Expand<K, decltype(ListOf(lists))...>;
    return kernel;
  }

  /// y = F(x) element by element; needs elementwise.h.
  template <class F, class List>
  [[gnu::cold]] Kernel& Unary(std::string_view op, List list);
  /// z = F(x, y) with broadcasting; needs elementwise.h.
  template <class F, class List>
  [[gnu::cold]] Kernel& Binary(std::string_view op, List list);
  /// z = F(x, y) of operands with the same element count, without broadcasting; needs elementwise.h.
  template <class F, class List>
  [[gnu::cold]] Kernel& Pairwise(std::string_view op, List list);

  /// A kernel of a type attribute per list; the caller fills in `summary` and `expand`.
  template <class... Lists>
  Kernel& New(std::string_view op, Lists... lists) {
    static_assert(sizeof...(Lists) <= 3, "at most three type attributes");
    Kernel& kernel = kernels_.emplace_back();
    kernel.op = op;
    ((kernel.attrs[kernel.attr_count++] = AttrName(lists)), ...);
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
  /// Calls visit.operator()<T...>(dtypes) for each choice of a type of every list.
  template <class... T, class Visit>
  static void ForAll(Visit& visit, std::array<uint32_t, 3> dtypes, size_t) {
    visit.template operator()<T...>(dtypes);
  }
  template <class... T, class Visit, class... E, class... Rest>
  static void ForAll(Visit& visit, std::array<uint32_t, 3> dtypes, size_t at, Types<E...>, Rest... rest) {
    const auto with = [&](uint32_t dtype) {
      auto copy = dtypes;
      copy[at] = dtype;
      return copy;
    };
    (ForAll<T..., typename Element<E>::Type>(visit, with(Element<E>::kNumber), at + 1, rest...), ...);
  }

  template <class K>
  struct Expander {
    std::vector<internal::Variant>* variants;
    template <class... T>
    void operator()(const std::array<uint32_t, 3>& dtypes) {
      internal::Variant variant;
      variant.dtypes = dtypes;
      if constexpr (internal::Dynamic<K, T...>) {
        variant.create = &internal::DynamicRunner<K, T...>::Create;
      } else {
        variant.data = &internal::Runner<K, T...>::kForm;
        variant.prepare = &internal::PrepareBound<K>;
      }
      variants->push_back(variant);
    }
  };
  template <class K, class... Lists>
  static void Expand(std::vector<internal::Variant>& variants) {
    Expander<K> all{&variants};
    ForAll(all, {}, 0, Lists()...);
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
  std::deque<weir_kernel> records_;  // for the platforms after the first
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
  pointers_.reserve(kernels_.size() * platform_names_.size());
  for (Kernel& kernel : kernels_) {
    kernel.types.reserve(kernel.types.size() + kernel.attr_count);
    for (size_t i = 0; i < kernel.attr_count; ++i) {
      if (*kernel.attrs[i] != '\0') kernel.types.push_back({Str(kernel.attrs[i]), kernel.summary.dtypes[i]});
    }
    kernel.record.struct_size = sizeof kernel.record;
    kernel.record.op = Str(kernel.op);
    kernel.record.types = kernel.types.data();
    kernel.record.type_count = static_cast<uint32_t>(kernel.types.size());
    kernel.record.user = &kernel;
    if (kernel.summary.prepared) {
      kernel.record.prepare = &KernelTable::Prepare;
      kernel.record.unprepare = &KernelTable::Unprepare;
    }
    if (kernel.summary.dynamic) {
      kernel.record.create = &KernelTable::Create;
      kernel.record.compute = &KernelTable::Compute;
      kernel.record.destroy = &KernelTable::Destroy;
    }
    for (const std::string& platform : platform_names_) {
      const bool first = &platform == &platform_names_.front();
      weir_kernel& record = first ? kernel.record : records_.emplace_back(kernel.record);
      record.platform = Str(platform);
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
