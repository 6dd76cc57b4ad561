"""More programs of TensorFlow 1.x, as in door_programs.py: what users of that time did around the training step."""
import glob
import os
import shutil
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from door_programs import STEPS, dense, numbers


def fresh(work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    return work


class Replicas:
    """Two clients in step, each a thread with its own graph."""

    def __init__(self):
        self.barrier, self.losses = threading.Barrier(2, timeout=240), [[], []]

    def train(self, which, target, optimizer, ops, feeds):
        """ops: loss, train and step. feeds: those of a step by its number. Keeps the losses and the last step."""
        loss, train, step = ops
        hook = optimizer.make_session_run_hook(which == 0, num_tokens=0)
        if which == 1:
            self.barrier.wait()  # the chief has initialised
        with tf.train.MonitoredTrainingSession(target, is_chief=which == 0, hooks=[hook],
                                               stop_grace_period_secs=1) as s:
            if which == 0:
                self.barrier.wait()
            for i in range(STEPS):
                self.barrier.wait()
                self.losses[which].append(s.run([loss, train], feeds(i))[0])
            self.barrier.wait()
            self.losses[which].append(s.run_step_fn(lambda step_context: step_context.session.run(step)))
            self.barrier.wait()

    def run(self, replica):
        """Runs replica(0) and replica(1); returns what both kept."""
        failed = []

        def run_one(which):
            try:
                with tf.Graph().as_default():
                    replica(which)
            except Exception as error:  # noqa: BLE001: raised below
                failed.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=run_one, args=(which,)) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return self.losses[0] + self.losses[1]


def synchronous_replicas(target, work):
    """A step is stale, and its gradient dropped, if its token is."""
    replicas = Replicas()

    def replica(which):
        x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("sync_w", [3, 1], initializer=tf.constant_initializer(0.2))
        b = tf.get_variable("sync_b", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.3, step, 2, 0.9)
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(rate, 0.5), replicas_to_aggregate=2,
                                                   total_num_replicas=2)
        with tf.name_scope(f"replica_{which}"):  # local steps of one server differ by name
            train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)

        def feeds(i):
            rows = numbers(10 * i + which, 5, 3)
            return {x: rows, y: rows.sum(1, keepdims=True)}

        replicas.train(which, target, optimizer, (loss, train, step), feeds)

    return replicas.run(replica)


def summaries_and_moving_averages(target, work):
    tf.set_random_seed(31)
    x = tf.placeholder(tf.float32, [None, 4])
    step = tf.train.get_or_create_global_step()
    hidden = dense(x, 3, tf.nn.softplus)
    loss = tf.reduce_mean(tf.square(dense(hidden, 1) - tf.reduce_sum(x, 1, keepdims=True)))
    rate = tf.train.polynomial_decay(0.2, step, 6, 0.05, power=2.0)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    average = tf.train.ExponentialMovingAverage(0.8, step)
    variables = tf.trainable_variables()
    with tf.control_dependencies([train]):
        averaged = average.apply(variables)
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("rate", rate)
    tf.summary.histogram("hidden", hidden)
    tf.summary.image("picture", tf.reshape(tf.sigmoid(hidden), [-1, 1, 3, 1]), max_outputs=1)
    tf.summary.text("words", tf.strings.join(["step ", tf.as_string(step)]))
    summaries = tf.summary.merge_all()
    out = []
    writer = tf.summary.FileWriter(fresh(work))
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(STEPS):
            text, count, _ = s.run([summaries, step, averaged], {x: numbers(i, 6, 4)})
            writer.add_summary(text, count)
            out.append(count)
        out += [np.abs(s.run(average.average(v))).sum() for v in variables]
    writer.close()
    for event in tf.train.summary_iterator(glob.glob(os.path.join(work, "*"))[0]):
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            if kind == "simple_value":
                out.append(value.simple_value)
            elif kind == "histo":
                out += [value.histo.num, value.histo.sum, value.histo.min, value.histo.max]
            elif kind == "image":
                out += [value.image.height, value.image.width]
            elif kind == "tensor":
                out.append(len(value.tensor.string_val[0]))
    return out


