"""`mx.libinfo`: the version, and where a library of gnomon's own would be."""

from __future__ import annotations

from gnomon import __version__

__all__ = ["__version__", "find_lib_path"]


def find_lib_path(prefix: str = "libgnomon") -> list[str]:
    """Paths of the native library: none, machine code is made while programs run.

    >>> find_lib_path()
    []
    """
    return []
