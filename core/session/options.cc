#include "core/session/options.h"

#include <memory>

#include "core/config/pins.h"
#include "core/place/place.h"

namespace weir::session {

plugin::LoadOptions LoadOptionsFrom(const config::Config& config) {
  plugin::LoadOptions options;
  if (!config.plugins.folders.empty()) {
    options.folders = config.plugins.folders;
    for (std::string& usual : plugin::SearchPath()) options.folders.push_back(std::move(usual));
  }
  options.deny = config.plugins.deny;
  options.time_limit_ms = config.plugins.time_limit_ms;
  options.config = config;
  return options;
}

namespace {

place::PlaceOptions PlaceOptionsFrom(const config::Config& config) {
  const config::PlacementConfig& placement = config.placement;
  place::PlaceOptions options;
  options.algorithm = placement.algorithm == "whitepaper" ? place::Algorithm::kWhitePaper
                      : placement.algorithm == "tf"       ? place::Algorithm::kTf
                      : placement.algorithm == "single"   ? place::Algorithm::kSingle
                                                          : place::Algorithm::kCostSim;
  if (!placement.pin.empty()) {
    options.pins = std::make_shared<config::Pins>(config::Pins::List(placement.pin.begin(), placement.pin.end()));
  }
  options.keep_graph_devices = placement.graph_devices == "keep";
  options.unknown_dim = placement.unknown_dim;
  options.refine_iterations = placement.refine_iterations;
  options.max_devices = placement.max_devices;
  options.aliases = placement.alias;
  options.strict_devices = placement.strict_devices;
  for (const auto& [name, link] : config.link) options.links[name] = {link.latency_us * 1e3, link.gbps};
  return options;
}

}  // namespace

void LeaveToTasks(SessionOptions& options) {
  options.fusion = false;
  options.compile_regions = CompileRegions::kOff;
  options.replace_period = 0;
}

SessionOptions SessionOptionsFrom(const config::Config& config) {
  const config::OptimizerOptions& optimizer = config.graph_options.optimizer_options;
  const config::RewriterConfig& rewrite = config.graph_options.rewrite_options;
  const bool all = optimizer.opt_level == "L1";
  SessionOptions options;
  options.allow_soft_placement = config.allow_soft_placement;
  options.log_device_placement = config.log_device_placement;
  options.constant_folding = (all || optimizer.do_constant_folding) && rewrite.constant_folding != "OFF";
  options.common_subexpressions =
      (all || optimizer.do_common_subexpression_elimination) && rewrite.common_subgraph_elimination != "OFF";
  options.fusion = all && rewrite.remapping != "OFF";
  options.compile_regions = config.plugins.compile_regions == "on"    ? CompileRegions::kOn
                            : config.plugins.compile_regions == "off" ? CompileRegions::kOff
                                                                      : CompileRegions::kAuto;
  options.compile_limit_ms = config.plugins.time_limit_ms;
  options.keep_compiled_regions = config.plugins.keep_regions;
  if (optimizer.max_folded_constant_in_bytes > 0) {
    options.max_folded_bytes = static_cast<uint64_t>(optimizer.max_folded_constant_in_bytes);
  }
  options.inter_op_parallelism_threads = config.inter_op_parallelism_threads;
  options.intra_op_parallelism_threads = config.intra_op_parallelism_threads;
  options.deterministic = config.deterministic;
  options.operation_timeout_in_ms = config.operation_timeout_in_ms;
  options.cancel_limit_ms = config.plugins.cancel_limit_ms;
  options.placement_log_file = config.placement.log_file;
  options.plan_file = config.placement.file;
  options.plan_decides = config.placement.algorithm == "file";
  options.explain = config.placement.explain == "none"  ? SessionOptions::Explain::kNone
                    : config.placement.explain == "all" ? SessionOptions::Explain::kAll
                                                        : SessionOptions::Explain::kSummary;
  options.explain_file = config.placement.explain_file;
  options.replace_period = config.placement.replace_period.is_set() ? config.placement.replace_period.value()
                                                                    : config.placement_period.value();
  options.min_gain = config.placement.min_gain;
  options.replace_moves_state = config.placement.replace_moves_state;
  options.bfloat16_transfers = config.graph_options.enable_bfloat16_sendrecv;
  options.verify_placement = config.placement.verify;
  options.late_scheduling = config.graph_options.enable_recv_scheduling;
  options.placement = std::make_shared<const place::PlaceOptions>(PlaceOptionsFrom(config));
  if (config.placement.profile != "off") options.profile_file = config.placement.profile;
  return options;
}

}  // namespace weir::session
