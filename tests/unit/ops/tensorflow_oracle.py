#!/usr/bin/env python3
"""Compares the tables of this folder with an installed TensorFlow 2.17.

  tensorflow_oracle.py signatures   prints tensorflow_ops.txt anew: all public ops, and the others that it names
  tensorflow_oracle.py shapes       prints the lines of the tables of shapes for which TensorFlow infers something else
"""
import ast
import os
import pathlib
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = pathlib.Path(__file__).parent
SHORT = {1: "f32", 2: "f64", 3: "i32", 4: "u8", 5: "i16", 6: "i8", 7: "string", 8: "c64", 9: "i64", 10: "bool",
         11: "qi8", 12: "qu8", 13: "qi32", 14: "bf16", 15: "qi16", 16: "qu16", 17: "u16", 18: "c128", 19: "f16",
         20: "resource", 21: "variant", 22: "u32", 23: "u64"}


def lines(name):
    return [l for l in (HERE / name).read_text().splitlines() if l and not l.startswith("#")]


def argument(arg):
    text = SHORT[arg.type] if arg.type else arg.type_attr or f"[{arg.type_list_attr}]"
    if arg.number_attr:
        text = f"{arg.number_attr}*{text}"
    return f"{arg.name}:" + (f"Ref({text})" if arg.is_ref else text)


def value(v):
    from tensorflow.core.framework import types_pb2
    kind = v.WhichOneof("value")
    if kind == "type":
        return types_pb2.DataType.Name(v.type)
    if kind == "b":
        return "true" if v.b else "false"
    if kind == "s":
        return '"%s"' % v.s.decode().replace("\n", "\\n").replace("\t", "\\011")
    if kind == "f":
        return "%g" % v.f
    if kind == "shape":
        return "<unknown>" if v.shape.unknown_rank else str([d.size for d in v.shape.dim])
    if kind == "list":
        if v.list.i:
            return str(list(v.list.i))
        if v.list.f:
            return "[" + ", ".join("%g" % f for f in v.list.f) + "]"
        return "[]" if not v.list.ByteSize() else str(v.list)
    if kind == "tensor":
        import tensorflow as tf
        array = tf.make_ndarray(v.tensor)
        values = " ".join(str(x) for x in array.flatten())
        return f"Tensor<type: {array.dtype} shape: {list(array.shape)} values: {values}>"
    return str(v.i)


def attribute(attr):
    text = f"{attr.name}:{attr.type}"
    allowed = attr.allowed_values.list
    if allowed.type:
        text += "{" + " ".join(sorted({SHORT[t] for t in allowed.type})) + "}"
    elif allowed.s:
        text += "{" + " ".join(s.decode() for s in allowed.s) + "}"
    if attr.has_minimum:
        text += f">={attr.minimum}"
    return text + ("=" + value(attr.default_value) if attr.HasField("default_value") else "")


def signature(name):
    from tensorflow.python.framework import op_def_registry
    op = op_def_registry.get(name)
    flags = [" !stateful" * op.is_stateful, " !commut" * op.is_commutative, " !aggr" * op.is_aggregate,
             " !uninit" * op.allows_uninitialized_input]
    return (f"{name}({', '.join(map(argument, op.input_arg))}) -> ({', '.join(map(argument, op.output_arg))}) | "
            + "; ".join(sorted(map(attribute, op.attr))) + "".join(flags))


def signatures():
    import tensorflow as tf
    print((HERE / "tensorflow_ops.txt").read_text().splitlines()[0])
    names = {line.split("(")[0] for line in lines("tensorflow_ops.txt")}
    for name in sorted(names | {name for name in dir(tf.raw_ops) if not name.startswith("_")}):
        print(signature(name))


def parse_attr(kind, text):
    import tensorflow as tf
    if kind == "bool":
        return text == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "string":
        return text.strip("\"'")
    if kind == "type":
        return tf.as_dtype({"float": "float32", "double": "float64", "half": "float16"}.get(text, text))
    if kind == "shape":
        return tf.TensorShape(dims(text))
    if kind == "tensor":
        return tf.make_tensor_proto(ast.literal_eval(text), tf.int32)
    items = [t for t in text.strip("[]").split(",") if t]
    return [parse_attr(kind[5:-1], t) for t in items]


def parse_default(attr):
    import tensorflow as tf
    default = attr.default_value
    kind = default.WhichOneof("value")
    if kind == "shape":
        return tf.TensorShape(default.shape)
    if kind == "type":
        return tf.as_dtype(default.type)
    if kind == "list":
        return list(default.list.i) or list(default.list.s) or list(default.list.f)
    return getattr(default, kind)


