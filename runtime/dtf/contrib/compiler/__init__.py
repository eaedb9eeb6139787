"""tf.contrib.compiler: the scope that asks for compilation; nothing is compiled."""

from __future__ import annotations

from dtf import late

_NAMESPACES = {"jit": "dtf.contrib.compiler.jit"}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)