def hooks_of_a_training_session_that_fails_and_goes_on(target, work):
    fresh(work)
    losses, rows = [], tf.constant(numbers(32, 8, 3))
    w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.4), use_resource=True)
    step = tf.train.get_or_create_global_step()
    loss = tf.losses.huber_loss(tf.matmul(rows, w), rows[:, :2] * 3.0, delta=0.7)
    train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)

    class Breaks(tf.train.SessionRunHook):
        """A lost server, once: the session is made again from the checkpoint."""
        broken = False

        def after_run(self, run_context, run_values):
            if not Breaks.broken and len(losses) == 4:
                Breaks.broken = True
                raise tf.errors.AbortedError(None, None, "the server was lost")

    final = tf.train.FinalOpsHook([step, loss])
    hooks = [tf.train.StopAtStepHook(num_steps=7), tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=3),
             tf.train.NanTensorHook(loss), tf.train.StepCounterHook(every_n_steps=2, output_dir=work),
             tf.train.GlobalStepWaiterHook(0), tf.train.SummarySaverHook(2, output_dir=work,
                                                                        scaffold=tf.train.Scaffold()),
             Breaks(), final]
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3))
    with tf.train.MonitoredTrainingSession(target, checkpoint_dir=work, scaffold=scaffold, hooks=hooks,
                                           save_checkpoint_steps=2, save_checkpoint_secs=None,
                                           save_summaries_steps=None, save_summaries_secs=None) as s:
        while not s.should_stop():
            losses.append(s.run([loss, train])[0])
    return losses + [len(losses), *final.final_ops_values,
                     len(tf.train.get_checkpoint_state(work).all_model_checkpoint_paths)]


def a_deep_convolutional_net(target, work):
    """Update ops of batch norm in their collection, dropout with seeds, several kinds of convolution."""
    tf.set_random_seed(33)
    images, labels = tf.placeholder(tf.float32, [None, 10, 10, 2]), tf.placeholder(tf.int64, [None])
    training = tf.placeholder_with_default(False, [])

    def weights(name, *shape):
        return tf.get_variable(name, shape, initializer=tf.variance_scaling_initializer(seed=len(name)))

    def normed(x, name):
        with tf.variable_scope(name):
            size = [x.shape[-1].value]
            beta = tf.get_variable("beta", initializer=tf.zeros(size))
            gamma = tf.get_variable("gamma", initializer=tf.ones(size))
            kept = [tf.get_variable(key, initializer=first(size), trainable=False)
                    for key, first in (("mean", tf.zeros), ("variance", tf.ones))]
            of_batch = tf.nn.moments(x, [0, 1, 2])
            for variable, value in zip(kept, of_batch):
                update = tf.assign_sub(variable, (variable - value) * 0.2)
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
            mean, variance = tf.cond(training, lambda: of_batch, lambda: tuple(tf.identity(k) for k in kept))
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)

    x = tf.nn.relu6(normed(tf.nn.conv2d(images, weights("one", 3, 3, 2, 6), 2, "SAME"), "norm_one"))
    x = tf.nn.depthwise_conv2d(x, weights("deep", 3, 3, 6, 1), [1, 1, 1, 1], "SAME")
    x = tf.nn.leaky_relu(normed(tf.nn.conv2d(x, weights("point", 1, 1, 6, 8), 1, "VALID"), "norm_two"))
    # Without AVX-512, TensorFlow has no gradient of a dilated convolution.
    dilated = tf.nn.conv2d(x, weights("wide", 2, 2, 8, 4), 1, "SAME", dilations=[1, 2, 2, 1])
    x = tf.concat([tf.nn.avg_pool2d(x, 2, 1, "SAME"), tf.nn.max_pool2d(x, 3, 1, "SAME"),
                   tf.stop_gradient(dilated)], 3)
    x = tf.nn.local_response_normalization(x, 2)
    back = tf.nn.conv2d_transpose(x, weights("back", 3, 3, 5, 20), tf.stack([tf.shape(x)[0], 10, 10, 5]), 2)
    features = tf.reduce_mean(back, [1, 2])
    keep = tf.where(training, 0.7, 1.0)
    features = tf.nn.dropout(features, rate=1.0 - keep, seed=5)
    bias = tf.get_variable("bias", [3], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(features, weights("logits", 5, 3), bias)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + 0.01 * tf.add_n(
        [tf.nn.l2_loss(v) for v in tf.trainable_variables() if len(v.shape) == 4])
    with tf.control_dependencies([loss] + tf.get_collection(tf.GraphKeys.UPDATE_OPS)):  # the loss is of before the step
        train = tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True).minimize(loss)
    right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 2), tf.float32))
    out = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(STEPS):
            feed = {images: numbers(i, 6, 10, 10, 2), labels: np.arange(6) % 3}
            out.append(s.run([loss, train], {**feed, training: True})[0])
            out += s.run([loss, right], feed)
    return out


