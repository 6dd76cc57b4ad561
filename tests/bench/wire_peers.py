"""Steps at servers in the same rounds: weir's own client and transport, its door for TensorFlow's client, TensorFlow's
gRPC cluster, and bare TCP.

usage: wire_peers.py BIN OUT.json ROUNDS [--gates] [--quick]

BIN has `weir` and `weir_bench_wire_steps`. Each system has a task `ps` and a task `worker` on this machine; clients
connect to the worker. Prints a table and writes OUT.json: by row and system the milliseconds of each round, and the
gates. Exits with 1 if a step failed, and with --gates if a gate is missed: a gate is the largest median, over the
rounds, of a system's time as a share of another's. --quick takes small tensors, for trials.
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()

THEIRS = """
import os, sys, json
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
cluster, job = json.loads(sys.argv[1]), sys.argv[2]
server = tf.distribute.Server(cluster, job_name=job, task_index=0)
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""
SYSTEMS = ("weir", "door", "tensorflow", "tcp")


class Row:
    """feeds: placeholder -> floats, 0 for a scalar; there, back: bytes that must cross a connection, for bare TCP."""

    def __init__(self, name, what, times, feeds, fetches, targets, there, back, gates):
        self.name, self.what, self.times, self.gates = name, what, times, gates
        self.feeds, self.fetches, self.targets, self.there, self.back = feeds, fetches, targets, there, back


