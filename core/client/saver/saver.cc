#include "core/client/saver/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/operand.h"
#include "core/client/ops/ops.h"
#include "core/client/saver/meta_graph.h"
#include "core/client/saver/saver_internal.h"
#include "core/device/device_name.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "core/io/sweep.h"
#include "core/tensor/number.h"

namespace weir {

namespace {

using Shard = SaverShard;

std::string KeyOf(const Variable& v) {
  if (!v.exists()) return "";
  if (v.slice()) return v.slice()->full_name;
  return v.is_partitioned() ? v.name() : v.op().name();
}

/// What SaveV2 and RestoreV2 are told of each variable: nothing for a whole one.
std::vector<std::string> SlicesOf(const SavedVariables& variables) {
  std::vector<std::string> slices;
  for (const auto& [key, v] : variables) slices.push_back(v.slice() ? v.slice()->spec() : "");
  return slices;
}

Output ConstStrings(Graph& graph, const std::vector<std::string>& values, std::string_view name) {
  return Operand(Literal(Tensor::Vector<std::string>(values))).In(graph, DType::kString, name);
}

/// The SaveV2 of these variables.
Operation BuildSave(const Output& filename, const SavedVariables& variables, const std::source_location& where) {
  Graph& graph = *filename.graph();
  const NameScope inner("SaveV2", graph);
  std::vector<std::string> names;
  for (const auto& [key, variable] : variables) names.push_back(key);
  OperationSpec spec;
  spec.op = "SaveV2";
  spec.inputs = {filename, ConstStrings(graph, names, "tensor_names"),
                 ConstStrings(graph, SlicesOf(variables), "shape_and_slices")};
  for (const auto& [key, variable] : variables) {
    spec.inputs.push_back(variable.is_resource() || variable.slice() ? variable.snapshot() : variable.handle());
  }
  const std::string at = inner.path();
  spec.name = at;
  spec.where = where;
  return graph.Add(spec);
}

/// The file's name once `save` has written it; none when there is no `save`.
Output Confirm(const Output& filename, const Operation& save, const std::source_location& where) {
  if (!save.exists()) return {};
  OperationSpec done;
  done.op = "Identity";
  done.name = "control_dependency";
  done.inputs = {filename};
  done.control_inputs = {save};
  done.attrs = {{"_class", std::vector<std::string>{"loc:@" + filename.op().name()}}};
  done.where = where;
  return filename.graph()->Add(done).output(0);
}

/// The restored value in the shape of the variable, which is asked for where it is not known.
Output Reshaped(const Output& restored, const Variable& variable, const std::source_location& where) {
  const Result<std::vector<int64_t>> dims = AsList(variable.shape());
  const bool known = dims.ok() && std::ranges::all_of(*dims, [](int64_t dim) { return dim >= 0; });
  if (!known)
    return BuildOp("Reshape", {restored, ShapeOf(variable, DType::kInt32, "Shape", where)}, {}, "Reshape", where)
        .output(0);
  std::vector<int32_t> wanted(dims->begin(), dims->end());
  return BuildOp("Reshape", {restored, Literal(Tensor::Vector<int32_t>(std::move(wanted)))}, {}, "Reshape", where)
      .output(0);
}

/// By device, in the order of the devices' names.
Result<std::vector<Shard>> ByDevice(const SavedVariables& variables) {
  std::map<std::string, SavedVariables> by_device;
  for (const auto& saved : variables) by_device[saved.second.op().device()].push_back(saved);
  std::vector<Shard> shards;
  for (auto& [name, list] : by_device) {
    WEIR_ASSIGN(device::DeviceName host, device::ParseDeviceName(name));
    host.type = "CPU";
    host.id = 0;
    shards.push_back({name, host.ToString(), std::move(list)});
  }
  return shards;
}

/// A SaveV2 per shard, on its host, into a folder of its own, and one checkpoint made of them.
Output BuildShardedSave(const Output& path, const std::vector<Shard>& shards, const std::source_location& where) {
  Graph& graph = *path.graph();
  const auto constant = [&](Tensor value, std::string_view name) {
    const DType dtype = value.dtype();
    return Operand(Literal(std::move(value))).In(graph, dtype, name);
  };
  Output parts, count;
  {
    const DeviceScope host("/device:CPU:0", graph);
    const Output suffix = constant(Tensor::String(io::ShardsSuffix()), "Const_1");
    parts = BuildOp("StringJoin", {path, suffix}, {}, "StringJoin", where).output(0);
    count = constant(Tensor::Scalar(static_cast<int32_t>(shards.size())), "num_shards");
  }
  std::vector<Output> names;
  std::vector<Operation> done;
  for (size_t i = 0; i < shards.size(); ++i) {
    const DeviceScope host(shards[i].host, graph);
    const auto shard = static_cast<int32_t>(i);
    names.push_back(BuildOp("ShardedFilename", {parts, shard, count}, {}, "ShardedFilename", where).output(0));
    if (!names.back().exists()) return {};
    const Output saved = Confirm(names.back(), BuildSave(names.back(), shards[i].variables, where), where);
    if (!saved.exists()) return {};
    done.push_back(saved.op());
  }
  const DeviceScope host(shards.back().host, graph);
  OperationSpec merge;
  {
    const NameScope inner("MergeV2Checkpoints", graph);
    OperationSpec list;
    list.op = "Pack";
    list.name = "checkpoint_prefixes";
    list.inputs = names;
    list.control_inputs = done;
    list.where = where;
    merge.op = "MergeV2Checkpoints";
    merge.inputs = {graph.Add(list).output(0), path};
    merge.where = where;
    const std::string at = inner.path();
    merge.name = at;
    done.push_back(graph.Add(merge));
  }
  OperationSpec all;
  all.op = "Identity";
  all.name = "Identity";
  all.inputs = {path};
  all.control_inputs = done;
  all.where = where;
  return graph.Add(all).output(0);
}

/// `earlier`: what became of the save in the background before this one, which is told once.
Result<std::string> WithEarlier(const Status& earlier, Result<std::string> saved) {
  if (earlier.ok()) return saved;
  if (saved.ok()) return earlier;
  WarnOfCheckpoint(earlier.ToString());
  return saved;
}

}  // namespace

Result<std::optional<int64_t>> GlobalStep::In(Session& session) const {
  if (!value_.exists()) return number_;
  WEIR_ASSIGN(const Tensor step, Eval(value_, {}, &session));
  if (!IsInteger(step.dtype()) || step.elements() != 1) {
    return InvalidArgument("global_step must be one integer, got {} {}", NumpyName(step.dtype()),
                           step.shape().ToString());
  }
  return std::optional<int64_t>(ElementAsInt(step, 0));
}

/// The parts of a partitioned variable go under its name.
void ToSave::Add(const std::string& key, const Variable& variable) {
  for (const Variable& part : variable.parts()) list_.emplace_back(key, part);
  if (!variable.is_partitioned()) list_.emplace_back(key, variable);
}

ToSave::ToSave(const std::vector<Variable>& variables) {
  for (const Variable& v : variables) Add(KeyOf(v), v);
}

ToSave::ToSave(const std::map<std::string, Variable>& variables) {
  for (const auto& [key, v] : variables) Add(key, v);
}

ToSave::ToSave(std::initializer_list<SavedVariables::value_type> variables)
    : ToSave(std::map<std::string, Variable>(variables.begin(), variables.end())) {}

Saver::Saver(Graph& graph, SaverOptions options)
    : implementation_(std::make_shared<Implementation>(graph, std::move(options))) {}

Saver::Saver(SaverOptions options, Graph& graph, Where where) : Saver(graph, std::move(options)) {
  std::vector<Variable> all = GlobalVariables(graph);
  for (const CollectionEntry& entry : graph.GetCollection(keys::kSaveableObjects)) {
    if (entry.variable) all.push_back(*entry.variable);
  }
  implementation_->Build(ToSave(all).list(), where);
}

Saver::Saver(const ToSave& variables, SaverOptions options, Where where)
    : Saver(variables.list().empty() ? Graph::Default() : variables.list()[0].second.Home(), std::move(options)) {
  implementation_->Build(variables.list(), where);
}

Result<Saver> Saver::FromNodes(const graph::SaverNodes& nodes, Graph& graph) {
  for (const std::string* name : {&nodes.filename_tensor, &nodes.save_tensor}) {
    WEIR_TRY(graph.TensorByName(*name).status());
  }
  WEIR_TRY(graph.OperationByName(nodes.restore_op).status());
  Saver saver(graph, SaverOptions());
  saver.implementation_->Adopt(nodes);
  return saver;
}

Result<std::optional<Saver>> ImportMetaGraphWithSaver(const std::string& path, Graph& graph,
                                                      const MetaGraphOptions& options) {
  WEIR_ASSIGN(const graph::MetaInfo info, ImportMetaGraphFile(path, graph, options));
  if (info.saver) {
    WEIR_ASSIGN(Saver saver, Saver::FromNodes(*info.saver, graph));
    return std::optional<Saver>(std::move(saver));
  }
  const CollectionScope below =
      options.import_scope.empty() ? CollectionScope() : CollectionScope(options.import_scope);
  const bool any = !VariablesIn(keys::kGlobalVariables, below, graph).empty() ||
                   !VariablesIn(keys::kSaveableObjects, below, graph).empty();
  WEIR_TRY(graph.status());
  if (!any) return std::optional<Saver>();
  return std::optional<Saver>(Saver(SaverOptions{}, graph));
}

void Saver::Implementation::Adopt(const graph::SaverNodes& nodes) {
  nodes_ = nodes;
  options_.max_to_keep = nodes.max_to_keep;
  options_.keep_checkpoint_every_n_hours = static_cast<double>(nodes.keep_checkpoint_every_n_hours);
  keeper_.Configure(options_);
}

void Saver::Implementation::Build(SavedVariables variables, const std::source_location& where) {
  const ErrorsSince errors(*graph_);
  BuildNodes(std::move(variables), where);
  built_ = graph_->status();
}

void Saver::Implementation::BuildNodes(SavedVariables variables, const std::source_location& where) {
  const auto fail = [&](const Status& status) {
    (void)Internals(*graph_).Tell(status.Append(" (" + Format(where) + ")"));
  };
  if (variables.empty()) return fail(InvalidArgument("No variables to save"));
  std::ranges::stable_sort(variables, {}, &SavedVariables::value_type::first);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].second.exists()) {
      const Status& why = Internals(*graph_).ErrorOf(variables[i].second.handle().endpoint().node);
      return fail(why.ok() ? InvalidArgument("None values not supported.") : why);
    }
    const bool same = i > 0 && variables[i].first == variables[i - 1].first;
    if (same && !(variables[i].second.slice() && variables[i - 1].second.slice())) {
      return fail(InvalidArgument("At least two variables have the same name: {}", variables[i].first));
    }
  }
  variables_ = std::move(variables);
  keeper_.Configure(options_);

  Graph& graph = *graph_;
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(options_.name.empty() ? "save" : options_.name, graph);
  const Output filename =
      BuildOp("PlaceholderWithDefault", {"model"}, {{"shape", PartialShape(Shape())}}, "filename", where).output(0);
  const Output path =
      BuildOp("PlaceholderWithDefault", {filename}, {{"shape", PartialShape(Shape())}}, "Const", where).output(0);
  if (!path.exists()) return;
  std::vector<Shard> shards = {{"", "/device:CPU:0", variables_}};
  Output saved;
  if (options_.sharded) {
    Result<std::vector<Shard>> by_device = ByDevice(variables_);
    if (!by_device.ok()) return fail(by_device.status());
    shards = std::move(*by_device);
    variables_.clear();
    for (const Shard& shard : shards) {
      variables_.insert(variables_.end(), shard.variables.begin(), shard.variables.end());
    }
    saved = BuildShardedSave(path, shards, where);
  } else {
    saved = Confirm(path, BuildSave(path, variables_, where), where);
  }
  if (!saved.exists()) return;
  std::vector<Operation> all;
  for (const Shard& shard : shards) {
    const std::vector<Operation> assigned = BuildRestore(path, shard, where);
    if (!graph.status().ok()) return;
    if (!options_.sharded) {
      all = assigned;
      continue;
    }
    const DeviceScope there(shard.device, graph);
    all.push_back(Group({assigned.begin(), assigned.end()}, "restore_shard", where));
  }
  const Operation restore = Group({all.begin(), all.end()}, "restore_all", where);
  nodes_ = {path.name(),          saved.name(),     restore.name(),
            options_.max_to_keep, options_.sharded, static_cast<float>(options_.keep_checkpoint_every_n_hours)};
}

