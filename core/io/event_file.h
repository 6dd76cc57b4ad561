// Event files, the input of TensorBoard: a record file of Event messages, one file per writer, one folder per run.
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
  int max_queue = 10;           // so many waiting events are written, within 10 ms; at least 1
  double flush_secs = 120;      // maximum waiting time of an event
  std::string filename_suffix;  // appended to the host name
};

/// States of a SessionLog.
enum class SessionStatus { kUnspecified = 0, kStart = 1, kStop = 2, kCheckpoint = 3 };

/// Writes <logdir>/events.out.tfevents.<unix seconds>.<host>[suffix][.n] on a background thread. Adding an event
/// encodes it into the thread's buffer and blocks only while that has 4 MiB. The thread writes when `max_queue` events
/// or 256 KiB wait; below 256 KiB it is woken at most once in 10 ms. Create writes the version event before it returns.
/// If a write fails, the event and those queued with it are dropped, the file stays readable, and the next Flush or
/// Close returns the error. Thread-safe.
class EventWriter {
 public:
  /// Creates the folder and the file.
  static Result<std::unique_ptr<EventWriter>> Create(const std::string& logdir, EventWriterOptions options = {});
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  /// Closes without reporting errors; call Close to get them.
  ~EventWriter();

  const std::string& path() const { return path_; }

  /// Arguments are serialized messages of the named type; they are not validated. FailedPrecondition after Close.
  Status AddSummary(std::string_view summary, int64_t step);
  Status AddGraph(std::string_view graph_def, int64_t step = 0);
  Status AddMetaGraph(std::string_view meta_graph_def, int64_t step = 0);
  Status AddRunMetadata(std::string_view run_metadata, std::string_view tag, int64_t step);
  /// A START at step S makes TensorBoard discard data of earlier files of the run from step S on.
  Status AddSessionLog(SessionStatus status, std::string_view checkpoint_path, std::string_view message, int64_t step);

  /// Waits until all events added before are in the file. Returns the first error since the last report.
  Status Flush();
  /// Flushes and stops accepting events; a second call does nothing.
  Status Close();

 private:
  EventWriter(RecordWriter file, EventWriterOptions options);
  Status Add(int field, std::string_view message, int64_t step);
  void Work();
  Status Write(std::string_view records);

  RecordWriter file_;  // used by the writer thread only
  const std::string path_;
  const EventWriterOptions options_;
  const size_t capacity_;

  std::mutex mutex_;                  // protects everything below
  std::condition_variable wake_;      // wakes the writer: enough events, flush requested, closing
  std::condition_variable progress_;  // wakes callers: room in the queue, written_ increased
  std::string queue_;                 // framed records
  uint64_t added_ = 0;                // events
  uint64_t taken_ = 0;                // of these, by the writer
  uint64_t written_ = 0;
  bool woken_ = false;    // the writer was woken since it last took events
  bool resting_ = false;  // the writer looks at the number of events again soon
  bool flush_wanted_ = false;
  bool closing_ = false;
  Status error_;

  std::thread thread_;
};

/// An event read from a file; absent fields are empty.
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

/// Reads the events of a file in order. Single-threaded.
class EventReader {
 public:
  static Result<EventReader> Open(const std::string& path);

  /// The next event, or nullopt at the end. A record with a damaged payload is skipped and counted. A damaged or
  /// truncated record frame is DataLoss, because the records after it cannot be located.
  Result<std::optional<Event>> Next();
  /// Number of records skipped so far.
  int64_t damaged() const { return damaged_; }

 private:
  explicit EventReader(RecordReader records) : records_(std::move(records)) {}
  RecordReader records_;
  int64_t damaged_ = 0;
};

/// Encodes an Event; `message` is the content of field `field` of the oneof "what".
std::string EncodeEvent(double wall_time, int64_t step, int field, std::string_view message);
/// DataLoss if the bytes are not an Event.
Result<Event> DecodeEvent(std::string_view bytes);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_EVENT_FILE_H_
