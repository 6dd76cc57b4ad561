"""TensorFlow's Python client and a cluster of several processes, of weir and of TensorFlow: door_cluster_test.py TEST
WEIR WORK_DIR. WEIR is the path of the command `weir`."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from door_more_programs import Replicas  # noqa: E402
from door_programs import STEPS, numbers  # noqa: E402

THEIRS = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
server = tf.distribute.Server(json.loads(sys.argv[1]), job_name=sys.argv[2], task_index=int(sys.argv[3]))
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""


class OurCluster:
    """`weir launch` with a process of `weir serve --grpc` for each task."""

    def __init__(self, jobs):
        tasks = ",".join(f"{job}={count}" for job, count in jobs.items())
        self.process = subprocess.Popen([WEIR, "launch", "--jobs", tasks, "--", WEIR, "serve", "--grpc", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said, self.targets = [], {}
        for line in self.process.stdout:
            self.said.append(line)
            found = re.match(r"\[(\w+) (\d+)\] .*(grpc://\S+)", line)
            if found:
                self.targets[found.group(1), int(found.group(2))] = found.group(3)
            if len(self.targets) == sum(jobs.values()):
                break
        assert len(self.targets) == sum(jobs.values()), self.said
        # Nobody waits for its lines any more.
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stdout))
        self.reader.start()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        self.reader.join()
        assert code == 143, (code, "".join(self.said))


class TheirCluster:
    """A process of TensorFlow's server for each task."""

    def __init__(self, jobs):
        # Sockets keep the ports for the servers, which may listen at them as well.
        self.kept, cluster = [], {}
        for job, count in jobs.items():
            for _ in range(count):
                kept = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                kept.bind(("0.0.0.0", 0))
                self.kept.append(kept)
                cluster.setdefault(job, []).append(f"127.0.0.1:{kept.getsockname()[1]}")
        self.processes, self.targets = [], {}
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                words = [sys.executable, "-c", THEIRS, json.dumps(cluster), job, str(index)]
                self.processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                       env={**os.environ, "TF_GRPC_REUSE_PORT": "1"}))
                self.targets[job, index] = f"grpc://{addresses[index]}"
        for process in self.processes:
            line = process.stdout.readline()
            assert line.startswith("grpc://"), line

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait(timeout=120)
        for kept in self.kept:
            kept.close()


def synchronous_replicas(targets, workers):
    """Two clients in step, at a worker each or at one: variables, accumulators and the queue of tokens are on the ps,
    gradients are made on the workers."""
    replicas = Replicas()

    def replica(which):
        worker = which % workers
        device = f"/job:worker/task:{worker}"
        with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=device)):
            x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
            w = tf.get_variable("sync_w", [3, 2], initializer=tf.constant_initializer(0.2))
            table = tf.get_variable("sync_table", [8, 2], initializer=tf.constant_initializer(0.1))
            ids = tf.placeholder(tf.int32, [None])
            hidden = tf.nn.softplus(tf.matmul(x, w) + tf.nn.embedding_lookup(table, ids))  # a sparse gradient
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1, keepdims=True) - y))
            step = tf.train.get_or_create_global_step()
            rate = tf.train.exponential_decay(0.1, step, 2, 0.9)
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(rate, 0.5), replicas_to_aggregate=2,
                                                       total_num_replicas=2)
            with tf.name_scope(f"replica_{which}"):  # local steps on one ps differ by name
                train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        assert w.device == "/job:ps/task:0" and loss.device == device, (w.device, loss.device)

        def feeds(i):
            rows = numbers(10 * i + which, 5, 3)
            return {x: rows, y: rows.sum(1, keepdims=True), ids: (np.arange(5) + which + i) % 8}

        replicas.train(which, targets["worker", worker], optimizer, (loss, train, step), feeds)

    return replicas.run(replica)


def F092_F199_synchronous_replicas_over_processes():
    """Losses and the last step are TensorFlow's to 1e-4: with one ps and one worker, and with two workers."""
    for workers in (1, 2):
        results = []
        for kind in (OurCluster, TheirCluster):
            cluster = kind({"ps": 1, "worker": workers})
            try:
                results.append(np.asarray(synchronous_replicas(cluster.targets, workers), np.float64))
            finally:
                cluster.close()
        got, want = results
        assert got.size == 2 * (STEPS + 1), got
        assert got[STEPS] == STEPS, f"global step {got[STEPS]} after {STEPS} steps of two replicas"
        texts = f"workers {workers}:\n  weir       {got}\n  TensorFlow {want}"
        assert np.allclose(got, want, rtol=1e-4, atol=1e-4), texts
        print(f"{workers} worker(s): {got}")


if __name__ == "__main__":
    TEST, WEIR, WORK = sys.argv[1:4]
    globals()[TEST]()
