"""OpenBLAS is told which kernels a processor can run, unless the user has said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtf import blas_environment

_EPYC = """\
processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 9B45
flags\t\t: fpu sse2 avx2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_bf16
"""
_ROME = _EPYC.replace("avx512", "no512")
_XEON = _EPYC.replace("AuthenticAMD", "GenuineIntel")
_FIRST_PAGE = _EPYC + "processor\t: 1\nvendor_id\t: Authent"  # a page ends anywhere


@pytest.mark.parametrize(
    ("cpuinfo", "chosen"),
    [(_EPYC, "SkylakeX"), (_FIRST_PAGE, "SkylakeX"), (_ROME, ""), (_XEON, ""), ("", ""), ("rubbish\n: :\n", "")],
    ids=["AMD with AVX-512", "a page that ends amid a line", "AMD without", "Intel", "nothing", "rubbish"],
)
def test_the_core_type_follows_from_what_the_processor_can_do(cpuinfo: str, chosen: str) -> None:
    assert blas_environment.core_type(cpuinfo) == chosen


def test_a_setting_of_the_users_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text(_EPYC)
    monkeypatch.setattr(blas_environment, "_CPUINFO", str(tmp_path / "cpuinfo"))
    environment = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_THREAD_TIMEOUT": "26"}
    blas_environment.set_defaults(environment)
    assert environment == {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_THREAD_TIMEOUT": "26"}
    environment = {}
    blas_environment.set_defaults(environment)
    assert environment == {"OPENBLAS_CORETYPE": "SkylakeX", "OPENBLAS_THREAD_TIMEOUT": "20"}


def test_a_system_without_cpuinfo_keeps_the_librarys_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_environment, "_CPUINFO", str(tmp_path / "absent"))
    environment: dict[str, str] = {}
    blas_environment.set_defaults(environment)
    assert environment == {"OPENBLAS_THREAD_TIMEOUT": "20"}
