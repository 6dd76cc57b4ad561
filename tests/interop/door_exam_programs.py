"""More programs of TensorFlow 1.x, as in door_programs.py: records, tables, functions, and state that outlives
sessions."""
import os
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from door_more_programs import fresh
from door_programs import STEPS, numbers


def numbers_in(value):
    """All of nested lists and arrays, in order; of texts their lengths."""
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in numbers_in(part)]
    if isinstance(value, np.ndarray):
        return [one for part in value.ravel().tolist() for one in numbers_in(part)]
    return [float(len(value) if isinstance(value, (bytes, str)) else value)]


def drain(session, fetch):
    """What a pipeline gives until its end."""
    out = []
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    try:
        while True:
            out.append(session.run(fetch))
    except tf.errors.OutOfRangeError:
        pass
    coordinator.request_stop()
    coordinator.join(threads)
    return out


def records_with_sparse_features(target, work):
    """Sparse tensors pass queues by their numbers in a map."""
    path = os.path.join(fresh(work), "records")
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for i in range(7):
            feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i * 0.5])),
                       "tags": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 3))),
                       "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\0" * i]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    _, record = tf.TFRecordReader(options=options).read(tf.train.string_input_producer([path], num_epochs=1))
    parsed = tf.parse_single_example(record, {"x": tf.FixedLenFeature([2], tf.float32),
                                              "tags": tf.VarLenFeature(tf.int64),
                                              "name": tf.FixedLenFeature([], tf.string)})
    one = tf.train.batch([parsed["x"], parsed["tags"], parsed["name"]], 3, allow_smaller_final_batch=True)
    whole = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1.0, 2.0, 3.0], [3, 4])
    many = tf.train.batch([tf.train.limit_epochs(tf.range(3), 2), whole], 2, enqueue_many=True)
    with tf.Session(target) as s:
        s.run(tf.local_variables_initializer())
        return numbers_in([[[x, tags.indices, tags.values, tags.dense_shape, name] for x, tags, name in drain(s, one)],
                           [[ids, rows.indices, rows.values, rows.dense_shape] for ids, rows in drain(s, many)]])


