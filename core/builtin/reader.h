// Readers: resources that make records of the files whose names a queue gives.
#ifndef WEIR_CORE_BUILTIN_READER_H_
#define WEIR_CORE_BUILTIN_READER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/builtin/queue.h"
#include "core/io/reader_state.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/resource.h"

namespace weir::builtin {

struct Record {
  std::string key, value;
};

/// The records of one unit of work, mostly a file.
class RecordSource {
 public:
  struct Step {
    std::optional<Record> record;
    bool ended = false;  // there is no other record
  };
  virtual ~RecordSource() = default;
  virtual Result<Step> Next() = 0;
};

/// TensorFlow's readers. Errors have TensorFlow's texts. Thread-safe.
///
/// Requests are served one after the other. A request without a file waits for one in the queue, holding no thread, and
/// goes on where the name arrives.
class Reader final : public Resource, public std::enable_shared_from_this<Reader> {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::ReaderInterface";

  struct Options {
    std::string kind;  // "TextLineReader"
    std::function<Result<std::unique_ptr<RecordSource>>(const std::string& work)> open;
    bool saves_state = false;  // a unit of work is one record, so that counters are all of the state
  };
  /// `name` is the name of its node, or the shared one.
  Reader(std::string name, Options options);
  ~Reader() override;

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override { return 0; }
  const Options& options() const { return options_; }

  using Done = runtime::OneShot<std::vector<Record>>;
  /// Reads at least one record and at most `most`, of one unit of work that has any. `cancellation` may be null;
  /// otherwise it must outlive the completion.
  void Read(int64_t most, std::shared_ptr<FifoQueue> queue, runtime::Cancellation* cancellation, Done done);

  int64_t records_produced() const;
  int64_t units_completed() const;
  /// Ends the unit under way and sets the counters to 0.
  void Reset();
  /// The counters (core/io/reader_state.h). Unimplemented unless `saves_state`.
  Result<std::string> SerializeState() const;
  /// After an error the reader is as after Reset.
  Status RestoreState(std::string_view bytes);

 protected:
  void Clear() override;

 private:
  struct Request;
  using RequestPtr = std::shared_ptr<Request>;

  void Cancel(const Request* request, const runtime::Cancellation& cancellation);
  /// Serves requests until one waits.
  void Serve(RequestPtr request);
  /// Goes on with a request. How it ended; nullopt if it waits for the queue.
  std::optional<Status> GoOn(const RequestPtr& request);
  /// What of the request can be done without a new unit of work; nullopt if it needs one.
  std::optional<Status> ReadRecords(Request& request);
  Status Begin(const Result<std::vector<Tensor>>& dequeued);
  /// Completes a request. The next one becomes the one that is served, and is returned; null if there is none.
  RequestPtr End(const RequestPtr& request, const Status& status);

  const std::string name_;
  const Options options_;
  std::mutex source_mutex_;               // protects source_; locked before mutex_
  std::unique_ptr<RecordSource> source_;  // null between units of work
  mutable std::mutex mutex_;              // protects all below
  std::list<RequestPtr> waiting_;
  bool serving_ = false;
  io::ReaderState state_;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_READER_H_
