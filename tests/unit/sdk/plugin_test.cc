// The entry point defined by WEIR_PLUGIN: parts start and stop with the plugin.
#include "sdk/cpp/plugin.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::sdk {
namespace {

/// A record of the parts' actions, in order.
std::string& Said() {
  static std::string said;
  return said;
}

struct Driver {
  static int32_t Start(const Options& options, const Error&) {
    Said() += "start driver " + std::to_string(options.Int("cards", 1)) + "; ";
    return WEIR_OK;
  }
  static void Stop() { Said() += "stop driver; "; }
};

struct Library {
  static int32_t Start(const Options& options, const Error& error) {
    if (options.Bool("broken", false)) return error.Fail(WEIR_UNAVAILABLE, "the library is broken");
    Said() += "start library; ";
    return WEIR_OK;
  }
  static void Stop() { Said() += "stop library; "; }
};

struct Tables {
  static constexpr uint32_t kKind = WEIR_KIND_KERNELS;
  static const void* Interface(std::string_view id, std::string_view) { return id == "kernels/1" ? "table" : nullptr; }
};

struct Texts {
  static constexpr std::string_view kName = "parts", kVersion = "1", kTargets = "";
};

class PluginEntry : public ::testing::Test {
 protected:
  const weir_plugin* table_ = internal::Entry<Texts, Driver, Tables, Library>::Query(WEIR_ABI_MAJOR);
  const weir_host host_{};
  void SetUp() override {
    HostTable() = nullptr;
    Said().clear();
  }
  void TearDown() override { HostTable() = nullptr; }
  int32_t Init(std::string_view key, uint32_t type, int64_t value, weir_error* error) {
    weir_opt option{};
    option.key = Str(key);
    option.type = type;
    option.value.i = value;
    return table_->init(&host_, &option, 1, error);
  }
};

TEST_F(PluginEntry, PartsStartInOrderAndStopInTheOtherOne) {
  ASSERT_EQ(Init("cards", WEIR_VALUE_INT, 3, nullptr), WEIR_OK);
  EXPECT_EQ(Said(), "start driver 3; start library; ");
  table_->shutdown();
  EXPECT_EQ(Said(), "start driver 3; start library; stop library; stop driver; ");
  table_->shutdown();
  EXPECT_EQ(Said(), "start driver 3; start library; stop library; stop driver; ");
}

TEST_F(PluginEntry, PartThatDoesNotStartStopsThoseBeforeIt) {
  weir_error error{};
  error.struct_size = sizeof(error);
  EXPECT_EQ(Init("broken", WEIR_VALUE_BOOL, 1, &error), WEIR_UNAVAILABLE);
  EXPECT_EQ(Said(), "start driver 1; stop driver; ");
}

TEST_F(PluginEntry, PartsNeedNoInterfaceAndNoKind) {
  EXPECT_STREQ(static_cast<const char*>(table_->get_interface(Str("kernels/1"))), "table");
  EXPECT_EQ(table_->get_interface(Str("device/1")), nullptr);
  EXPECT_EQ((internal::kKindsOf<Driver, Tables, Library>), WEIR_KIND_KERNELS);
}

}  // namespace
}  // namespace weir::sdk
