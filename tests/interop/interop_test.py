"""Files and numbers exchanged with TensorFlow and TensorBoard: interop_test.py NAME PEER WORK_DIR."""
import glob
import os
import shutil
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def peer(*arguments):
    done = subprocess.run([PEER, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def written():
    """Writes weir's files to WORK/ours."""
    ours = os.path.join(WORK, "ours")
    shutil.rmtree(ours, ignore_errors=True)
    os.makedirs(ours)
    peer("write", ours)
    return ours


def load(folder, name):
    return np.load(os.path.join(folder, name.replace("/", "_").replace(":", "_") + ".npy"))


def F240_checkpoint_of_weir():
    """Three checkpoints: a new one, one that was saved over, and one whose save over another one was killed."""
    ours = written()
    assert sorted(os.path.basename(f) for f in glob.glob(ours + "/over*")) == ["over.data-00000-of-00001", "over.index"]
    assert len(glob.glob(ours + "/killed.data-0000?-of-00002")) == 2
    for name in ("model.ckpt", "over", "killed"):
        reader = tf.train.load_checkpoint(os.path.join(ours, name))
        shapes = reader.get_variable_to_shape_map()
        assert set(shapes) == {"layer/kernel", "layer/flags", "names", "step", "empty"}, shapes
        kernel = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(reader.get_tensor("layer/kernel"), kernel)
        np.testing.assert_array_equal(reader.get_tensor("layer/flags"), [True, False, True])
        assert list(reader.get_tensor("names")) == [b"alpha", b"", b"gamma"]
        assert reader.get_tensor("step") == 1234567890123
        assert reader.get_tensor("empty").shape == (0, 2)
        with tf.Graph().as_default(), tf1.Session() as session:
            restored = tf.raw_ops.RestoreV2(prefix=os.path.join(ours, name), tensor_names=["layer/kernel"],
                                            shape_and_slices=[""], dtypes=[tf.float32])
            np.testing.assert_array_equal(session.run(restored)[0], kernel)


def F240_checkpoint_of_tensorflow():
    folder = os.path.join(WORK, "theirs")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "read"))
    values = {"a": np.random.RandomState(1).randn(5, 3).astype(np.float32), "b/c": np.arange(4, dtype=np.int64),
              "h": np.array([1.5, -2], np.float16), "z": np.array([1 + 2j], np.complex64)}
    with tf.Graph().as_default():
        for name, value in values.items():
            tf1.get_variable(name, initializer=value)
        tf1.get_variable("parts", shape=[6, 2], partitioner=tf1.fixed_size_partitioner(3),
                         initializer=tf1.random_uniform_initializer(seed=3))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            prefix = tf1.train.Saver().save(session, os.path.join(folder, "model"))
            parts = tf.train.load_checkpoint(prefix).get_tensor("parts")
    peer("checkpoint", prefix, os.path.join(folder, "read"))
    for name, value in values.items():
        np.testing.assert_array_equal(load(os.path.join(folder, "read"), name), value)
    np.testing.assert_array_equal(load(os.path.join(folder, "read"), "parts"), parts)


def graph_of_weir():
    ours = written()
    definition = tf1.GraphDef()
    with open(os.path.join(ours, "graph.pb"), "rb") as file:
        definition.ParseFromString(file.read())
    names = ["relu:0", "softmax:0", "argmax:0"]
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        with tf1.Session() as session:
            for name, value in zip(names, session.run(names)):
                got = load(ours, name)
                assert got.dtype == value.dtype and got.shape == value.shape, name
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)


