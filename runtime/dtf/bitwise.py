"""tf.bitwise: the functions on the bits of integers under their grouped names. Defined in `ops.math`."""

from dtf.build.ops.math import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
