"""Graphs of client code from many families of ops. Each function takes a numpy generator, builds a graph of random
values and returns the tensors to fetch, or them and the ops that initialise it."""
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def floats(r, *shape):
    return r.randn(*shape).astype(np.float32)


def operand(r, value):
    """A constant, or a placeholder that is fed in place of its default, with a known shape or without."""
    value = np.asarray(value)
    kind = r.randint(3)
    if kind == 0:
        return tf.constant(value)
    return tf1.placeholder_with_default(value, value.shape if kind == 1 else [None] * value.ndim)


def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]


def loops(r):
    n, x, w = operand(r, np.int32(r.randint(7))), operand(r, floats(r, 3, 4)), operand(r, floats(r, 4, 4) / 2)
    rows = tf.TensorArray(tf.float32, size=n, dynamic_size=True, infer_shape=False)

    def body(i, y, rows):
        y = tf1.cond(tf.reduce_sum(y) > 0, lambda: tf.tanh(tf.matmul(y, w)), lambda: tf.sin(y) + 0.5)
        return i + 1, tf.ensure_shape(y, [3, 4]), rows.write(i, tf.reduce_sum(y))

    _, y, rows = tf1.while_loop(lambda i, *_: i < n, body, [0, x, rows], parallel_iterations=r.randint(1, 12))
    return [y, rows.size()] + tf1.gradients(tf.reduce_sum(y * y), [x, w])


def scans(r):
    x = operand(r, floats(r, 5, 3))
    y = [tf1.scan(lambda s, e: s / 2 + e, x, reverse=bool(r.randint(2))),
         tf1.map_fn(lambda e: tf.reduce_max(e) * e, x), tf1.foldr(lambda s, e: s * e, x)]
    return y + tf1.gradients(y, x)


def branches(r):
    x, k = operand(r, floats(r, 2, 3)), operand(r, np.int32(r.randint(-1, 4)))
    s = operand(r, np.array([b"a", b"bc"]))
    y = tf.switch_case(k, [lambda: x, lambda: x + 1, lambda: tf.reverse(x, [0])])
    text = tf1.cond(k > 1, lambda: tf.strings.upper(s), lambda: s + s)
    return [y, text] + tf1.gradients(y, x)


def functions(r):
    """Loops and conds as functions, with gradients: their nodes name nodes of other functions as colocations."""
    x, k = operand(r, floats(r, 2, 3)), operand(r, np.int32(r.randint(3)))
    rows = tf1.get_variable("rows", initializer=floats(r, 4, 3), use_resource=True)
    tf1.enable_control_flow_v2()
    try:
        chosen = tf1.cond(k > 0, lambda: x * tf.nn.embedding_lookup(rows, k), lambda: tf.tanh(x))
        made = tf1.while_loop(lambda i, *_: i < k + 1,
                              lambda i, y, m: (i + 1, y * 2 + chosen, m + tf.reduce_mean(y, 0)), [0, x, tf.zeros([3])])
        slopes = tf1.gradients(made[1:], [x, rows])
    finally:
        tf1.disable_control_flow_v2()
    return [chosen, *made, *map(tf.convert_to_tensor, slopes)], [tf1.global_variables_initializer()]


def spectra(r):
    n = r.randint(2, 20)
    x, y = operand(r, (floats(r, 3, n) + 1j * floats(r, 3, n)).astype(np.complex64)), operand(r, floats(r, 2, 4, n))
    s = tf.signal
    out = [s.fft(x), s.ifft(x), s.fft2d(x), s.rfft(y), s.rfft2d(y), s.rfft3d(y), s.irfft(s.rfft(y)), s.fftshift(x)]
    out.append(s.irfft2d(s.rfft2d(y), [r.randint(1, 5), r.randint(1, 21)]))
    return out + tf1.gradients([tf.abs(out[0]), tf.abs(out[3]), tf.abs(out[4])], [x, y])