def graph_of_tensorflow():
    folder = os.path.join(WORK, "graph")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tf.Graph().as_default() as graph:
        x = tf.constant(np.random.RandomState(2).randn(4, 6).astype(np.float32))
        y = tf1.reduce_mean(tf.tanh(tf.matmul(x, x, transpose_b=True)), axis=[1], name="mean")
        tf.concat([y[1:], tf.reshape(y[:1], [1])], 0, name="turned")
        tf.cast(tf.argmax(x, 1) * 3 - 1, tf.int32, name="index")
        with tf1.Session() as session:
            values = dict(zip(("mean:0", "turned:0", "index:0"), session.run(["mean:0", "turned:0", "index:0"])))
        with open(os.path.join(folder, "graph.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
    peer("run", os.path.join(folder, "graph.pb"), *values, folder)
    for name, value in values.items():
        np.testing.assert_allclose(load(folder, name), value, rtol=1e-5, atol=1e-6)


def control_flow_of_weir():
    """TensorFlow runs weir's conds and loops, and differentiates them with the contexts in the file."""
    folder = os.path.join(WORK, "flow")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    peer("write_flow", folder)
    names = ["z:0", "power:0", "table:0", "dz:0"]
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(os.path.join(folder, "flow.meta"))
        assert len(graph.get_collection("cond_context")) == 2 and len(graph.get_collection("while_context")) == 2
        x = graph.get_tensor_by_name("x:0")
        dz = tf1.gradients(graph.get_tensor_by_name("z:0"), x)[0]
        dpower = tf1.gradients(graph.get_tensor_by_name("power:0"), x)[0]
        with tf1.Session() as session:
            for name, value in zip(names, session.run(names)):
                np.testing.assert_array_equal(load(folder, name[:-2]), value, err_msg=name)
            for p, value, z, slope in ((True, 3.0, 9.0, 6.0), (True, 20.0, 20.0, 1.0), (False, 3.0, 6.0, 2.0)):
                got = session.run(["z:0", "dz:0", dz, dpower], {"p:0": p, "x:0": value, "n:0": 3})
                np.testing.assert_array_equal(got, [z, slope, slope, 3 * value ** 2])
    with open(os.path.join(folder, "flow.pb"), "rb") as file:
        binary = tf1.GraphDef.FromString(file.read())
    with open(os.path.join(folder, "flow.pbtxt")) as file:
        text = text_format.Parse(file.read(), tf1.GraphDef())
    assert text == binary and any(node.name == "power" for node in text.node)
    with tf.Graph().as_default():
        tf1.import_graph_def(text, name="")
        with tf1.Session() as session:
            np.testing.assert_array_equal(session.run("z:0"), 9.0)


def control_flow_of_tensorflow():
    folder = os.path.join(WORK, "flow")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tf1.disable_control_flow_v2()
    with tf.Graph().as_default():
        p = tf1.placeholder_with_default(True, [], name="p")
        x = tf1.placeholder_with_default(3.0, [], name="x")
        z = tf.identity(tf1.cond(p, lambda: tf1.cond(x < 10.0, lambda: x * x, lambda: x), lambda: x * 2.0), name="z")
        tf.identity(tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * x), [0, 1.0])[1], name="power")

        def row(i, total):
            def cell(j, value):
                even = tf.equal((i + j) % 2, 0)
                return j + 1, value + tf1.cond(even, lambda: x, lambda: tf.constant(0.5))
            return i + 1, tf1.while_loop(lambda j, value: j < 4, cell, [0, total])[1]

        tf.identity(tf1.while_loop(lambda i, total: i < 4, row, [0, 1.0], parallel_iterations=1)[1], name="table")
        names = ["z:0", "power:0", "table:0"]
        dz = tf1.gradients(z, x)[0]
        with tf1.Session() as session:
            values = session.run(names + [dz])
        tf1.train.export_meta_graph(os.path.join(folder, "flow.meta"))
    peer("read_flow", os.path.join(folder, "flow.meta"), folder)
    for name, value in zip(names + ["dz"], values):
        np.testing.assert_array_equal(load(folder, name.split(":")[0]), value, err_msg=name)


