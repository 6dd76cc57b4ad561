#include "core/io/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/io/files.h"
#include "core/proto/parse.h"
#include "weir/proto/event.pb.h"

namespace weir::io {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
// Maximum number of writers with the same host, folder and second.
constexpr int kMaxSameName = 10000;
// Bytes that wake the writer, and bytes with which the queue is full.
constexpr size_t kWorthWaking = 256 << 10, kFullQueue = 4 << 20;
// Waking a thread takes longer than encoding twenty events.
constexpr std::chrono::milliseconds kRest(10);

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string HostName() {
  char name[256] = "localhost";
  static_cast<void>(gethostname(name, sizeof(name) - 1));
  name[sizeof(name) - 1] = '\0';
  return name;
}

Result<RecordWriter> CreateFile(const std::string& logdir, double now, const std::string& suffix) {
  const std::string base =
      JoinPath(logdir, fmt::format("events.out.tfevents.{:010d}.{}{}", static_cast<int64_t>(now), HostName(), suffix));
  Result<RecordWriter> file = RecordWriter::Create(base, IfExists::kFail);
  for (int n = 1; !file.ok() && file.status().code() == Code::kAlreadyExists && n < kMaxSameName; ++n) {
    file = RecordWriter::Create(fmt::format("{}.{}", base, n), IfExists::kFail);
  }
  return file;
}

// The wire format of an Event: fields in the order of their numbers, without those that are zero.
void AppendEvent(double wall_time, int64_t step, int field, std::string_view message, std::string& out) {
  constexpr uint64_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2;
  const auto tag = [&](int number, uint64_t type) { AppendVarint(out, static_cast<uint64_t>(number) << 3 | type); };
  if (const auto bits = std::bit_cast<uint64_t>(wall_time); bits != 0) {
    tag(tf::Event::kWallTimeFieldNumber, kFixed64);
    AppendFixed64(out, bits);
  }
  if (step != 0) {
    tag(tf::Event::kStepFieldNumber, kVarint);
    AppendVarint(out, static_cast<uint64_t>(step));
  }
  tag(field, kLengthDelimited);
  AppendVarint(out, message.size());
  out += message;
}

}  // namespace

std::string EncodeEvent(double wall_time, int64_t step, int field, std::string_view message) {
  std::string bytes;
  AppendEvent(wall_time, step, field, message, bytes);
  return bytes;
}

Result<Event> DecodeEvent(std::string_view bytes) {
  tf::Event message;
  if (Status status = proto::ParseBinary(bytes, "Event", message); !status.ok()) {
    return DataLoss("{}", status.message());
  }
  Event event;
  event.wall_time = message.wall_time();
  event.step = message.step();
  event.file_version = message.file_version();
  event.graph_def = message.graph_def();
  event.meta_graph_def = message.meta_graph_def();
  if (message.has_session_log()) event.session_status = static_cast<SessionStatus>(message.session_log().status());
  event.run_metadata_tag = message.tagged_run_metadata().tag();
  event.run_metadata = message.tagged_run_metadata().run_metadata();
  if (message.has_summary()) {
    WEIR_ASSIGN(event.summary, DecodeSummary(message.summary().SerializeAsString()));
  }
  return event;
}

Result<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& logdir, EventWriterOptions options) {
  WEIR_TRY(MakeDirectories(logdir));
  const double now = NowSeconds();
  WEIR_ASSIGN(RecordWriter file, CreateFile(logdir, now, options.filename_suffix));
  WEIR_TRY(file.Append(EncodeEvent(now, 0, tf::Event::kFileVersionFieldNumber, kFileVersion)));
  WEIR_TRY(file.Flush());
  std::unique_ptr<EventWriter> writer(new EventWriter(std::move(file), std::move(options)));
  try {
    writer->thread_ = std::thread([self = writer.get()] { self->Work(); });
  } catch (const std::system_error& e) {
    return ResourceExhausted("no thread for the event writer: {}", e.what());
  }
  return writer;
}

EventWriter::EventWriter(RecordWriter file, EventWriterOptions options)
    : file_(std::move(file)),
      path_(file_.path()),
      options_(std::move(options)),
      capacity_(static_cast<size_t>(std::max(options_.max_queue, 1))) {}

EventWriter::~EventWriter() { static_cast<void>(Close()); }

Status EventWriter::AddSummary(std::string_view summary, int64_t step) {
  return Add(tf::Event::kSummaryFieldNumber, summary, step);
}

Status EventWriter::AddGraph(std::string_view graph_def, int64_t step) {
  return Add(tf::Event::kGraphDefFieldNumber, graph_def, step);
}

