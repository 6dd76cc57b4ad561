// TOML to Config: values, positions, and error texts.
#include <fmt/format.h>

#include "core/config/toml.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/config/schema.h"

namespace weir::config {
namespace {

Result<Config> Read(std::string_view text) {
  Settings settings;
  WEIR_TRY(ReadToml(text, "weir.toml", settings));
  return settings.Build();
}

void ExpectFault(std::string_view text, Code code, const std::vector<std::string>& said) {
  const Result<Config> config = Read(text);
  ASSERT_FALSE(config.ok()) << text;
  EXPECT_EQ(CodeName(config.status().code()), CodeName(code)) << text << "\n" << config.status().message();
  for (const std::string& part : said) {
    EXPECT_NE(config.status().message().find(part), std::string::npos) << part << "\n" << config.status().message();
  }
}

TEST(Toml, F278_F351_EveryConfigProtoKeyHasItsPlace) {
  const Result<Config> read = Read(R"(
allow_soft_placement = false
log_device_placement = true
inter_op_parallelism_threads = 2
intra_op_parallelism_threads = 3
operation_timeout_in_ms = 200
[device_count]
CPU = 2
GPU = 0
[gpu_options]
per_process_gpu_memory_fraction = 0.7
allow_growth = true
visible_device_list = "1,0"
[[gpu_options.experimental.virtual_devices]]
memory_limit_mb = [100, 200.5]
[[gpu_options.experimental.virtual_devices]]
memory_limit_mb = []
[graph_options.optimizer_options]
opt_level = "L0"
do_constant_folding = true
)");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_FALSE(read->allow_soft_placement);
  EXPECT_TRUE(read->log_device_placement);
  EXPECT_EQ(read->inter_op_parallelism_threads, 2);
  EXPECT_EQ(read->intra_op_parallelism_threads, 3);
  EXPECT_EQ(read->operation_timeout_in_ms, 200);
  EXPECT_EQ(read->device_count, (std::map<std::string, int32_t>{{"CPU", 2}, {"GPU", 0}}));
  EXPECT_EQ(read->gpu_options.per_process_gpu_memory_fraction, 0.7);
  EXPECT_TRUE(read->gpu_options.allow_growth);
  EXPECT_EQ(read->gpu_options.visible_device_list, "1,0");
  ASSERT_EQ(read->gpu_options.experimental.virtual_devices.size(), 2u);
  EXPECT_EQ(read->gpu_options.experimental.virtual_devices[0].memory_limit_mb, (std::vector<double>{100, 200.5}));
  EXPECT_EQ(read->graph_options.optimizer_options.opt_level, "L0");
  EXPECT_TRUE(read->graph_options.optimizer_options.do_constant_folding);
  EXPECT_EQ(read->origins.at("gpu_options.allow_growth").ToString(), "weir.toml:12");
  EXPECT_EQ(read->origins.at("device_count.GPU").ToString(), "weir.toml:9");
}

TEST(Toml, WeirsOwnTables) {
  const Result<Config> read = Read(R"(
[placement]
algorithm = "whitepaper"
unknown_dim = 64
profile = "/tmp/calibration.json"
[placement.pin]
"^tower_0/" = "/device:GPU:0"
[device."gpu:0"]
peak_gflops.f32 = 15000
mem_gbps = 900
launch_us = 2.5
memory_limit_mb = 512
allow_growth = false
[link."cpu:0->GPU:0"]
latency_us = 10
gbps = 12
[plugins]
deny = ["rocm"]
[plugin.toy]
memory_bytes = 1048576
nested.key = "x"
)");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->placement.algorithm, "whitepaper");
  EXPECT_EQ(read->placement.unknown_dim, 64);
  EXPECT_EQ(read->placement.profile, "/tmp/calibration.json");
  EXPECT_EQ(read->placement.pin.at("^tower_0/"), "/device:GPU:0");
  const DeviceConfig& gpu = read->device.at("GPU:0");
  EXPECT_EQ(gpu.peak_gflops.at("f32"), 15000);
  EXPECT_EQ(gpu.launch_us, 2.5);
  EXPECT_EQ(gpu.memory_limit_mb, 512);
  EXPECT_EQ(gpu.allow_growth, std::optional<bool>(false));
  EXPECT_EQ(read->link.at("CPU:0->GPU:0").gbps, 12);
  EXPECT_EQ(read->plugins.deny, std::vector<std::string>{"rocm"});
  EXPECT_EQ(std::get<int64_t>(read->plugin.at("toy").at("memory_bytes").given.value), 1048576);
  EXPECT_EQ(read->plugin.at("toy").at("nested.key").origin.line, 21);
}

TEST(Toml, F352_UnknownKeysNameFileLineAndNearest) {
  ExpectFault("\n[gpu_options]\nalow_growth = true", Code::kInvalidArgument,
              {"weir.toml:3: ", "unknown key 'gpu_options.alow_growth'", "nearest: 'gpu_options.allow_growth'"});
  ExpectFault("allow_growth = true", Code::kInvalidArgument,
              {"weir.toml:1: ", "unknown key 'allow_growth'",
               "there is 'gpu_options.allow_growth' and 'device.\"GPU:0\".allow_growth'"});
  ExpectFault("alow_growth = true", Code::kInvalidArgument, {"weir.toml:1: ", "nearest: 'gpu_options.allow_growth'"});
  ExpectFault("[gpu_option]\n", Code::kInvalidArgument, {"weir.toml:1: ", "'gpu_option'", "'gpu_options'"});
  ExpectFault("[device.\"GPU:0\"]\nmem_gpbs = 1", Code::kInvalidArgument,
              {"weir.toml:2: ", "nearest: 'device.\"GPU:0\".mem_gbps'"});
  ExpectFault("[zzzzzzzz]\nq = 1", Code::kInvalidArgument, {"weir.toml:1: ", "weir config show --effective"});
}

TEST(Toml, WrongTypesNameTheExpectedType) {
  ExpectFault("allow_soft_placement = \"yes\"", Code::kInvalidArgument,
              {"weir.toml:1: allow_soft_placement: wanted true or false, got the string \"yes\""});
  ExpectFault("allow_soft_placement = 1", Code::kInvalidArgument, {"wanted true or false, got the integer 1"});
  ExpectFault("inter_op_parallelism_threads = 1.5", Code::kInvalidArgument, {"wanted an integer", "the float 1.5"});
  ExpectFault("gpu_options = 3", Code::kInvalidArgument, {"gpu_options: wanted a table of keys, got the integer 3"});
  ExpectFault("[allow_soft_placement]\nx = 1", Code::kInvalidArgument, {"wanted true or false, got a table"});
  ExpectFault("device_filters = [1, \"a\"]", Code::kInvalidArgument, {"device_filters", "not both"});
  ExpectFault("[placement]\nalgorithm = \"cost\"", Code::kInvalidArgument, {"one of \"costsim\", \"whitepaper\""});
  ExpectFault("log_device_placement = 1979-05-27", Code::kInvalidArgument, {"a date or a time"});
  ExpectFault("[device_count]\nCPU = 99999999999", Code::kInvalidArgument, {"from 0 to 1024"});
}

TEST(Toml, InvalidHeaders) {
  for (const char* header : {"[\x17plugins]", "[=]", "[[?]]", "[a.\x01]", "[]"}) {
    ExpectFault(header, Code::kInvalidArgument, {"weir.toml:1:"});
  }
}

TEST(Toml, ValuesOutOfRange) {
  const std::string fraction = "[gpu_options]\nper_process_gpu_memory_fraction = ";
  ExpectFault(fraction + "1.5", Code::kInvalidArgument,
              {"weir.toml:2: gpu_options.per_process_gpu_memory_fraction = 1.5: wanted 0 to 1", "use_unified_memory"});
  ExpectFault(fraction + "-0.1", Code::kInvalidArgument, {"weir.toml:2", "wanted a number from 0", "-0.1"});
  ExpectFault(fraction + "nan", Code::kInvalidArgument, {"wanted a number from 0", "nan"});
  ExpectFault("[device.GPU]\nmemory_fraction = 2", Code::kInvalidArgument, {"device.GPU.memory_fraction = 2"});
  EXPECT_TRUE(Read(fraction + "1.5\nexperimental.use_unified_memory = true").ok());
  ExpectFault("[device_count]\nCPU = 0", Code::kInvalidArgument, {"device_count.CPU = 0", "at least 1"});
  ExpectFault("inter_op_parallelism_threads = 99999999999", Code::kInvalidArgument, {"wanted an integer"});
  // Accepted as in TensorFlow.
  EXPECT_TRUE(Read("inter_op_parallelism_threads = -5\nintra_op_parallelism_threads = -1\n"
                   "operation_timeout_in_ms = -1\nplacement_period = -3")
                  .ok());
}

TEST(Toml, NamesOfDevicesAndLinks) {
  ExpectFault("[device.\"GPU 0\"]\nlaunch_us = 1", Code::kInvalidArgument, {"is no device, as GPU:0"});
  ExpectFault("[device.\"/job:w/device:GPU:0\"]\nlaunch_us = 1", Code::kInvalidArgument, {"is no device"});
  ExpectFault("[link.\"CPU:0\"]\ngbps = 1", Code::kInvalidArgument, {"is no link, as CPU:0->GPU:0"});
  ExpectFault("[device.\"GPU:0\"]\nvisible_device_list = \"0\"", Code::kInvalidArgument, {"[device.GPU]"});
  ExpectFault("[device.GPU]\nvirtual_memory_limit_mb = [1]", Code::kInvalidArgument, {"[device.\"GPU:0\"]"});
  ExpectFault("[device.GPU]\npeak_gflops.float = 1", Code::kInvalidArgument, {"'float' is no element type"});
  ExpectFault("[placement.pin]\n\"a(\" = \"/cpu:0\"", Code::kInvalidArgument, {"weir.toml:2", "no regular expression"});
  ExpectFault("[placement.pin]\n\"(x.*){900}\" = \"/cpu:0\"", Code::kResourceExhausted,
              {"weir.toml:2: placement.pin.\"(x.*){900}\": the pattern", "takes more than 128 KiB compiled"});
  ExpectFault("[placement.pin]\n\"a\" = \"/foo/bar\"", Code::kInvalidArgument, {"weir.toml:2", "/foo/bar"});
  ExpectFault("[placement]\nalgorithm = \"file\"", Code::kInvalidArgument, {"weir.toml:2", "placement.file"});
  ExpectFault("[plugins]\nfolders = [\"plugins\"]", Code::kInvalidArgument, {"no absolute path"});
}

TEST(Toml, PinsAreBoundedTogether) {
  std::string pins = "[placement.pin]\n";
  for (int i = 0; i < 800; ++i) pins += fmt::format("\"^tower_{}/layer\" = \"/cpu:0\"\n", i);
  EXPECT_TRUE(Read(pins).ok()) << Read(pins).status().ToString();
  for (int i = 0; i < 800; ++i) pins += fmt::format("\"(x{}[a-z]){{400}}\" = \"/cpu:0\"\n", i);
  ExpectFault(pins, Code::kResourceExhausted, {"weir.toml:", "placement.pin", "are too large together"});
}

TEST(Toml, KeysWithoutEffectAreRefused) {
  ExpectFault("\n[graph_options]\ntimeline_step = 5", Code::kUnimplemented,
              {"weir.toml:3: graph_options.timeline_step = 5: this version of weir does not do that", "set it to 0"});
  EXPECT_TRUE(Read("[graph_options]\ntimeline_step = 0").ok());
  ExpectFault("device_filters = [\"/jobs:ps\"]", Code::kInvalidArgument, {"device_filters"});
  for (const Key& key : Schema()) {
    if (key.effect == Effect::kHint) {
      EXPECT_EQ(key.path.find("placement."), std::string_view::npos) << key.path;
    }
  }
}

TEST(Toml, SyntaxErrorsNameLineAndColumn) {
  ExpectFault("allow_soft_placement = true\nlog_device_placement = ", Code::kInvalidArgument, {"weir.toml:2:"});
  ExpectFault("a = 1\na = 2", Code::kInvalidArgument, {"weir.toml:2:"});
  ExpectFault("[gpu_options\n", Code::kInvalidArgument, {"weir.toml:1:"});
  ExpectFault("x = \"\xff\"", Code::kInvalidArgument, {"weir.toml:1:"});
  // Letters between the ranges of spaces that are not ASCII.
  for (const char* letter : {"\u00a1", "\u00e9", "\u0284", "\u0499", "\u1700", "\ua000"}) {
    ExpectFault(std::string("g") + letter + ";", Code::kInvalidArgument, {"weir.toml:1:"});
    ExpectFault(std::string("allow_soft_placement = ") + letter, Code::kInvalidArgument, {"weir.toml:1:"});
  }
}

TEST(Toml, SizeIsBounded) {
  ExpectFault(std::string(kMaxFileBytes + 1, '\n'), Code::kInvalidArgument, {"at most"});
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a.";
  ExpectFault(deep + "a = 1", Code::kInvalidArgument, {"weir.toml:1: a line of"});
  ExpectFault("x = " + std::string(3000, '['), Code::kInvalidArgument, {"weir.toml:1:"});
}

}  // namespace
}  // namespace weir::config
