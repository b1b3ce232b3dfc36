"""The loops every module has: fit, score, predict, over what the subclass says about one batch.

States, in this order, each needing the ones before: *bound* (`binded`: shapes known, memory taken),
*params_initialized*, *optimizer_initialized*. `bind`, `init_params` and `init_optimizer` lead from
one to the next; asking for something too early is an error that names the missing call.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gnomon import metric as metrics
from gnomon import ndarray as nd
from gnomon.base import (
    ArgumentError,
    DTypeError,
    GnomonError,
    ParamError,
    _as_list,  # noqa: F401  MXNet's has it
    complaint,
    shown,
)
from gnomon.initializer import Uniform
from gnomon.io import DataBatch, DataDesc, DataIter  # noqa: F401  MXNet's has it
from gnomon.module.abstract import Computation
from gnomon.module.checkpoint import BatchEndParam, read_params, save_params
from gnomon.module.inputs import check_input_names as _check_input_names  # noqa: F401  MXNet's
from gnomon.module.inputs import parse_data_desc as _parse_data_desc  # noqa: F401  MXNet's has it

BatchCallback = Callable[[BatchEndParam], object]
EpochCallback = Callable[[int, Any, dict[str, Any], dict[str, Any]], object]
REACHED_BY = {
    "binded": "bind",
    "params_initialized": "init_params",
    "optimizer_initialized": "init_optimizer",
}

# Arguments of `fit` that are those of other methods
STARTING = ("initializer", "arg_params", "aux_params", "allow_missing", "force_init")
UPDATING = ("kvstore", "optimizer", "optimizer_params")


class BaseModule(Computation):
    """Base of modules: a machine with parameters that takes batches and learns from them."""

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol: Any = None

    @property
    def symbol(self) -> Any:
        """The network."""
        return self._symbol

    def _need(self, where: str, *states: str) -> None:
        """Raise unless the module has reached `states`."""
        for state in states:
            if not getattr(self, state):
                raise GnomonError(f"{type(self).__name__}.{where}: call {REACHED_BY[state]} first")

    # Parameters

    def set_params(
        self,
        arg_params: dict[str, Any] | None,
        aux_params: dict[str, Any] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Copy the given arrays into the parameters and auxiliary states of their names."""
        self.init_params(
            initializer=None,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )

    def _keeps_params(self, force_init: bool, given: Any) -> bool:
        """Whether there are parameters that stay; a warning tells where values are given."""
        stay = self.params_initialized and not force_init
        if stay and given:
            text = "the parameters have values already: force_init=True takes those given"
            warnings.warn(f"{type(self).__name__}.init_params: {text}", stacklevel=3)
        return stay

    def save_params(self, fname: str) -> None:
        """Write parameters and auxiliary states to a file."""
        save_params(fname, *self.get_params())

    def load_params(self, fname: str) -> None:
        """Read parameters and auxiliary states from a file; FormatError if it holds others."""
        self.set_params(*read_params(fname))

    # One batch

    def forward_backward(self, data_batch: Any) -> None:
        """Compute outputs and gradients of one batch."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Get ready for a batch before it is used; modules that need nothing do nothing."""

    # Loops

    def score(
        self,
        eval_data: DataIter,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, float]]:
        """(name, value) of the metric over the data, or over its first `num_batch` batches."""
        self._need("score", "binded", "params_initialized")
        eval_metric = metrics.create(eval_metric)
        _rewound("score", eval_data, reset)
        eval_metric.reset()
        actual_num_batch = 0
        for nbatch, eval_batch in _first(eval_data, num_batch):
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            self._measure(eval_metric, eval_batch)
            _call(batch_end_callback, epoch, nbatch, eval_metric, locals())
            actual_num_batch += 1
        _call(score_end_callback, epoch, actual_num_batch, eval_metric, locals())
        return eval_metric.get_global_name_value()

    def _measure(self, eval_metric: Any, batch: Any) -> None:
        if isinstance(batch, list):
            self.update_metric(eval_metric, [each.label for each in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def iter_predict(
        self,
        eval_data: DataIter,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Any = None,
    ) -> Iterator[tuple[list[Any], int, DataBatch]]:
        """For each batch its outputs without padding, its number, and the batch."""
        self._need("iter_predict", "binded", "params_initialized")
        _rewound("iter_predict", eval_data, reset)
        for nbatch, batch in _first(eval_data, num_batch):
            self.prepare(batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(batch, is_train=False)
            pad = batch.pad or 0
            yield [out[0 : out.shape[0] - pad] for out in self.get_outputs()], nbatch, batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """The outputs for all data: an array (or a list where the network has several outputs).

        `eval_data` is a data iterator, or one array that is taken as a batch. Without
        `merge_batches`, a list with the outputs of each batch.
        """
        self._need("predict", "binded", "params_initialized")
        if isinstance(eval_data, (nd.NDArray, np.ndarray)):
            array = eval_data if isinstance(eval_data, nd.NDArray) else nd.array(eval_data)
            self.forward(DataBatch([array]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            expected, got = "a DataIter or an array", type(eval_data).__name__
            raise ArgumentError(complaint("Module.predict", "eval_data", expected, got))
        batches = [
            [out.copy() for out in outputs]
            for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)
        ]
        if not batches or not merge_batches:
            return batches
        if len({len(outputs) for outputs in batches}) > 1:
            raise GnomonError("Module.predict: batches differ in outputs: use merge_batches=False")
        merged = [nd.concat(*parts, dim=0) for parts in zip(*batches, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: DataIter,
        eval_data: DataIter | None = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Train on `train_data` from `begin_epoch` up to `num_epoch`, scoring `eval_data` between.

        Binds, initializes parameters and optimizer as far as that is not done yet.
        `batch_end_callback` gets a BatchEndParam; `epoch_end_callback` the epoch, the symbol,
        arg_params and aux_params. Both may be lists.
        """
        given = locals()
        if num_epoch is None:
            raise ParamError(complaint("Module.fit", "num_epoch", "the number of epochs", None))
        if not hasattr(train_data, "provide_data"):
            got = shown(train_data)
            raise ParamError(complaint("Module.fit", "train_data", "a DataIter", got))
        metric = metrics.create(eval_metric)
        check = metric if validation_metric is None else metrics.create(validation_metric)
        self._need_labels(train_data)
        self._begin(given)
        for epoch in range(begin_epoch, num_epoch):
            self._fit_epoch(given, metric, epoch)
            params = self._synchronized()
            for callback in as_list(epoch_end_callback):
                callback(epoch, self.symbol, *params)
            if eval_data is not None:
                scored = self.score(
                    eval_data,
                    check,
                    batch_end_callback=eval_batch_end_callback,
                    score_end_callback=eval_end_callback,
                    epoch=epoch,
                )
                self._log(epoch, "Validation", scored)
            train_data.reset()

    def _begin(self, given: dict[str, Any]) -> None:
        """Bind and initialize, as the arguments of `fit` say.

        Arguments go by their names, as in MXNet: a module of a user may take keywords alone.
        """
        train_data = given["train_data"]
        self.bind(
            data_shapes=train_data.provide_data,
            label_shapes=train_data.provide_label,
            for_training=True,
            force_rebind=given["force_rebind"],
        )
        if given["monitor"] is not None:
            self.install_monitor(given["monitor"])
        self.init_params(**{name: given[name] for name in STARTING})
        self.init_optimizer(**{name: given[name] for name in UPDATING})

    def _need_labels(self, train_data: Any) -> None:
        """Raises ParamError where the network takes labels and `train_data` has none."""
        names = getattr(self, "label_names", None)
        if names and not train_data.provide_label:
            where, expected = f"{type(self).__name__}.fit", f"labels for {', '.join(names)}"
            raise ParamError(complaint(where, "train_data", expected, "data without labels"))

    def _fit_epoch(self, given: dict[str, Any], eval_metric: Any, epoch: int) -> None:
        """Train on every batch once, and log the metric; `given` are the arguments of `fit`.

        They and the variables here, under MXNet's names, are the `locals` that callbacks get.

        Raises:
            StopIteration: there is no batch.
        """
        tic, monitor = time.time(), given["monitor"]
        eval_metric.reset()
        values: list[tuple[str, float]] = []
        data_iter, nbatch = iter(given["train_data"]), 0
        data_batch, end_of_batch = next(data_iter, None), False
        if data_batch is None:
            expected, got = "an iterator with a batch", "one at its end, which reset() rewinds"
            raise StopIteration(
                complaint(f"{type(self).__name__}.fit", "train_data", expected, got)
            )
        while not end_of_batch:
            if monitor is not None:
                monitor.tic()
            self.prepare(data_batch, sparse_row_id_fn=given["sparse_row_id_fn"])
            self.forward_backward(data_batch)
            self.update()
            self._measure(eval_metric, data_batch)
            # Not earlier: an iterator may reuse the arrays of the batch before.
            next_data_batch = next(data_iter, None)
            end_of_batch = next_data_batch is None
            if monitor is not None:
                monitor.toc_print()
            if end_of_batch:
                # Before the last callback, which may reset the metric.
                values = eval_metric.get_global_name_value()
            scope = {**given, **locals()}
            _call(given["batch_end_callback"], epoch, nbatch, eval_metric, scope)
            data_batch, nbatch = next_data_batch, nbatch + 1
        self._log(epoch, "Train", values)
        self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)

    def _synchronized(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters after an epoch, made equal on all devices."""
        params = self.get_params()
        self.set_params(*params)
        return params

    def _log(self, epoch: int, what: str, values: list[tuple[str, float]]) -> None:
        for name, value in values:
            self.logger.info("Epoch[%d] %s-%s=%f", epoch, what, name, value)


def _first(source: Iterable[Any], limit: int | None) -> Iterator[tuple[int, Any]]:
    """Pairs of a number and a batch, up to `limit` of them."""
    for number, batch in enumerate(source):
        if number == limit:
            return
        yield number, batch


def _rewound(where: str, eval_data: Any, reset: bool) -> None:
    """Have `eval_data` begin anew where `reset` says so; DTypeError where it is no iterator."""
    if not hasattr(eval_data, "reset" if reset else "__iter__"):
        expected, got = "a DataIter", shown(eval_data)
        raise DTypeError(complaint(f"Module.{where}", "eval_data", expected, got))
    if reset:
        eval_data.reset()


def as_list(callbacks: Any) -> Sequence[Callable[..., object]]:
    """One callback, several or None, as a list of them."""
    if callbacks is None:
        return []
    return callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]


def _call(callbacks: Any, epoch: int, nbatch: int, eval_metric: Any, scope: dict[str, Any]) -> None:
    for callback in as_list(callbacks):
        callback(BatchEndParam(epoch, nbatch, eval_metric, scope))
