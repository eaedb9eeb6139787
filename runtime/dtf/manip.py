"""The namespace tf.manip. Only re-exports functions of `ops.array`, `ops.gathering` and `ops.rearranging`."""

from __future__ import annotations

import dtf as _dtf

batch_to_space_nd, gather_nd, reshape, reverse = _dtf.batch_to_space_nd, _dtf.gather_nd, _dtf.reshape, _dtf.reverse
roll, scatter_nd, space_to_batch_nd, tile = _dtf.roll, _dtf.scatter_nd, _dtf.space_to_batch_nd, _dtf.tile

__all__ = ["batch_to_space_nd", "gather_nd", "reshape", "reverse", "roll", "scatter_nd", "space_to_batch_nd", "tile"]
