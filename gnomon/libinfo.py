"""`mx.libinfo`: whose interface this is, and where a library of gnomon's own would be."""

from __future__ import annotations

from gnomon.compatibility.absent import VERSION

__all__ = ["__version__", "find_lib_path"]

__version__ = VERSION  # of MXNet; gnomon's own is `gnomon.__version__`


def find_lib_path(prefix: str = "libgnomon") -> list[str]:
    """Paths of the native library: none, machine code is made while programs run.

    >>> find_lib_path()
    []
    """
    return []
