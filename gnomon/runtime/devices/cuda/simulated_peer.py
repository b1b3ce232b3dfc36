"""Copies from one simulated GPU to another: refused where one does not reach the other's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.base import DeviceError
from gnomon.runtime.devices.cuda.simulated_memory import Work

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated import Simulated

COPY = "cuMemcpyPeerAsync"


class Peers:
    """Which GPU reaches whose memory; pairs that are `apart` never do."""

    def __init__(self, driver: Simulated) -> None:
        self.driver = driver
        self.apart: set[tuple[int, int]] = set()
        self._reached: set[tuple[int, int]] = set()

    def reach(self, ordinal: int, other: int) -> bool:
        """See `Driver`."""
        with self.driver.lock:
            self.driver.properties(ordinal)
            pair = ordinal, other
            if ordinal == other or pair in self.apart:
                return False
            self._reached.add(pair)
            return True

    def copy(self, ends: tuple[int, int], gpus: tuple[int, int], nbytes: int, stream: int) -> None:
        """See `Driver.copy_peer`; the real one would have the processor pass the bytes on."""
        with self.driver.lock:
            queue, (dest, source) = self.driver.stream_of(COPY, stream), ends
            if gpus not in self._reached:
                raise DeviceError(
                    f"{COPY}: gpu({gpus[0]}) does not reach the memory of gpu({gpus[1]}): the copy "
                    "would go by way of the processor"
                )
            into, out = (self.driver.spaces[ordinal] for ordinal in gpus)

            def run(work: Work) -> None:
                data = out.bytes_at(source, nbytes, False, work).copy()
                into.bytes_at(dest, nbytes, True, work)[:] = data

            self.driver.give(queue, COPY, run)
