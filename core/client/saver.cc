#include "core/client/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "core/client/meta_graph.h"
#include "core/client/operand.h"
#include "core/client/ops.h"
#include "core/client/scopes.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// The parts of a partitioned variable go under its name.
void AddSaved(const std::string& key, const Variable& v, SavedVariables& named) {
  for (const Variable& part : v.parts()) named.emplace_back(key, part);
  if (!v.is_partitioned()) named.emplace_back(key, v);
}

std::string KeyOf(const Variable& v) {
  if (!v.exists()) return "";
  if (v.slice()) return v.slice()->full_name;
  return v.is_partitioned() ? v.name() : v.op().name();
}

SavedVariables ByName(const std::vector<Variable>& variables) {
  SavedVariables named;
  for (const Variable& v : variables) AddSaved(KeyOf(v), v, named);
  return named;
}

SavedVariables ByKey(const std::map<std::string, Variable>& variables) {
  SavedVariables named;
  for (const auto& [key, v] : variables) AddSaved(key, v, named);
  return named;
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

Result<Tensor> ReadPart(const io::BundleReader& reader, const std::string& key, const Variable& variable) {
  if (!variable.slice()) return reader.Read(key);
  io::TensorSlice slice;
  for (size_t i = 0; i < variable.slice()->offset.size(); ++i) {
    slice.push_back({variable.slice()->offset[i], variable.slice()->shape[i]});
  }
  return reader.ReadSlice(key, slice);
}

/// TensorFlow's words around an error of restoring from `path`.
Status Explain(const Status& status, const std::string& path) {
  const bool missing = status.code() == Code::kNotFound;
  if (missing && status.message().find("not found in checkpoint") == std::string::npos) {
    return status.Prepend(fmt::format("The passed save_path is not a valid checkpoint: {}\n\n", path));
  }
  if (!missing && status.code() != Code::kInvalidArgument) return status;
  return status.Prepend(
      fmt::format("Restoring from checkpoint failed. This is most likely due to a {} the checkpoint. Please ensure "
                  "that you have not altered the graph expected based on the checkpoint. Original error:\n\n",
                  missing ? "Variable name or other graph key that is missing from"
                          : "mismatch between the current graph and the graph from"));
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

Saver::Saver(SaverOptions options, Graph& graph, std::source_location where)
    : options_(std::move(options)), graph_(&graph) {
  std::vector<Variable> all = GlobalVariables(graph);
  for (const CollectionEntry& entry : graph.GetCollection(keys::kSaveableObjects)) {
    if (entry.variable) all.push_back(*entry.variable);
  }
  Build(ByName(all), where);
}

Saver::Saver(const std::vector<Variable>& variables, SaverOptions options, std::source_location where)
    : options_(std::move(options)),
      graph_(variables.empty() ? &Graph::Default() : &variables[0].Home()) {
  Build(ByName(variables), where);
}

Saver::Saver(const std::map<std::string, Variable>& variables, SaverOptions options, std::source_location where)
    : options_(std::move(options)),
      graph_(variables.empty() ? &Graph::Default() : &variables.begin()->second.Home()) {
  Build(ByKey(variables), where);
}

Result<Saver> Saver::FromNodes(const graph::SaverNodes& nodes, Graph& graph) {
  for (const std::string* name : {&nodes.filename_tensor, &nodes.save_tensor}) {
    WEIR_TRY(graph.TensorByName(*name).status());
  }
  WEIR_TRY(graph.OperationByName(nodes.restore_op).status());
  Saver saver(graph);
  saver.nodes_ = nodes;
  saver.options_.max_to_keep = nodes.max_to_keep;
  saver.options_.keep_checkpoint_every_n_hours = static_cast<double>(nodes.keep_checkpoint_every_n_hours);
  saver.next_spared_seconds_ = Now() + saver.options_.keep_checkpoint_every_n_hours * 3600;
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

void Saver::Build(SavedVariables variables, const std::source_location& where) {
  const auto fail = [&](const Status& status) { (void)graph_->Fail(status.Append(" (" + Format(where) + ")")); };
  if (variables.empty()) return fail(InvalidArgument("No variables to save"));
  std::ranges::stable_sort(variables, {}, &SavedVariables::value_type::first);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].second.exists()) return fail(InvalidArgument("None values not supported."));
    const bool same = i > 0 && variables[i].first == variables[i - 1].first;
    if (same && !(variables[i].second.slice() && variables[i - 1].second.slice())) {
      return fail(InvalidArgument("At least two variables have the same name: {}", variables[i].first));
    }
  }
  variables_ = std::move(variables);
  next_spared_seconds_ = Now() + options_.keep_checkpoint_every_n_hours * 3600;

  Graph& graph = *graph_;
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(options_.name.empty() ? "save" : options_.name, graph);
  const Output filename =
      BuildOp("PlaceholderWithDefault", {"model"}, {{"shape", PartialShape(Shape())}}, "filename", where).output(0);
  const Output path =
      BuildOp("PlaceholderWithDefault", {filename}, {{"shape", PartialShape(Shape())}}, "Const", where).output(0);
  Operation save;
  {
    const NameScope inner("SaveV2", graph);
    std::vector<std::string> names;
    for (const auto& [key, variable] : variables_) names.push_back(key);
    OperationSpec spec;
    spec.op = "SaveV2";
    spec.inputs = {path, ConstStrings(graph, names, "tensor_names"),
                   ConstStrings(graph, SlicesOf(variables_), "shape_and_slices")};
    for (const auto& [key, variable] : variables_) {
      spec.inputs.push_back(variable.is_resource() || variable.slice() ? variable.snapshot() : variable.handle());
    }
    const std::string at = inner.path();
    spec.name = at;
    spec.where = where;
    save = graph.Add(spec);
  }
  if (!save.exists()) return;
  OperationSpec done;
  done.op = "Identity";
  done.name = "control_dependency";
  done.inputs = {path};
  done.control_inputs = {save};
  done.attrs = {{"_class", std::vector<std::string>{"loc:@" + path.op().name()}}};
  done.where = where;
  const Output saved = graph.Add(done).output(0);
  const Output restored = BuildRestore(path, where);
  if (!restored.exists() && !graph.status().ok()) return;
  const Operation all = Group({assignments_.begin(), assignments_.end()}, "restore_all", where);
  nodes_ = {path.name(),          saved.name(), all.name(),
            options_.max_to_keep, false,        static_cast<float>(options_.keep_checkpoint_every_n_hours)};
}