Status EventWriter::AddMetaGraph(std::string_view meta_graph_def, int64_t step) {
  return Add(tf::Event::kMetaGraphDefFieldNumber, meta_graph_def, step);
}

Status EventWriter::AddRunMetadata(std::string_view run_metadata, std::string_view tag, int64_t step) {
  tf::TaggedRunMetadata tagged;
  tagged.set_tag(std::string(tag));
  tagged.set_run_metadata(std::string(run_metadata));
  return Add(tf::Event::kTaggedRunMetadataFieldNumber, tagged.SerializeAsString(), step);
}

Status EventWriter::AddSessionLog(SessionStatus status, std::string_view checkpoint_path, std::string_view message,
                                  int64_t step) {
  tf::SessionLog log;
  log.set_status(static_cast<tf::SessionLog::SessionStatus>(status));
  log.set_checkpoint_path(std::string(checkpoint_path));
  log.set_msg(std::string(message));
  return Add(tf::Event::kSessionLogFieldNumber, log.SerializeAsString(), step);
}

Status EventWriter::Add(int field, std::string_view message, int64_t step) {
  const double now = NowSeconds();
  std::unique_lock lock(mutex_);
  if (queue_.size() >= kFullQueue) progress_.wait(lock, [&] { return closing_ || queue_.size() < kFullQueue; });
  if (closing_) return FailedPrecondition("{}: an event was added after the writer was closed", path_);
  const size_t begin = BeginRecord(queue_);
  AppendEvent(now, step, field, message, queue_);
  EndRecord(queue_, begin);
  ++added_;
  const bool enough = queue_.size() >= kWorthWaking || (!resting_ && added_ - taken_ >= capacity_);
  if (enough && !std::exchange(woken_, true)) wake_.notify_one();
  return Status();
}

Status EventWriter::Flush() {
  std::unique_lock lock(mutex_);
  const uint64_t target = added_;
  if (written_ < target) {
    flush_wanted_ = true;
    wake_.notify_one();
    progress_.wait(lock, [&] { return written_ >= target; });
  }
  return std::exchange(error_, Status());
}

Status EventWriter::Close() {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return Status();
    closing_ = true;
    wake_.notify_one();
    progress_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Status closed = file_.Close();
  const std::lock_guard lock(mutex_);
  return error_.ok() ? closed : std::exchange(error_, Status());
}

void EventWriter::Work() {
  // A year means never; larger values overflow the clock's arithmetic.
  const auto patience = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(options_.flush_secs, 0.01, 31536000.0)));
  const auto urgent = [&] { return closing_ || flush_wanted_ || queue_.size() >= kWorthWaking; };
  const auto enough = [&] { return added_ - taken_ >= capacity_; };
  std::string records;
  auto written = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (resting_) {
      wake_.wait_for(lock, kRest, urgent);
      resting_ = false;
    }
    wake_.wait_until(lock, written + patience, [&] { return urgent() || enough(); });
    resting_ = enough();
    flush_wanted_ = woken_ = false;
    taken_ = added_;
    std::swap(records, queue_);
    progress_.notify_all();
    lock.unlock();
    Status status = Write(records);
    records.clear();
    if (records.capacity() > 2 * kFullQueue) records.shrink_to_fit();  // after a large graph
    written = std::chrono::steady_clock::now();
    lock.lock();
    if (error_.ok()) error_ = std::move(status);
    written_ = taken_;
    progress_.notify_all();
    if (closing_ && queue_.empty()) return;
  }
}

Status EventWriter::Write(std::string_view records) {
  if (records.empty()) return Status();
  const uint64_t good = file_.size();
  Status status = file_.AppendFramed(records);
  if (status.ok()) status = file_.Flush();
  if (!status.ok()) {
    if (Status cut = file_.TruncateTo(good); !cut.ok()) return status.Append("; " + cut.message());
  }
  return status;
}

Result<EventReader> EventReader::Open(const std::string& path) {
  WEIR_ASSIGN(RecordReader records, RecordReader::Open(path));
  return EventReader(std::move(records));
}

Result<std::optional<Event>> EventReader::Next() {
  for (;;) {
    const uint64_t before = records_.offset();
    Result<std::optional<std::string>> record = records_.Next();
    const bool skipped = records_.offset() > before;
    if (!record.ok() && !skipped) return record.status();
    if (record.ok()) {
      if (!record->has_value()) return std::optional<Event>();
      Result<Event> event = DecodeEvent(**record);
      if (event.ok()) return std::optional<Event>(std::move(*event));
    }
    ++damaged_;
  }
}

}  // namespace weir::io
