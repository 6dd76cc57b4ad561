// The state of a reader as ReaderSerializeStateV2 gives it: TensorFlow's message ReaderBaseState.
#ifndef WEIR_CORE_IO_READER_STATE_H_
#define WEIR_CORE_IO_READER_STATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::io {

struct ReaderState {
  int64_t started = 0, finished = 0;  // units of work
  int64_t produced = 0;               // records
  std::string work;                   // the last unit
};

std::string EncodeReaderState(const ReaderState& state);
/// InvalidArgument with TensorFlow's texts, which name the reader: "IdentityReader 'r'".
Result<ReaderState> DecodeReaderState(std::string_view bytes, std::string_view reader);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_READER_STATE_H_