def dims(text):
    if text == "<unknown>":
        return None
    return [None if d in ("?", "-1") else int(d) for d in text.strip("[]").split(",") if d]


def infer(line):
    """What TensorFlow says of one row, in the table's own notation; None where the row cannot be put to it."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry, op_def_library
    head, rest = line.split(" :", 1)
    words = head.split()
    op = op_def_registry.get(words[0])
    kinds = {a.name: a.type for a in op.attr}
    attrs = {w.split("=", 1)[0]: parse_attr(kinds[w.split("=", 1)[0]], w.split("=", 1)[1]) for w in words[1:]}
    specs = [s.strip() for s in rest.split("->")[0].split(";") if s.strip()]
    with tf.Graph().as_default():
        def allowed(attr):
            return list(next(a for a in op.attr if a.name == attr).allowed_values.list.type)

        def dtype_of(arg, spec):
            if arg.type:
                return tf.as_dtype(arg.type)
            if arg.type_attr in attrs:
                return attrs[arg.type_attr]
            wish = tf.int32 if spec[0] in "=~" else tf.float32
            types = allowed(arg.type_attr)
            if types and wish.as_datatype_enum not in types:
                definition = next(a for a in op.attr if a.name == arg.type_attr)
                wish = tf.as_dtype(definition.default_value.type or types[0])
            attrs[arg.type_attr] = wish
            return wish

        def tensor(arg, spec):
            dtype = dtype_of(arg, spec)
            if spec.startswith("="):
                return tf.constant(ast.literal_eval(spec[1:].strip()), dtype)
            if spec.startswith("~"):
                return tf.shape(tf.compat.v1.placeholder(tf.float32, dims(spec[1:])), out_type=dtype)
            if spec.startswith("handle "):
                return tf.raw_ops.VarHandleOp(shape=tf.TensorShape(dims(spec[7:])), dtype=tf.float32)
            if arg.is_ref:
                return op_def_library.apply_op("VariableV2", shape=tf.TensorShape(dims(spec)), dtype=dtype,
                                               container="", shared_name="")
            return tf.compat.v1.placeholder(dtype, dims(spec))

        single = sum(1 for a in op.input_arg if not a.number_attr and not a.type_list_attr)
        given, left = {}, (len(specs) - single) // max(1, len(op.input_arg) - single)
        at = 0
        try:
            for arg in op.input_arg:
                if arg.number_attr or arg.type_list_attr:
                    one = type(arg)()
                    one.CopyFrom(arg)
                    if arg.type_list_attr:
                        one.type = tf.float32.as_datatype_enum
                    given[arg.name] = [tensor(one, s) for s in specs[at:at + left]]
                    at += left
                else:
                    given[arg.name] = tensor(arg, specs[at])
                    at += 1
            inputs_attrs = {a.type_attr for a in op.input_arg} | {a.number_attr for a in op.input_arg}
            inputs_attrs |= {a.type_list_attr for a in op.input_arg}
            rest_attrs = {k: v for k, v in attrs.items() if k not in inputs_attrs}
            for a in op.attr:
                if a.name in inputs_attrs or a.name in rest_attrs:
                    continue
                if a.HasField("default_value"):
                    rest_attrs[a.name] = parse_default(a)
                elif a.type == "type":
                    rest_attrs[a.name] = tf.float32
            out = op_def_library.apply_op(words[0], **given, **rest_attrs)
        except (ValueError, TypeError) as error:
            text = re.sub(r" for '.*", "", str(error).replace("\n", "\\n").replace("\t", "\\t"))
            return "error " + text
        outs = [] if isinstance(out, tf.Operation) else list(out) if isinstance(out, (list, tuple)) else [out]
        flat = [o for item in outs for o in (item if isinstance(item, list) else [item])]

        def shown(shape):
            if shape.rank is None:
                return "<unknown>"
            return "[" + ",".join("?" if d is None else str(d) for d in shape.as_list()) + "]"
        return " ; ".join(shown(o.shape) for o in flat)


def shapes():
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    for line in lines("shapes.txt") + lines("array_shapes.txt") + lines("state_shapes.txt"):
        try:
            got = infer(line)
        except Exception as error:  # a row that this script cannot express
            got = f"(cannot ask: {error!r})"
        if got is not None and got.strip() != line.split("->", 1)[1].strip():
            print(f"{line}\n    TensorFlow: {got}")


if __name__ == "__main__":
    {"signatures": signatures, "shapes": shapes}[sys.argv[1]]()