def sound(r):
    x = operand(r, floats(r, 2, 64))
    short = tf.signal.stft(x, 16, 8)
    mel = tf.tensordot(tf.abs(short), tf.signal.linear_to_mel_weight_matrix(8, 9, 8000, 80.0, 3800.0), 1)
    cosines = [tf.signal.dct(x, kind) for kind in (1, 2, 3, 4)]
    return [short, tf.signal.inverse_stft(short, 16, 8), tf.signal.mfccs_from_log_mel_spectrograms(mel)] + cosines


def special(r):
    x = operand(r, np.abs(floats(r, 9)) + 0.3)
    m = tf.math
    y = [m.bessel_i0(x), m.bessel_i1e(x), m.special.bessel_j0(x), m.special.bessel_k1(x), m.special.bessel_y0(x),
         m.special.dawsn(x), m.special.expint(x), m.special.fresnel_cos(x), m.special.spence(x), m.lgamma(x)]
    return y + tf1.gradients(y, x)


def sums(r):
    x, y = operand(r, floats(r, 3, 4)), operand(r, floats(r, 4))
    m = tf.math
    out = [m.reduce_euclidean_norm(x, 1), m.multiply_no_nan(x, y), m.cumulative_logsumexp(x, 1, True, True),
           m.cumsum(x, 0, True), m.reduce_logsumexp(x, 1), m.reduce_variance(x, 0), tf.ensure_shape(x, [3, None])]
    return out + tf1.gradients(out, [x, y])


def matrices(r):
    a = floats(r, 2, 4, 4)
    p, b = operand(r, a @ a.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)), operand(r, floats(r, 2, 4, 3))
    d = operand(r, floats(r, 3, 5) + np.array([[0], [5], [0]], np.float32))
    la = tf.linalg
    rows = tf.constant(floats(r, 5, 2))
    y = [la.inv(p), la.cholesky(p), la.solve(p, b), la.eigvalsh(p), la.logdet(p), la.tridiagonal_solve(d, rows),
         la.tridiagonal_matmul(d, rows)]
    return y + tf1.gradients(y, [p, b, d])


