// The reader ops, and what each reader makes of a file.
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/reader.h"
#include "core/io/byte_stream.h"
#include "core/io/files.h"
#include "core/io/record_file.h"

namespace weir::builtin {
namespace {

using Step = RecordSource::Step;
using SourcePtr = std::unique_ptr<RecordSource>;
using kernel::BuiltinCall;

constexpr uint64_t kMostFileBytes = uint64_t{1} << 31;  // of a file that is one record

/// One record, which is there from the start.
class OneRecord final : public RecordSource {
 public:
  explicit OneRecord(Record record) : record_(std::move(record)) {}
  Result<Step> Next() override { return Step{std::move(record_), true}; }

 private:
  Record record_;
};

class Lines final : public RecordSource {
 public:
  Lines(io::ByteStream bytes, std::string file) : bytes_(std::move(bytes)), file_(std::move(file)) {}

  Status SkipLines(int64_t count) {
    for (; number_ < count; ++number_) {
      WEIR_ASSIGN(const std::optional<std::string> line, bytes_.TakeLine());
      if (!line) break;
    }
    return Status();
  }
  Result<Step> Next() override {
    WEIR_ASSIGN(std::optional<std::string> line, bytes_.TakeLine());
    if (!line) return Step{std::nullopt, true};
    return Step{Record{fmt::format("{}:{}", file_, ++number_), std::move(*line)}};
  }

 private:
  io::ByteStream bytes_;
  const std::string file_;
  int64_t number_ = 0;  // of the last line
};

class Records final : public RecordSource {
 public:
  Records(io::RecordReader records, std::string file) : records_(std::move(records)), file_(std::move(file)) {}
  Result<Step> Next() override {
    const uint64_t offset = records_.offset();
    WEIR_ASSIGN(std::optional<std::string> payload, records_.Next());
    if (!payload) return Step{std::nullopt, true};
    return Step{Record{fmt::format("{}:{}", file_, offset), std::move(*payload)}};
  }

 private:
  io::RecordReader records_;
  const std::string file_;
};

/// Records of one size between a header and a footer, each `hop` bytes behind the one before.
class FixedRecords final : public RecordSource {
 public:
  struct Sizes {
    uint64_t header = 0, record = 0, footer = 0, hop = 0;
  };
  FixedRecords(io::ByteStream bytes, std::string file, const Sizes& sizes)
      : bytes_(std::move(bytes)), file_(std::move(file)), sizes_(sizes) {}

  Result<Step> Next() override {
    const uint64_t skipped = number_ == 0 ? sizes_.header : sizes_.hop;
    WEIR_ASSIGN(const bool there, bytes_.Skip(skipped));
    if (!there) return Step{std::nullopt, true};
    const uint64_t wanted = sizes_.record + sizes_.footer;
    if (const std::optional<uint64_t> left = bytes_.left(); left && *left < wanted) return Step{std::nullopt, true};
    WEIR_ASSIGN(const std::string_view bytes, bytes_.Peek(wanted));
    if (bytes.size() < wanted) return Step{std::nullopt, true};
    return Step{Record{fmt::format("{}:{}", file_, number_++), std::string(bytes.substr(0, sizes_.record))}};
  }