def lines_of_files(target, work):
    fresh(work)
    paths = [os.path.join(work, f"part{i}") for i in range(3)]
    for i, path in enumerate(paths):
        with open(path, "w") as file:
            file.write("head\n" + "".join(f"{i},{j}.5,word{j}\n" for j in range(4)))
    reader = tf.TextLineReader(skip_header_lines=1)
    key, line = reader.read(tf.train.string_input_producer(paths, num_epochs=2, shuffle=False))
    batch = tf.train.batch([key, *tf.decode_csv(line, [[0], [0.0], [""]])], 5, allow_smaller_final_batch=True)
    vocabulary = tf.lookup.TextFileInitializer(paths[0], tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                               tf.lookup.TextFileIndex.LINE_NUMBER)
    table = tf.lookup.StaticVocabularyTable(vocabulary, 3)
    found = table.lookup(tf.constant(["head", "0,2.5,word2", "elsewhere", ""]))
    changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [-1.0, -1.0])
    insert = changing.insert(tf.constant(["a", "b"]), tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    with tf.Session(target) as s:
        s.run([tf.local_variables_initializer(), tf.tables_initializer(), insert])
        out = numbers_in([[part[1:] for part in drain(s, batch)], s.run(found)])
        s.run(changing.remove(tf.constant(["a"])))
        return out + numbers_in(s.run([reader.num_records_produced(), reader.num_work_units_completed(),
                                       changing.size(), changing.lookup(tf.constant(["b", "a"]))]))


def functions_of_version_two(target, work):
    """What AutoGraph and control flow version two make of Python: functions that call functions."""
    v = tf.get_variable("v", initializer=2.0, use_resource=True)

    @tf.function
    def inner(x, n):
        for _ in tf.range(n):
            if tf.reduce_sum(x) > 3.0:
                x = x * 0.5
            else:
                x = x + v
        return x, tf.reduce_max(x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def outer(x):
        v.assign_add(1.0)
        return inner(x, 3)[0] * v

    x = tf.placeholder(tf.float32, [None])
    first = inner(x, tf.constant(4))
    with tf.control_dependencies([first[0]]):  # it reads what the second one assigns
        second = outer(x)
    gradients = tf.gradients(second, [x, v])
    tf.enable_control_flow_v2()
    try:
        w = tf.get_variable("w", initializer=numbers(1, 3, 3), use_resource=True)

        def body(i, a, total):
            a = tf.nn.tanh(tf.linalg.matvec(w, a))
            return i + 1, a, total + tf.cond(total > 1.0, lambda: tf.reduce_sum(a * a), lambda: tf.reduce_sum(a))

        _, last, total = tf.while_loop(lambda i, *_: i < 6, body, [0, x, 0.0])
        mapped = tf.map_fn(lambda each: each * w[0, 0] + tf.reduce_sum(last), x)
        loss = total + tf.reduce_sum(tf.scan(lambda p, q: p * q + 1.0, mapped))
        slopes = tf.gradients(loss, [x, w])
    finally:
        tf.disable_control_flow_v2()
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        return [one for i in range(4) for one in
                numbers_in([s.run([first, second, gradients], {x: numbers(i, 3)}), s.run(v),
                            s.run([loss, slopes], {x: numbers(i, 3)})])]


def optimizers_of_sparse_gradients(target, work):
    step = tf.train.get_or_create_global_step()
    optimizers = [tf.train.AdagradOptimizer(0.3),
                  tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.1,
                                         l2_shrinkage_regularization_strength=0.05),
                  tf.train.RMSPropOptimizer(0.05, momentum=0.3, centered=True), tf.train.AdadeltaOptimizer(0.5),
                  tf.train.AdagradDAOptimizer(0.2, step, l1_regularization_strength=0.01),
                  tf.train.ProximalAdagradOptimizer(0.2, l1_regularization_strength=0.01),
                  tf.train.MomentumOptimizer(0.1, 0.8, use_nesterov=True)]
    rows = tf.placeholder(tf.int64, [None, 3])
    losses, trains = [], []
    for i, optimizer in enumerate(optimizers):
        for use_resource in (False, True):
            table = tf.get_variable(f"table{i}{use_resource}", [30, 4], use_resource=use_resource,
                                    initializer=tf.random_uniform_initializer(-1, 1, seed=2))
            losses.append(tf.reduce_mean(tf.square(tf.reduce_sum(tf.nn.embedding_lookup(table, rows), 1) - 0.5)))
            trains.append(optimizer.minimize(losses[-1], var_list=[table]))
    with tf.control_dependencies(trains):
        counted = tf.assign_add(step, 1)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        out = []
        for i in range(6):
            s.run(counted, {rows: np.random.RandomState(i).randint(0, 30, (5, 3))})
            out += s.run(losses, {rows: np.arange(15).reshape(5, 3)})
        return out + [np.abs(s.run(v)).sum() for v in tf.global_variables()]


def a_graph_from_its_file(target, work):
    """A checkpoint of another graph, by sharded and old formats, under other names."""
    fresh(work)
    with tf.Graph().as_default():
        v = tf.get_variable("v", initializer=numbers(1, 4, 3))
        h = tf.get_variable("h", initializer=5, use_resource=True)
        tf.get_variable("words", initializer=["a\0b", "c"])
        tf.get_variable("parts", [7, 2], partitioner=tf.fixed_size_partitioner(3), initializer=tf.ones_initializer())
        saver = tf.train.Saver(max_to_keep=2, sharded=True)
        with tf.Session(target) as s:
            s.run(tf.global_variables_initializer())
            for i in range(3):
                s.run(h.assign_add(1))
                path = saver.save(s, os.path.join(work, "model"), global_step=i)
            old = tf.train.Saver([v], write_version=tf.train.SaverDef.V1).save(s, os.path.join(work, "old"))
    tf.Session.reset(target)
    out = [len(os.listdir(work))]
    with tf.Graph().as_default(), tf.Session(target) as s:
        tf.train.import_meta_graph(path + ".meta").restore(s, path)
        out += numbers_in(s.run(["v:0", "h/Read/ReadVariableOp:0", "words:0"]))
    with tf.Graph().as_default(), tf.Session(target) as s:
        other = tf.get_variable("other", [4, 3])
        for saved in (path, old):
            s.run(other.initializer)
            tf.train.Saver({"v": other}).restore(s, saved)
            out += numbers_in(s.run(other))
        tf.train.init_from_checkpoint(path, {"v": "other"})
        s.run(other.initializer)
        return out + numbers_in(s.run(other * 2.0))


def parts_of_a_run_with_state(target, work):
    a, b, c = (tf.placeholder(tf.float32, [2]) for _ in range(3))
    v = tf.get_variable("v", initializer=[1.0, 1.0])
    first = a * 2
    second = first + b
    third = tf.assign_add(v, second) * c
    accumulator = tf.ConditionalAccumulator(tf.float32, [2], shared_name="sum")
    kept = tf.SparseConditionalAccumulator(tf.float32, [4, 2], shared_name="sparse sum")
    apply = [accumulator.apply_grad(a, local_step=0), kept.apply_grad([0, 2], tf.stack([a, a]), local_step=0)]
    total = tf.accumulate_n([a, b, c])
    clipped = [tf.clip_by_norm(total, 1.0), tf.clip_by_average_norm(total, 0.2), tf.global_norm([a, b])]
    out = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(STEPS // 2):
            handle = s.partial_run_setup([first, second, third], [a, b, c])
            x = s.partial_run(handle, first, {a: numbers(i, 2)})
            y = s.partial_run(handle, second, {b: x})
            out += numbers_in([x, y, s.partial_run(handle, third, {c: y})])
            s.run(apply, {a: numbers(i, 2)})
        out += numbers_in([s.run(accumulator.take_grad(2)), s.run(kept.take_grad(1))])
        return out + numbers_in(s.run([clipped, tf.gradients(total, [a, b])], {a: x, b: y, c: x}))


def threads_that_add_to_one_variable(target, work):
    v = tf.get_variable("v", initializer=tf.zeros([1000]), use_resource=False)
    u = tf.get_variable("u", initializer=tf.zeros([1000]), use_resource=True)
    ones = tf.ones([1000])
    adds = [tf.assign_add(v, ones, use_locking=True).op for _ in range(20)]
    adds += [u.assign_add(ones, read_value=False) for _ in range(20)]
    adds += [tf.scatter_add(v, [0, 0, 1], [1.0, 1.0, 1.0], use_locking=True).op for _ in range(10)]
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=lambda: [s.run(adds) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return numbers_in([s.run(v)[:3], s.run(u)[:3]])


def types_and_texts(target, work):
    out = []
    with tf.Session(target) as s:
        for dtype in (tf.bfloat16, tf.half, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64):
            p = tf.placeholder(dtype, [2])
            out += numbers_in(s.run(p + p, {p: np.array([3, 1]).astype(dtype.as_numpy_dtype)}).astype(np.float64))
        z = s.run(tf.complex(1.0, 2.0) * tf.complex(0.0, 1.0))
        quantized = tf.quantize(tf.constant([0.1, 0.9]), 0.0, 1.0, tf.quint8)
        values = [np.asarray(value).astype(np.float64) for value in s.run(
            [quantized[0], tf.dequantize(quantized[0], 0.0, 1.0), tf.bitcast(tf.constant([1.0]), tf.int32),
             tf.quantization.fake_quant_with_min_max_args([0.3, 7.0], -1, 1),
             tf.cast(tf.constant([1.7, -2.3]), tf.bfloat16), tf.saturate_cast(tf.constant([300.0, -1.0]), tf.uint8)])]
        text = tf.placeholder(tf.string, [])
        return out + [z.real, z.imag] + numbers_in(values) + numbers_in(s.run([tf.strings.length(text), text],
                                                                              {text: b"a\0b\xff\xfe"}))


ALL = [records_with_sparse_features, lines_of_files, functions_of_version_two, optimizers_of_sparse_gradients,
       a_graph_from_its_file, parts_of_a_run_with_state, threads_that_add_to_one_variable, types_and_texts]