def F393_gradients_of_random_loops():
    """Gradients of one forward graph: TensorFlow's nodes and weir's, each run by both."""
    folder = os.path.join(WORK, "loops")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tf1.disable_control_flow_v2()
    for seed in range(25):
        dice = np.random.RandomState(seed)
        with tf.Graph().as_default() as graph:
            shape = [None] if dice.randint(2) else [3]
            x = tf1.placeholder_with_default(dice.uniform(-1, 1, 3), shape, name="x")
            w = tf1.placeholder_with_default(dice.uniform(-1, 1, 3), shape, name="w")

            def step(i, a, depth):
                kind = dice.randint(7 if depth < 2 else 4)
                if kind == 0:
                    return a * w + x
                if kind == 1:
                    return tf.sigmoid(a) * tf.reduce_mean(w)
                if kind == 2:
                    return tf.tanh(a + tf.cast(i, tf.float64)) - a * 0.5
                if kind == 3:
                    return tf.stop_gradient(a) * x + a
                if kind == 4:
                    even = tf.equal((i + int(dice.randint(2))) % 2, 0)
                    return tf1.cond(even, lambda: step(i, a, depth + 1), lambda: step(i, a, depth + 1))
                if kind == 5:
                    return step(i, step(i, a, depth + 1), depth + 1)
                return loop(i + int(dice.randint(3)), a, depth + 1)

            def loop(trips, a, depth):
                body = lambda i, a, b: (i + 1, step(i, a, depth) + 0.1 * b, step(i, b, depth))  # noqa: E731
                back = tf1.while_loop(lambda i, a, b: i < trips, body, [0, a, tf.tanh(a) * w],
                                      parallel_iterations=int(dice.randint(1, 11)))
                return back[1] if dice.randint(2) else back[1] - back[2]

            y = tf.reduce_sum(loop(int(dice.randint(5)), x, 0) * (x + w), name="y")
            tf1.train.export_meta_graph(os.path.join(folder, "forward.meta"))
            theirs = tf1.gradients(y, [x, w])
            names = [g.name for g in theirs]
            with tf1.Session() as session:
                values = session.run(theirs)
            with open(os.path.join(folder, "theirs.pb"), "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
        peer("gradients", os.path.join(folder, "forward.meta"), folder)
        peer("run", os.path.join(folder, "theirs.pb"), *names, folder)
        ours = tf1.GraphDef()
        with open(os.path.join(folder, "ours.pb"), "rb") as file:
            ours.ParseFromString(file.read())
        with tf.Graph().as_default():
            tf1.import_graph_def(ours, name="")
            with tf1.Session() as session:
                run_there = session.run(["ours_x:0", "ours_w:0"])
        for i, value in enumerate(values):
            for got in (load(folder, names[i]), load(folder, "ours_" + "xw"[i]), run_there[i]):
                np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-12, err_msg=f"{seed}, {'xw'[i]}")