def images(r):
    x = operand(r, r.rand(2, 9, 11, 3).astype(np.float32))
    sized = [tf.image.resize(x, r.randint(1, 20, 2), method, antialias=bool(r.randint(2)))
             for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic")]
    turned = tf.raw_ops.ImageProjectiveTransformV3(
        images=x, transforms=[[1, 0.1, 0.2, -0.1, 0.9, 0.3, 0.001, 0.002]], output_shape=[6, 5], fill_value=0.5,
        interpolation="BILINEAR", fill_mode=["CONSTANT", "REFLECT", "WRAP", "NEAREST"][r.randint(4)])
    return sized + [turned, tf.image.adjust_hue(x, 0.2), tf.image.rgb_to_yuv(x), tf.image.sobel_edges(x)]


def boxes(r):
    corners = np.sort(r.rand(2, 10, 1, 2, 2), 3).reshape(2, 10, 1, 4).astype(np.float32)
    scores = r.permutation(60).reshape(2, 10, 3).astype(np.float32) / 60
    one = tf.image.non_max_suppression(corners[0, :, 0], scores[0, :, 0], 5, 0.3)
    return list(tf.image.combined_non_max_suppression(corners, scores, 3, 5, 0.4, 0.2)) + [one]


def texts(r):
    pool = [b"hello world", b"", b" a b  c ", "h\u00e9llo \u4e2d".encode(), b"1,2,,3", b"AB c", b"12.5", b"a/b.txt"]
    x = operand(r, np.array([pool[i] for i in r.randint(0, len(pool), 5)], object))
    s = tf.strings
    edits = tf.edit_distance(*(tf1.SparseTensor([[0, 0], [0, 1]], some, [1, 2]) for some in (x[:2], x[2:4])))
    return [edits, s.lower(x), s.length(x, "UTF8_CHAR"), s.strip(x), s.regex_replace(x, r"(\w)(\w)?", r"\2\1"),
            s.split(x, maxsplit=r.randint(1, 3)).values, s.split(x, ",").values, s.to_hash_bucket_fast(x, 97),
            s.unicode_decode(x, "UTF-8").values, s.ngrams(s.split(x), 2).values, tf.io.encode_base64(x)]


def sparse(r):
    def some():
        indices = np.unique(r.randint(0, 4, (5, 2)), axis=0).astype(np.int64)
        return tf1.SparseTensor(indices, operand(r, floats(r, len(indices))), [4, 4])

    a, b = some(), some()
    made = [tf.sparse.add(a, b), tf.sparse.concat(1, [a, b]), tf.sparse.reshape(a, [2, -1]), tf.sparse.maximum(a, b),
            tf.sparse.softmax(a), tf.sparse.fill_empty_rows(a, 9.0)[0], tf.sparse.slice(a, [1, 0], [2, 3])]
    product = tf.sparse.sparse_dense_matmul(a, floats(r, 4, 3), adjoint_a=bool(r.randint(2)))
    return sum((parts(s) for s in made), [product]) + tf1.gradients(product, a.values)


def ragged(r):
    x = tf.RaggedTensor.from_row_splits(operand(r, floats(r, 6)), [0, 2, 2, 3, 6])
    return [x.to_tensor(-1.0), tf.reduce_sum(x, 1), (x * 2 + 1).values, tf.concat([x, x], 1).values,
            tf.gather(x, [3, 1]).values, x[:, :1].values] + tf1.gradients(tf.reduce_sum(x ** 2), x.values)


def arrays(r):
    x, i = operand(r, floats(r, 3, 4, 5)), operand(r, r.randint(0, 3, (2, 2)).astype(np.int32))
    y = [tf.gather(x, i), tf.gather_nd(x, i), tf.tensor_scatter_nd_max(x, [[0], [2]], x[1:]), x[1:, tf.newaxis, ::-2],
         tf.pad(x, [[1, 0], [0, 2], [1, 1]], "REFLECT"), tf.roll(x, [1, -2], [0, 2]), tf.tile(x, [1, 2, 1])]
    whole = [tf.unravel_index([3, 5, 11], [3, 4]), tf.where(x > 0), tf.argsort(x, 1), tf.one_hot(i, 4, axis=0)]
    return y + whole + [tf.convert_to_tensor(g) for g in tf1.gradients(y, x)]


def numbers_of_seeds(r):
    s, t = [int(n) for n in r.randint(0, 99, 2)], tf.random
    return [t.stateless_uniform([3, 5], s), t.stateless_normal([7], s), t.stateless_truncated_normal([3], s),
            t.stateless_uniform([4], s, 0, 100, tf.int32), t.stateless_gamma([4, 3], s, [0.5, 1.0, 3.0]),
            t.stateless_poisson([4, 2], s, [0.5, 30.0]), t.experimental.stateless_shuffle(tf.range(9), s)]


def assignments(r):
    handle = tf1.get_variable("handle", initializer=floats(r, 4, 5), use_resource=True)
    reference = tf1.get_variable("reference", initializer=floats(r, 4, 5), use_resource=False)
    with tf.control_dependencies([handle[1:3, ::2].assign(tf.ones([2, 3])), reference[0].assign(floats(r, 5))]):
        after = [handle.read_value(), tf.identity(reference)]
    return after, [tf1.global_variables_initializer()]


def tables(r):
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([0, 1, 2], tf.int64))
    table, words = tf.lookup.StaticHashTable(keys, -1), tf.lookup.StaticVocabularyTable(keys, 3)
    asked = operand(r, np.array([b"a", b"z", b"c", b"q"]))
    return [table.lookup(asked), words.lookup(asked), table.size()], [tf1.tables_initializer()]


def steps(r):
    v = tf1.get_variable("v", initializer=floats(r, 6, 3), use_resource=bool(r.randint(2)))
    loss = tf.reduce_mean(tf.gather(v, [1, 4, 1]) ** 2)
    makers = [tf1.train.AdamOptimizer, tf1.train.AdagradOptimizer, tf1.train.FtrlOptimizer, tf1.train.RMSPropOptimizer]
    with tf.control_dependencies([makers[r.randint(4)](0.1).minimize(loss)]):
        after = v.read_value()
    return [after], [tf1.global_variables_initializer()]


ALL = [loops, scans, branches, functions, spectra, sound, special, sums, matrices, images, boxes, texts, sparse,
       ragged, arrays, numbers_of_seeds, assignments, tables, steps]
