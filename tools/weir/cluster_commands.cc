#include "tools/weir/cluster_commands.h"

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

/// A flag that sets a key of the configuration.
void AddSetting(CLI::App& command, std::vector<std::string>& sets, const std::string& flag, const std::string& key,
                const std::string& type, const std::string& what) {
  command
      .add_option_function<std::string>(
          flag, [&sets, key](const std::string& value) { sets.push_back("cluster." + key + "=" + value); }, what)
      ->type_name(type);
}

void AddSwitch(CLI::App& command, std::vector<std::string>& sets, const std::string& flag, const std::string& key,
               const std::string& what) {
  command.add_flag_callback(flag, [&sets, key] { sets.push_back("cluster." + key + "=true"); }, what);
}

void AddSecurity(CLI::App& command, std::vector<std::string>& sets) {
  AddSetting(command, sets, "--token-file", "token_file", "FILE", "File of mode 0600 with the secret that all share");
  AddSetting(command, sets, "--tls-certificate", "tls_certificate", "FILE", "Own certificate, PEM");
  AddSetting(command, sets, "--tls-key", "tls_key", "FILE", "Its private key, PEM");
  AddSetting(command, sets, "--tls-authorities", "tls_authorities", "FILE", "Certificates that sign the peers', PEM");
  AddSetting(command, sets, "--name", "name", "NAME", "Name of the cluster: peers of another name are refused");
  AddSetting(command, sets, "--cluster", "spec", "SPEC", "Jobs and addresses: ps=h1:2222;h2:2222,worker=h3:2222");
  AddSetting(command, sets, "--roles", "roles", "ROLES", "Jobs of ranks: ps=2,worker=*");
}

void AddServe(CLI::App& app, ServeOptions& options) {
  CLI::App* serve = app.add_subcommand("serve", "Be a task of a cluster, or a server for clients in other processes");
  AddSetting(*serve, options.sets, "--listen", "listen", "HOST:PORT",
             "Address for tasks and weir:// clients; port 0 = any. Default: that in the cluster, else 127.0.0.1:0");
  AddSetting(*serve, options.sets, "--grpc", "grpc", "HOST:PORT", "Address for TensorFlow's clients (grpc://)");
  AddSetting(*serve, options.sets, "--status", "status", "HOST:PORT",
             "Status page, /healthz, /readyz, /metrics and /debug/steps over HTTP, on this machine");
  AddSetting(*serve, options.sets, "--job", "job", "NAME", "The job of this task; default: the only one");
  AddSetting(*serve, options.sets, "--task", "task", "N", "Its number in the job; default: the only one");
  AddSetting(*serve, options.sets, "--devices", "devices", "NAME,…", "Devices to offer: CPU,GPU:1; default: all");
  AddSecurity(*serve, options.sets);
  AddSwitch(*serve, options.sets, "--insecure-listen", "insecure_listen",
            "Allow other machines without a token and TLS");
  AddSwitch(*serve, options.sets, "--exit-when-done", "exit_when_done",
            "End with status 0 when another task ends the job; a task alone: when its last session was closed");
  serve->footer(
      "Every flag is also a key of [cluster] in the configuration. Without --cluster the cluster is that of\n"
      "TF_CONFIG, Slurm, mpirun, torchrun or Kubernetes, whichever comes first. LISTEN_FDS gives a socket instead of\n"
      "--listen.\n"
      "Signals: SIGTERM and SIGINT let steps end (cluster.drain_limit_ms), a second one ends now; SIGHUP reads the\n"
      "configuration, the token and the certificates again; SIGUSR1 prints counts. Exit status: 0 the job is done;\n"
      "1 failure; 2 wrong usage; 75 try again; 128 + n ended by signal n.");
}

