// Keys of signatures, handles of partial runs, and numbers of steps.
#ifndef WEIR_CORE_SESSION_SIGNATURE_KEY_H_
#define WEIR_CORE_SESSION_SIGNATURE_KEY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/graph/definition.h"
#include "core/session/call.h"
#include "core/session/resolve.h"
#include "core/session/signature.h"

namespace weir::session {

/// The key of a signature.
std::string KeyOf(std::span<const Feed> feeds, std::span<const std::string> fetches,
                  std::span<const std::string> targets, Signature::Ops ops);

/// As above for a part of a partial run; differs from all other keys.
std::string KeyOf(const ResolvedNames& part);

/// TensorFlow's format: "a:0,b:0->add:0/init/1/;0" with sorted lists; the last number counts the session's partial
/// runs.
std::string HandleOf(const graph::Definition& graph, const ResolvedNames& names, size_t count);

/// Unique in this process. Each thread reserves a thousand at a time, so that threads do not contend for a counter.
int64_t NextStepId();

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_SIGNATURE_KEY_H_
