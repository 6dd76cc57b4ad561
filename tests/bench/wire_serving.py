"""What a server owes its clients beside the speed of a step: how soon a cluster serves, how a good client fares beside
bad ones, and that steps leave no memory behind.

usage: wire_serving.py BIN OUT.json ROUNDS [--gates] [--quick]

BIN has `weir` and `weir_bench_wire_steps`. Prints a table and writes OUT.json. Exits with 1 if a step failed, and with
--gates if a gate is missed: the largest median, over the rounds, of the quotients of a row. --quick takes fewer
connections and steps, for trials.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from wire_peers import OwnClient, Processes, free_ports

import numpy as np
import tensorflow.compat.v1 as tf

TASK_OF_TENSORFLOW = """
import os, sys, json
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
cluster, job, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
server = tf.distribute.Server(cluster, job_name=job, task_index=index)
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""
TASKS = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
FLOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire_flood.py")


def graph_of_cluster():
    """A step that reads a variable of each ps and computes at each worker."""
    graph = tf.Graph()
    with graph.as_default():
        parts = []
        for i in range(2):
            with tf.device(f"/job:ps/task:{i}/cpu:0"):
                weights = tf.get_variable(f"w{i}", [1000], use_resource=True, initializer=tf.ones_initializer())
            with tf.device(f"/job:worker/task:{i}/cpu:0"):
                parts.append(tf.reduce_sum(weights.read_value() * 2.0))
        with tf.device("/job:worker/task:0/cpu:0"):
            tf.add_n(parts, name="first")
        tf.group(*[v.initializer for v in tf.global_variables()], name="init")
    return graph


def start_seconds(command_of, graph):
    """From the start of four tasks to the result of the first step."""
    processes = Processes()
    try:
        begin = time.perf_counter()
        started = [processes.start(command_of(job, index), subprocess.DEVNULL) for job, index in TASKS]
        target = next(line.split()[-1] for line in started[2].stdout if "grpc://" in line)
        with tf.Session(target, graph=graph) as session:
            session.run("init")
            value = session.run("first:0")
        assert value == 4000.0, value
        return time.perf_counter() - begin
    finally:
        processes.end()


def start_row(binaries, rounds):
    graph, times = graph_of_cluster(), {"weir": [], "tensorflow": []}

    def addresses():
        ports = free_ports(len(TASKS))
        return {job: [f"127.0.0.1:{port}" for port, task in zip(ports, TASKS) if task[0] == job]
                for job in ("ps", "worker")}

    for _ in range(rounds):
        jobs = addresses()
        spec = ",".join(f"{job}={';'.join(of)}" for job, of in jobs.items())
        weir = [os.path.join(binaries, "weir"), "serve", "--cluster", spec, "--grpc", "127.0.0.1:0"]
        times["weir"].append(start_seconds(lambda job, index: weir + ["--job", job, "--task", str(index)], graph))
        text = json.dumps(addresses())
        times["tensorflow"].append(start_seconds(
            lambda job, index: [sys.executable, "-c", TASK_OF_TENSORFLOW, text, job, str(index)], graph))
    return {"what": "start of 2 ps and 2 workers to the first step", "unit": "s", **times, "most": 0.2,
            "quotients": [a / b for a, b in zip(times["weir"], times["tensorflow"])]}


def p99_ms(step, steps):
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        told = step()
        times.append((time.perf_counter() - begin) * 1e3 if told is None else told)
    return float(np.percentile(times, 99))


def flood_row(what, step, port, rounds, quick):
    idle, half_open, garbage = (100, 10, 10) if quick else (1000, 100, 50)
    steps = 200 if quick else 1000
    times = {"alone": [], "beside": []}
    p99_ms(step, steps)
    for _ in range(rounds):
        times["alone"].append(p99_ms(step, steps))
        processes = Processes()
        try:
            bad = processes.start([sys.executable, FLOOD, str(port), str(idle), str(half_open), str(garbage)])
            assert bad.stdout.readline() == "there\n", "the bad clients did not come"
            times["beside"].append(p99_ms(step, steps))
        finally:
            processes.end()
    return {"what": f"{what}: p99 of a step beside {idle} idle, {half_open} half-open and {garbage}/s garbage "
                    "connections", "unit": "ms", **times, "most": 2.0,
            "quotients": [a / b for a, b in zip(times["beside"], times["alone"])]}


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line.split()[1] for line in file if line.startswith("VmRSS")))


def memory_row(what, run, pid, steps):
    """Of the server; the first tenth of the steps warms it up."""
    run(steps // 10)
    early = rss_kib(pid)
    run(steps)
    late = rss_kib(pid)
    return {"what": f"{what}: memory after {steps} steps beside that after {steps // 10}", "unit": "KiB",
            "early": [early], "late": [late], "most": 1.02, "quotients": [late / early]}


def rows_of_one_server(binaries, rounds, quick):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [1], name="x")
        tf.add(x, 1.0, name="y")
    processes = Processes()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pb")
        with open(path, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        try:
            own_port = free_ports(1)[0]
            server = processes.start([os.path.join(binaries, "weir"), "serve", "--listen", f"127.0.0.1:{own_port}",
                                      "--grpc", "127.0.0.1:0"], subprocess.DEVNULL)
            target = next(line.split()[-1] for line in server.stdout if "grpc://" in line)
            own = OwnClient(processes.start([os.path.join(binaries, "weir_bench_wire_steps"),
                                             f"weir://127.0.0.1:{own_port}", path]))

            def own_ms(times=1):
                return own.ask(f"run {times} x:1 y:0 -")

            with tf.Session(target, graph=graph) as session:
                run = session.make_callable("y:0", ["x:0"])
                one = np.ones(1, np.float32)

                def many(times):
                    for _ in range(times):
                        run(one)

                yield "S02", flood_row("TensorFlow's client", lambda: many(1), int(target.rsplit(":", 1)[1]), rounds,
                                       quick)
                yield "S03", flood_row("weir's client", own_ms, own_port, rounds, quick)
                yield "S04", memory_row("TensorFlow's client", many, server.pid, 2000 if quick else 50_000)
                yield "S05", memory_row("weir's client", own_ms, server.pid, 10_000 if quick else 1_000_000)
        finally:
            processes.end()


def main():
    binaries, out, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    quick = "--quick" in sys.argv
    rows = {"S01": start_row(binaries, min(rounds, 5))}
    rows.update(rows_of_one_server(binaries, min(rounds, 5), quick))
    missed = []
    print("| row | what | medians | quotient | at most |\n|---|---|---|---|---|")
    for name, row in rows.items():
        medians = ", ".join(f"{key} {statistics.median(values):.3f} {row['unit']}" for key, values in row.items()
                            if isinstance(values, list) and key != "quotients")
        quotient = statistics.median(row["quotients"])
        print(f"| {name} | {row['what']} | {medians} | {quotient:.3f} | {row['most']} |")
        if quotient > row["most"]:
            missed.append(f"{name}: {quotient:.3f}, at most {row['most']}")
    with open(out, "w") as file:
        json.dump({"rounds": rounds, "rows": rows}, file, indent=1)
    for line in missed:
        print("missed: " + line, file=sys.stderr)
    sys.exit(1 if missed and "--gates" in sys.argv else 0)


if __name__ == "__main__":
    main()
