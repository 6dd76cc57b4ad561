"""Programs of TensorFlow 1.x, one function each: it trains on a server and returns its losses. They use nothing of the
server but its target."""
import os
import shutil
import threading

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 8


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def dense(x, units, activation=None, name="dense"):
    with tf.variable_scope(None, name):
        w = tf.get_variable("kernel", [x.shape[-1].value, units], initializer=tf.glorot_uniform_initializer())
        b = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(x, w), b)
        return y if activation is None else activation(y)


def a_multilayer_perceptron(target, work):
    tf.set_random_seed(11)
    x, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [None])
    logits = dense(tf.nn.dropout(dense(x, 16, tf.nn.relu), rate=0.0), 3)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.2, step, 3, 0.8, staircase=True)
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        return [s.run([loss, train], {x: numbers(i, 16, 8), labels: np.arange(16) % 3})[0] for i in range(STEPS)]


def a_convolutional_net_with_batch_norm(target, work):
    tf.set_random_seed(12)
    images, labels = tf.placeholder(tf.float32, [None, 12, 12, 3]), tf.placeholder(tf.float32, [None, 4])
    training = tf.placeholder_with_default(False, [])
    scale = tf.get_variable("scale", [8], initializer=tf.ones_initializer())
    offset = tf.get_variable("offset", [8], initializer=tf.zeros_initializer())
    mean = tf.get_variable("mean", [8], initializer=tf.zeros_initializer(), trainable=False)
    variance = tf.get_variable("variance", [8], initializer=tf.ones_initializer(), trainable=False)
    kernel = tf.get_variable("kernel", [3, 3, 3, 8], initializer=tf.glorot_uniform_initializer(seed=3))
    x = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], "SAME")

    def of_batch():
        normal, batch_mean, batch_variance = tf.nn.fused_batch_norm(x, scale, offset)
        updates = [tf.assign(mean, mean * 0.9 + batch_mean * 0.1),
                   tf.assign(variance, variance * 0.9 + batch_variance * 0.1)]
        with tf.control_dependencies(updates):
            return tf.identity(normal)

    x = tf.cond(training, of_batch,
                lambda: tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0])
    x = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    weights = tf.get_variable("weights", [6 * 6 * 8, 4],
                              initializer=tf.truncated_normal_initializer(stddev=0.1, seed=4))
    logits = tf.matmul(tf.reshape(x, [-1, 6 * 6 * 8]), weights)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
    loss += 1e-3 * tf.nn.l2_loss(weights)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    losses = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(STEPS):
            feed = {images: numbers(i, 6, 12, 12, 3), labels: np.eye(4)[np.arange(6) % 4]}
            losses.append(s.run([loss, train], {**feed, training: True})[0])
            losses.append(s.run(loss, feed))
    return losses


class LstmCell:
    """Keras 3 has none for graphs."""

    def __init__(self, units):
        self.units, self.output_size, self.state_size = units, units, (units, units)

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, self.units], dtype), tf.zeros([batch_size, self.units], dtype)

    def __call__(self, inputs, state, scope=None):
        c, h = state
        with tf.variable_scope(scope or "lstm_cell", reuse=tf.AUTO_REUSE):
            kernel = tf.get_variable("kernel", [inputs.shape[-1].value + self.units, 4 * self.units],
                                     initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=5))
            bias = tf.get_variable("bias", [4 * self.units], initializer=tf.zeros_initializer())
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([inputs, h], 1), kernel), bias), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def an_lstm_by_dynamic_rnn(target, work):
    tf.set_random_seed(13)
    x, lengths = tf.placeholder(tf.float32, [None, 7, 5]), tf.placeholder(tf.int32, [None])
    outputs, (_, last) = tf.nn.dynamic_rnn(LstmCell(6), x, sequence_length=lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(last - 0.25)) + 0.1 * tf.reduce_mean(tf.square(outputs))
    optimizer = tf.train.AdamOptimizer(0.02)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
    train = optimizer.apply_gradients(zip(clipped, variables))
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        return [number for i in range(STEPS)
                for number in s.run([loss, norm, train], {x: numbers(i, 4, 7, 5), lengths: [7, 3, 1, 5]})[:2]]


