// Stage options: the schema, and values at its limits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/plugin/module.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using kernel::Text;

std::vector<const weir_option_spec*> Specs(const weir_plugin& table) {
  if (table.options == nullptr) return {};
  return {table.options, table.options + table.option_count};
}

bool HasRange(const weir_option_spec& spec) {
  return spec.struct_size >= sizeof(weir_option_spec) && spec.has_range != 0;
}

Status CheckSpec(const weir_option_spec* spec, std::set<std::string_view>& keys) {
  if (spec == nullptr || spec->struct_size < offsetof(weir_option_spec, minimum))
    return InvalidArgument("an option spec is too short");
  const std::string_view key = Text(spec->key);
  if (key.empty()) return InvalidArgument("an option has no key");
  if (!keys.insert(key).second) return InvalidArgument("option '{}' occurs twice", key);
  if (spec->type < WEIR_VALUE_INT || spec->type > WEIR_VALUE_STRING) {
    return InvalidArgument("option '{}' has type {}, wanted int, float, bool or string", key, spec->type);
  }
  if (Text(spec->doc).empty()) return InvalidArgument("option '{}' has no description", key);
  if (spec->default_value.type != spec->type) {
    return InvalidArgument("option '{}' has type {}, its default {}", key, spec->type, spec->default_value.type);
  }
  if (!HasRange(*spec)) return {};
  if (spec->type != WEIR_VALUE_INT && spec->type != WEIR_VALUE_FLOAT) {
    return InvalidArgument("option '{}' has a range, but is not a number", key);
  }
  if (!(spec->minimum <= spec->maximum))
    return InvalidArgument("option '{}' has the empty range {} to {}", key, spec->minimum, spec->maximum);
  const weir_opt& value = spec->default_value;
  const double number = spec->type == WEIR_VALUE_INT ? static_cast<double>(value.value.i) : value.value.f;
  if (!(number >= spec->minimum && number <= spec->maximum)) {
    return InvalidArgument("option '{}': default {} lies outside {} to {}", key, number, spec->minimum, spec->maximum);
  }
  return {};
}

enum class Edge { kMinimum, kMaximum };

// The defaults, with every ranged option at one end of its range.
std::vector<weir_opt> OptionsAt(const weir_plugin& table, Edge edge) {
  std::vector<weir_opt> options = plugin::DefaultOptions(table);
  for (weir_opt& option : options) {
    for (const weir_option_spec* spec : Specs(table)) {
      if (spec == nullptr || Text(spec->key) != Text(option.key)) continue;
      if (spec->type == WEIR_VALUE_BOOL) option.value.i = edge == Edge::kMaximum ? 1 : 0;
      if (!HasRange(*spec)) continue;
      const double bound = edge == Edge::kMaximum ? spec->maximum : spec->minimum;
      if (!std::isfinite(bound)) continue;
      if (spec->type == WEIR_VALUE_INT) option.value.i = static_cast<int64_t>(bound);
      if (spec->type == WEIR_VALUE_FLOAT) option.value.f = bound;
    }
  }
  return options;
}

}  // namespace

std::vector<RuleResult> OptionsStage(const Target& target) {
  std::vector<RuleResult> results = RunInChild("WEIR-OPT-01", target.time_limit_ms, [&](Recorder& recorder) {
    recorder.Try("WEIR-OPT-01", [&]() -> Status {
      WEIR_ASSIGN(const Subject subject, Subject::Load(target.path));
      std::set<std::string_view> keys;
      for (const weir_option_spec* spec : Specs(subject.table())) WEIR_TRY(CheckSpec(spec, keys));
      return {};
    });
  });
  for (const Edge edge : {Edge::kMinimum, Edge::kMaximum}) {
    const std::vector<RuleResult> more = RunInChild("WEIR-OPT-02", target.time_limit_ms, [&](Recorder& recorder) {
      recorder.Try("WEIR-OPT-02", [&]() -> Status {
        WEIR_ASSIGN(const Subject subject, Subject::Load(target.path));
        const std::vector<weir_opt> options = OptionsAt(subject.table(), edge);
        const std::string what =
            fmt::format("init with options at their {}", edge == Edge::kMaximum ? "maximum" : "minimum");
        return kernel::CallPlugin(what,
                                  [&](weir_error* error) {
                                    return subject.table().init(&WatchingHost(), options.data(), options.size(), error);
                                  })
            .Prepend(what + ": ");
      });
    });
    results.insert(results.end(), more.begin(), more.end());
  }
  const std::vector<RuleResult> given = RunInChild("WEIR-OPT-03", target.time_limit_ms, [&](Recorder& recorder) {
    recorder.Try("WEIR-OPT-03", [&]() -> Finding {
      const Result<Subject> subject = Subject::Load(target.path);
      if (!subject.ok()) return subject.status();
      const auto options = plugin::PluginOptions::Resolve(subject->table(), *target.config);
      if (!options.ok()) return options.status();
      const bool any = std::ranges::any_of((*options)->all(), [](const plugin::PluginOption& option) {
        return option.origin.source > config::Source::kPlugin;
      });
      if (!any) return Finding::Skip("none is set");
      return Subject::Start(target).status();
    });
  });
  results.insert(results.end(), given.begin(), given.end());
  return results;
}

}  // namespace weir::check
