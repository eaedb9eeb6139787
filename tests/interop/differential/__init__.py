"""Differential tests: the same GraphDef and the same arrays through TensorFlow's kernels and dtf's.

  runner     one process of either runtime, which runs jobs that it reads from a pipe
  processes  the parent's end of it: starts it, and after a crash starts it again and names the job at fault
  variants   from a row of the table of op cases: other dtypes, shapes, values, attributes, and bad ones
  state      rows for the ops that change variables, made from their contracts
  jobs       a variant as the job that a runner understands
  compare    the tolerances, and the differences that are known and kept, each with its reason

Nothing here names single ops but `compare` (known differences) and `state` (what their scalars are called).
"""
