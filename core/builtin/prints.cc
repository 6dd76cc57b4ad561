// Ops that write to the process's output streams, and the texts that they write.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/summarize.h"

namespace weir::builtin {
namespace {

/// Writes the text at once, so that lines of concurrent steps do not mix. Files and pipes get TensorFlow's bytes. For a
/// terminal, control characters other than line layout are replaced.
void Write(std::FILE* stream, std::string text) {
  if (isatty(fileno(stream)) != 0) text = Legible(text, "\n\t\r");
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
}

/// Number of previous calls of the node in its session.
int64_t CallsBefore(const kernel::BuiltinCall& call) {
  if (call.resources == nullptr) return 0;
  using Counter = std::atomic<int64_t>;
  void* const counter = call.resources->GetOrCreate(
      call.node_name, "printed", [](void*) -> void* { return new Counter(0); },
      [](void* made) { delete static_cast<Counter*>(made); }, nullptr);
  return static_cast<Counter*>(counter)->fetch_add(1);
}

Status Print(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::string message, call.attrs.String("message"));
  WEIR_ASSIGN(const int64_t first_n, call.attrs.Int("first_n"));
  WEIR_ASSIGN(const int64_t summarize, call.attrs.Int("summarize"));
  call.outputs[0] = call.inputs[0];
  if (first_n >= 0 && CallsBefore(call) >= first_n) return Status();
  std::string line = message;
  for (size_t i = 1; i < call.inputs.size(); ++i) line += call.inputs[i].SummarizeValues(summarize);
  Write(stderr, line + '\n');
  return Status();
}

Status PrintV2(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 0));
  WEIR_ASSIGN(std::string text, Scalar<std::string>(call, 0, "input"));
  WEIR_ASSIGN(const std::string stream, call.attrs.String("output_stream"));
  WEIR_ASSIGN(const std::string end, call.attrs.String("end"));
  text += end;
  constexpr std::string_view kFile = "file://";
  if (stream.starts_with(kFile)) {
    const std::string path = stream.substr(kFile.size());
    std::ofstream file(path, std::ios::app | std::ios::binary);
    file << text << std::flush;
    return file ? Status() : Unavailable("PrintV2 cannot write to '{}'", path);
  }
  const bool logs = stream == "log(info)" || stream == "log(warning)" || stream == "log(error)";
  if (stream != "stdout" && stream != "stderr" && !logs) {
    return InvalidArgument(
        "Unknown output stream: {}, wanted stdout, stderr, log(info), log(warning), log(error) or "
        "file://PATH",
        stream);
  }
  Write(stream == "stdout" ? stdout : stderr, text);
  return Status();
}

Status StringFormat(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  WEIR_ASSIGN(const std::string form, call.attrs.String("template"));
  WEIR_ASSIGN(const std::string placeholder, call.attrs.String("placeholder"));
  WEIR_ASSIGN(const int64_t summarize, call.attrs.Int("summarize"));
  std::string text;
  size_t at = 0, used = 0;
  for (size_t found; !placeholder.empty() && (found = form.find(placeholder, at)) != std::string::npos; ++used) {
    text.append(form, at, found - at);
    if (used < call.inputs.size()) text += LaidOut(call.inputs[used], summarize);
    at = found + placeholder.size();
  }
  if (used != call.inputs.size()) {
    return InvalidArgument("num placeholders in template and num inputs must match: {} vs. {}", used,
                           call.inputs.size());
  }
  call.outputs[0] = Tensor::String(text.append(form, at));
  return Status();
}

}  // namespace

void AddPrints(kernel::KernelRegistry& kernels) {
  kernels.AddHostBlocking("Print", Print);
  kernels.AddHostBlocking("PrintV2", PrintV2);
  kernels.AddHost("StringFormat", StringFormat);
}

}  // namespace weir::builtin
