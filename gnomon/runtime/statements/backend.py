"""Backends: what `prepare` asks of the kind of device that statements run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gnomon.dtype import DType
from gnomon.plan.cut import Invoke, Libraries, Temporary
from gnomon.plan.signature import Signature
from gnomon.plan.statement import Store, Structure


class Kernel(Protocol):
    """Compiled statements."""

    @property
    def signature(self) -> Signature:
        """What they must be called with."""

    def bind(self, structure: Structure, name: str = "kernel", in_order: bool = False) -> Any:
        """A step that runs them on the leaves of `structure`; `in_order` by one thread."""


class DeviceLibraries(Libraries, Protocol):
    """What the libraries of a device do."""

    def steps(self, invoke: Invoke) -> list[Any]:
        """The steps of a supported call."""

    def prefers_last(self, dtype: DType) -> bool:
        """Whether convolutions of pictures are faster with their channels last."""


class Backend(NamedTuple):
    """Libraries, memory and kernels of a device; `has_order` where one thread can do all."""

    libraries: DeviceLibraries
    temporary: Temporary
    kernel: Callable[[Sequence[Store], Structure], Kernel]
    has_order: bool