def loops_with_gradients(target, work):
    with tf.variable_scope("loop"):
        w = tf.get_variable("w", [4, 4], initializer=tf.orthogonal_initializer(seed=6))
    x = tf.placeholder(tf.float32, [2, 4])
    steps = tf.placeholder(tf.int32, [])
    collected = tf.TensorArray(tf.float32, size=steps)

    def body(i, state, kept):
        state = tf.tanh(tf.matmul(state, w) + tf.cond(tf.equal(i % 2, 0), lambda: 0.1, lambda: -0.1))
        return i + 1, state, kept.write(i, state)

    _, last, kept = tf.while_loop(lambda i, *_: i < steps, body, [0, x, collected], parallel_iterations=3)
    loss = tf.reduce_sum(tf.square(last)) + tf.reduce_mean(kept.stack())
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        return [s.run([loss, train], {x: numbers(i, 2, 4), steps: 2 + i % 4})[0] for i in range(STEPS)]


def input_through_queues(target, work):
    source = tf.train.input_producer(tf.constant(numbers(7, 12, 3)), num_epochs=None, shuffle=False, capacity=6)
    rows = tf.train.batch([source.dequeue()], 4, num_threads=1, capacity=16)
    w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.3))
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - tf.reduce_sum(rows, 1, keepdims=True)))
    train = tf.train.AdagradOptimizer(0.3).minimize(loss)
    losses = []
    with tf.Session(target) as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        for _ in range(STEPS):
            losses.append(s.run([loss, train])[0])
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=60, ignore_live_threads=False)
    return losses


def checkpoints_through_the_door(target, work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    tf.set_random_seed(15)
    x = tf.placeholder(tf.float32, [None, 4])
    table = tf.get_variable("table", [10, 4], initializer=tf.random_normal_initializer(seed=8),
                            partitioner=tf.fixed_size_partitioner(2))
    found = tf.nn.embedding_lookup(table, [1, 3, 3, 9])
    w = tf.get_variable("w", [4, 4], initializer=tf.random_normal_initializer(seed=9), use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - found))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=2)
    losses, prefix = [], os.path.join(work, "model")
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(4):
            losses.append(s.run([loss, train], {x: numbers(i, 4, 4)})[0])
            saver.save(s, prefix, global_step=step)
        for i in range(2):
            s.run(train, {x: numbers(i, 4, 4)})
    tf.Session.reset(target)
    with tf.Session(target) as s:
        latest = tf.train.latest_checkpoint(work)
        saver.restore(s, latest)
        losses.append(s.run(step))
        for i in range(4):
            losses.append(s.run([loss, train], {x: numbers(i, 4, 4)})[0])
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(work))
    kept = tf.train.get_checkpoint_state(work).all_model_checkpoint_paths
    return losses + [float(np.abs(reader.get_tensor("w")).sum()), len(kept)]


