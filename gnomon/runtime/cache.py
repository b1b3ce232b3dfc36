"""Kernels by structure: kept in memory, the one used longest ago goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from gnomon.plan.pipeline import plan
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime import jit
from gnomon.runtime.kernel import Kernel, source

CAPACITY = 4096  # kernels kept in memory, about 90 KB each


class Cache:
    """Kernels by key; the one used longest ago goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.kernels: OrderedDict[Hashable, Kernel] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, stores: Sequence[Store], structure: Structure) -> Kernel:
        """The kernel of `structure`, compiled now if it is new."""
        with self.lock:
            kernel = self.kernels.get(structure.key)
            if kernel is not None:
                self.kernels.move_to_end(structure.key)
                return kernel
        kernel = self.make(stores, structure)
        with self.lock:
            kernel = self.kernels.setdefault(structure.key, kernel)
            while len(self.kernels) > self.capacity:
                self.kernels.popitem(last=False)
        return kernel

    def make(self, stores: Sequence[Store], structure: Structure) -> Kernel:
        """A new kernel."""
        nests = plan(stores, structure)
        code = source(nests)
        return Kernel(signature_of(nests), jit.compile_ir(code.text, opt=code.opt))


CACHE = Cache(CAPACITY)
