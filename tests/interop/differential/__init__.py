"""Differential tests: the same GraphDef and the same arrays through TensorFlow's kernels and dtf's.

  runner     one process of either runtime, which runs jobs that it reads from a pipe
  processes  the parent's end of it: starts it, and after a crash starts it again and names the job at fault
  row        a row of the table of op cases, and what its contract says about it
  variants   what is made of a row: other dtypes, shapes, values, attributes; in `wrong`, bad ones
  state      rows for the ops that change variables, made from their contracts
  decompositions  rows of the ops whose factors are not unique, and what of these is compared
  jobs       a variant as the job that a runner understands
  difference whether two outcomes are the same; the tolerances
  known      the differences that are known and kept, each with its reason
  compare    the walk of all this for one row; `report`, for all

Nothing here names single ops but `known`, `decompositions` and `state` (what their scalars are called).
"""