/// RestoreV2 on the shard's host, and an assignment per variable.
std::vector<Operation> Saver::Implementation::BuildRestore(const Output& path, const SaverShard& shard,
                                                           const std::source_location& where) {
  Graph& graph = *graph_;
  std::vector<Output> restored;
  {
    const NameScope inner("RestoreV2", graph);
    const DeviceScope host(shard.host, graph);
    std::vector<std::string> names;
    std::vector<DType> types;
    for (const auto& [key, variable] : shard.variables) {
      names.push_back(key);
      types.push_back(variable.dtype());
    }
    OperationSpec spec;
    spec.op = "RestoreV2";
    spec.inputs = {path, ConstStrings(graph, names, "tensor_names"),
                   ConstStrings(graph, SlicesOf(shard.variables), "shape_and_slices")};
    spec.attrs = {{"dtypes", types}};
    const std::string at = inner.path();
    spec.name = at;
    spec.where = where;
    for (const Output& output : graph.Add(spec).outputs()) restored.push_back(output);
  }
  std::vector<Operation> assigned;
  for (size_t i = 0; i < restored.size(); ++i) {
    const Variable& variable = shard.variables[i].second;
    const Output fitting = options_.reshape ? Reshaped(restored[i], variable, where) : restored[i];
    if (variable.is_resource()) {
      const DeviceScope there(variable.op().device(), graph);
      const Output value = BuildOp("Identity", {fitting}, {}, "Identity", where).output(0);
      assigned.push_back(BuildOp("AssignVariableOp", {variable.handle(), value}, {}, "AssignVariableOp", where));
    } else {
      op::AttrList attrs;
      if (options_.reshape) attrs.emplace_back("validate_shape", false);
      assigned.push_back(BuildOp("Assign", {variable.handle(), fitting}, attrs, "Assign", where));
    }
  }
  for (const Output& output : restored) restored_.push_back(output);
  for (const Operation& assignment : assigned) assignments_.push_back(assignment);
  return assigned;
}

