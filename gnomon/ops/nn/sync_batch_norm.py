"""SyncBatchNorm: `BatchNorm` of a batch whose parts lie on several devices.

With `ndev` above 1 it works on data, on a worker of the engine: each device enters its sums and
waits there until all have done so. Devices meet by the layer's `key`, once in a forward and once in
a backward pass. The states order the passes of one device, so a device is never in two of them.

A layer that knows its devices says so by `announce`: how many of them are in this process, and how
sums are added up over processes, where the others are in those. Without that, all are here.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from gnomon import engine
from gnomon.base import GnomonError
from gnomon.ground.lock import exclusive
from gnomon.ops.derive import Needs, everything
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import normal_axis
from gnomon.ops.nn.batch_norm import INPUTS, STATES, BatchNorm
from gnomon.ops.op import describe, op
from gnomon.ops.param import param
from gnomon.ops.requests import check_requests

PATIENCE = 120.0  # seconds that a device waits for the others


@op("_contrib_SyncBatchNorm", inputs=INPUTS, aux=STATES, outputs=("output", "mean", "var"))
class SyncBatchNorm(BatchNorm):
    """`BatchNorm` along the second axis, over the parts of a batch that lie on `ndev` devices.

    Gradients of `gamma` and `beta` are those of a device's own part: a Trainer adds them up. Each
    pass in training has to run on all devices, each in its turn, before results are waited for.
    """

    ndev: int = param(1, low=1, doc="Devices that share a batch.")
    key: str = param(doc="Name of the layer, by which devices meet.")
    axis = 1  # no field
    cudnn_off = False
    min_calib_range = max_calib_range = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """The operator with these parameters; one that works on data where devices meet."""
        found = super().parse(given)
        if found.ndev > 1 and found.is_expression:
            return SharedBatchNorm.parse(given)  # type: ignore[return-value]
        return found


class SharedBatchNorm(HostOp, SyncBatchNorm):
    """`SyncBatchNorm` of several devices."""

    brief = -1  # it waits for the other devices

    def compute(
        self, data: Array, gamma: Array, beta: Array, *states: Array, train: bool
    ) -> tuple[Array, Array, Array]:
        """Result, mean and `1 / sqrt(variance + eps)`."""
        center, variance = states
        if self.batch(train):
            axes = self._others(data)
            sums = np.array([data.sum(axes, np.float64), np.square(data).sum(axes, np.float64)])
            count, total = self._met("forward", data.size // data.shape[1], sums)
            center = total[0] / count
            variance = np.maximum(total[1] / count - center * center, 0)
        spread = 1 / np.sqrt(variance + self.eps)
        factor = spread if self.fix_gamma else spread * gamma
        shift = beta - center * factor
        y = data * self._each(factor, data) + self._each(shift, data)
        return y, center, spread

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        arrays = [blob.tensor.numpy() for blob in (*in_data, *aux)]
        values = self.results(arrays, {"train": ctx.is_train})
        dests = [blob.tensor.numpy() for blob in out_data]
        self.store(f"{self.name}.compute", self.outputs(), values, req, dests)

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        check_requests(self.name, req, in_grad)
        g, x, gamma, center, spread = (
            blob.tensor.numpy().astype(np.float32 if blob.tensor.dtype.size < 4 else None)
            for blob in (out_grad[0], in_data[0], in_data[1], out_data[1], out_data[2])
        )
        axes = self._others(x)
        normal = (x - self._each(center, x)) * self._each(spread, x)
        own = np.array([g.sum(axes, np.float64), (g * normal).sum(axes, np.float64)])
        dx = g
        if self.batch(ctx.is_train):
            count, total = self._met("backward", x.size // x.shape[1], own)
            dbeta, dgamma = (self._each(each / count, x) for each in total)
            dx = g - (dbeta + normal * dgamma)
            for state, new in zip(aux, (center, 1 / (spread * spread) - self.eps), strict=True):
                memory = state.tensor.numpy()
                memory[:] = memory * self.momentum + new * (1 - self.momentum)
        dx = dx * self._each(spread if self.fix_gamma else spread * gamma, x)
        found = dx, None if self.fix_gamma else own[1], own[0]
        dests = [None if blob is None else blob.tensor.numpy() for blob in in_grad]
        self.store(f"{self.name}.gradient", self.arguments(), found, req, dests)

    def backward_needs(self, in_shapes: Any, in_types: Any, **context: Any) -> Needs:
        return everything(self)

    def _others(self, data: Array) -> tuple[int, ...]:
        """All axes but the channels'."""
        channel = normal_axis(self.name, self.axis, data.ndim)
        return tuple(a for a in range(data.ndim) if a != channel)

    def _each(self, values: Array, x: Array) -> Array:
        """One value a channel, in a form that `x` is combined with; in its dtype."""
        return values.astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - 2))

    def _met(self, which: str, count: int, sums: Array) -> tuple[float, Array]:
        """How many values a channel has on all devices, and the sums over all."""
        with _lock:
            meeting = _meetings[self.key, which]
            known = _announced.get(self.key, lambda: None)()
        devices = Devices(self.ndev) if known is None else known(self.ndev)
        row = np.concatenate([[count], sums.reshape(-1)])
        total = meeting.total(f"{self.name} {self.key!r}", which, devices, row)
        return total[0], total[1:].reshape(sums.shape)