def embeddings_with_sparse_gradients(target, work):
    tf.set_random_seed(34)
    words = tf.placeholder(tf.int32, [None, 3])
    bags = tf.sparse_placeholder(tf.int64, [None, 5])
    table = tf.get_variable("table", [20, 4], initializer=tf.random_normal_initializer(seed=1))
    shards = tf.get_variable("shards", [15, 4], initializer=tf.random_normal_initializer(seed=2),
                             partitioner=tf.fixed_size_partitioner(3), use_resource=True)
    once = tf.reduce_sum(tf.nn.embedding_lookup(table, words, max_norm=1.5), 1)
    mixed = tf.nn.embedding_lookup_sparse(shards, bags, None, combiner="sqrtn")
    loss = tf.reduce_mean(tf.square(once - 0.5 * mixed)) + tf.reduce_mean(tf.abs(mixed - 0.3))
    optimizers = [tf.train.AdamOptimizer(0.05), tf.train.MomentumOptimizer(0.1, 0.9), tf.train.FtrlOptimizer(0.1),
                  tf.train.RMSPropOptimizer(0.02, momentum=0.5)]
    trains = [optimizer.minimize(loss) for optimizer in optimizers]
    out = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(2 * len(trains)):
            feed = {words: (np.arange(12).reshape(4, 3) * (i + 1)) % 20,
                    bags: tf.SparseTensorValue([[0, 0], [0, 3], [1, 1], [2, 0], [2, 1], [2, 2], [3, 4]],
                                               [(3 * i + k * k) % 15 for k in range(7)], [4, 5])}
            out.append(s.run([loss, trains[i % len(trains)]], feed)[0])
        out.append(np.abs(s.run(table)).sum())
    return out


def loops_in_loops_with_gradients(target, work):
    w = tf.get_variable("w", [3, 3], initializer=tf.constant_initializer(numbers(35, 3, 3)))
    rows, flag = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.bool, [])

    def row(x):
        def inner(j, value):
            return j + 1, tf.cond(flag, lambda: tf.sin(tf.reduce_sum(w * value, 1)), lambda: tf.tanh(value * 0.7))
        return tf.while_loop(lambda j, _: j < 2, inner, [0, x])[1]

    mapped = tf.map_fn(row, rows)
    scanned = tf.scan(lambda total, x: total * 0.5 + x, mapped, initializer=tf.zeros([3]))
    folded = tf.foldl(lambda total, x: total + x * x, scanned)
    chosen = tf.case([(tf.reduce_sum(folded) > 2.0, lambda: folded * 2.0), (flag, lambda: folded + 1.0)],
                     default=lambda: folded * w[0], exclusive=False)
    loss = tf.reduce_sum(chosen * chosen)
    gradient, = tf.gradients(loss, w)
    second, = tf.gradients(tf.reduce_sum(tf.square(tf.gradients(tf.reduce_sum(tf.tanh(tf.matmul(rows, w))), w)[0])), w)
    train = tf.assign_sub(w, 0.02 * gradient + 0.01 * second)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        return [number for i in range(STEPS) for number in
                [s.run([loss, train], {rows: numbers(i, 2 + i % 3, 3), flag: i % 2 == 0})[0],
                 np.abs(s.run(w)).sum()]]


