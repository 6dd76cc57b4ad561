// ConfigProto in both formats.
#include "core/config/config_proto.h"

#include <gtest/gtest.h>

#include "core/config/sources.h"
#include "core/config/toml.h"

namespace weir::config {
namespace {

struct Outcome {
  Status status;
  Config config;
  std::vector<std::string> notes;
};

Outcome ReadProto(std::string_view bytes) {
  Outcome outcome;
  Settings settings;
  outcome.status = ReadConfigProto(bytes, {Source::kFile, "config.pbtxt"}, settings, outcome.notes);
  if (!outcome.status.ok()) return outcome;
  Result<Config> config = settings.Build();
  outcome.status = config.status();
  if (config.ok()) outcome.config = *config;
  return outcome;
}

TEST(ConfigProto, F351_TextWithLines) {
  const Outcome read = ReadProto(R"(allow_soft_placement: true
log_device_placement: true
device_count { key: "CPU" value: 2 }
gpu_options {
  per_process_gpu_memory_fraction: 0.7
  allow_growth: true
  experimental { virtual_devices { memory_limit_mb: 100 memory_limit_mb: 200 } }
}
graph_options { optimizer_options { opt_level: L0 } rewrite_options { constant_folding: OFF remapping: OFF } }
)");
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_TRUE(read.config.allow_soft_placement);
  EXPECT_TRUE(read.config.log_device_placement);
  EXPECT_EQ(read.config.device_count.at("CPU"), 2);
  EXPECT_EQ(read.config.gpu_options.per_process_gpu_memory_fraction, 0.7);
  EXPECT_EQ(read.config.gpu_options.experimental.virtual_devices.at(0).memory_limit_mb,
            (std::vector<double>{100, 200}));
  EXPECT_EQ(read.config.graph_options.optimizer_options.opt_level, "L0");
  EXPECT_EQ(read.config.graph_options.rewrite_options.constant_folding, "OFF");
  EXPECT_EQ(read.config.graph_options.rewrite_options.remapping, "OFF");
  EXPECT_EQ(read.config.origins.at("gpu_options.allow_growth").ToString(), "config.pbtxt:6");
  EXPECT_TRUE(read.notes.empty());
}

// Fields by TensorFlow's numbers: 1 {CPU: 2}, 5 = 3, 6 {1 = 0.5, 4 = true}, 7 = true, 11 = 200.
TEST(ConfigProto, F278_WireFormatHasTensorFlowsNumbers) {
  using std::string_view_literals::operator""sv;
  const Outcome read = ReadProto(
      "\x0a\x07\x0a\x03"
      "CPU\x10\x02\x28\x03\x32\x0b\x09\x00\x00\x00\x00\x00\x00\xe0\x3f\x20\x01\x38\x01\x58\xc8\x01"sv);
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.config.device_count.at("CPU"), 2);
  EXPECT_EQ(read.config.inter_op_parallelism_threads, 3);
  EXPECT_EQ(read.config.gpu_options.per_process_gpu_memory_fraction, 0.5);
  EXPECT_TRUE(read.config.gpu_options.allow_growth);
  EXPECT_TRUE(read.config.allow_soft_placement);
  EXPECT_EQ(read.config.operation_timeout_in_ms, 200);
}

TEST(ConfigProto, WithoutSoftPlacementItIsHard) {
  const Outcome read = ReadProto("");
  ASSERT_TRUE(read.status.ok());
  EXPECT_FALSE(read.config.allow_soft_placement);
}

TEST(ConfigProto, TheLaterEntryOfAMapCountsAndIsNamed) {
  const Outcome read = ReadProto("device_count { key: \"CPU\" value: 2 }\ndevice_count { key: \"CPU\" value: 3 }\n");
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.config.device_count.at("CPU"), 3);
  EXPECT_EQ(read.config.origins.at("device_count.CPU").ToString(), "config.pbtxt:2");
}

TEST(ConfigProto, F092_SettingsAreWrittenAndReadAgain) {
  Settings settings;
  const char* const text =
      "allow_soft_placement = false\nisolate_session_state = true\noperation_timeout_in_ms = 7000\n"
      "inter_op_parallelism_threads = 3\ndevice_filters = [\"/job:ps\", \"/job:worker/task:0\"]\n"
      "[device_count]\nCPU = 2\n[gpu_options]\nper_process_gpu_memory_fraction = 0.5\n"
      "[[gpu_options.experimental.virtual_devices]]\nmemory_limit_mb = [512, 256]\n"
      "[graph_options.optimizer_options]\nopt_level = \"L0\"\n[placement]\nalgorithm = \"tf\"\n";
  ASSERT_TRUE(ReadToml(text, "weir.toml", settings).ok());
  const Result<Config> config = settings.Build();
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  const Result<std::string> bytes = WriteConfigProto(*config);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  Settings again;
  std::vector<std::string> notes;
  ASSERT_TRUE(ReadConfigProto(*bytes, {Source::kCallSite, "client"}, again, notes).ok());
  const Result<Config> read = again.Build();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_FALSE(read->allow_soft_placement);
  EXPECT_TRUE(read->isolate_session_state);
  EXPECT_EQ(read->operation_timeout_in_ms, 7000);
  EXPECT_EQ(read->inter_op_parallelism_threads, 3);
  EXPECT_EQ(read->device_filters, config->device_filters);
  EXPECT_EQ(read->device_count.at("CPU"), 2);
  EXPECT_EQ(read->gpu_options.per_process_gpu_memory_fraction, 0.5);
  ASSERT_EQ(read->gpu_options.experimental.virtual_devices.size(), 1u);
  EXPECT_EQ(read->gpu_options.experimental.virtual_devices[0].memory_limit_mb, (std::vector<double>{512, 256}));
  EXPECT_TRUE(read->graph_options.optimizer_options.opt_level == "L0");
  EXPECT_TRUE(read->placement.algorithm == "costsim");  // weir's own keys do not travel
  EXPECT_TRUE(notes.empty());
}

