// Tables of kernels: what records say before a kernel has forms, and when the forms are made.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::sdk::test {
namespace {

struct Fetch {
  template <class T, class I>
  void Run(Variable<T>, View<const T>, sdk::Host<const I>, View<T>) {}
};
struct Sized {
  template <class T>
  int32_t Compute(Context& ctx) {
    return ctx.error().Unimplemented("not called");
  }
};
struct Plain {
  void Run(View<const float>, View<float>) const {}
};
struct Minus {
  template <class T>
  T operator()(T x) const {
    return -x;
  }
};

constexpr Types<float, double> kFloats;
constexpr Types<int32_t, int64_t, uint8_t> kIntegers;

TEST(KernelTable, RecordsSayWhatTheFormsWillBe) {
  KernelTable table("cpu;other");
  table.Add<Fetch>("Fetch", Attr("Tparams", kFloats), Attr("Tindices", kIntegers));
  table.Add<Sized>("Sized", kFloats).Restrict("Tout", {WEIR_INT32});
  table.Add<Plain>("Plain");
  table.Unary<Minus>("Minus", kFloats);
  const weir_kernels_api& api = *table.Finish();
  ASSERT_EQ(api.kernel_count, 8u);
  const weir_kernel& fetch = *api.kernels[0];
  EXPECT_EQ(ToView(fetch.platform), "cpu");
  EXPECT_EQ(ToView(api.kernels[1]->platform), "other");
  EXPECT_EQ(api.kernels[1]->user, fetch.user);
  ASSERT_EQ(fetch.type_count, 2u);
  EXPECT_EQ(ToView(fetch.types[1].attr), "Tindices");
  EXPECT_EQ(fetch.types[0].dtypes, WEIR_DTYPE_BIT(WEIR_FLOAT32) | WEIR_DTYPE_BIT(WEIR_FLOAT64));
  EXPECT_EQ(fetch.types[1].dtypes,
            WEIR_DTYPE_BIT(WEIR_INT32) | WEIR_DTYPE_BIT(WEIR_INT64) | WEIR_DTYPE_BIT(WEIR_UINT8));
  EXPECT_EQ(fetch.variable_writes, 1u);
  EXPECT_EQ(fetch.host_inputs, 4u);
  EXPECT_NE(fetch.flags & WEIR_KERNEL_STATEFUL, 0u);
  EXPECT_TRUE(fetch.prepare != nullptr && fetch.create == nullptr);
  const weir_kernel& sized = *api.kernels[2];
  EXPECT_TRUE(sized.prepare == nullptr && sized.create != nullptr);
  EXPECT_EQ(sized.type_count, 2u);
  EXPECT_EQ(api.kernels[4]->type_count, 0u);
  EXPECT_EQ(api.kernels[4]->flags & WEIR_KERNEL_STATEFUL, 0u);
  EXPECT_EQ(api.kernels[6]->types[0].dtypes, fetch.types[0].dtypes);
  const auto forms = [&](uint64_t i) { return static_cast<const Kernel*>(api.kernels[i]->user)->Variants().size(); };
  EXPECT_EQ(forms(0), 6u);
  EXPECT_EQ(forms(2), 2u);
  EXPECT_EQ(forms(4), 1u);
  EXPECT_EQ(forms(6), 2u);
}

std::atomic<int> expanded{0};

TEST(KernelTable, FormsAreMadeOnceByTheFirstUse) {
  KernelTable table("cpu");
  Kernel& kernel = table.Add<Plain>("Plain");
  kernel.expand = [](std::vector<internal::Variant>& variants) {
    ++expanded;
    variants.emplace_back();
  };
  table.Finish();
  EXPECT_EQ(expanded, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&kernel] { EXPECT_EQ(kernel.Variants().size(), 1u); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(expanded, 1);
}

}  // namespace
}  // namespace weir::sdk::test
