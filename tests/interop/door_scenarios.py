"""What a TensorFlow client asks of a server, one function for a kind of request. Each gets the server's target and
returns what the client saw; answers of servers are compared."""
import re
import threading

import numpy as np
import tensorflow.compat.v1 as tf


def session(target, **config):
    return tf.Session(target, config=tf.ConfigProto(**config) if config else None)


def outcome(run):
    """The value, or the kind and text of the error."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001: what a user sees
        text = re.sub(r"\b[0-9a-f]{16}\b", "HANDLE", str(error))
        # weir adds why a placeholder was needed, and its default container has one name in all jobs.
        text = re.sub(r"\nneeded by [^\n]*", "", text)
        text = re.sub(r"container=\w+", "container=NAME", re.sub(r"Resource local(host)?/", "Resource NAME/", text))
        # Python adds where the op was made.
        return type(error).__name__, re.split(r"\nNode: '[^']*'\n", text.split("\n\nOriginal stack")[0])[-1]


def F250_feeds_of_several_shapes_and_types(target):
    with tf.Graph().as_default(), session(target) as s:
        rows = tf.placeholder(tf.float32, [None, 3])
        product = tf.matmul(rows, tf.constant([[1.0], [10.0], [100.0]]))
        words = tf.placeholder(tf.string)
        wide, flag = tf.placeholder(tf.int64, []), tf.placeholder(tf.bool)
        joined = tf.strings.join([words, "!"])
        out = [s.run(product, {rows: np.arange(3 * n).reshape(n, 3)}).tolist() for n in (0, 1, 4)]
        feed = {words: [b"a", b"\xff\x00"], wide: 2**40, flag: True}
        out.append(s.run([joined, wide + 1, tf.logical_not(flag)], feed))
        return out


def F250_graphs_that_grow(target):
    with tf.Graph().as_default(), session(target) as s:
        names = [s.list_devices()[0].device_type]  # before there is a node
        total = tf.Variable(1.5, name="total")
        s.run(total.initializer)
        for i in range(3):
            names.append(float(s.run(tf.assign_add(total, float(i), name="more%d" % i))))
        return names


def F250_graphs_that_grow_while_a_step_waits(target):
    with tf.Graph().as_default(), session(target) as s:
        queue = tf.FIFOQueue(4, tf.float32, shapes=[[]])
        taken = queue.dequeue()
        counter = tf.Variable(10.0)
        s.run(counter.initializer)
        got = []
        waiting = threading.Thread(target=lambda: got.append(float(s.run(taken))))
        waiting.start()
        value = s.run(tf.assign_add(counter, 1.0))
        s.run(queue.enqueue(value + 1.0))
        waiting.join()
        return got, float(s.run(counter)), int(s.run(queue.size()))


def F092_training_with_resource_variables(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3), tf.float32)
        with tf.variable_scope("m", use_resource=True):
            w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 0.5))
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        s.run(tf.global_variables_initializer())
        return [round(float(s.run([train, loss])[1]), 5) for _ in range(5)]


def F250_partial_runs(target):
    with tf.Graph().as_default(), session(target) as s:
        a, b = tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.float32, name="b")
        first = a * 3.0
        second = tf.add(first, b, name="second")
        handle = s.partial_run_setup([first, second], [a, b])
        one = s.partial_run(handle, first, {a: 2.0})
        early = outcome(lambda: s.partial_run(s.partial_run_setup([second], [a, b]), second, {a: 1.0}))
        two = s.partial_run(handle, second, {b: float(one)})
        return one, two, early[0], outcome(lambda: s.partial_run(handle, second, {b: 1.0}))


def F250_callables(target):
    with tf.Graph().as_default(), session(target) as s:
        a = tf.placeholder(tf.float32, name="a")
        doubled = tf.multiply(a, 2.0, name="doubled")
        plain = s.make_callable(doubled, [a])
        out = [plain(3.0), plain([1.0, 2.0]).tolist()]
        options = tf.compat.v1.CallableOptions() if hasattr(tf.compat.v1, "CallableOptions") else None
        if options is None:
            from tensorflow.core.protobuf import config_pb2
            options = config_pb2.CallableOptions()
        options.feed.append("a:0")
        options.fetch.append("doubled:0")
        made = s._make_callable_from_options(options)
        out += [made(np.float32(4.0))[0], made(np.float32(5.0))[0]]
        bad = type(options)()
        bad.fetch.append("nothing:0")
        out.append(outcome(lambda: s._make_callable_from_options(bad)))
        del made
        return out


def F250_traces_and_partitions(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.reduce_sum(tf.square(x, name="squares"), name="sum")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        value = s.run(y, {x: [3.0, 4.0]}, options=options, run_metadata=metadata)
        devices = [d.device for d in metadata.step_stats.dev_stats]
        nodes = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
        bare = tf.RunMetadata()
        s.run(y, {x: [0.0, 0.0]}, options=tf.RunOptions(), run_metadata=bare)
        return value, devices, "sum" in nodes, len(metadata.partition_graphs), len(bare.step_stats.dev_stats)


def F250_errors(target):
    out = []
    with tf.Graph().as_default(), session(target) as s:
        fed = tf.placeholder(tf.float32, [2], name="fed")
        late = tf.Variable([1.0], name="late")
        held = tf.get_variable("held", initializer=1.0, use_resource=True)
        left, right = tf.placeholder(tf.float32, name="left"), tf.placeholder(tf.float32, name="right")
        shaped = tf.reshape(left, [3], name="shaped")
        checked = tf.check_numerics(left, "left is bad", name="checked")
        index = tf.placeholder(tf.int32, name="index")
        picked = tf.gather([1.0, 2.0], index, name="picked")
        for run in (lambda: s.run(fed + 1.0), lambda: s.run(late), lambda: s.run(held),
                    lambda: s.run(shaped, {left: np.ones((2, 2))}),
                    lambda: s.run(tf.concat([left, right], 0), {left: np.ones((2, 3)), right: np.ones((2, 2))}),
                    lambda: s.run(checked, {left: [np.nan]}), lambda: s.run(picked, {index: 7}),
                    lambda: s.run(tf.Print(left, [left]).name, {}), lambda: s.run("nothing:0"),
                    lambda: s.run(picked, {index: [0, 1]}).tolist()):
            out.append(outcome(run))
    return out


def F250_nodes_that_cannot_run_fail_alone(target):
    """Shapes that do not fit, which the client cannot see, are errors of the steps that need them."""
    out = []
    with tf.Graph().as_default(), session(target) as s:
        x, n = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.int32, [], name="n")
        good = tf.add(x, 1.0, name="good")
        for run in (lambda: s.run(tf.transpose(x, [0, 0], name="turned"), {x: np.ones((2, 2))}),
                    lambda: s.run(good, {x: [1.0]}).tolist(),
                    lambda: s.run(tf.random_uniform([n], name="drawn"), {n: -1}),
                    lambda: s.run(tf.read_file("/nothing/here", name="read")),
                    lambda: s.run(good, {x: [2.0]}).tolist()):
            out.append(outcome(run))
    return out


def F321_errors_name_the_line_of_the_model(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.placeholder(tf.int32, name="x")
        made_here = tf.gather([1.0], x, name="made_here")
        try:
            s.run(made_here + 1.0, {x: 3})
        except tf.errors.InvalidArgumentError as error:
            return error.op.name, error.node_def.op, "made_here = tf.gather" in str(error)


def F250_errors_have_the_state_of_the_step(target):
    with tf.Graph().as_default(), session(target) as s:
        queue = tf.FIFOQueue(2, tf.int32, shapes=[[]], name="ends")
        s.run(queue.enqueue(5))
        s.run(queue.close())
        return s.run(queue.dequeue()), outcome(lambda: s.run(queue.dequeue()))[0], outcome(
            lambda: s.run(queue.enqueue(1)))[0]


def F092_devices(target):
    with tf.Graph().as_default(), session(target) as s:
        return [(d.name, d.device_type) for d in s.list_devices()]


def F257_variables_of_the_server_are_shared_and_stay(target):
    out = []
    with tf.Graph().as_default(), session(target) as first:
        v = tf.Variable(4.0, name="common")
        first.run(v.initializer)
        with tf.Graph().as_default(), session(target) as second:
            same = tf.Variable(0.0, name="common")
            out.append(second.run(tf.assign_add(same, 1.0)))
        out.append(first.run(v))
    with tf.Graph().as_default(), session(target) as third:
        out.append(third.run(tf.Variable(0.0, name="common")))
    with tf.Graph().as_default(), session(target, isolate_session_state=True) as alone:
        out.append(outcome(lambda: alone.run(tf.Variable(0.0, name="common")))[0])
    return out


def F051_queues_of_sessions_are_their_own(target):
    with tf.Graph().as_default(), session(target) as first:
        queue = tf.FIFOQueue(3, tf.int32, shapes=[[]], name="own")
        shared = tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="everyones")
        first.run([queue.enqueue(1), shared.enqueue(2)])
        with tf.Graph().as_default(), session(target) as second:
            other = tf.FIFOQueue(3, tf.int32, shapes=[[]], name="own")
            same = tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="everyones")
            return second.run([other.size(), same.size()]), second.run(same.dequeue()), first.run(queue.size())


def F257_containers_and_resets(target):
    out = []
    with tf.Graph().as_default(), session(target) as s:
        with tf.container("box"):
            boxed = tf.Variable(7.0, name="boxed")
        plain = tf.Variable(8.0, name="unboxed")
        s.run([boxed.initializer, plain.initializer])
    tf.Session.reset(target, ["box"])
    with tf.Graph().as_default(), session(target) as s:
        with tf.container("box"):
            boxed = tf.Variable(0.0, name="boxed")
        plain = tf.Variable(0.0, name="unboxed")
        out.append(outcome(lambda: s.run(boxed))[0])
        out.append(s.run(plain))
        tf.Session.reset(target)
        out.append(outcome(lambda: s.run(plain)))
        out.append(outcome(s.close))
    with tf.Graph().as_default(), session(target) as s:
        out.append(outcome(lambda: s.run(tf.Variable(0.0, name="unboxed")))[0])
    return out


def F250_large_values_both_ways(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.placeholder(tf.float32, name="x")
        value = np.arange(3 << 19, dtype=np.float32).reshape(3, -1)
        back, total = s.run([x + 1.0, tf.reduce_sum(x / 2**20)], {x: value})
        return back.shape, bool((back == value + 1.0).all()), round(float(total), 1)


def F318_time_limits(target):
    with tf.Graph().as_default(), session(target) as s:
        queue = tf.FIFOQueue(1, tf.float32)
        kind, text = outcome(lambda: s.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=200)))
        # The value goes to a later step, not to the one that has ended.
        s.run(queue.enqueue(2.5))
        return kind, text.split("\n")[0], s.run(queue.dequeue())


def F092_sessions_that_close_while_a_step_waits(target):
    with tf.Graph().as_default():
        s = session(target)
        queue = tf.FIFOQueue(1, tf.float32, name="never")
        taken = queue.dequeue()
        s.run(queue.size())
        got = []
        waiting = threading.Thread(target=lambda: got.append(outcome(lambda: s.run(taken))[0]))
        waiting.start()
        while not waiting.is_alive():
            pass
        s.run(tf.constant(1.0))
        s.close()
        waiting.join()
        # The step may not have begun when the session was closed.
        return [kind for kind in got if kind not in ("CancelledError", "AbortedError", "FailedPreconditionError")]


def F250_functions_and_control_flow(target):
    from tensorflow.python.framework import function
    with tf.Graph().as_default(), session(target) as s:
        @function.Defun(tf.float32)
        def cube(x):
            return x * x * x
        n = tf.placeholder(tf.int32, [])
        summed = tf.while_loop(lambda i, total: i < n, lambda i, total: (i + 1, total + i), [0, 0])
        out = [s.run(cube(2.0)), s.run(summed, {n: 5}), s.run(tf.cond(n > 3, lambda: n * 2, lambda: n - 1), {n: 4})]

        @function.Defun(tf.float32)
        def later(x):
            return cube(x) + 1.0
        x = tf.placeholder(tf.float32)
        return out + [s.run(later(3.0)), s.run(tf.gradients(later(x), x), {x: 2.0})]


def F092_settings_of_the_client(target):
    out = [outcome(lambda: session(target, use_per_session_threads=True).run(tf.constant(1.0)))]
    with tf.Graph().as_default():
        config = tf.ConfigProto(device_count={"CPU": 1, "GPU": 3}, allow_soft_placement=True)
        config.gpu_options.allow_growth = True
        config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
        with tf.Session(target, config=config) as s, tf.device("/gpu:5"):
            out.append(s.run(tf.constant(2.0) + 1.0))
        with tf.Session(target) as s, tf.device("/gpu:5"):
            out.append(outcome(lambda: s.run(tf.identity(4.0)))[0])
    return out


ALL = [value for name, value in sorted(globals().items()) if re.match(r"F\d{3}_", name)]
