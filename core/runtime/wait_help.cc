#include "core/runtime/wait_help.h"

namespace weir::runtime {
namespace {

thread_local const WaitHelp* help_here = nullptr;

}  // namespace

const WaitHelp* WaitHelp::Here() { return help_here; }

WaitHelpScope::WaitHelpScope(const WaitHelp* help) : before_(help_here) {
  if (before_ == nullptr) help_here = help;
}

WaitHelpScope::~WaitHelpScope() { help_here = before_; }

}  // namespace weir::runtime
