"""tensorflow.python.platform.sysconfig: folders of compiled parts; dtf has none."""

from __future__ import annotations

from pathlib import Path

__all__ = ["get_compile_flags", "get_include", "get_lib", "get_link_flags"]


def get_include() -> str:
    """The package's folder: there are no headers."""
    return str(Path(__file__).parents[2])


def get_lib() -> str:
    """The package's folder: there are no libraries."""
    return get_include()


def get_compile_flags() -> list[str]:
    """Empty: ops are not compiled here."""
    return []


def get_link_flags() -> list[str]:
    """Empty: ops are not compiled here."""
    return []
