"""What numpy's BLAS library, OpenBLAS, should be told before numpy is loaded.

Owns defaults of its environment variables; a setting of the user's stands. Imports nothing, since it runs before
everything else of the package.

    set_defaults(os.environ)
"""

from __future__ import annotations

from collections.abc import MutableMapping

_CPUINFO = "/proc/cpuinfo"
#: Instruction sets that OpenBLAS' kernels for SkylakeX use.
_SKYLAKEX = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}


def set_defaults(environment: MutableMapping[str, str]) -> None:
    """Sets in `environment` what OpenBLAS decides less well by itself.

    Its threads spin when idle, also right after they are loaded: by default for 27 ms on every core, a third of a
    task's start-up time. OPENBLAS_THREAD_TIMEOUT is a power of two of clock cycles: 20 is 0.4 ms.
    """
    environment.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
    if "OPENBLAS_CORETYPE" in environment:
        return
    try:
        with open(_CPUINFO) as file:
            first = file.read(4096)
    except OSError:
        return
    chosen = core_type(first)
    if chosen:
        environment["OPENBLAS_CORETYPE"] = chosen


def core_type(cpuinfo: str) -> str:
    """The core type that OpenBLAS should use for the processor of `cpuinfo`; "" where its own choice is right.

    OpenBLAS takes AMD's newer processors for older ones without AVX-512: float32 products then run at 115 instead of
    212 GFLOPS on one core of an EPYC of the Zen 5 family.
    """
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    amd = fields.get("vendor_id") == "AuthenticAMD"
    return "SkylakeX" if amd and set(fields.get("flags", "").split()) >= _SKYLAKEX else ""
