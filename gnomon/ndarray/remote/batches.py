"""Batches on a GPU: statements on many arrays at once, as an optimizer's updates of all weights.

The launches are made once for the arrays' layouts. Where the arrays lie where they did before, as
the weights of a network do, the second run becomes a program of its own, which is one CUDA graph
from then on; the numbers of a run are copied to where it reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from gnomon.ndarray.lazy.batch import Batch
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.gpu import Gpu
from gnomon.runtime.kernels.gpu_program import GpuProgram
from gnomon.runtime.kernels.gpu_template import GpuTemplate

KEPT = 8  # programs of one batch


class Kept(NamedTuple):
    """A program, and the memory where it reads the numbers of a run."""

    program: GpuProgram
    numbers: pool.Storage


class GpuBatch:
    """A batch on a GPU; `_programs` has None where arrays were seen there once."""

    def __init__(self, batch: Batch, gpu: Gpu) -> None:
        self._gpu = gpu
        self._template = GpuTemplate(
            partial(batch.steps, device=gpu.name), batch.count, (), gpu.name
        )
        self._offsets = batch.offsets
        self._programs: dict[tuple[int, ...], Kept | None] = {}

    def work(self, places: Sequence[int], first: int, keep: Any) -> list[Callable[[], object]]:
        """What the engine is to call for a run on arrays at `places`.

        The numbers of the run begin at `first`, in memory of the processor that `keep` owns.
        """
        key = tuple(places)
        kept = self._programs.get(key)
        if kept is not None:
            return [partial(self._send, kept.numbers, first, keep), kept.program.run]
        numbers = pool.allocate(max(1, self._offsets[-1]), self._gpu.name)
        addresses = [*places, *(numbers.address + at for at in self._offsets[:-1])]
        steps = self._template.bound(addresses, numbers)
        send = partial(self._send, numbers, first, keep)
        if key in self._programs:
            made = self._programs[key] = Kept(GpuProgram(steps, self._gpu.default), numbers)
            return [send, made.program.run]
        if len(self._programs) >= KEPT:
            self._programs.clear()
        self._programs[key] = None
        return [send, *(step.run for step in steps)]

    def _send(self, numbers: pool.Storage, first: int, keep: Any) -> None:
        size = self._offsets[-1]
        if size:
            self._gpu.copy(numbers.address, first, size)
