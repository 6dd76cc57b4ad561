// opgen HEADER CALLS: writes the raw builders of the catalogue, and calls of them for a test.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/declare_all.h"
#include "tools/opgen/generate.h"

namespace weir::opgen {
namespace {

/// Leaves a file alone that has this text, so that nothing that includes it is built again.
Status Write(const std::string& path, const std::string& text) {
  std::ifstream old(path, std::ios::binary);
  if (old && std::string(std::istreambuf_iterator<char>(old), {}) == text) return Status();
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status() : Unavailable("'{}' cannot be written", path);
}

Status Generate(const std::string& header, const std::string& calls) {
  WEIR_ASSIGN(const op::OpRegistry* catalogue, ops::Catalogue());
  std::vector<RawOp> raw;
  for (const op::OpDef* op : catalogue->All()) {
    if (HasBuilder(*op)) raw.push_back(MakeRawOp(*op));
  }
  WEIR_TRY(Write(header, RawHeader(raw)));
  return Write(calls, RawCalls(raw));
}

}  // namespace
}  // namespace weir::opgen

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "opgen: wanted the paths of raw_ops.h and raw_calls.h, got %d arguments\n", argc - 1);
    return 2;
  }
  const weir::Status status = weir::opgen::Generate(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "opgen: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