def a_monitored_training_session(target, work):
    shutil.rmtree(work, ignore_errors=True)
    losses = []

    class Noted(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(loss)

        def after_run(self, run_context, run_values):
            losses.append(run_values.results)

    def build():
        x = tf.constant(numbers(10, 8, 4))
        w = tf.get_variable("w", [4, 1], initializer=tf.constant_initializer(0.7))
        step = tf.train.get_or_create_global_step()
        loss = tf.losses.mean_squared_error(tf.reduce_sum(x, 1, keepdims=True), tf.matmul(x, w))
        tf.summary.scalar("loss", loss)
        return loss, tf.train.FtrlOptimizer(0.3).minimize(loss, global_step=step)

    for last in (5, 9):  # the second run goes on from the checkpoint
        with tf.Graph().as_default():
            loss, train = build()
            hooks = [tf.train.StopAtStepHook(last_step=last), Noted(), tf.train.NanTensorHook(loss)]
            with tf.train.MonitoredTrainingSession(master=target, is_chief=True, checkpoint_dir=work, hooks=hooks,
                                                   save_checkpoint_steps=2, save_summaries_steps=2,
                                                   log_step_count_steps=100) as s:
                while not s.should_stop():
                    s.run(train)
        tf.Session.reset(target)
    return losses


def partial_runs_that_train(target, work):
    a, reward = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer([[0.1, 0.2], [0.3, -0.1], [0.0, 0.4]]))
    policy = tf.nn.softmax(tf.matmul(a, w))
    loss = -tf.reduce_mean(tf.log(policy[:, 0]) * reward)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.control_dependencies([train]):
        done = tf.identity(loss)
    out = []
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for i in range(STEPS):
            handle = s.partial_run_setup([policy, done], [a, reward])
            chosen = s.partial_run(handle, policy, {a: numbers(i, 5, 3)})
            out.append(chosen[0, 0])
            out.append(s.partial_run(handle, done, {reward: chosen[:, 1]}))
    return out


def two_clients_of_one_server(target, work):
    """One after the other, so that the numbers are determined: each sees what the other trained."""
    graphs = []
    for _ in range(2):
        graph = tf.Graph()
        with graph.as_default(), tf.device("/job:local/task:0"):
            x = tf.placeholder(tf.float32, [None, 3])
            w = tf.get_variable("shared_w", [3, 1], initializer=tf.zeros_initializer())
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0 - x[:, :1]))
            train = tf.train.ProximalGradientDescentOptimizer(0.2).minimize(loss)
            ready = tf.report_uninitialized_variables()
            graphs.append((graph, x, loss, train, ready, tf.global_variables_initializer()))
    losses = []
    sessions = [tf.Session(target, graph=graph) for graph, *_ in graphs]
    losses.append(len(sessions[1].run(graphs[1][4])))
    sessions[0].run(graphs[0][5])
    losses.append(len(sessions[1].run(graphs[1][4])))

    def train_on(turn, which):
        _, x, loss, train, _, _ = graphs[which]
        losses.append(sessions[which].run([loss, train], {x: numbers(turn, 6, 3)})[0])

    for turn in range(STEPS):
        worker = threading.Thread(target=train_on, args=(turn, turn % 2))
        worker.start()
        worker.join()
    for s in sessions:
        s.close()
    return losses


def a_supervised_autoencoder_with_random_numbers(target, work):
    tf.set_random_seed(17)
    x = tf.random_uniform([6, 5], seed=21)
    noise = tf.random_normal([6, 5], stddev=0.1, seed=22)
    encoder = tf.get_variable("encoder", [5, 2], initializer=tf.glorot_normal_initializer(seed=23))
    decoder = tf.get_variable("decoder", [2, 5], initializer=tf.glorot_normal_initializer(seed=24))
    bias = tf.get_variable("bias", [5], initializer=tf.zeros_initializer())
    kept = tf.nn.dropout(x + noise, keep_prob=0.8, seed=25)
    decoded = tf.nn.sigmoid(tf.nn.xw_plus_b(tf.nn.elu(tf.matmul(kept, encoder)), decoder, bias))
    loss = tf.reduce_sum(tf.squared_difference(decoded, x)) / 6.0
    train = tf.train.AdadeltaOptimizer(1.0).minimize(loss)
    supervisor = tf.train.Supervisor(logdir=None, init_op=tf.global_variables_initializer(), saver=None,
                                     summary_op=None)
    losses = []
    with supervisor.managed_session(target) as s:
        for _ in range(STEPS):
            losses.append(s.run([loss, train])[0])
        losses.append(float(np.sum(np.abs(s.run(bias)))))
    return losses


ALL = [a_multilayer_perceptron, a_convolutional_net_with_batch_norm, an_lstm_by_dynamic_rnn, loops_with_gradients,
       input_through_queues, checkpoints_through_the_door, a_monitored_training_session, partial_runs_that_train,
       two_clients_of_one_server, a_supervised_autoencoder_with_random_numbers]
