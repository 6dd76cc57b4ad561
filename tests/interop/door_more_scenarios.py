"""More of what clients ask of a server, as in door_scenarios.py."""
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from door_scenarios import outcome, session


def F092_reads_of_references_share_their_memory(target):
    """A user that must follow a write sees it; a fetch sees the end of the step."""
    with tf.Graph().as_default(), session(target) as s:
        v = tf.get_variable("v", initializer=1.0, use_resource=False)
        h = tf.get_variable("h", initializer=1.0, use_resource=True)
        old, old_h = tf.identity(v), h.read_value()
        before = old * 10.0

        def after(nodes, make):
            with tf.control_dependencies(nodes):
                return make()

        first = after([before, old_h], lambda: tf.assign_add(v, before))
        between = after([first], lambda: old * 10.0)
        again = after([first], lambda: tf.identity(old))
        second = after([between], lambda: tf.assign_add(v, 100.0))
        last, chained = after([second], lambda: [old * 10.0, again * 10.0])
        tokens = after([second], lambda: tf.fill([2], old))
        moved = after([old_h], lambda: h.assign_add(5.0, read_value=False))
        late_h = after([moved], lambda: old_h * 10.0)
        s.run(tf.global_variables_initializer())
        out = [s.run([before, between, last, chained, tokens, late_h])]
        out.append(s.run([old, v, first.op, v.read_value(), h.read_value()]))
        rate = tf.get_variable("rate", initializer=0.5, use_resource=False)
        s.run(rate.initializer)
        return out + [s.run([rate, tf.assign(rate, rate * 0.5), tf.stop_gradient(rate)]) for _ in range(2)]


def F092_steps_beside_the_global_step(target):
    """What programs print: the step that is fetched with the train op."""
    out = []
    for use_resource in (False, True):
        with tf.Graph().as_default(), session(target) as s:
            w = tf.get_variable("w", initializer=4.0, use_resource=use_resource)
            step = tf.train.get_or_create_global_step()
            rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
            train = tf.train.GradientDescentOptimizer(rate).minimize(tf.square(w), global_step=step)
            with tf.control_dependencies([train]):
                after = tf.identity(w.read_value(), name="after")
            s.run(tf.global_variables_initializer())
            out += [s.run([train, step, after])[1:] for _ in range(4)]
            out.append(tf.train.global_step(s, step))
    return [np.round(value, 5).tolist() for value in out]