def rows(quick):
    mib = 1 << (14 if quick else 20)
    dense, many = 100 * mib, 100 * mib
    return [
        Row("R01", "null step at the master", 100, {}, ["near"], [], 64, 64, []),
        Row("R02", "null step at another task, 4 bytes each way", 100, {"x": 1}, ["far"], [], 64, 64,
            [("weir", "tensorflow", 0.15)]),
        Row("R03", "1 MiB each way, a product at the master", 20, {"v": mib // 4}, ["product"], [], mib, mib,
            [("door", "tensorflow", 1.2)]),
        Row("R04", "100 MiB from another task", 1, {}, ["received"], [], 64, many, [("weir", "tcp", 1 / 0.85)]),
        Row("R05", "dense step of a parameter server, 100 MiB each way", 1, {}, [], ["dense_step"], dense, dense,
            [("weir", "tensorflow", 0.25)]),
        Row("R06", "sparse step of a parameter server, 32 rows of 256 floats", 50, {}, [], ["sparse_step"],
            32 * 1024 + 64, 32 * 1024 + 64, [("weir", "tensorflow", 0.05)]),
    ]


def build(quick):
    graph = tf.Graph()
    elements = 25 << (14 if quick else 20)
    with graph.as_default():
        with tf.device("/job:worker/task:0/cpu:0"):
            x, v = tf.placeholder(tf.float32, [1], name="x"), tf.placeholder(tf.float32, [None], name="v")
            tf.add(tf.constant(1.0), tf.constant(2.0), name="near")
            tf.multiply(v, 2.0, name="product")
        with tf.device("/job:ps/task:0/cpu:0"):
            tf.add(x, 1.0, name="far")
            sent = tf.get_variable("sent", [elements], use_resource=True, initializer=tf.ones_initializer())
            model = tf.get_variable("model", [elements], use_resource=True, initializer=tf.ones_initializer())
            table = tf.get_variable("table", [elements // 256, 256], use_resource=True,
                                    initializer=tf.ones_initializer())
            ids = tf.constant(np.arange(32) * (elements // 256 // 32), tf.int32)
            picked = tf.gather(table, ids)
            whole, read = sent.read_value(), model.read_value()
        with tf.device("/job:worker/task:0/cpu:0"):
            tf.strided_slice(whole, [0], [1], name="received")
            gradient, change = read * 1e-3, picked * 1e-3
        with tf.device("/job:ps/task:0/cpu:0"):
            tf.group(model.assign_sub(gradient, read_value=False), name="dense_step")
            tf.group(table.scatter_sub(tf.IndexedSlices(change, ids)).op, name="sparse_step")
        tf.group(sent.initializer, model.initializer, table.initializer, name="init")
    return graph


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Processes:
    def __init__(self):
        self.all = []

    def start(self, command, stderr=None):
        self.all.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                                         text=True))
        return self.all[-1]

    def target(self, command, stderr=None):
        """Of a server: the first grpc:// address that it prints."""
        process = self.start(command, stderr)
        for line in process.stdout:
            if "grpc://" in line:
                return line.split()[-1]
        raise RuntimeError(f"{command} ended without an address")

    def end(self):
        for process in self.all:
            process.kill()
            process.wait()


class TensorFlowClient:
    """Also of weir's door."""

    def __init__(self, target, graph):
        self.session = tf.Session(target, graph=graph)

    def ms(self, row):
        feeds = {name + ":0": np.ones(size or (), np.float32) for name, size in row.feeds.items()}
        run = self.session.make_callable([name + ":0" for name in row.fetches] + row.targets, list(feeds))
        begin = time.perf_counter()
        for _ in range(row.times):
            run(*feeds.values())
        return (time.perf_counter() - begin) * 1e3 / row.times


class OwnClient:
    def __init__(self, process):
        self.process = process

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer[0] == "!":
            raise RuntimeError(f"{line}: {answer or 'the client has ended'}")
        return float(answer) / 1e6

    def ms(self, row):
        def listed(items):
            return ",".join(items) or "-"
        feeds = [f"{name}:{size}" for name, size in row.feeds.items()]
        fetches = [name + ":0" for name in row.fetches]
        return self.ask(f"run {row.times} {listed(feeds)} {listed(fetches)} {listed(row.targets)}")

    def raw_ms(self, row):
        return self.ask(f"raw {row.times} {row.there} {row.back}")


def measure(binaries, rounds, quick):
    graph = build(quick)
    processes, sessions = Processes(), []

    def tensorflow_client(target):
        client = TensorFlowClient(target, graph)
        sessions.append(client.session)
        return client.ms

    with tempfile.TemporaryDirectory() as folder:
        try:
            path = os.path.join(folder, "graph.pb")
            with open(path, "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
            ps, worker, their_ps, their_worker = free_ports(4)
            spec = f"ps=127.0.0.1:{ps},worker=127.0.0.1:{worker}"
            serve = [os.path.join(binaries, "weir"), "serve", "--cluster", spec, "--grpc", "127.0.0.1:0", "--task", "0"]
            doors = [processes.target(serve + ["--job", job]) for job in ("ps", "worker")]
            cluster = json.dumps({"ps": [f"127.0.0.1:{their_ps}"], "worker": [f"127.0.0.1:{their_worker}"]})
            theirs = [processes.target([sys.executable, "-c", THEIRS, cluster, job], subprocess.DEVNULL)
                      for job in ("ps", "worker")]
            own = OwnClient(processes.start([os.path.join(binaries, "weir_bench_wire_steps"),
                                             f"weir://127.0.0.1:{worker}", path]))
            clients = {"weir": own.ms, "door": tensorflow_client(doors[1]),
                       "tensorflow": tensorflow_client(theirs[1]), "tcp": own.raw_ms}
            init = Row("init", "", 1, {}, [], ["init"], 0, 0, [])
            for system in ("weir", "tensorflow"):  # the door's variables are weir's
                clients[system](init)
            results = {}
            for row in rows(quick):
                for system in SYSTEMS:
                    clients[system](row)  # compiles, connects
                times = {system: [] for system in SYSTEMS}
                for _ in range(rounds):
                    for system in SYSTEMS:
                        times[system].append(clients[system](row))
                results[row.name] = {"what": row.what, "ms": times}
            return results
        finally:
            for session in sessions:  # while their servers are there to answer
                session.close()
            processes.end()


def main():
    binaries, out, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    quick = "--quick" in sys.argv
    results = measure(binaries, rounds, quick)
    missed = []
    print("| row | what | " + " | ".join(f"{system}, ms" for system in SYSTEMS) + " | gates |")
    print("|---" * (len(SYSTEMS) + 3) + "|")
    for row in rows(quick):
        times, said = results[row.name]["ms"], []
        results[row.name]["gates"] = []
        for system, other, most in row.gates:
            ratio = statistics.median(a / b for a, b in zip(times[system], times[other]))
            said.append(f"{system} {ratio:.3f} of {other}, at most {most:.2f}")
            results[row.name]["gates"].append({"system": system, "of": other, "ratio": ratio, "most": most})
            if ratio > most:
                missed.append(f"{row.name}: {said[-1]}")
        medians = " | ".join(f"{statistics.median(times[system]):.3f}" for system in SYSTEMS)
        print(f"| {row.name} | {row.what} | {medians} | {'; '.join(said)} |")
    with open(out, "w") as file:
        json.dump({"rounds": rounds, "rows": results}, file, indent=1)
    for line in missed:
        print("missed: " + line, file=sys.stderr)
    sys.exit(1 if missed and "--gates" in sys.argv else 0)


if __name__ == "__main__":
    main()