Status Saver::Implementation::CheckSavePath(const std::string& path, const SaveOptions& options, bool has_step) const {
  WEIR_TRY(built_);
  if (nodes_.save_tensor.empty()) return InvalidArgument("No variables to save");
  if (options.latest_filename.find('/') != std::string::npos) {
    return InvalidArgument("'latest_filename' must not contain path components");
  }
  if (path.empty()) return InvalidArgument("the path of a checkpoint is empty, wanted one like model.ckpt");
  if (!has_step && io::BaseName(path) == options.latest_filename) {
    return InvalidArgument("'latest_filename' collides with 'save_path': '{}' and '{}'", options.latest_filename, path);
  }
  return Status();
}

/// All that a save needs before its tensors are written. Frees disk space, too.
Result<SaveJob> Saver::Implementation::Prepare(Session& session, const std::string& path, const SaveOptions& options) {
  WEIR_ASSIGN(const std::optional<int64_t> step, options.global_step.In(session));
  WEIR_TRY(CheckSavePath(path, options, step.has_value()));
  SaveJob job;
  job.base = path;
  job.path = step ? fmt::format("{}-{}", path, *step) : path;
  if (path.ends_with('/') && !std::exchange(warned_, true)) {
    WarnOfCheckpoint(
        fmt::format("the path '{}' of a checkpoint ends in a slash: its files have the names '{}.index' and "
                    "so on in that folder",
                    path, io::BaseName(job.path)));
  }
  job.latest_filename = options.latest_filename;
  job.write_state = options.write_state;
  job.verify = options.verify || options_.verify;
  const std::string dir = io::DirName(job.path);
  if (!dir.empty() && !io::FileExists(dir) && !io::DirName(dir).empty() && !io::FileExists(io::DirName(dir))) {
    return InvalidArgument("Parent directory of {} doesn't exist, can't save.", job.path);
  }
  if (options.write_meta_graph) {
    WEIR_ASSIGN(job.meta_graph, ExportMetaGraph(*graph_, nodes_));
  }
  io::SweepFolder(dir);
  return job;
}

