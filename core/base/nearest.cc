#include "core/base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir {
namespace {

/// Levenshtein distance of a and b, or limit + 1 if the distance exceeds `limit`.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t j = 1; j <= b.size(); ++j) {
    size_t diagonal = row[0];
    row[0] = j;
    size_t best = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      const size_t above = row[i];
      row[i] = std::min({row[i] + 1, row[i - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
      best = std::min(best, row[i]);
    }
    if (best > limit) return limit + 1;
  }
  return row[a.size()];
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string_view>& known, size_t limit) {
  const size_t reach = std::max<size_t>(2, name.size() / 3);
  std::vector<std::pair<size_t, std::string_view>> found;
  for (std::string_view candidate : known) {
    const size_t distance = EditDistance(name, candidate, reach);
    if (distance <= reach) found.emplace_back(distance, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size() && i < limit; ++i) names.emplace_back(found[i].second);
  return names;
}

std::string NearestHint(std::string_view name, const std::vector<std::string_view>& known) {
  std::string text;
  for (const std::string& near : NearestNames(name, known)) text += (text.empty() ? "'" : ", '") + near + "'";
  return text.empty() ? text : " (nearest: " + text + ")";
}

}  // namespace weir
