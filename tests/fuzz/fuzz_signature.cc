// Arbitrary text as the signature of an argument or attribute of an op, as a tensor's name, a shape and slice, or a
// type: the result is an error or a value. The default of an attribute is one of its allowed values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/graph/definition.h"
#include "core/io/tensor_slice.h"
#include "core/op/registry.h"
#include "core/tensor/dtype.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const weir::Result<weir::op::ArgDef> arg = weir::op::ParseArg(text); arg.ok()) Check(!arg->name.empty());
  if (const weir::Result<weir::op::AttrDef> attr = weir::op::ParseAttr(text); attr.ok()) {
    Check(!attr->name.empty());
    if (attr->default_value.set()) {
      Check(weir::op::CheckAllowed(*attr, attr->default_value).ok());
      static_cast<void>(attr->default_value.ToString());
    }
  }
  if (const weir::Result<weir::graph::InputName> name = weir::graph::ParseInputName(text); name.ok()) {
    Check(name->control || name->index >= 0);
  }
  if (const weir::Result<weir::io::ShapeAndSlice> slice = weir::io::ParseShapeAndSlice(text); slice.ok()) {
    const weir::Result<weir::io::TensorSlice> resolved = weir::io::Resolve(slice->slice, slice->full);
    if (resolved.ok()) Check(weir::io::ShapeOf(*resolved).ok());
  }
  if (const std::optional<weir::DType> dtype = weir::ParseDType(text))
    Check(weir::ParseDType(weir::Name(*dtype)) == dtype);
  return 0;
}
