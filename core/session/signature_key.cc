#include "core/session/signature_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/session/resolve.h"

namespace weir::session {
namespace {

/// Appends a list to a key so that different lists give different keys, regardless of their texts.
template <class List, class Text>
void AddTo(std::string& key, const List& list, const Text& text) {
  for (const auto& element : list) {
    const std::string_view name = text(element);
    const auto size = static_cast<uint32_t>(name.size());
    key.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(name);
  }
  key.append(sizeof(uint32_t), '\xff');
}

}  // namespace

std::string KeyOf(std::span<const Feed> feeds, std::span<const std::string> fetches,
                  std::span<const std::string> targets, Signature::Ops ops) {
  std::string key(ops == Signature::Ops::kAllRun ? "\a" : "\t");
  const auto same = [](const std::string& name) -> std::string_view { return name; };
  AddTo(key, feeds, [](const Feed& feed) -> std::string_view { return feed.first; });
  AddTo(key, fetches, same);
  AddTo(key, targets, same);
  return key;
}

std::string KeyOf(const ResolvedNames& part) {
  std::string key = "\b";
  const auto add = [&key](const auto& list, const auto& text) {
    for (const auto& element : list) (key += text(element)) += '\n';
    key += '\t';
  };
  const auto endpoint = [](graph::Endpoint e) { return fmt::format("{}:{}", e.node, e.index); };
  const auto node = [](graph::NodeId id) { return fmt::format("{}", id); };
  add(part.feeds, endpoint);
  add(part.fetches, endpoint);
  add(part.targets, node);
  add(part.done, node);
  return key;
}

std::string HandleOf(const graph::Definition& graph, const ResolvedNames& names, size_t count) {
  const auto joined = [](const auto& list, const auto& name) {
    std::vector<std::string> texts;
    for (const auto& element : list) texts.push_back(name(element));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return fmt::format("{}", fmt::join(texts, ","));
  };
  const auto endpoint = [&](graph::Endpoint e) { return graph::FullEndpointName(graph, e); };
  const auto node = [&](graph::NodeId id) { return graph.node(id).name(); };
  return fmt::format("{}->{}/{}/1/;{}", joined(names.feeds, endpoint), joined(names.fetches, endpoint),
                     joined(names.targets, node), count);
}

int64_t NextStepId() {
  constexpr int64_t kTaken = 1000;
  static std::atomic<int64_t> counter{1};
  thread_local int64_t next = 0, end = 0;
  if (next == end) {
    next = counter.fetch_add(kTaken, std::memory_order_relaxed);
    end = next + kTaken;
  }
  return next++;
}

}  // namespace weir::session