def pipelines_of_queues(target, work):
    texts = tf.constant([b"a", b"bb", b"ccc"] * 3 + [b""])
    words = tf.train.slice_input_producer([tf.constant(list(range(10))), texts], shuffle=False)
    batch = tf.train.batch([words[0], tf.strings.length(words[1])], 3, num_threads=1)
    rows = tf.train.range_input_producer(6, shuffle=False).dequeue()
    ragged = tf.train.batch([tf.range(rows), tf.cast(rows, tf.float32)], 2, num_threads=1, dynamic_pad=True)
    numbers_of = tf.train.limit_epochs(tf.range(4.0), num_epochs=2)
    epochs = tf.train.batch([numbers_of], 3, enqueue_many=True, allow_smaller_final_batch=True, num_threads=1)
    shuffled = tf.RandomShuffleQueue(20, 4, tf.float32, shapes=[[]], seed=3)
    filled, drawn = shuffled.enqueue_many([tf.range(10.0)]), shuffled.dequeue_many(6)
    by_priority = tf.PriorityQueue(10, [tf.string], [[]])
    ranked = by_priority.enqueue_many([tf.constant([5, 1, 3], tf.int64), ["five", "one", "three"]])
    first = by_priority.dequeue()
    stage = tf.FIFOQueue(3, [tf.float32, tf.int32], shapes=[[2], []], names=["row", "id"])
    put, got = stage.enqueue({"row": [1.5, 2.5], "id": 7}), stage.dequeue()
    padded = tf.PaddingFIFOQueue(5, [tf.int32], [[None]])
    more = [padded.enqueue(tf.range(n)) for n in (1, 3, 2)]
    out = []
    with tf.Session(target) as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        for _ in range(5):
            out += [float(np.sum(part)) for part in s.run(batch)]
            ids, row = s.run(ragged)
            out += [float(ids.sum()), float(row.sum()), ids.shape[1]]
        for _ in range(3):
            out.append(len(s.run(epochs)))
        try:
            s.run(epochs)
        except tf.errors.OutOfRangeError:
            out.append(-1)
        s.run([filled, ranked, put])
        for enqueue in more:
            s.run(enqueue)
        sample = s.run(drawn)
        out += [len(set(sample)), s.run(shuffled.size()), s.run(first)[0], *s.run([got["id"], got["row"][1]])]
        out += s.run(padded.dequeue_many(3)).ravel().tolist()
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=60, ignore_live_threads=False)
    return out


def text_to_features(target, work):
    lines = tf.placeholder(tf.string, [None])
    clean = tf.strings.regex_replace(tf.strings.lower(lines), "[^a-z ]", "")
    split = tf.string_split(clean, " ")
    buckets = tf.string_to_hash_bucket_fast(split.values, 17)
    strong = tf.strings.to_hash_bucket_strong(split.values, 11, key=[3, 4])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["the", "cat", "dog"], [0, 1, 2],
                                                                          value_dtype=tf.int64), -1)
    ids = tf.SparseTensor(split.indices, table.lookup(split.values) + 1, split.dense_shape)
    ones = tf.ones_like(buckets, tf.float32)
    counts = tf.sparse.reduce_sum(tf.SparseTensor(split.indices, ones, split.dense_shape), 1)
    example = tf.placeholder(tf.string, [None])
    parsed = tf.io.parse_example(example, {"x": tf.FixedLenFeature([2], tf.float32, [0.5, -0.5]),
                                           "tags": tf.VarLenFeature(tf.string)})
    embedding = tf.get_variable("embedding", [17, 3], initializer=tf.random_uniform_initializer(-1, 1, seed=4))
    mean = tf.math.segment_mean(tf.gather(embedding, buckets), tf.cast(split.indices[:, 0], tf.int32))
    logits = tf.matmul(tf.concat([mean, parsed["x"], tf.expand_dims(counts, 1)], 1),
                       tf.get_variable("out", [6, 2], initializer=tf.random_uniform_initializer(-1, 1, seed=5)))
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(logits), logits=logits))
    train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    total = tf.reduce_sum(tf.sparse.to_dense(ids))
    raw = tf.decode_raw(tf.constant([b"\x01\x00\x02\x00"]), tf.int16)
    pieces = tf.strings.length(tf.strings.substr(split.values, 0, 2)), tf.strings.to_number(["1.5", "-2"]), raw, \
        tf.string_to_number(tf.as_string([0.25, 3.5], precision=3)), tf.size(parsed["tags"].values), strong

    def serialized(i):
        tags = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"t"] * i))
        features = {"tags": tags}
        if i % 2:
            features["x"] = tf.train.Feature(float_list=tf.train.FloatList(value=[i, -i]))
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    out = []
    with tf.Session(target) as s:
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for i in range(STEPS):
            feed = {lines: [b"The cat, sat", b"a dog!", b"the the"], example: [serialized(i % 4 + k) for k in range(3)]}
            out += s.run([loss, total, train], feed)[:2]
        out += [float(np.sum(piece)) for piece in s.run(pieces, feed)]
    return out


