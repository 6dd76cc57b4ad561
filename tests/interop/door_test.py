"""TensorFlow's Python client against a server of weir and one of TensorFlow: door_test.py TEST SERVER WORK_DIR. SERVER
is a command that opens a door, such as `weir serve --grpc 127.0.0.1:0`: it prints a line with its grpc:// target, and
ends with its standard input or by SIGTERM."""
import os
import shlex
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import door_scenarios  # noqa: E402

THEIRS = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
server = tf.distribute.Server({"local": ["127.0.0.1:0"]}, job_name="local", task_index=0)
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""


class Server:
    """A process with a door."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "grpc://" in line:
                break
        assert said and "grpc://" in said[-1], f"{command}: {said}"
        self.target = said[-1].split()[-1]

    def close(self):
        """0 if it ended as it should: by the end of its input or, drained, by SIGTERM."""
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            code = self.process.wait()
            return 0 if code in (143, -15) else code


def servers():
    return Server(shlex.split(SERVER)), Server([sys.executable, "-c", THEIRS])


def shown(value):
    with np.printoptions(precision=6):
        return repr(value)


def F250_what_other_clients_see():
    """gRPC's own Python client: health, foreign paths, limits, certificates."""
    import grpc
    server = Server(shlex.split(SERVER))
    channel = grpc.insecure_channel(server.target[len("grpc://"):])

    def outcome_of(call):
        try:
            return call()
        except grpc.RpcError as error:
            return error.code().name

    def ask(path, request=b"", to=channel, **options):
        return outcome_of(lambda: to.unary_unary(path)(request, timeout=60, **options))

    def list_until_error(call):
        said = []
        while not said or isinstance(said[-1], bytes):
            said.append(outcome_of(lambda: next(call)))
        return said

    health = "/grpc.health.v1.Health/Check"
    assert ask(health) == b"\x08\x01"
    assert ask(health, b"\x0a\x18tensorflow.MasterService") == b"\x08\x01"
    assert ask(health, b"\x0a\x05other") == "NOT_FOUND"
    assert ask(health, b"\xff") == "INVALID_ARGUMENT"
    for path, want in (("/tensorflow.MasterService/Other", "UNIMPLEMENTED"),
                       ("/other.Service/RunStep", "UNIMPLEMENTED"),
                       ("/tensorflow.MasterService/CloseSession", "ABORTED")):
        assert ask(path) == want, (path, ask(path))
    assert b"device:CPU:0" in ask("/tensorflow.grpc.MasterService/ListDevices")
    assert ask(health, metadata=[("large", "x" * 20000)]) == "RESOURCE_EXHAUSTED"
    # The connection may end with the call; the next call may still meet its end.
    answers = [ask(health) for _ in range(2)]
    assert answers[1] == b"\x08\x01" and answers[0] in (b"\x08\x01", "UNAVAILABLE"), answers
    watched = channel.unary_stream(health.replace("Check", "Watch"))
    calls = [watched(name, timeout=120) for name in (b"", b"\x0a\x18tensorflow.MasterService", b"\x0a\x05other")]
    assert [next(call) for call in calls] == [b"\x08\x01", b"\x08\x01", b"\x08\x03"]
    calls[0].cancel()
    broken = watched(b"\xff", timeout=120)
    assert outcome_of(lambda: next(broken)) == "INVALID_ARGUMENT"
    server.process.stdin.close()
    # What the server says before it ends is not told apart from its end.
    last = list_until_error(calls[1])
    assert last[-1] in ("UNAVAILABLE", "CANCELLED") and last[:-1] in ([], [b"\x08\x02"]), last
    channel.close()
    assert server.close() == 0

    os.makedirs(WORK, exist_ok=True)
    names = {name: os.path.join(WORK, name + ".pem") for name in ("certificate", "key")}
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", names["certificate"], "-keyout", names["key"]],
                   check=True, capture_output=True)
    server = Server(shlex.split(SERVER) + ["--tls-certificate", names["certificate"], "--tls-key", names["key"],
                                           "--tls-authorities", names["certificate"]])
    own = {name: open(path, "rb").read() for name, path in names.items()}
    for pair, want in (((own["key"], own["certificate"]), b"\x08\x01"), ((None, None), "UNAVAILABLE")):
        secure = grpc.ssl_channel_credentials(own["certificate"], *pair)
        with grpc.secure_channel(server.target[len("grpc://"):], secure) as channel:
            assert ask(health, to=channel) == want, (pair[0] is not None, ask(health, to=channel))
    assert server.close() == 0


