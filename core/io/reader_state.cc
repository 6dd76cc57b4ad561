#include "core/io/reader_state.h"

#include <google/protobuf/stubs/strutil.h>

#include <limits>

#include "core/base/errors.h"
#include "weir/proto/reader_state.pb.h"

namespace weir::io {

std::string EncodeReaderState(const ReaderState& state) {
  tf::ReaderBaseState message;
  message.set_work_started(state.started);
  message.set_work_finished(state.finished);
  message.set_num_records_produced(state.produced);
  message.set_current_work(state.work);
  return message.SerializeAsString();
}

Result<ReaderState> DecodeReaderState(std::string_view bytes, std::string_view reader) {
  tf::ReaderBaseState message;
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Could not parse state for {}: {}", reader,
                           google::protobuf::CEscape(std::string(bytes.substr(0, 1024))));
  }
  if (message.work_started() < 0 || message.work_finished() < 0 || message.num_records_produced() < 0) {
    return InvalidArgument("Unexpected negative value when restoring in {}: {}", reader, message.DebugString());
  }
  if (message.work_started() > message.work_finished()) {
    return InvalidArgument("Inconsistent work started vs. finished when restoring in {}: {}", reader,
                           message.DebugString());
  }
  return ReaderState{message.work_started(), message.work_finished(), message.num_records_produced(),
                     message.current_work()};
}

}  // namespace weir::io