 private:
  io::ByteStream bytes_;
  const std::string file_;
  const Sizes sizes_;
  uint64_t number_ = 0;  // of the next record
};

Result<SourcePtr> OpenIdentity(const std::string& work) {
  return SourcePtr(std::make_unique<OneRecord>(Record{work, work}));
}

Result<SourcePtr> OpenWholeFile(const std::string& work) {
  WEIR_ASSIGN(std::string bytes, io::ReadFile(work, kMostFileBytes));
  return SourcePtr(std::make_unique<OneRecord>(Record{work, std::move(bytes)}));
}

Result<Reader::Options> IdentityOptions(const BuiltinCall&) {
  return Reader::Options{"IdentityReader", &OpenIdentity, /*saves_state=*/true};
}

Result<Reader::Options> WholeFileOptions(const BuiltinCall&) {
  return Reader::Options{"WholeFileReader", &OpenWholeFile, /*saves_state=*/true};
}

Result<Reader::Options> TextLineOptions(const BuiltinCall& call) {
  WEIR_ASSIGN(const int64_t skipped, call.attrs.Int("skip_header_lines"));
  if (skipped < 0) return InvalidArgument("skip_header_lines must be >= 0 not {}", skipped);
  const auto open = [skipped](const std::string& work) -> Result<SourcePtr> {
    WEIR_ASSIGN(io::ByteStream bytes, io::ByteStream::Open(work));
    auto lines = std::make_unique<Lines>(std::move(bytes), work);
    WEIR_TRY(lines->SkipLines(skipped));
    return SourcePtr(std::move(lines));
  };
  return Reader::Options{"TextLineReader", open};
}

Result<Reader::Options> RecordOptions(const BuiltinCall& call) {
  WEIR_ASSIGN(const std::string name, call.attrs.String("compression_type"));
  WEIR_ASSIGN(const io::Compression compression, io::ParseCompression(name));
  const auto open = [compression](const std::string& work) -> Result<SourcePtr> {
    WEIR_ASSIGN(io::RecordReader records, io::RecordReader::Open(work, compression));
    return SourcePtr(std::make_unique<Records>(std::move(records), work));
  };
  return Reader::Options{"TFRecordReader", open};
}

Result<uint64_t> ReadSize(const BuiltinCall& call, const char* name, int64_t least) {
  WEIR_ASSIGN(const int64_t size, call.attrs.Int(name));
  if (size < least) return InvalidArgument("{} must be {} 0 not {}", name, least == 0 ? ">=" : ">", size);
  return static_cast<uint64_t>(size);
}

Result<Reader::Options> FixedOptions(const BuiltinCall& call) {
  FixedRecords::Sizes sizes;
  WEIR_ASSIGN(sizes.header, ReadSize(call, "header_bytes", 0));
  WEIR_ASSIGN(sizes.record, ReadSize(call, "record_bytes", 1));
  WEIR_ASSIGN(sizes.footer, ReadSize(call, "footer_bytes", 0));
  WEIR_ASSIGN(sizes.hop, ReadSize(call, "hop_bytes", 0));
  if (sizes.hop == 0) sizes.hop = sizes.record;
  WEIR_ASSIGN(const std::string encoding, call.attrs.String("encoding"));
  WEIR_ASSIGN(const io::Compression compression, io::ParseCompression(encoding));
  const auto open = [sizes, compression](const std::string& work) -> Result<SourcePtr> {
    WEIR_ASSIGN(io::ByteStream bytes, io::ByteStream::Open(work, compression));
    return SourcePtr(std::make_unique<FixedRecords>(std::move(bytes), work, sizes));
  };
  return Reader::Options{"FixedLengthRecordReader", open};
}

using OptionsFn = Result<Reader::Options> (*)(const BuiltinCall& call);

Status MakeReader(BuiltinCall& call, OptionsFn read_options) {
  WEIR_ASSIGN(Reader::Options options, read_options(call));
  const std::string kind = options.kind;
  WEIR_ASSIGN(const std::shared_ptr<Resource> made,
              OutputOfSession(call, 0, Reader::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(
                    std::make_shared<Reader>(std::string(call.node_name), std::move(options)));
              }));
  const auto reader = std::dynamic_pointer_cast<Reader>(made);
  if (reader && reader->options().kind == kind) return Status();
  return InvalidArgument("{} has the name of this {}; give them two names", made->DebugString(), kind);
}

Tensor Texts(std::vector<Record>& records, std::string Record::*part) {
  Tensor texts = *Tensor::Make(DType::kString, Shape{static_cast<int64_t>(records.size())});
  for (size_t i = 0; i < records.size(); ++i) texts.mutable_as<std::string>()[i] = std::move(records[i].*part);
  return texts;
}

void ReadRecords(const BuiltinCall& call, runtime::Completion done, bool several) {
  int64_t most = 1;
  const auto start = [&]() -> Status {
    WEIR_ASSIGN(const std::shared_ptr<Reader> reader, ResourceOf<Reader>(call, 0));
    WEIR_ASSIGN(std::shared_ptr<FifoQueue> queue, ResourceOf<FifoQueue>(call, 1));
    if (several) {
      WEIR_ASSIGN(most, Scalar<int64_t>(call, 2, "num_records"));
    }
    if (most < 0) return InvalidArgument("num_records must be >= 0 not {}", most);
    auto finish = [several, shared = std::make_shared<runtime::Completion>(std::move(done))](
                      Result<std::vector<Record>> records) {
      if (!records.ok()) return (*shared)(records.status());
      if (several) {
        return (*shared)(std::vector<Tensor>{Texts(*records, &Record::key), Texts(*records, &Record::value)});
      }
      Record& record = (*records)[0];
      (*shared)(std::vector<Tensor>{Tensor::Scalar(std::move(record.key)), Tensor::Scalar(std::move(record.value))});
    };
    reader->Read(most, std::move(queue), call.cancellation, Reader::Done(std::move(finish)));
    return Status();
  };
  if (const Status started = start(); !started.ok()) done(started);
}

template <int64_t (Reader::*kFact)() const>
Status ReaderFact(BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Reader> reader, ResourceOf<Reader>(call, 0));
  call.outputs[0] = Tensor::Scalar(((*reader).*kFact)());
  return Status();
}

