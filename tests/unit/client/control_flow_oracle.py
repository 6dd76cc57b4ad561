#!/usr/bin/env python3
"""Prints control_flow_graphs.txt: the graphs that TensorFlow 2.17 makes of conds and loops with control flow v2 off.

One block per case: a line "== case", then one line per node, sorted by name, and one per context of a collection.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.python.ops import control_flow_ops  # noqa: E402

tf.disable_v2_behavior()
tf.disable_control_flow_v2()
tf.disable_resource_variables()

CASES = {}
ATTRS = ("_class", "frame_name", "is_constant", "parallel_iterations")


def case(function):
    CASES[function.__name__] = function
    return function


def value(v):
    kind = v.WhichOneof("value")
    if kind == "list":
        return ",".join(s.decode() for s in v.list.s)
    return v.s.decode() if kind == "s" else str(getattr(v, kind)).lower()


def node_line(n):
    data = [i for i in n.input if not i.startswith("^")]
    control = sorted(i for i in n.input if i.startswith("^"))
    attrs = "".join(f" {a}={value(n.attr[a])}" for a in ATTRS
                    if a in n.attr and not (a == "_class" and n.op.startswith("Assign")))
    return f"{n.name} = {n.op}({', '.join(data + control)}){attrs}"


def context_lines(c, indent):
    v = c.values_def
    if hasattr(c, "pred_name"):
        head = f"cond {c.context_name} pred={c.pred_name} pivot={c.pivot_name} branch={c.branch}"
    else:
        head = (f"while {c.context_name} parallel_iterations={c.parallel_iterations} back_prop={int(c.back_prop)} "
                f"swap_memory={int(c.swap_memory)} pivot={c.pivot_name} pivot_for_pred={c.pivot_for_pred_name} "
                f"pivot_for_body={c.pivot_for_body_name} exits={','.join(c.loop_exit_names)} "
                f"enters={','.join(c.loop_enter_names)} maximum_iterations={c.maximum_iterations_name}")
    external = ",".join(f"{k}>{e}" for k, e in sorted(v.external_values.items()))
    lines = [f"{indent}{head} values={','.join(sorted(v.values))} external={external}"]
    for nested in c.nested_contexts:
        inner = nested.cond_ctxt if nested.HasField("cond_ctxt") else nested.while_ctxt
        lines += context_lines(inner, indent + "  ")
    return lines


def placeholder(name, dtype=tf.float32, shape=()):
    return tf.placeholder(dtype, shape, name=name)


def flag(name):
    return placeholder(name, tf.bool)


@case
def cond_of_values():
    x, y = placeholder("x"), placeholder("y")
    tf.cond(x < y, lambda: x + x * y, lambda: tf.square(y))


@case
def cond_that_returns_outer_values():
    p, x = flag("p"), placeholder("x")
    tf.cond(p, lambda: x, lambda: tf.constant(2.0))


@case
def cond_of_operations():
    p = flag("p")
    v = tf.Variable(1.0, name="v")
    tf.cond(p, lambda: tf.group(v.assign_add(1.0)), tf.no_op)


@case
def cond_of_lists():
    p = flag("p")
    v = tf.Variable(1.0, name="v")
    tf.cond(p, lambda: [v.assign(2.0) + 1.0, v + 0.0], lambda: [v * 1.0, tf.constant(3.0)])


@case
def cond_in_cond():
    p, q, x = flag("p"), flag("q"), placeholder("x")
    tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x), lambda: x - 1.0)


@case
def cond_under_control():
    p, x = flag("p"), placeholder("x")
    a = tf.identity(x, name="a")
    with tf.control_dependencies([a]):
        tf.cond(p, lambda: tf.constant(1.0), lambda: x * 2.0)


@case
def control_within_cond():
    p, x = flag("p"), placeholder("x")
    a = tf.identity(x, name="a")

    def true_fn():
        with tf.control_dependencies([a]):
            return tf.constant(1.0)

    def false_fn():
        b = tf.constant(4.0, name="b")
        with tf.control_dependencies([b]):
            return tf.constant(1.0, name="c")

    tf.cond(p, true_fn, false_fn)


def branches(x, y):
    return [(x < y, lambda: tf.constant(1.0)), (x > y, lambda: tf.constant(2.0))]


@case
def case_with_default():
    x, y = placeholder("x"), placeholder("y")
    tf.case(branches(x, y), default=lambda: tf.constant(3.0))


@case
def case_exclusive():
    x, y = placeholder("x"), placeholder("y")
    tf.case(branches(x, y), default=lambda: tf.constant(3.0), exclusive=True)


@case
def case_without_default():
    x, y = placeholder("x"), placeholder("y")
    tf.case(branches(x, y))


@case
def case_of_one():
    x, y = placeholder("x"), placeholder("y")
    tf.case(branches(x, y)[:1])


@case
def loop():
    i, a = tf.constant(0, name="i"), tf.constant(1.0, name="a")
    tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, 2 * a + tf.cast(i, tf.float32)), [i, a])


@case
def loop_with_captures():
    x, n = placeholder("x"), placeholder("n", tf.int32)
    tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x + x), [tf.constant(0), tf.constant(0.0)],
                  parallel_iterations=3, back_prop=False, swap_memory=True)


@case
def loop_of_literals():
    tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a), [0, 1.5])


@case
def loop_with_maximum():
    i = tf.constant(0, name="i")
    tf.while_loop(lambda i: i < 10, lambda i: i + 1, [i], maximum_iterations=3)


@case
def loop_of_two_with_maximum():
    i, a = tf.constant(0, name="i"), tf.constant(1.0, name="a")
    tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, 2 * a), (i, a), maximum_iterations=3)


@case
def loop_that_assigns():
    v = tf.Variable(1.0, name="v")
    tf.while_loop(lambda i: i < 3, lambda i: tf.tuple([i + 1], control_inputs=[v.assign_add(1.0)])[0],
                  [tf.constant(0)])


@case
def loop_in_loop():
    x = placeholder("x")

    def body(i, a):
        _, b = tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b * x + tf.cast(i, tf.float32)),
                             [tf.constant(0), a])
        return i + 1, b

    tf.while_loop(lambda i, a: i < 2, body, [tf.constant(0), x])


@case
def cond_in_loop():
    x = placeholder("x")

    def body(i, a):
        even = tf.equal(tf.floormod(i, 2), 0)
        return i + 1, tf.cond(even, lambda: a + x, lambda: tf.constant(2.0) * a)

    tf.while_loop(lambda i, a: i < 4, body, [tf.constant(0), x])


@case
def loop_in_cond():
    x, p = placeholder("x"), flag("p")
    tf.cond(p, lambda: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tf.constant(0), x])[1],
            lambda: x)


@case
def loop_under_control():
    x = placeholder("x")
    c = tf.identity(x, name="c")
    b = tf.identity(x, name="b")

    def body(i):
        with tf.control_dependencies([b]):
            tf.constant(3)
            return i + 1

    start = tf.constant(0)
    with tf.control_dependencies([c]):
        tf.while_loop(lambda i: i < 3, body, [start])


@case
def control_within_loop():
    def body(i):
        c = tf.constant(7, name="c")
        with tf.control_dependencies([c]):
            d = tf.identity(i, name="d")
        return d + 1

    tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])


@case
def loop_on_a_device():
    with tf.device("/cpu:1"):
        x = placeholder("x")
    with tf.device("/cpu:0"):
        tf.while_loop(lambda a: a < 9.0, lambda a: a + x, [tf.constant(0.0)])


@case
def tuples():
    a, b = placeholder("a"), placeholder("b")
    tf.tuple([a * b, None, a + b])
    tf.tuple([a, b], control_inputs=[tf.no_op("z")])


@case
def with_dependencies():
    a, b = placeholder("a"), placeholder("b")
    control_flow_ops.with_dependencies([a], b)


@case
def assertion():
    p, x = flag("p"), placeholder("x")
    tf.Assert(p, ["text", x], summarize=5)


@case
def resources_as_operands():
    r = tf.Variable([1.0, 2.0], name="r", use_resource=True)
    s = tf.Variable(3.0, name="s", use_resource=True)
    x = placeholder("x")
    for use in (lambda: r + 1.0, lambda: 1.0 - r, lambda: r * s, lambda: x / s, lambda: -r):
        use()
    tf.square(r)
    tf.reduce_sum(r)
    tf.concat([r, [1.0], r], 0)
    tf.add_n([r, r])
    tf.nn.bias_add(tf.reshape(r, [1, 2]), r)
    s.assign_add(1)
    s.assign(s)
    with tf.device("/cpu:0"):
        tf.nn.relu(r)
        r.read_value()


@case
def cond_of_resources():
    p = flag("p")
    r = tf.Variable(1.0, name="r", use_resource=True)

    def true_fn():
        with tf.control_dependencies([r.assign_add(1.0)]):
            return r * 10.0

    tf.cond(p, true_fn, lambda: r)


@case
def loop_of_resources():
    r = tf.Variable(1.0, name="r", use_resource=True)

    def body(i):
        with tf.control_dependencies([r.assign_add(1.0)]):
            return i + r

    tf.while_loop(lambda i: i < r, body, [r])


@case
def initial_values_that_read():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b", collections=["local_variables"])
    n = tf.Variable(2.0, name="n", collections=["others"])
    x = b * a
    with tf.name_scope("s"):
        tf.Variable(x * x + a, name="d")
    tf.get_variable("e", initializer=x * n)
    tf.Variable(a, name="f", use_resource=True)


@case
def mapped():
    tf.map_fn(lambda e: e * 2.0, placeholder("x", shape=[None, 2]))
    a, b = placeholder("a", shape=[3]), placeholder("b", shape=[3])
    tf.map_fn(lambda e: e[0] + e[1], (a, b), dtype=tf.float32, name="sums")


@case
def folded():
    x = placeholder("x", shape=[None])
    tf.foldl(lambda a, e: a + e, x)
    tf.foldr(lambda a, e: a - e, x, initializer=1.0)
    tf.foldr(lambda a, e: a - e, placeholder("y", shape=[4]))


@case
def scanned():
    tf.scan(lambda a, e: a + e, placeholder("x", shape=[3]))
    y = placeholder("y", shape=[None])
    tf.scan(lambda a, e: a * e, y, initializer=2.0, reverse=True)


@case
def array_of_tensors():
    x = placeholder("x", shape=[2])
    array = tf.TensorArray(tf.float32, 3, name="ta")
    array = array.write(0, x).write(1, [1.0, 2.0], name="second")
    array.read(1)
    array.stack()
    array.gather([1, 0])
    array.concat()
    array.grad("g").size()
    other = tf.TensorArray(tf.float32, 0, dynamic_size=True).unstack(placeholder("y", shape=[None, 2]))
    other.size()
    other.stack()
    pieces = tf.TensorArray(tf.float32, 2, infer_shape=False).split(placeholder("z", shape=[5]), [2, 3])
    pieces.concat()
    pieces.close()


@case
def queue():
    q = tf.FIFOQueue(3, [tf.float32], [[]], name="q")
    q.enqueue(1.0)
    q.dequeue_many(2)
    q.size()
    q.close()
    q.is_closed()
    q.dequeue_up_to(2)
    q.enqueue_many([[1.0, 2.0]])
    with tf.name_scope("s"):
        two = tf.FIFOQueue(5, [tf.int32, tf.float32])
        two.enqueue([1, 2.0])
        two.dequeue()
        two.dequeue(name="taken")


@case
def comparisons_that_are_checked():
    x, y = placeholder("x", tf.int32, [2]), placeholder("y", shape=[2])
    tf.assert_equal(x, [1, 2])
    tf.assert_less(y, [3.0, 4.0], message="too large")
    tf.assert_positive(x)
    tf.assert_non_negative(y)
    tf.assert_rank(y, 1)
    tf.assert_rank(placeholder("z", shape=None), 2)
    tf.assert_type(x, tf.int32)


@case
def numerics_that_are_checked():
    x = placeholder("x")
    tf.log(x)
    tf.add_check_numerics_ops()


def main():
    print("# Made by control_flow_oracle.py with TensorFlow 2.17.1, control flow v2 off.")
    for name, function in CASES.items():
        with tf.Graph().as_default() as graph:
            function()
        print(f"== {name}")
        nodes = graph.as_graph_def().node
        for node in sorted(nodes, key=lambda n: n.name):
            print(node_line(node) + (f" device={node.device}" if node.device else ""))
        for key in ("cond_context", "while_context"):
            for context in graph.get_collection(key):
                print("\n".join(context_lines(context.to_proto(), "")))


if __name__ == "__main__":
    sys.exit(main())