describe(SharedBatchNorm)
SharedBatchNorm.is_expression = False


class Devices(NamedTuple):
    """How many devices are in this process; what adds up, for a pass, a row over processes."""

    here: int
    over: Callable[[str, Array], Array] | None = None


def announce(key: str, devices: Callable[[int], Devices]) -> None:
    """Have the method `devices` of a layer say, for `ndev` in all, which meet by `key`.

    It is asked at each meeting, and raises an error where there are not so many.
    """
    with _lock:
        _announced[key] = weakref.WeakMethod(devices)


class Meeting:
    """Where the devices of a layer enter their sums; each round ends when all have come.

    States: `_come` are the rows of the round that is open; `_done` is what came out of the last
    one, or went wrong, and `_round` counts them. The last thread ends the round and wakes the
    others.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._come: list[Array] = []
        self._done: Array | Exception = np.empty(0)
        self._round = 0

    def total(self, where: str, which: str, devices: Devices, row: Array) -> Array:
        """The sum of the rows of all devices, the same whatever order they come in.

        Raises:
            GnomonError: the others do not come, or cannot.
        """
        if devices.here > 1 and isinstance(engine.get(), engine.NaiveEngine):
            raise GnomonError(
                f"{where}: {devices.here} devices cannot meet by the naive engine, which runs one "
                "operator after the other"
            )
        with self._turn:
            self._come.append(row)
            mine = self._round
            if len(self._come) == devices.here:
                self._end(which, devices)
            elif not self._turn.wait_for(lambda: self._round != mine, PATIENCE):
                come, self._come = len(self._come), []
                raise GnomonError(
                    f"{where}: {come} of {devices.here} devices (ndev) came within {PATIENCE:g} s: "
                    "run the layer on all of them before results are waited for"
                )
            if isinstance(self._done, Exception):
                raise self._done
            return self._done

    def _end(self, which: str, devices: Devices) -> None:
        """End the round with the sum of all rows; the lock is held."""
        total = np.sort(self._come, axis=0).sum(axis=0)
        try:
            self._done = total if devices.over is None else devices.over(which, total)
        except Exception as error:
            self._done = error
        self._come, self._round = [], self._round + 1
        self._turn.notify_all()


_lock = exclusive()
_meetings: dict[tuple[str, str], Meeting] = defaultdict(Meeting)
_announced: dict[str, Callable[[], Callable[[int], Devices] | None]] = {}
