// The stages: each tries its rules in one or more child processes.
#ifndef WEIR_TOOLS_WEIR_CHECK_STAGES_H_
#define WEIR_TOOLS_WEIR_CHECK_STAGES_H_

#include <vector>

#include "tools/weir/check/check.h"
#include "tools/weir/check/subject.h"

namespace weir::check {

std::vector<RuleResult> StaticStage(const Target& target);
std::vector<RuleResult> LoadStage(const Target& target);
std::vector<RuleResult> AbiStage(const Target& target);
std::vector<RuleResult> LifecycleStage(const Target& target);
std::vector<RuleResult> OptionsStage(const Target& target);
std::vector<RuleResult> MemoryStage(const Target& target);
std::vector<RuleResult> StreamsStage(const Target& target);
std::vector<RuleResult> KernelsStage(const Target& target);
std::vector<RuleResult> ValuesStage(const Target& target);
std::vector<RuleResult> OrderStage(const Target& target);
std::vector<RuleResult> GradientsStage(const Target& target);
std::vector<RuleResult> CostsStage(const Target& target);
std::vector<RuleResult> CompilerStage(const Target& target);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_STAGES_H_
