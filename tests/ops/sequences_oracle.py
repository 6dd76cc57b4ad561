#!/usr/bin/env python3
"""Prints a table of tests/ops/sequences with what an installed TensorFlow 2.17 gives behind the arrows.

  sequences_oracle.py FILE       the whole table
  sequences_oracle.py FILE diff  only lines that differ, and what stands there

The syntax is that of tests/ops/sequences/README.md. Calls that do not end within a moment count as waiting.
"""
import ast
import os
import re
import sys
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
MOMENT = 0.3  # seconds


def values_of(text, dtype):
    import numpy as np
    value = ast.literal_eval(text.replace("true", "True").replace("false", "False"))
    return np.array(value, dtype=object if dtype.name == "string" else dtype.as_numpy_dtype)


def text_of(array):
    import numpy as np
    array = np.asarray(array)
    if array.ndim:
        return "[" + ",".join(text_of(x) for x in array) + "]"
    one = array.item()
    if isinstance(one, (bytes, str)):
        return '"%s"' % (one.decode() if isinstance(one, bytes) else one)
    if isinstance(one, bool):
        return "true" if one else "false"
    return "%.9g" % one if isinstance(one, float) else str(one)


def error_of(error):
    """TensorFlow's text without what its Python adds; numbers in names of resources become N."""
    text = re.split(r"\s*\[\[\{\{node", error.message)[0].splitlines()[-1]
    return "error " + re.sub(r"\b_\d+_", "_N_", text)


class Session:
    """One sequence: its graph, its handles, and the calls that wait."""

    def __init__(self):
        import tensorflow as tf
        self.tf = tf
        self.graph = tf.Graph()
        config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=16)
        self.session = tf.compat.v1.Session(graph=self.graph, config=config)
        self.handles, self.waiting = {}, {}

    def attribute(self, kind, text):
        from tensorflow.core.framework import attr_value_pb2, tensor_shape_pb2
        made, tf = attr_value_pb2.AttrValue(), self.tf

        def shape(dims):
            return tf.TensorShape([None if d == -1 else d for d in dims]).as_proto()
        words = re.findall(r"[a-z0-9]+", text)
        if kind == "list(type)":
            made.list.type.extend([tf.as_dtype(w).as_datatype_enum for w in words])
            made.list.SetInParent()
        elif kind == "list(shape)":
            made.list.shape.extend([shape(s) for s in ast.literal_eval(text)])
            made.list.SetInParent()
        elif kind == "shape":
            made.shape.CopyFrom(shape(ast.literal_eval(text)))
        elif kind == "type":
            made.type = tf.as_dtype(text).as_datatype_enum
        elif kind == "int":
            made.i = int(text)
        elif kind == "bool":
            made.b = text == "true"
        else:
            made.s = text.strip("'").encode()
        return made

    def build(self, name, op, attrs, inputs):
        """The node; `inputs` are texts."""
        from tensorflow.python.framework import op_def_registry
        tf, definition = self.tf, op_def_registry.get(op)
        kinds = {a.name: a.type for a in definition.attr}
        given = {k: self.attribute(kinds[k], v) for k, v in attrs}
        for kind in definition.attr:
            if kind.type == "type" and kind.name not in given and not kind.HasField("default_value"):
                given[kind.name] = self.attribute("type", "float32")
        with self.graph.as_default():
            operands, left = [], list(inputs)
            for i, arg in enumerate(definition.input_arg):
                count = 1
                if arg.type_list_attr:
                    count = len(left) - (len(definition.input_arg) - 1 - i)
                    if arg.type_list_attr not in given:
                        given[arg.type_list_attr] = self.attribute("list(type)", ",".join(["float32"] * count))
                    types = [tf.as_dtype(t) for t in given[arg.type_list_attr].list.type]
                elif arg.type_attr:
                    types = [tf.as_dtype(given[arg.type_attr].type)]
                else:
                    types = [tf.as_dtype(arg.type)]
                for dtype, text in zip(types, [left.pop(0) for _ in range(count)]):
                    operands.append(self.handles.get(text) if text in self.handles
                                    else tf.constant(values_of(text, dtype), dtype))
            return self.graph.create_op(op, operands, attrs=given, name=name)

    def run(self, node):
        try:
            if not node.outputs:
                self.session.run(node)
                return "none"
            return " ; ".join(text_of(x) for x in self.session.run(list(node.outputs)))
        except self.tf.errors.OpError as error:
            return error_of(error)

    def call(self, waiter, text):
        """The right side of a call."""
        name = None
        if made := re.match(r"(\w+) = (.*)", text):
            name, text = made.groups()
        head, _, rest = text.partition(" :")
        op, *words = head.split()
        attrs = [w.split("=", 1) for w in words]
        try:
            node = self.build(name, op, attrs, [x.strip() for x in rest.split(" ; ") if x.strip()])
        except ValueError as error:
            return "error " + str(error).split(" for '")[0]
        if name:
            self.handles[name] = node.outputs[0]
            answer = self.run(node)
            return answer if answer.startswith("error") else "any"
        answer = []
        thread = threading.Thread(target=lambda: answer.append(self.run(node)), daemon=True)
        thread.start()
        thread.join(MOMENT if waiter else 30)
        if not thread.is_alive():
            return answer[0]
        self.waiting[waiter] = (thread, answer)
        return "waits"

    def answer(self, waiter):
        thread, answer = self.waiting[waiter]
        thread.join(MOMENT)
        return answer[0] if answer else "waits"


def main():
    only_differences = len(sys.argv) > 2
    session = None
    for line in open(sys.argv[1]).read().splitlines():
        if not line or line.startswith("#"):
            if not only_differences:
                print(line)
            continue
        if line.startswith("== "):
            session = Session()
            if not only_differences:
                print(line)
            continue
        left, _, right = line.partition(" -> ")
        if re.fullmatch(r"\w+", left):
            answer = session.answer(left)
        elif waiter := re.match(r"(\w+): (.*)", left):
            answer = session.call(*waiter.groups())
        else:
            answer = session.call("", left)
        if not only_differences:
            print(f"{left} -> {answer}")
        elif answer != right and right != "any":
            print(f"{left}\n  table: {right}\n  TensorFlow: {answer}")
    sys.stdout.flush()
    os._exit(0)  # calls may wait for ever


main()