void AddLaunch(CLI::App& app, LaunchOptions& options) {
  CLI::App* launch = app.add_subcommand("launch", "Start a cluster of processes on this machine, for tests and trials");
  launch->add_option("--jobs", options.jobs, "Tasks of each job: ps=2,worker=2")->type_name("JOBS");
  launch->add_option("--print", options.print, "Print what users of slurm, mpirun, torchrun or kubernetes write")
      ->check(CLI::IsMember({"slurm", "mpirun", "torchrun", "kubernetes"}))
      ->type_name("LAUNCHER");
  launch->add_option("command", options.command, "Program and arguments, after --; default: weir serve")
      ->type_name("COMMAND");
  launch->positionals_at_end(true);
  launch->footer(
      "Each process gets TF_CONFIG and its listening socket (LISTEN_FDS). In the arguments, {job}, {task} and\n"
      "{hosts:JOB} stand for the task and the addresses of a job, separated by commas.\n"
      "Example: weir launch --jobs ps=2,worker=2 -- trainer --ps_hosts={hosts:ps} --worker_hosts={hosts:worker}\n"
      "  --job_name={job} --task_index={task}\n"
      "Exit status: 0 when all tasks but those of ps have ended with 0 (these then get SIGTERM); else that of the\n"
      "first that failed.");
}

void AddDoctor(CLI::App& app, DoctorOptions& options) {
  CLI::App* doctor = app.add_subcommand("doctor", "Reach every task of a cluster, and every task from every other");
  AddSecurity(*doctor, options.sets);
  doctor->add_option("--limit", options.limit_ms, "Time for each task")->check(CLI::Range(1, 600000))->type_name("MS");
  doctor->footer("Exit status 1 if a task does not answer, or cannot be reached by another.");
}

CLI::App* AddAttach(CLI::App& app, AttachOptions& options) {
  CLI::App* attach = app.get_subcommand("profile")->add_subcommand(
      "attach", "Record what a running server runs; print time and memory by op, and what holds its memory");
  attach->add_option("address", options.address, "The server's address for tasks and weir:// clients")
      ->required()
      ->type_name("HOST:PORT");
  attach->add_option("--seconds", options.seconds, "How long")->check(CLI::Range(0.0, 600.0))->type_name("N");
  attach->add_option("--by", options.by, "op, device, op,device (default), kernel or node")
      ->check(CLI::IsMember({"op", "device", "op,device", "kernel", "node"}))
      ->type_name("KEY");
  attach->add_option("--out", options.out, "Write the trace for viewers (chrome://tracing, Perfetto)")
      ->type_name("FILE");
  AddSecurity(*attach, options.sets);
  attach->footer(
      "Steps that begin in the time are recorded, those of all clients, masters and remote devices' users; at most\n"
      "100000 ops of them. Columns as of `weir profile summary`. Steps are slower while they are recorded.");
  return attach;
}

}  // namespace

int StatusOfFailure(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kDeadlineExceeded:
      return kTryAgain;
    default:
      return 1;
  }
}

void AddClusterCommands(
    CLI::App& app, ClusterCommands& options, const std::function<config::Sources()>& sources,
    const std::function<void(std::function<Status(const Console&, nlohmann::ordered_json&)>)>& choose) {
  const auto with = [](config::Sources all, const std::vector<std::string>& sets) {
    all.sets.insert(all.sets.end(), sets.begin(), sets.end());
    return all;
  };
  AddServe(app, options.serve);
  app.get_subcommand("serve")->callback([&options, sources, choose, with] {
    choose([&options, sources, with](const Console& console, nlohmann::ordered_json&) {
      options.serve.sources = with(sources(), options.serve.sets);
      const Status status = Serve(options.serve, console, options.exit_status);
      if (!status.ok()) options.exit_status = StatusOfFailure(status);
      return status;
    });
  });
  AddLaunch(app, options.launch);
  app.get_subcommand("launch")->callback([&options, choose] {
    choose([&options](const Console& console, nlohmann::ordered_json&) {
      return LaunchCluster(options.launch, console, options.exit_status);
    });
  });
  AddAttach(app, options.attach)->callback([&options, sources, choose, with] {
    choose([&options, sources, with](const Console& console, nlohmann::ordered_json& report) {
      options.attach.sources = with(sources(), options.attach.sets);
      return AttachProfiler(options.attach, console, report);
    });
  });
  AddDoctor(app, options.doctor);
  app.get_subcommand("doctor")->callback([&options, sources, choose, with] {
    choose([&options, sources, with](const Console& console, nlohmann::ordered_json& report) {
      options.doctor.sources = with(sources(), options.doctor.sets);
      return Doctor(options.doctor, console, report);
    });
  });
}

}  // namespace weir::cli
