// Event files, TensorBoard's input: a record file of Event messages, one file per writer, in a folder per run.
#ifndef WEIR_CORE_IO_EVENT_FILE_H_
#define WEIR_CORE_IO_EVENT_FILE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/io/record_file.h"
#include "core/io/summary.h"

namespace weir::io {

struct EventWriterOptions {
  int max_queue = 10;           // so many waiting events are written at once; at least 1
  double flush_secs = 120;      // no event waits longer
  std::string filename_suffix;  // put after the host name
};

/// States of a SessionLog.
enum class SessionStatus { kUnspecified = 0, kStart = 1, kStop = 2, kCheckpoint = 3 };

/// Writes <logdir>/events.out.tfevents.<unix seconds>.<host>[suffix][.n] from a thread of its own; adding an event only
/// queues it, and waits only while the queue is full. The file holds its version event once Create returns. An event
/// that cannot be written is dropped together with those queued with it, the file stays readable, and the error is
/// returned by the next Flush or Close. Thread-safe.
class EventWriter {
 public:
  /// Makes the folder and the file.
  static Result<std::unique_ptr<EventWriter>> Create(const std::string& logdir, EventWriterOptions options = {});
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  /// Closes; call Close to know how it went.
  ~EventWriter();

  const std::string& path() const { return path_; }

  /// Arguments are serialized messages of the type named; their bytes are not looked at. FailedPrecondition after
  /// Close.
  Status AddSummary(std::string_view summary, int64_t step);
  Status AddGraph(std::string_view graph_def, int64_t step = 0);
  Status AddMetaGraph(std::string_view meta_graph_def, int64_t step = 0);
  Status AddRunMetadata(std::string_view run_metadata, std::string_view tag, int64_t step);
  /// A START at step S makes TensorBoard forget what an earlier file of the run says of step S and later.
  Status AddSessionLog(SessionStatus status, std::string_view checkpoint_path, std::string_view message, int64_t step);

  /// Everything added before is in the file. Returns the first error since the last report.
  Status Flush();
  /// Flush, then no more events; a second call does nothing.
  Status Close();

 private:
  EventWriter(RecordWriter file, EventWriterOptions options);
  Status Add(int field, std::string_view message, int64_t step);
  void Work();
  Status Write(const std::vector<std::string>& events);

  RecordWriter file_;  // the thread's alone
  const std::string path_;
  const EventWriterOptions options_;
  const size_t capacity_;

  std::mutex mutex_;                  // protects everything below
  std::condition_variable wake_;      // the thread: queue full, flush wanted, closing
  std::condition_variable progress_;  // callers: room in the queue, written_ grew
  std::vector<std::string> queue_;
  uint64_t added_ = 0;
  uint64_t written_ = 0;
  bool flush_wanted_ = false;
  bool closing_ = false;
  Status error_;

  std::thread thread_;
};

/// An event as read; the fields that it does not have are empty.
struct Event {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::string file_version;
  std::string graph_def;
  std::string meta_graph_def;
  std::vector<SummaryValue> summary;
  std::optional<SessionStatus> session_status;
  std::string run_metadata_tag;
  std::string run_metadata;
};

/// Reads an event file in order. Single-threaded.
class EventReader {
 public:
  static Result<EventReader> Open(const std::string& path);

  /// The next event, or nothing at the end. A record with a damaged payload is skipped and counted; a damaged or cut
  /// record frame is DataLoss, because nothing behind it can be found.
  Result<std::optional<Event>> Next();
  /// Records skipped so far.
  int64_t damaged() const { return damaged_; }

 private:
  explicit EventReader(RecordReader records) : records_(std::move(records)) {}
  RecordReader records_;
  int64_t damaged_ = 0;
};

/// Bytes of an Event: `message` is what field `field` (of the oneof "what") holds.
std::string EncodeEvent(double wall_time, int64_t step, int field, std::string_view message);
/// DataLoss for bytes that are no Event.
Result<Event> DecodeEvent(std::string_view bytes);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_EVENT_FILE_H_
