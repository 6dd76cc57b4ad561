#include "tools/weir/explain_page.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/weir/explain_page_text.h"

namespace weir::cli {
namespace {

using Data = nlohmann::ordered_json;

std::string DevicePart(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

/// JSON inside a script element: "</script>" and "<!--" in a text must not end it.
std::string InScript(const Data& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Data::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string Escaped(const std::string& text) {
  static const std::map<char, std::string_view> kMarks = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string escaped;
  for (const char c : text) {
    const auto mark = kMarks.find(c);
    if (mark == kMarks.end()) {
      escaped += c;
    } else {
      escaped += mark->second;
    }
  }
  return escaped;
}

Data NodesOf(const place::Explanation& explanation, const session::StepMeasurement* measured) {
  Data nodes = Data::array();
  for (const place::NodeReport& node : explanation.nodes) {
    Data candidates = Data::array();
    for (const place::CandidateReport& candidate : node.candidates) {
      candidates.push_back({DevicePart(candidate.device), candidate.exec_ns, place::Name(candidate.provenance),
                            candidate.inputs_ns, candidate.finish_ns, candidate.verdict, candidate.chosen});
    }
    Data entry = {{"n", node.name},
                  {"o", node.op},
                  {"t", node.operands},
                  {"d", DevicePart(node.device)},
                  {"r", place::Name(node.reason)},
                  {"b", node.bytes},
                  {"s", node.start_ns},
                  {"f", node.finish_ns},
                  {"i", node.inputs},
                  {"c", std::move(candidates)}};
    if (measured != nullptr) {
      const auto found = measured->node_ns.find(node.name);
      if (found != measured->node_ns.end()) entry["m"] = found->second;
    }
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

}  // namespace

std::string ExplainPage(const std::string& title, const place::Explanation& explanation,
                        const session::StepMeasurement* measured) {
  Data data = {{"summary", explanation.summary},
               {"plan", explanation.winner},
               {"total", explanation.makespan_ns},
               {"bound", explanation.bound_ns},
               {"single", explanation.best_single_ns},
               {"warnings", explanation.warnings},
               {"nodes", NodesOf(explanation, measured)},
               {"devices", Data::array()},
               {"links", Data::array()},
               {"memory", Data::array()}};
  if (measured != nullptr) data["measured"] = {{"runs", measured->runs}, {"ns", measured->step_ns}};
  for (const place::DeviceMemory& device : explanation.memory) {
    data["devices"].push_back({{"n", DevicePart(device.device)}, {"cap", device.capacity_bytes}});
  }
  for (const place::TransferReport& transfer : explanation.course) {
    data["links"].push_back({transfer.from + " \u2192 " + transfer.to, transfer.node, transfer.bytes, transfer.start_ns,
                             transfer.finish_ns});
  }
  for (const place::MemoryPoint& point : explanation.memory_course) {
    data["memory"].push_back({point.device, point.time_ns, point.bytes});
  }
  std::string page;
  page += kPageHead;
  page += Escaped(title);
  page += kPageBody;
  page += InScript(data);
  page += kPageScript;
  return page;
}

}  // namespace weir::cli