def F250_assertions_and_prints(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.control_dependencies([tf.assert_positive(x, message="x is bad"), tf.assert_rank(x, 1)]):
            root = tf.sqrt(x, name="root")
        equal = tf.debugging.assert_equal(tf.shape(x)[0], 2, name="two")
        printed = tf.Print(root, [root, tf.shape(root)], "roots: ", first_n=1)
        out = [s.run(printed, {x: [4.0, 9.0]}).tolist(), s.run(equal, {x: [1.0, 2.0]})]
        out += [outcome(lambda: s.run(root, {x: [1.0, -1.0]}))[0], outcome(lambda: s.run(equal, {x: [1.0]}))[0]]
        asserted = tf.Assert(tf.less(x[0], 3.0), [x, "too large"], name="asserted")
        out.append(outcome(lambda: s.run(asserted, {x: [5.0, 6.0]})))
        bad = tf.verify_tensor_all_finite(tf.log(x), "log is bad", name="finite")
        out.append(outcome(lambda: s.run(bad, {x: [0.0]})))
        return out


def F250_python_functions_stay_with_the_client(target):
    """The server has no Python: an error, and the session goes on."""
    with tf.Graph().as_default(), session(target) as s:
        doubled = tf.py_func(lambda x: x * 2, [tf.constant(2.0)], tf.float32, name="in_python")
        kind = outcome(lambda: s.run(doubled))[0]
        return kind not in ("AbortedError", "UnavailableError"), s.run(tf.constant(3.0))


def F250_feeds_and_fetches_of_all_kinds(target):
    with tf.Graph().as_default(), session(target) as s:
        x = tf.constant([1.0, 2.0], name="x")
        y = tf.multiply(x, 3.0, name="y")
        z = y + 1.0
        sparse = tf.sparse_placeholder(tf.float32)
        total = tf.sparse_reduce_sum(sparse)
        slices = tf.IndexedSlices(y, tf.constant([0, 2]), tf.constant([3]))
        out = [s.run(z, {y: [0.0, 10.0]}).tolist(), s.run(z, {"x:0": [7.0, 8.0]}).tolist()]
        fed = tf.SparseTensorValue([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
        out += [s.run(total, {sparse: fed}), s.run(sparse, {sparse: fed}).values.tolist()]
        got = s.run({"a": [y, {"b": z}], "op": y.op, "none": []})
        out += [got["a"][1]["b"].tolist(), got["op"], got["none"], s.run(slices).indices.tolist()]
        out += [outcome(lambda: s.run(z, {y: np.zeros(3)})), outcome(lambda: s.run([]))]
        halves = tf.cast(tf.placeholder(tf.float32, name="p"), tf.float16)
        out.append(s.run(halves, {"p:0": 1 / 3}).tolist())
        out.append([s.run(tf.cast(x, t)).dtype.name for t in (tf.int8, tf.uint16, tf.float64, tf.bool, tf.bfloat16)])
        out.append(s.run(tf.constant([], tf.string)).shape)
        return out


def F051_uninitialised_variables_and_tables(target):
    with tf.Graph().as_default(), session(target) as s:
        tf.get_variable("ref_variable", [2], use_resource=False)
        tf.get_variable("handle", [2], use_resource=True)
        local = tf.get_local_variable("of_the_worker", initializer=3)
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [10, 20]), -1)
        report = tf.report_uninitialized_variables()
        found = table.lookup(tf.constant([2, 3]))
        out = [sorted(s.run(report).tolist()), outcome(lambda: s.run(found))[0]]
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        out += [s.run(report).tolist(), s.run(found).tolist(), s.run(table.size())]
        s.run(tf.local_variables_initializer())
        local.load(9, s)
        return out + [s.run(report).tolist(), local.eval(s), s.run(tf.is_variable_initialized(local))]


def F092_device_strings_with_jobs(target):
    out = []
    with tf.Graph().as_default(), session(target) as s:
        for where in ("/job:local", "/job:local/task:0", "/job:local/replica:0/task:0/device:CPU:0", "/cpu:0"):
            with tf.device(where):
                out.append(s.run(tf.constant(1.0) + 2.0))
        with tf.device(tf.train.replica_device_setter(ps_tasks=0, worker_device="/job:local/task:0")):
            v = tf.get_variable("placed", initializer=2.0)
            out.append(v.device)
        s.run(v.initializer)
        out.append(s.run(v * 2.0))
    for where in ("/job:other", "/job:local/task:7", "/device:CPU:9"):
        with tf.Graph().as_default(), session(target) as s, tf.device(where):
            out.append(outcome(lambda: s.run(tf.constant(1.0) + 2.0))[0])
    return out


def F318_limits_of_sessions_and_steps(target):
    out = []
    config = tf.ConfigProto(operation_timeout_in_ms=300)
    with tf.Graph().as_default(), tf.Session(target, config=config) as s:
        queue = tf.FIFOQueue(1, tf.float32, shapes=[[]])
        out.append(outcome(lambda: s.run(queue.dequeue()))[0])
    with tf.Graph().as_default(), session(target) as s:
        queue = tf.FIFOQueue(1, tf.float32, shapes=[[]])
        put = queue.enqueue(1.0)
        s.run(put)
        options = tf.RunOptions(timeout_in_ms=200)
        out.append(outcome(lambda: s.run(put, options=options))[0])
        # The server may learn of the limit later than the client: the queue is not looked at again.
        endless = tf.while_loop(lambda i: i < 2, lambda i: i * 0, [0])
        return out + [outcome(lambda: s.run(endless, options=options))[0], s.run(tf.constant(1.0))]


def F250_full_traces(target):
    with tf.Graph().as_default(), session(target) as s:
        v = tf.get_variable("traced", initializer=tf.ones([2, 2]), use_resource=True)
        loss = tf.reduce_sum(tf.matmul(v, v, name="product"), name="loss")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        s.run(v.initializer)
        metadata = tf.RunMetadata()
        value, _ = s.run([loss, train], options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                         run_metadata=metadata)
        stats = metadata.step_stats.dev_stats
        names = {node.node_name for device in stats for node in device.node_stats}
        times = all(node.all_end_rel_micros >= node.op_end_rel_micros >= node.op_start_rel_micros >= 0
                    for device in stats for node in device.node_stats)
        from tensorflow.python.client import timeline
        chrome = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
        return value, {"product", "loss"} <= names, times, stats[0].device, "product" in chrome


def F250_partial_runs_in_parts(target):
    with tf.Graph().as_default(), session(target) as s:
        a, b, c = (tf.placeholder(tf.float32, [], name=name) for name in "abc")
        ab, abc = a + b, (a + b) * c
        out = []
        handle = s.partial_run_setup([ab, abc], [a, b, c])
        out.append(s.partial_run(handle, [], {a: 1.0}))
        out.append(s.partial_run(handle, ab, {b: 2.0}))
        out.append(outcome(lambda: s.partial_run(handle, abc, {a: 5.0}))[0])
        out.append(outcome(lambda: s.partial_run(handle, abc, {c: 4.0})))
        second = s.partial_run_setup([abc], [a, b, c])
        out.append(s.partial_run(second, abc, {a: 1.0, b: 1.0, c: 3.0}))
        out.append(outcome(lambda: s.partial_run("none", abc, {c: 1.0}))[0])
        return out


def F250_random_numbers_with_seeds(target):
    out = []
    for seed in (7, None):
        with tf.Graph().as_default(), session(target) as s:
            tf.set_random_seed(5)
            ops = [tf.random_uniform([3], seed=seed), tf.random_normal([2], seed=seed),
                   tf.truncated_normal([2], seed=seed), tf.random_shuffle(tf.range(6), seed=seed),
                   tf.random_uniform([3], 0, 10, tf.int32, seed=seed), tf.multinomial([[0.1, 0.5, 0.4]], 4, seed=seed),
                   tf.random_gamma([2], 0.7, seed=seed), tf.random_poisson(3.0, [3], seed=seed)]
            out += [[np.round(v.astype(float), 4).tolist() for v in s.run(ops)] for _ in range(2)]
    return out


def F250_many_threads_of_one_session(target):
    with tf.Graph().as_default(), session(target) as s:
        v = tf.get_variable("v", initializer=0.0, use_resource=False)
        x = tf.placeholder(tf.float32, [])
        add = tf.assign_add(v, x, use_locking=True).op
        s.run(v.initializer)
        s.graph.finalize()

        def work():
            for i in range(25):
                s.run(add, {x: float(i)})

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return s.run(v)


ALL = [value for name, value in sorted(globals().items()) if name.startswith("F") and name[1:4].isdigit()]