Status SerializeReader(BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Reader> reader, ResourceOf<Reader>(call, 0));
  WEIR_ASSIGN(std::string state, reader->SerializeState());
  call.outputs[0] = Tensor::Scalar(std::move(state));
  return Status();
}

Status RestoreReader(BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Reader> reader, ResourceOf<Reader>(call, 0));
  if (call.inputs[1].shape().rank() != 0) {
    return InvalidArgument("Reader state must be scalar, but had shape: {}", call.inputs[1].shape().ToString());
  }
  WEIR_ASSIGN(const std::string state, Scalar<std::string>(call, 1, "state"));
  return reader->RestoreState(state);
}

Status ResetReader(BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Reader> reader, ResourceOf<Reader>(call, 0));
  reader->Reset();
  return Status();
}

}  // namespace

void AddReaders(kernel::KernelRegistry& kernels) {
  const std::pair<const char*, OptionsFn> makers[] = {{"IdentityReaderV2", &IdentityOptions},
                                                      {"WholeFileReaderV2", &WholeFileOptions},
                                                      {"TextLineReaderV2", &TextLineOptions},
                                                      {"TFRecordReaderV2", &RecordOptions},
                                                      {"FixedLengthRecordReaderV2", &FixedOptions}};
  for (const auto& [op, read_options] : makers) {
    kernels.AddHost(op, [read = read_options](BuiltinCall& call) { return MakeReader(call, read); });
  }
  for (const bool several : {false, true}) {
    kernels.AddHostAsync(several ? "ReaderReadUpToV2" : "ReaderReadV2",
                         [several](const BuiltinCall& call, runtime::Completion done) {
                           ReadRecords(call, std::move(done), several);
                         });
  }
  kernels.AddHost("ReaderNumRecordsProducedV2", ReaderFact<&Reader::records_produced>);
  kernels.AddHost("ReaderNumWorkUnitsCompletedV2", ReaderFact<&Reader::units_completed>);
  kernels.AddHost("ReaderSerializeStateV2", SerializeReader);
  kernels.AddHost("ReaderRestoreStateV2", RestoreReader);
  kernels.AddHost("ReaderResetV2", ResetReader);
}

}  // namespace weir::builtin