/// RestoreV2 and an assignment per variable; returns the first restored value.
Output Saver::BuildRestore(const Output& path, const std::source_location& where) {
  Graph& graph = *graph_;
  {
    const NameScope inner("RestoreV2", graph);
    const DeviceScope host("/cpu:0", graph);
    std::vector<std::string> names;
    std::vector<DType> types;
    for (const auto& [key, variable] : variables_) {
      names.push_back(key);
      types.push_back(variable.dtype());
    }
    OperationSpec spec;
    spec.op = "RestoreV2";
    spec.inputs = {path, ConstStrings(graph, names, "tensor_names"),
                   ConstStrings(graph, SlicesOf(variables_), "shape_and_slices")};
    spec.attrs = {{"dtypes", types}};
    const std::string at = inner.path();
    spec.name = at;
    spec.where = where;
    restored_ = graph.Add(spec).outputs();
  }
  for (size_t i = 0; i < restored_.size(); ++i) {
    const Variable& variable = variables_[i].second;
    if (variable.is_resource()) {
      const DeviceScope there(variable.op().device(), graph);
      const Output value = BuildOp("Identity", {restored_[i]}, {}, "Identity", where).output(0);
      assignments_.push_back(BuildOp("AssignVariableOp", {variable.handle(), value}, {}, "AssignVariableOp", where));
    } else {
      assignments_.push_back(BuildOp("Assign", {variable.handle(), restored_[i]}, {}, "Assign", where));
    }
  }
  return restored_.empty() ? Output() : restored_[0];
}

Status Saver::CheckSavePath(const std::string& path, const SaveOptions& options, bool has_step) const {
  WEIR_TRY(graph_->status());
  if (nodes_.save_tensor.empty()) return InvalidArgument("No variables to save");
  if (options.latest_filename.find('/') != std::string::npos) {
    return InvalidArgument("'latest_filename' must not contain path components");
  }
  if (io::BaseName(path).empty()) return InvalidArgument("'{}' names a folder, wanted a path like model.ckpt", path);
  if (!has_step && io::BaseName(path) == options.latest_filename) {
    return InvalidArgument("'latest_filename' collides with 'save_path': '{}' and '{}'", options.latest_filename, path);
  }
  return Status();
}

Result<std::string> Saver::Save(Session& session, const std::string& path, const SaveOptions& options) {
  WEIR_ASSIGN(const std::optional<int64_t> step, options.global_step.In(session));
  WEIR_TRY(CheckSavePath(path, options, step.has_value()));
  const std::string full = step ? fmt::format("{}-{}", path, *step) : path;
  const std::string dir = io::DirName(full);
  if (!dir.empty() && !io::FileExists(dir) && !io::DirName(dir).empty() && !io::FileExists(io::DirName(dir))) {
    return InvalidArgument("Parent directory of {} doesn't exist, can't save.", full);
  }
  WEIR_TRY(session.Run(nodes_.save_tensor, {{nodes_.filename_tensor, full}}).status());
  if (options.write_meta_graph) WEIR_TRY(WriteMetaGraph(full));
  if (options.write_state) WEIR_TRY(Record(full, options));
  return full;
}

