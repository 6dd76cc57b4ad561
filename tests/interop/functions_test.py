"""Graphs of TensorFlow with functions and functional control flow, run by weir: functions_test.py NAME PEER WORK."""
import os
import shutil
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.enable_control_flow_v2()


def value(number, dtype=np.float32):
    """A tensor that neither side folds."""
    return tf1.placeholder_with_default(np.array(number, dtype), np.shape(number))


def choice(taken):
    return tf1.placeholder_with_default(taken, [])


def check(build):
    """Both sides compute what `build` returns."""
    with tf.Graph().as_default() as graph:
        outputs = [tf.identity(t, name=f"out{i}") for i, t in enumerate(tf.nest.flatten(build()))]
        with tf1.Session() as session:
            expected = session.run(outputs)
        definition = graph.as_graph_def()
    assert definition.library.function, "a graph without functions tests nothing"
    path = os.path.join(WORK, "graph.pb")
    with open(path, "wb") as file:
        file.write(definition.SerializeToString())
    names = [tensor.name for tensor in outputs]
    done = subprocess.run([PEER, "run", path, *names, WORK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, wanted in zip(names, expected):
        got = np.load(os.path.join(WORK, name.replace(":", "_") + ".npy"))
        assert got.dtype == wanted.dtype and got.shape == wanted.shape, name
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def calls():
    @tf.function
    def inner(x):
        return tf.tanh(x) * 2.0

    @tf.function
    def outer(x, y):
        return inner(x) + inner(inner(y)), tf.constant([3.0, 4.0]), x - y

    def build():
        first, second, third = outer(value([1.0, 2.0]), value([3.0, 4.0]))
        return first + second, first, second, third
    check(build)


def gradient_of_calls():
    @tf.function
    def loss(x, w):
        return tf.reduce_sum(tf.tanh(tf.matmul(x, w)))

    def build():
        x, w = value(np.arange(6).reshape(2, 3) / 6), value(np.full((3, 2), 0.3))
        y = loss(x, w)
        return [y] + tf1.gradients(y, [x, w])
    check(build)


def variables():
    def build():
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)

        @tf.function
        def add(x):
            v.assign_add(x)
            return v * 2.0

        @tf.function
        def twice(x):
            return add(x), add(x + 1.0), v.read_value()
        with tf1.control_dependencies([v.initializer]):
            x = tf.identity(value(5.0))
        results = twice(x)
        with tf1.control_dependencies([results[0]]):
            return *results, v.read_value()
    check(build)


def variables_in_loops():
    def build():
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)

        def body(i, total):
            with tf.control_dependencies([v.assign_add(tf.cast(i, tf.float32))]):
                total += v.read_value()
            with tf.control_dependencies([total]):
                return tf.identity(i + 1), total
        with tf1.control_dependencies([v.initializer]):
            start = tf.identity(value(0, np.int32))
        count, total = tf.while_loop(lambda i, _: i < 5, body, [start, value(0.0)])
        with tf1.control_dependencies([total]):
            assigned = tf.cond(total > 3.0, lambda: v.assign(100.0), lambda: v.assign(200.0))
        with tf1.control_dependencies([assigned]):
            return count, total, v.read_value()
    check(build)


def F173_cond_of_functions():
    def build():
        x, y = value(3.0), value(4.0)
        for taken in (True, False):
            p = choice(taken)
            yield tf.cond(p, lambda: x * y, lambda: x - y)
            yield tf.cond(p, lambda: tf.constant(7.0), lambda: y)
            yield from tf.cond(p, lambda: (x, y), lambda: (y, x + 1.0))
            yield tf.cond(p, lambda: tf.cond(x < y, lambda: x + 10.0, lambda: y + 20.0),
                          lambda: tf.cond(x < y, lambda: tf.constant(1.0), lambda: y))
    check(lambda: list(build()))


def F173_conditions_of_every_type():
    def build():
        signature = [tf.TensorSpec([], tf.float32)]
        branches = {"then_branch": tf.function(lambda x: x + 1.0, input_signature=signature).get_concrete_function(),
                    "else_branch": tf.function(lambda x: x * 10.0, input_signature=signature).get_concrete_function()}
        for branch in branches.values():
            branch.add_to_graph(tf1.get_default_graph())
        for condition in (value(3, np.int32), value(0, np.int32), value(0.5), choice(""), choice("a"), value([]),
                          value([0.0])):
            for op in (tf.raw_ops.If, tf.raw_ops.StatelessIf):
                yield op(cond=condition, input=[value(2.0)], Tout=[tf.float32], **branches)
    check(lambda: list(build()))


def F174_case_of_functions():
    def build():
        x = value(2.0)
        branches = [lambda: x + 1.0, lambda: x * 10.0, lambda: tf.constant(5.0), lambda: -x]
        return [tf.switch_case(value(k, np.int32), branches) for k in (-1, 0, 1, 2, 3, 9)]
    check(build)


def F177_loops_of_functions():
    def build():
        x, k = value([1.0, 2.0]), value(0.5)
        yield from tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * k + x), [value(0, np.int32), x])
        yield from tf.while_loop(lambda i, v: tf.reduce_sum(v) < 100.0, lambda i, v: (i + 1, v + v), [0, x])
        yield tf.while_loop(lambda i: i < 0, lambda i: (i + 1,), [value(0, np.int32)])

        def outer(i, v):
            _, w = tf.while_loop(lambda j, _: j < i, lambda j, w: (j + 1, w + tf.cast(j, tf.float32)), [0, v])
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: w * 2.0, lambda: w - 1.0)
        yield from tf.while_loop(lambda i, _: i < 6, outer, [0, value(1.0)])
    check(lambda: list(build()))


def F177_for_loops():
    def build():
        @tf.function(input_signature=[tf.TensorSpec([], t) for t in (tf.int32, tf.float32, tf.float32)])
        def body(i, v, w):
            return v + tf.cast(i, tf.float32) * w, w
        for numbers in ((0, 4, 1), (4, 0, -1), (3, 3, 0), (0, 5, 2), (7, 0, -3)):
            start, limit, delta = (value(n, np.int32) for n in numbers)
            yield tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[value(1.0), value(2.0)],
                                 body=body.get_concrete_function())
    check(lambda: list(build()))


def calls_in_switches_and_frames():
    @tf.function
    def line(x):
        return x * 2.0 + 1.0

    @tf.function
    def four(_):
        return tf.constant(4.0)

    def build():
        tf1.disable_control_flow_v2()
        x = value(3.0)
        for taken in (True, False):
            yield tf1.cond(choice(taken), lambda: line(x) + four(x), lambda: line(line(x)))
        yield from tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, line(v) + four(v) + x), [0, x])
    check(lambda: list(build()))


def loops_from_plain_code():
    @tf.function
    def total(x, n):
        s = tf.constant(0.0)
        for i in tf.range(n):
            if i % 3 == 0:
                s += x
            elif i > 7:
                break
            else:
                s *= 1.5
        return s
    check(lambda: [total(value(2.0), value(n, np.int32)) for n in (0, 1, 5, 20)])


if __name__ == "__main__":
    test, PEER, WORK = sys.argv[1:]
    WORK = os.path.join(WORK, test)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    {f.__name__: f for f in (calls, gradient_of_calls, variables, variables_in_loops, F173_cond_of_functions,
                             F173_conditions_of_every_type, F174_case_of_functions, F177_loops_of_functions,
                             F177_for_loops, calls_in_switches_and_frames, loops_from_plain_code)}[test]()
    print(f"interop.{test}: passed")
