"""`SyncBatchNorm`: normalization over a batch whose parts lie on several contexts, or processes.

The devices of a layer are the contexts of its parameters, times the processes of the job where
`num_devices` says so. Sums over processes are `gnomon.ranks.job`'s, which match by name: the
engine may run them in another order in each process. Layers of one name are told apart by their
number: processes that run the same program make the same layers in the same order.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

from gnomon import autograd
from gnomon.base import ParamError, complaint
from gnomon.gluon.nn import BatchNorm
from gnomon.kvstore import mpi, server
from gnomon.ndarray import NDArray
from gnomon.ops.nn.sync_batch_norm import Devices, announce
from gnomon.ranks import Array, job

_numbers = itertools.count()


class SyncBatchNorm(BatchNorm):
    """Normalization over a batch whose parts lie on `num_devices` contexts.

    They are the contexts of its parameters; or those of each of several processes, started by
    `gnomon launch` or mpiexec, with parameters on as many contexts each. In training the layer has
    to be called on all of them, each with its part, before results are waited for: each part waits
    for the sums of the others. `num_devices=None` is one.

    Gradients of the factor and the shift are those of the own part: a Trainer, over processes with
    a store that joins them, adds them up.

    Raises:
        ParamError: when called in training: there are not so many contexts. Compiled, it is an
            EngineError that says so when results are waited for.
        GnomonError: when results are waited for: a context did not come; the engine is the naive
            one, which runs one operator after the other.
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )
        del self._kwargs["axis"]
        self._kwargs.update(ndev=num_devices or 1, key=self.prefix)
        self._number = next(_numbers)
        announce(self.prefix, self._devices)

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        known = self._kwargs
        if isinstance(x, NDArray) and autograd.is_training() and not known["use_global_stats"]:
            self._devices(known["ndev"])
        states = gamma, beta, running_mean, running_var
        return F.contrib.SyncBatchNorm(x, *states, name="fwd", **known)

    def _devices(self, wanted: int) -> Devices:
        """The devices here, and how sums are added up over processes, if they are.

        Raises:
            ParamError: there are not so many.
        """
        contexts = self.gamma.list_ctx()
        here = len(contexts)
        if wanted <= here:
            return Devices(wanted)
        processes = _processes()
        if wanted == here * processes:
            return Devices(here, self._total)
        many = f" on each of {processes} processes" if processes > 1 else ""
        places = ", ".join(map(str, contexts))
        expected = f"at most {here * processes}, as its parameters are on {places}{many}"
        where = f"SyncBatchNorm {self.name!r}"
        raise ParamError(complaint(where, "num_devices (ndev)", expected, wanted))

    def _total(self, which: str, row: Array) -> Array:
        """The sum of the rows of all processes, in a pass."""
        return job.total(f"{which} pass of SyncBatchNorm {self.name!r} ({self._number})", row)


def _processes() -> int:
    """How many processes the job has, which this one joins if a launcher started several."""
    told = (os.environ.get(name) for name in mpi.SIZES)
    return server.join("dist_sync").size if any(n and int(n) > 1 for n in told) else 1