def metrics_and_losses(target, work):
    x, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int64, [None])
    logits = dense(x, 3)
    predicted = tf.argmax(logits, 1)
    chance = tf.nn.softmax(logits)
    one = tf.cast(tf.equal(labels, 1), tf.float32)
    losses = [tf.losses.softmax_cross_entropy(tf.one_hot(labels, 3), logits, label_smoothing=0.1),
              tf.losses.hinge_loss(one, logits[:, 1]), tf.losses.log_loss(one, chance[:, 1]),
              tf.losses.absolute_difference(one, chance[:, 1], weights=0.5),
              tf.losses.cosine_distance(tf.nn.l2_normalize(x, 1), tf.nn.l2_normalize(logits, 1), axis=1)]
    train = tf.train.GradientDescentOptimizer(0.2).minimize(tf.losses.get_total_loss())
    metrics = [tf.metrics.accuracy(labels, predicted), tf.metrics.precision(one, chance[:, 1] > 0.3),
               tf.metrics.recall(one, chance[:, 1] > 0.3), tf.metrics.auc(one, chance[:, 1], num_thresholds=20),
               tf.metrics.mean(losses[0]), tf.metrics.root_mean_squared_error(one, chance[:, 1]),
               tf.metrics.mean_iou(labels, predicted, 3)]
    table = tf.math.confusion_matrix(labels, predicted, 3)
    out = []
    with tf.Session(target) as s:
        tf.set_random_seed(1)
        s.run(tf.global_variables_initializer(), {})
        for variable in tf.trainable_variables():
            variable.load(numbers(variable.shape.ndims, *variable.shape.as_list()), s)
        for epoch in range(2):
            s.run(tf.local_variables_initializer())
            for i in range(4):
                feed = {x: numbers(i, 9, 3), labels: (np.arange(9) * (i + 2)) % 3}
                out += s.run(losses, feed)
                s.run([[update for _, update in metrics], train], feed)
            out += [float(np.sum(v)) for v in s.run([value for value, _ in metrics])]
        out += s.run(table, feed).ravel().tolist()
    return out


def two_networks_against_each_other(target, work):
    """Optimizers with lists of variables, steps by callables, and noise that is fetched with what it made."""
    tf.set_random_seed(37)
    noise = tf.random_normal([8, 2], seed=1)
    real = tf.placeholder(tf.float32, [8, 3])
    with tf.variable_scope("maker"):
        made = dense(dense(noise, 6, tf.nn.selu), 3, tf.nn.tanh)

    def judged(x):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [3, 4], initializer=tf.glorot_uniform_initializer(seed=2))
            v = tf.get_variable("v", [4, 1], initializer=tf.glorot_uniform_initializer(seed=3))
            return tf.matmul(tf.nn.swish(tf.matmul(x, w)), v)

    right, wrong = judged(real), judged(made)
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    loss_judge = tf.reduce_mean(cross(labels=tf.ones_like(right), logits=right) +
                                cross(labels=tf.zeros_like(wrong), logits=wrong))
    loss_maker = tf.reduce_mean(cross(labels=tf.ones_like(wrong), logits=wrong))
    of = {name: tf.trainable_variables(name) for name in ("maker", "judge")}
    train_judge = tf.train.AdamOptimizer(0.05, beta1=0.5).minimize(
        loss_judge, var_list=of["judge"], colocate_gradients_with_ops=True)
    train_maker = tf.train.RMSPropOptimizer(0.02, centered=True).minimize(
        loss_maker, var_list=of["maker"], gate_gradients=tf.train.Optimizer.GATE_GRAPH)
    clip = tf.group(*[v.assign(tf.clip_by_value(v, -0.8, 0.8)) for v in of["judge"]])
    out = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        judge = s.make_callable([loss_judge, noise, train_judge], [real])
        for i in range(STEPS):
            loss, drawn, _ = judge(numbers(i, 8, 3))
            out += [loss, drawn.sum(), s.run([loss_maker, train_maker])[0]]
            s.run(clip)
        out.append(np.abs(s.run(of["judge"][0])).max())
    return out


ALL = [synchronous_replicas, summaries_and_moving_averages, hooks_of_a_training_session_that_fails_and_goes_on,
       a_deep_convolutional_net, embeddings_with_sparse_gradients, loops_in_loops_with_gradients,
       pipelines_of_queues, text_to_features, metrics_and_losses, two_networks_against_each_other]