Result<std::string> Saver::Implementation::Save(Session& session, const std::string& path, const SaveOptions& options) {
  const Status earlier = keeper_.Wait();
  return WithEarlier(earlier, SaveNow(session, path, options));
}

Result<std::string> Saver::Implementation::SaveNow(Session& session, const std::string& path,
                                                   const SaveOptions& options) {
  WEIR_ASSIGN(const SaveJob job, Prepare(session, path, options));
  const Status written = Write(session, job.path);
  if (!written.ok()) return keeper_.CountFailed(written);
  WEIR_TRY(keeper_.Finish(job));
  return job.path;
}

Status Saver::Implementation::Write(Session& session, const std::string& path) const {
  const Feeds feeds = {{nodes_.filename_tensor, path}};
  std::optional<io::HeldFolders> held;
  if (nodes_.sharded) {
    WEIR_ASSIGN(const std::vector<Operation> saves, SaveOperations());
    Fetch::List prefixes;
    for (const Operation& save : saves) prefixes.emplace_back(save.inputs()[0]);
    WEIR_ASSIGN(const Fetched parts, session.Run(prefixes, feeds));
    std::vector<std::string> paths;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const std::string& part : parts[i].tensor().as<std::string>()) paths.push_back(part);
    }
    held.emplace(paths);
  }
  return session.Run(nodes_.save_tensor, feeds).status();
}