TEST(ConfigProto, HintsAreAcceptedAndReported) {
  const Outcome read = ReadProto(
      "graph_options { rewrite_options { loop_optimization: ON min_graph_nodes: 5 } }\n"
      "gpu_options { polling_active_delay_usecs: 7 }\nrpc_options { compression_level: 1 }");
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  ASSERT_EQ(read.notes.size(), 3u);
  EXPECT_NE(read.notes[0].find("config.pbtxt:1: graph_options.rewrite_options.loop_optimization is a hint"),
            std::string::npos)
      << read.notes[0];
  EXPECT_EQ(read.config.gpu_options.polling_active_delay_usecs, 7);
}

TEST(ConfigProto, F351_F352_EveryFieldOfTensorFlowsIsTakenOrTold) {
  // Texts written by TensorFlow 2.17.
  const Outcome text = ReadProto(
      "gpu_options { experimental { num_virtual_devices_per_gpu: 2 stream_merge_options { } } }\n"
      "graph_options { rewrite_options { auto_mixed_precision_mkl: ON scoped_allocator_opts { enable_op: \"x\" } } }\n"
      "experimental { use_tfrt: true coordination_config { service_type: \"standalone\" } }");
  ASSERT_TRUE(text.status.ok()) << text.status.message();
  ASSERT_EQ(text.notes.size(), 5u);
  EXPECT_NE(text.notes[0].find(":1: gpu_options.experimental.num_virtual_devices_per_gpu is a hint"), std::string::npos)
      << text.notes[0];
  // Field 99 = 1 of the message itself, fields 98 = 1 and 97 = 1 of field 6, gpu_options.
  using std::string_view_literals::operator""sv;
  const Outcome wire = ReadProto("\x98\x06\x01\x32\x06\x90\x06\x01\x88\x06\x01"sv);
  ASSERT_TRUE(wire.status.ok()) << wire.status.message();
  ASSERT_EQ(wire.notes.size(), 2u);
  EXPECT_NE(wire.notes[0].find("config.pbtxt: unknown field 99 of ConfigProto is ignored"), std::string::npos)
      << wire.notes[0];
  EXPECT_NE(wire.notes[1].find("field 97, 98 of gpu_options"), std::string::npos) << wire.notes[1];
}

TEST(ConfigProto, F352_FaultsSayWhere) {
  const auto expect = [](std::string_view text, Code code, const std::vector<std::string>& said) {
    const Outcome read = ReadProto(text);
    EXPECT_EQ(CodeName(read.status.code()), CodeName(code)) << text;
    for (const std::string& part : said) {
      EXPECT_NE(read.status.message().find(part), std::string::npos) << part << "\n" << read.status.message();
    }
  };
  expect("gpu_options { alow_growth: true }", Code::kInvalidArgument,
         {"has no field named \"alow_growth\"", "nearest: 'allow_growth'"});
  expect("gpu_options { graph_options { } }", Code::kInvalidArgument, {"There is 'graph_options'."});
  expect("deterministic: true", Code::kInvalidArgument, {"has no field named \"deterministic\"."});
  expect("opt_level: L0", Code::kInvalidArgument, {"There is 'graph_options.optimizer_options.opt_level'."});
  expect("\ngpu_options { per_process_gpu_memory_fraction: -1 }", Code::kInvalidArgument,
         {"config.pbtxt:2: gpu_options.per_process_gpu_memory_fraction: wanted a number from 0"});
  expect("gpu_options { per_process_gpu_memory_fraction: 1.5 }", Code::kInvalidArgument, {"wanted 0 to 1"});
  expect("device_filters: \"/job:ps:0\"", Code::kInvalidArgument, {"device_filters"});
  expect("cluster_def { job { name: \"ps\" } }", Code::kUnimplemented, {"one process"});
  expect("\x0a\x7f", Code::kInvalidArgument, {"cannot be parsed"});
}

}  // namespace
}  // namespace weir::config