Status Saver::WriteMetaGraph(const std::string& path) const {
  WEIR_ASSIGN(const std::string bytes, ExportMetaGraph(*graph_, nodes_));
  return io::WriteFileAtomically(path + ".meta", bytes);
}

/// Names the checkpoint in the state file, and only then deletes the one that is too many.
Status Saver::Record(const std::string& path, const SaveOptions& options) {
  std::optional<Kept> old;
  if (options_.max_to_keep > 0) {
    std::erase_if(kept_, [&](const Kept& each) { return each.path == path; });
    kept_.push_back({path, Now()});
    if (kept_.size() > static_cast<size_t>(options_.max_to_keep)) {
      old = kept_.front();
      kept_.erase(kept_.begin());
    }
  }
  io::CheckpointState state;
  state.model_checkpoint_path = path;
  state.all_model_checkpoint_paths = last_checkpoints();
  WEIR_TRY(io::WriteCheckpointState(io::DirName(path), std::move(state), options.latest_filename));
  return old ? Delete(*old) : Status();
}

Status Saver::Delete(const Kept& old) {
  if (old.seconds > next_spared_seconds_) {
    next_spared_seconds_ += options_.keep_checkpoint_every_n_hours * 3600;
    return Status();
  }
  return io::RemoveCheckpoint(old.path);
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::vector<std::string> paths;
  for (const Kept& each : kept_) paths.push_back(each.path);
  return paths;
}

std::vector<io::WantedTensor> Saver::Wanted() const {
  std::vector<io::WantedTensor> wanted;
  for (const auto& [key, variable] : variables_) {
    if (!wanted.empty() && wanted.back().name == key) continue;  // further parts
    wanted.push_back({key, variable.dtype(),
                      variable.slice() ? PartialShape(Shape::Of(variable.slice()->full_shape)) : variable.shape()});
  }
  return wanted;
}

/// Resource variables take any shape that is assigned to them, so theirs are compared here.
Status Saver::CheckShapes(const std::string& path) const {
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(path));
  for (const auto& [key, variable] : variables_) {
    const io::BundleEntry* entry = variable.slice() ? nullptr : reader.Find(key);
    if (entry == nullptr || !variable.is_resource() || variable.shape().CompatibleWith(entry->shape)) continue;
    return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                           variable.shape().ToString(), entry->shape.ToString())
        .WithNode(variable.op().name(), variable.op().node().origin());
  }
  return Status();
}

Status Saver::Restore(Session& session, const std::string& path) {
  WEIR_TRY(graph_->status());
  if (path.empty()) return InvalidArgument("Can't load save_path when it is None.");
  if (Status shapes = CheckShapes(path); !shapes.ok()) return Explain(shapes, path);
  const Status status = session.Run(nodes_.restore_op, {{nodes_.filename_tensor, path}}).status();
  return status.ok() ? status : Explain(status, path);
}

Result<io::RestoreReport> Saver::RestorePartial(Session& session, const std::string& path) {
  WEIR_TRY(graph_->status());
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(path));
  io::RestoreReport report = io::CompareCheckpoint(reader, Wanted());
  const std::set<std::string> matched(report.matched.begin(), report.matched.end());
  Feeds feeds;
  Fetch::List targets;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!matched.contains(variables_[i].first)) continue;
    WEIR_ASSIGN(const Tensor value, ReadPart(reader, variables_[i].first, variables_[i].second));
    feeds.emplace_back(restored_[i], Literal(value));
    targets.emplace_back(assignments_[i]);
  }
  if (!targets.empty()) WEIR_TRY(session.Run(targets, feeds).status());
  return report;
}

Result<std::string> Saver::RestoreLatest(Session& session, const std::string& dir) {
  WEIR_ASSIGN(io::CheckpointState state, io::ReadCheckpointState(dir));
  std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  std::erase(paths, state.model_checkpoint_path);
  paths.push_back(state.model_checkpoint_path);
  Status damage;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    if (!io::CheckpointExists(*path)) continue;
    const Status status = Restore(session, *path);
    if (status.ok()) return *path;
    if (status.code() != Code::kDataLoss) return status;
    const std::string text = status.ToString();
    std::fprintf(stderr, "weir: checkpoint %s is damaged, taking the next older one: %s\n", path->c_str(),
                 text.c_str());
    damage = status;
  }
  return damage.ok() ? NotFound("no checkpoint in '{}'", dir) : damage;
}

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