Result<std::string> Saver::Implementation::SaveInBackground(Session& session, const std::string& path,
                                                            const SaveOptions& options) {
  if (options_.skip_when_busy && keeper_.Busy()) {
    keeper_.CountSkipped();
    return std::string();
  }
  const Status earlier = keeper_.Wait();
  return WithEarlier(earlier, StartSave(session, path, options));
}

Result<std::string> Saver::Implementation::StartSave(Session& session, const std::string& path,
                                                     const SaveOptions& options) {
  WEIR_ASSIGN(SaveJob job, Prepare(session, path, options));
  Result<std::vector<SavedShard>> shards = FetchShards(session, job.path);
  if (!shards.ok()) return keeper_.CountFailed(shards.status());
  job.shards = std::move(*shards);
  const std::string full = job.path;
  keeper_.Start(std::move(job));
  return full;
}

/// Each SaveV2 that the save waits for.
Result<std::vector<Operation>> Saver::Implementation::SaveOperations() const {
  WEIR_ASSIGN(const Output done, graph_->TensorByName(nodes_.save_tensor));
  std::vector<Operation> saves;
  std::set<std::string> seen;
  std::vector<Operation> open = {done.op()};
  while (!open.empty()) {
    const Operation op = open.back();
    open.pop_back();
    if (!seen.insert(op.name()).second) continue;
    if (op.type() == "SaveV2") {
      saves.push_back(op);
      continue;
    }
    for (const Output& input : op.inputs()) open.push_back(input.op());
    for (const Operation& before : op.control_inputs()) open.push_back(before);
  }
  if (saves.empty()) return FailedPrecondition("no SaveV2 leads to {}", nodes_.save_tensor);
  std::ranges::sort(saves, {}, &Operation::id);
  return saves;
}