def compare_scenarios(scenarios):
    """Each scenario gives the same on both servers."""
    ours, theirs = servers()
    different = []
    wanted = sys.argv[4:]
    for scenario in scenarios:
        if wanted and scenario.__name__ not in wanted:
            continue
        got, want = (shown(door_scenarios.outcome(lambda: scenario(server.target))) for server in (ours, theirs))
        if got != want:
            different.append(f"{scenario.__name__}:\n  weir       {got}\n  TensorFlow {want}")
    theirs.close()
    assert ours.close() == 0
    assert not different, "\n" + "\n".join(different)


def F092_F250_what_clients_see():
    compare_scenarios(door_scenarios.ALL)


def F092_F250_more_that_clients_see():
    import door_more_scenarios
    compare_scenarios(door_more_scenarios.ALL)


def compare_programs(programs):
    """The numbers of each program are equal to 1e-4."""
    ours, theirs = servers()
    different = []
    wanted = sys.argv[4:]
    for program in programs:
        if wanted and program.__name__ not in wanted:
            continue
        results = []
        for server in (ours, theirs):
            work = os.path.join(WORK, program.__name__)
            tf.reset_default_graph()
            try:
                results.append(program(server.target, work))
            except tf.errors.OpError as error:
                different.append(f"{program.__name__} on {server.target}: {type(error).__name__} {error}")
                break
            finally:
                tf.Session.reset(server.target)
        if len(results) < 2:
            continue
        got, want = (np.asarray(result, np.float64) for result in results)
        assert want.size >= 5, f"{program.__name__} reports {want.size} numbers"
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-4):
            different.append(f"{program.__name__}:\n  weir       {got}\n  TensorFlow {want}")
    theirs.close()
    assert ours.close() == 0
    assert not different, "\n" + "\n".join(different)


def F092_programs_train_unmodified():
    import door_programs
    compare_programs(door_programs.ALL)


def F092_F199_more_programs_train_unmodified():
    import door_more_programs
    compare_programs(door_more_programs.ALL)


def near(got, want):
    """Equal, or to 1e-4 of the largest number in floating types."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind not in "fc":
        return np.array_equal(got, want)
    size = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
    return np.allclose(got, want, rtol=1e-4, atol=1e-4 * size, equal_nan=True)


def F250_graphs_from_many_families_of_ops():
    """Each program in three forms by seed, of the server and of TensorFlow in this process."""
    import zlib

    import door_op_programs
    server = Server(shlex.split(SERVER))
    different = []
    for program in door_op_programs.ALL:
        for seed in range(3):
            with tf.Graph().as_default() as graph:
                built = program(np.random.RandomState(zlib.crc32(program.__name__.encode()) + seed))
                fetches, inits = built if isinstance(built, tuple) else (built, [])
                results = []
                for target in ("", server.target):
                    options = tf.ConfigProto(isolate_session_state=True)
                    with tf.Session(target, graph=graph, config=options) as session:
                        session.run(inits)
                        results.append(session.run(fetches))
            for fetch, want, got in zip(fetches, *results):
                if not near(got, want):
                    where = f"{program.__name__} {seed}, {fetch.name}"
                    different.append(f"{where}:\n  weir       {got}\n  TensorFlow {want}")
    assert server.close() == 0
    assert not different, "\n" + "\n".join(different)


def F092_F250_the_command_answers_as_TensorFlow():
    """`weir serve` without other flags than --grpc, whose steps go through a worker."""
    compare_scenarios(door_scenarios.ALL)


def F092_programs_of_records_functions_and_state():
    import door_exam_programs
    compare_programs(door_exam_programs.ALL)


if __name__ == "__main__":
    TEST, SERVER, WORK = sys.argv[1:4]
    globals()[TEST]()
