#include "core/client/graph/collections_internal.h"

#include <re2/re2.h>

#include "core/base/errors.h"

namespace weir {

struct NameFilter::Compiled {
  explicit Compiled(std::string_view pattern) : expression(std::string(pattern), RE2::Quiet) {}
  RE2 expression;
};

Result<NameFilter> NameFilter::Make(std::string_view scope) {
  NameFilter filter;
  if (scope.find_first_of("\\^$.|?*+()[]{}") == std::string_view::npos) {
    filter.prefix_ = scope;
    return filter;
  }
  auto compiled = std::make_shared<Compiled>(scope);
  if (!compiled->expression.ok()) {
    return InvalidArgument("scope '{}' is no regular expression: {}", scope, compiled->expression.error());
  }
  filter.compiled_ = std::move(compiled);
  return filter;
}

bool NameFilter::operator()(std::string_view name) const {
  if (!compiled_) return name.starts_with(prefix_);
  return compiled_->expression.Match(re2::StringPiece(name.data(), name.size()), 0, name.size(), RE2::ANCHOR_START,
                                     nullptr, 0);
}

}  // namespace weir