/// What each of them would write now, all of one step.
Result<std::vector<SavedShard>> Saver::Implementation::FetchShards(Session& session, const std::string& path) const {
  WEIR_ASSIGN(const std::vector<Operation> saves, SaveOperations());
  Fetch::List fetches;
  for (const Operation& save : saves) {
    const std::vector<Output> inputs = save.inputs();
    fetches.emplace_back(Fetch::List(inputs.begin() + 1, inputs.end()));
  }
  WEIR_ASSIGN(const Fetched values, session.Run(fetches, {{nodes_.filename_tensor, path}}));
  std::vector<SavedShard> shards(saves.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    const Fetched& operands = values[i];
    const auto names = operands[0].tensor().as<std::string>(), slices = operands[1].tensor().as<std::string>();
    if (names.size() != operands.size() - 2 || slices.size() != names.size()) {
      return InvalidArgument("{} has {} names and {} slices for {} tensors", saves[i].name(), names.size(),
                             slices.size(), operands.size() - 2);
    }
    shards[i].names.assign(names.begin(), names.end());
    shards[i].slices.assign(slices.begin(), slices.end());
    for (size_t k = 2; k < operands.size(); ++k) shards[i].tensors.push_back(operands[k].tensor());
  }
  return shards;
}

Result<std::string> Saver::Save(Session& session, const std::string& path, const SaveOptions& options) {
  const std::lock_guard lock(implementation_->mutex());
  return implementation_->Save(session, path, options);
}
Result<std::string> Saver::SaveInBackground(Session& session, const std::string& path, const SaveOptions& options) {
  const std::lock_guard lock(implementation_->mutex());
  return implementation_->SaveInBackground(session, path, options);
}
Status Saver::Restore(Session& session, const std::string& path) {
  const std::lock_guard lock(implementation_->mutex());
  return implementation_->Restore(session, path);
}
Result<io::RestoreReport> Saver::RestorePartial(Session& session, const std::string& path) {
  const std::lock_guard lock(implementation_->mutex());
  return implementation_->RestorePartial(session, path);
}
Result<std::string> Saver::RestoreLatest(Session& session, const std::string& dir) {
  const std::lock_guard lock(implementation_->mutex());
  return implementation_->RestoreLatest(session, dir);
}
Status Saver::Wait() { return implementation_->keeper().Wait(); }
SaveCounts Saver::counts() const { return implementation_->keeper().counts(); }
std::vector<std::string> Saver::last_checkpoints() const { return implementation_->keeper().last_checkpoints(); }
void Saver::RecoverLastCheckpoints(const std::vector<std::string>& paths) { implementation_->keeper().Recover(paths); }
const graph::SaverNodes& Saver::nodes() const { return implementation_->nodes(); }

std::string LatestCheckpoint(const std::string& dir, const std::string& latest_filename) {
  return io::LatestCheckpoint(dir, latest_filename);
}

Result<std::string> InspectCheckpoint(const std::string& path, const std::string& tensor_name, bool all_tensors) {
  io::InspectOptions options;
  options.tensor_name = tensor_name;
  options.all_tensors = all_tensors;
  return io::InspectCheckpoint(path, options);
}

}  // namespace weir
