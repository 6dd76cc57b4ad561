// The op cases of a target.
#ifndef WEIR_TOOLS_WEIR_CHECK_CASE_FILE_H_
#define WEIR_TOOLS_WEIR_CHECK_CASE_FILE_H_

#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tools/weir/cases/case_table.h"
#include "tools/weir/check/subject.h"

namespace weir::check {

/// Cases of these ops. Lines that this build cannot read are left out. NotFound naming the folder and the option for
/// another one.
inline Result<std::vector<cases::OpCase>> CasesOf(const Target& target, const std::set<std::string>& ops) {
  std::vector<Status> faults;
  Result<std::vector<cases::OpCase>> read = cases::ReadCases(*target.ops, target.cases, &faults, &ops);
  if (!read.ok()) return read.status().Append("; the SDK installs them, and --cases DIR says where they are");
  return read;
}

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_CASE_FILE_H_
