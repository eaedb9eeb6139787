"""Calls of tf.compat.v1 in all forms of their arguments, made by dtf and by TensorFlow, and compared.

A case is one Python expression over `tf`, `np` and the inputs of `outcomes`; the tables (`array`, `math`, ...) make
many of one by naming the values of each argument. Compared are dtypes, static shapes, values and the type of the
error. `python -m tests.interop.argument_forms [TABLE...]` prints what differs; `known` lists what may.
"""