def references_of_tensorflow():
    """References and handles selected at run time, and a loop with two back edges."""
    raw = tf.raw_ops
    two = [1.0, 2.0], [10.0, 20.0]

    def after(first, make):
        with tf.control_dependencies([first]):
            return make()

    def add(reference, handle):
        if handle is None:
            return raw.AssignAdd(ref=reference, value=[0.5, 0.25])
        added = raw.AssignAddVariableOp(resource=handle, value=[0.5, 0.25])
        return after(added, lambda: raw.ReadVariableOp(resource=handle, dtype=tf.float32))

    def build(p, index, value):
        refs = [raw.VariableV2(shape=[2], dtype=tf.float32, name=f"ref_{i}") for i in range(2)]
        refs = [raw.Assign(ref=ref, value=start) for ref, start in zip(refs, two)]
        yield add(raw.RefSelect(index=index, inputs=refs), None)
        refs = [raw.VariableV2(shape=[2], dtype=tf.float32, name=f"merged_{i}") for i in range(2)]
        refs = [raw.Assign(ref=ref, value=start) for ref, start in zip(refs, two)]
        ways = [raw.RefSwitch(data=ref, pred=p)[side] for side, ref in enumerate(refs)]
        merged = raw.RefMerge(inputs=ways)
        yield add(merged.output, None)
        yield merged.value_index
        handles = [raw.VarHandleOp(shape=[2], dtype=tf.float32, shared_name=f"handle_{i}") for i in range(2)]
        started = [raw.AssignVariableOp(resource=handle, value=start) for handle, start in zip(handles, two)]
        handles = [after(start, lambda h=handle: raw.Identity(input=h)) for start, handle in zip(started, handles)]
        ways = [raw.Switch(data=handle, pred=p)[side] for side, handle in enumerate(handles)]
        yield add(None, raw.Merge(inputs=ways).output)

        def enter(x, constant=True):
            return raw.Enter(data=x, frame_name="two_ways", is_constant=constant)

        start = enter(value, False)
        merge = raw.Merge(inputs=[start, start, start])
        on = raw.LoopCond(input=raw.Less(x=merge.output, y=enter(tf.constant(1000.0))))
        v, at = (raw.Switch(data=x, pred=on) for x in merge)
        way = raw.Switch(data=v[1], pred=raw.Less(x=v[1], y=enter(tf.constant(50.0))))
        merge.output.op._update_input(1, raw.NextIteration(data=way[0] + way[0]))
        merge.output.op._update_input(2, raw.NextIteration(data=way[1] * way[1] + way[1]))
        yield raw.Exit(data=v[0])
        yield raw.Exit(data=at[0])

    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # it drops a back edge
    for p, index, start in ((False, 0, 1.0), (True, 1, 30.0)):
        with tf.Graph().as_default() as graph:
            p = tf1.placeholder_with_default(p, [])
            index = tf1.placeholder_with_default(tf.constant(index), [])
            results = list(build(p, index, tf1.placeholder_with_default(start, [])))
            names = [tf.identity(result, name=f"result_{i}").name for i, result in enumerate(results)]
            with tf1.Session(config=config) as session:
                values = session.run(names)
            path = os.path.join(WORK, "references.pb")
            with open(path, "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
        peer("run", path, *names, WORK)
        for name, value in zip(names, values):
            np.testing.assert_array_equal(load(WORK, name), value, err_msg=name)


def F394_random_programs_of_containers():
    """Random programs over arrays, lists, tables and queues, each op after the one before it."""
    raw, dice = tf.raw_ops, np.random.RandomState(11)
    rows = lambda count: tf.constant(dice.randn(count, 2).astype(np.float32))  # noqa: E731

    def arrays():
        size = dice.randint(2, 6)
        handle, flow = raw.TensorArrayV3(size=size, dtype=tf.float32, element_shape=[2], clear_after_read=False)
        order = list(dice.permutation(size))
        cut = dice.randint(0, size)
        flow = raw.TensorArrayScatterV3(handle=handle, indices=order[:cut] or tf.constant([], tf.int32),
                                        value=rows(cut), flow_in=flow)
        for i in order[cut:size - 1]:
            flow = raw.TensorArrayWriteV3(handle=handle, index=i, value=rows(1)[0], flow_in=flow)
        yield raw.TensorArrayReadV3(handle=handle, index=order[-1], flow_in=flow, dtype=tf.float32)
        yield raw.TensorArrayGatherV3(handle=handle, indices=dice.randint(0, size, 4), flow_in=flow, dtype=tf.float32,
                                      element_shape=[2])
        yield from raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float32)

    def lists():
        shape = tf.constant([2])
        made = [raw.TensorListReserve(element_shape=shape, num_elements=3, element_dtype=tf.float32)]
        length = [3]
        for _ in range(12):
            at = dice.randint(len(made))
            old, count, kind = made[at], length[at], dice.randint(5)
            if kind == 0 and count > 0:
                new, item = raw.TensorListPopBack(input_handle=old, element_shape=shape, element_dtype=tf.float32)
                yield item
                count -= 1
            elif kind == 1 and count > 0:
                new = raw.TensorListSetItem(input_handle=old, index=dice.randint(count), item=rows(1)[0])
            elif kind == 2:
                count = dice.randint(1, 6)
                new = raw.TensorListResize(input_handle=old, size=count)
            elif kind == 3:
                other = dice.randint(len(made))
                new = raw.TensorListConcatLists(input_a=old, input_b=made[other], element_dtype=tf.float32)
                count += length[other]
            else:
                new = raw.TensorListPushBack(input_handle=old, tensor=rows(1)[0])
                count += 1
            made.append(new)
            length.append(count)
        for one in made:
            yield raw.TensorListStack(input_handle=one, element_shape=shape, element_dtype=tf.float32)
            yield raw.TensorListLength(input_handle=one)

    def tables():
        table = raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        done = tf.no_op()
        for _ in range(10):
            keys = tf.constant([f"k{i}" for i in dice.randint(0, 6, 3)])
            with tf.control_dependencies([done]):
                kind = dice.randint(3)
                if kind == 0:
                    done = raw.LookupTableRemoveV2(table_handle=table, keys=keys)
                elif kind == 1:
                    found = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=np.int64(-1))
                    yield found
                    done = found.op
                else:
                    values = tf.constant(dice.randint(0, 99, 3))
                    done = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
        with tf.control_dependencies([done]):
            yield raw.LookupTableSizeV2(table_handle=table)

    def queues():
        queue = raw.FIFOQueueV2(component_types=[tf.float32, tf.int32], shapes=[[2], []], capacity=20)
        done, held = tf.no_op(), 0
        for step in range(10):
            with tf.control_dependencies([done]):
                count = int(dice.randint(1, 4))
                if held >= count and dice.randint(2):
                    taken = raw.QueueDequeueManyV2(handle=queue, n=count, component_types=[tf.float32, tf.int32])
                    yield from taken
                    done, held = taken[0].op, held - count
                elif held + count <= 20:
                    components = [rows(count), tf.range(count) + 10 * step]
                    done, held = raw.QueueEnqueueManyV2(handle=queue, components=components), held + count
        with tf.control_dependencies([done]):
            yield raw.QueueSizeV2(handle=queue)

    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    for program in (arrays, lists, tables, queues) * 3:
        with tf.Graph().as_default() as graph:
            names = [tf.identity(result, name=f"result_{i}").name for i, result in enumerate(program())]
            with tf1.Session(config=config) as session:
                values = session.run(names)
            path = os.path.join(WORK, "containers.pb")
            with open(path, "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
        peer("run", path, *names, WORK)
        for name, value in zip(names, values):
            np.testing.assert_array_equal(load(WORK, name), value, err_msg=f"{program.__name__} {name}")


def F105_F303_errors_of_placement():
    """Placement errors have TensorFlow's texts."""
    def neg(name, x, device, beside=None):
        with tf.device(device):
            made = tf.negative(x, name=name)
        if beside is not None:
            group = tf1.AttrValue.ListValue(s=[b"loc:@" + beside.encode()])
            made.op._set_attr("_class", tf1.AttrValue(list=group))
        return made

    rows = {
        "missing number": lambda x: neg("n", x, "/cpu:7"),
        "missing type": lambda x: neg("n", x, "/device:GPU:0"),
        "missing job": lambda x: neg("n", x, "/job:ps/task:0"),
        "two numbers": lambda x: neg("b", neg("a", x, "/cpu:0"), "/cpu:1", "a"),
        "two types": lambda x: neg("b", neg("a", x, "/cpu:0"), "/gpu:1", "a"),
        "two jobs": lambda x: neg("b", neg("a", x, "/job:ps"), "/job:worker", "a"),
    }
    weir = os.path.join(os.path.dirname(PEER), "..", "bin", "weir")
    os.makedirs(WORK, exist_ok=True)
    for row, build in rows.items():
        with tf.Graph().as_default() as graph:
            fetch = build(tf1.placeholder(tf.float32, [2], name="x"))
            path = os.path.join(WORK, "unplaceable.pb")
            with open(path, "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
            config = tf1.ConfigProto(allow_soft_placement=False, device_count={"CPU": 2})
            try:
                with tf1.Session(config=config) as session:
                    session.run(fetch, {"x:0": [1, 2]})
                raise AssertionError(f"{row}: TensorFlow runs it")
            except tf.errors.InvalidArgumentError as error:
                begin = "Cannot colocate" if row.startswith("two") else "Cannot assign"
                wanted = error.message[error.message.rindex(begin):]
        wanted = wanted.split("\n")[0].split(" The requested device appears to be a GPU")[0]
        done = subprocess.run([weir, "run", path, "--feed", "x=[1,2]", "--fetch", fetch.name,
                               "--set", "allow_soft_placement=false", "--set", "device_count.CPU=2"],
                              capture_output=True, text=True)
        assert done.returncode == 1, f"{row}: ended with {done.returncode}: {done.stdout}"
        assert wanted in done.stderr, f"{row}: wanted\n{wanted}\ngot\n{done.stderr}"


def random_numbers():
    """Seeded random ops give TensorFlow's numbers: uniform to the last bit, normals to 1e-6."""
    folder = os.path.join(WORK, "random")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    exact, close = [], []
    with tf.Graph().as_default() as graph:
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            for seed in ((1, 2), (123, 456), (87654321, 0)):
                name = f"{dtype}_{seed[0]}_{seed[1]}"
                shape = [7, 131]
                stream = dict(shape=shape, dtype=dtype, seed=seed[0], seed2=seed[1])
                uniform = tf.raw_ops.RandomUniform(**stream, name="u_" + name)
                normal = tf.raw_ops.RandomStandardNormal(**stream, name="n_" + name)
                truncated = tf.raw_ops.TruncatedNormal(**stream, name="t_" + name)
                exact.append(uniform)
                close += [normal, truncated]
        names = [t.name for t in exact + close]
        fetched = [tf.cast(t, tf.float32) if t.dtype == tf.bfloat16 else t for t in exact + close]
        with tf1.Session() as session:
            values = session.run(fetched)
        with open(os.path.join(folder, "graph.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
    peer("run", os.path.join(folder, "graph.pb"), *names, folder)
    for i, (name, value) in enumerate(zip(names, values)):
        got = load(folder, name)
        if i < len(exact):
            np.testing.assert_array_equal(got.astype(np.float64), value.astype(np.float64), err_msg=name)
        else:
            coarse = 2e-3 if "float16" in name and "b" not in name else 1e-2 if "bfloat16" in name else 1e-6
            np.testing.assert_allclose(got.astype(np.float64), value.astype(np.float64), rtol=coarse, atol=coarse,
                                       err_msg=name)


def raw_events(folder):
    """Events of the only file in a folder, by TensorFlow's reader."""
    return list(tf1.train.summary_iterator(glob.glob(folder + "/*tfevents*")[0]))


def run_metadata_of_weir():
    """TensorFlow reads it, draws a timeline of it, and imports the partition graphs that are complete graphs.

    The product, its bias and Relu are one op.
    """
    from tensorflow.python.client import timeline
    metadata = tf1.RunMetadata()
    with open(os.path.join(written(), "run_metadata.pb"), "rb") as file:
        metadata.ParseFromString(file.read())
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    (device,) = metadata.step_stats.dev_stats
    labels = {stats.timeline_label for stats in device.node_stats}
    assert device.device == cpu and "relu = _BiasedMatMul(sum)" in labels, (device.device, labels)
    relu = next(stats for stats in device.node_stats if stats.node_name == "relu").output[0].tensor_description
    assert tf.dtypes.as_dtype(relu.dtype) == tf.float32 and tf.TensorShape(relu.shape).rank == 2, relu
    assert '"op": "Softmax"' in timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    (part,) = metadata.partition_graphs
    nodes = {node.name: node for node in part.node}
    assert nodes["_arg_x_0_0"].op == "_Arg" and nodes["_retval_softmax_0_0"].op == "_Retval", nodes.keys()
    assert nodes["relu"].device == cpu and list(nodes["product"].input) == ["_arg_x_0_0", "w"], nodes["product"]
    inner = tf1.GraphDef(versions=part.versions)
    inner.node.extend(node for node in part.node if node.op not in ("_Arg", "_Retval"))
    with tf.Graph().as_default():
        tf.import_graph_def(inner, name="", input_map={"_arg_x_0_0": tf.zeros([1, 4])})


def F216_events_of_weir():
    """TensorBoard loads weir's files; F214 and F215: what TensorFlow reads in them, in order."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    folder = os.path.join(written(), "events")
    accumulator = EventAccumulator(folder)
    accumulator.Reload()
    tags = accumulator.Tags()
    assert tags["scalars"] == ["loss"] and tags["histograms"] == ["weights"] and tags["graph"], tags
    losses = [(event.step, round(event.value, 6)) for event in accumulator.Scalars("loss")]
    assert losses == [(0, 1.0), (1, 0.5), (2, 0.333333)], losses
    assert len(accumulator.Graph().node) == 9
    events = raw_events(folder)
    assert events[0].file_version == "brain.Event:2" and events[1].graph_def, events[:2]
    values = [value for event in events for value in event.summary.value]
    assert [value.tag for value in values] == ["loss", "loss", "loss", "weights"], values
    assert values[1].simple_value == 0.5, values[1]


def F220_histogram_buckets():
    """Limits and counts of all buckets are TensorFlow's, to the last bit."""
    with tf.Graph().as_default(), tf1.Session() as session:
        summary = tf1.summary.histogram("weights", tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        theirs = tf1.Summary.FromString(session.run(summary)).value[0].histo
    ours = raw_events(os.path.join(written(), "events"))[-1].summary.value[0].histo
    assert (ours.min, ours.max, ours.num, ours.sum, ours.sum_squares) == (1, 4, 4, 10, 30), ours
    assert list(ours.bucket_limit) == list(theirs.bucket_limit), (ours, theirs)
    assert list(ours.bucket) == list(theirs.bucket), (ours, theirs)


def F214_events_of_tensorflow():
    folder = os.path.join(WORK, "events")
    shutil.rmtree(folder, ignore_errors=True)
    with tf.Graph().as_default() as graph:
        loss = tf1.summary.scalar("loss", tf.constant(0.25))
        weights = tf1.summary.histogram("weights", tf.constant([1.0, 2.0, 3.0]))
        with tf1.Session() as session:
            writer = tf1.summary.FileWriter(folder, graph)
            writer.add_summary(session.run(loss), 7)
            writer.add_summary(session.run(weights), 8)
            writer.close()
    lines = peer("events", glob.glob(folder + "/*tfevents*")[0]).splitlines()
    assert "0 graph" in lines and "7 loss scalar 0.25" in lines and "8 weights histogram 3" in lines, lines


if __name__ == "__main__":
    test, PEER, WORK = sys.argv[1:]
    WORK = os.path.join(WORK, test)
    os.makedirs(WORK, exist_ok=True)
    {f.__name__: f for f in (F240_checkpoint_of_weir, F240_checkpoint_of_tensorflow, graph_of_weir, graph_of_tensorflow,
                             run_metadata_of_weir, control_flow_of_weir, control_flow_of_tensorflow,
                             references_of_tensorflow, F393_gradients_of_random_loops,
                             F394_random_programs_of_containers,
                             F105_F303_errors_of_placement, random_numbers,
                             F216_events_of_weir, F220_histogram_buckets, F214_events_of_tensorflow)}[test]()
    print(f"interop.{test}: passed")
