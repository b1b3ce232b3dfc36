"""`FeedForward`, the oldest way to train a network, and checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import metric as metrics
from gnomon import ndarray as nd
from gnomon.base import ArgumentError, GnomonError, ParamError, check_kind, complaint, shown
from gnomon.callback import LogValidationMetricsCallback
from gnomon.context import Context, cpu
from gnomon.executor_manager import DataParallelExecutorManager
from gnomon.initializer import Uniform
from gnomon.io import DataDesc, DataIter, NDArrayIter, ResizeIter
from gnomon.module import Module
from gnomon.module.base_module import BatchCallback, as_list
from gnomon.module.checkpoint import (
    BatchEndParam,
    load_checkpoint,
    load_params,
    save_checkpoint,
)
from gnomon.module.store import choose_store as _create_kvstore
from gnomon.module.store import start_store as _initialize_kvstore
from gnomon.module.store import update_params as _update_params
from gnomon.module.store import update_params_on_store as _update_params_on_kvstore
from gnomon.optimizer import get_updater
from gnomon.symbol import Symbol

__all__ = [
    "BatchEndParam",
    "DataDesc",
    "DataParallelExecutorManager",
    "FeedForward",
    "LogValidationMetricsCallback",
    "_create_kvstore",
    "_initialize_kvstore",
    "_update_params",
    "_update_params_on_kvstore",
    "get_updater",
    "load_checkpoint",
    "load_params",
    "save_checkpoint",
]


def _read_as_labels(symbol: Any) -> set[str]:
    """The variables that a loss reads as its label."""
    operators = (node for node in symbol._graph.topo if node.op is not None)
    read = (pair for n in operators for pair in zip(n.op.inputs(), n.inputs, strict=True))
    return {entry.node.name for name, entry in read if name == "label" and entry.node.op is None}


class FeedForward:
    """A network with its parameters that is fitted to arrays, and predicts.

    Args:
        symbol: the network; it ends in a loss.
        ctx: a device, or a list of devices that share each batch.
        num_epoch: epochs to train.
        epoch_size: batches an epoch; all of the data by default.
        optimizer: name of an optimizer, or an Optimizer.
        initializer: where the parameters begin that are not given.
        numpy_batch_size: rows a batch where data comes as an array.
        arg_params, aux_params: parameters and auxiliary states to begin with.
        allow_extra_params: pass over those of names that the symbol lacks.
        begin_epoch: number of the first epoch.
        kwargs: arguments of the optimizer.

    >>> import numpy as np
    >>> import gnomon as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("lr_label"))
    >>> model = mx.model.FeedForward(net, num_epoch=60, learning_rate=0.2, numpy_batch_size=8)
    >>> x = np.linspace(-1, 1, 32).reshape(-1, 1)
    >>> model.fit(mx.io.NDArrayIter(x, 2 * x, 8, label_name="lr_label"), eval_metric="mse")
    >>> model.predict(mx.io.NDArrayIter(x[:3], batch_size=1)).astype(float).round(1)
    array([[-2. ], [-1.9], [-1.7]])
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = Uniform(0.01),  # noqa: B008
        numpy_batch_size: int = 128,
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        check_kind("FeedForward", "symbol", symbol, Symbol, "a Symbol")
        self.symbol = symbol
        ctx = [cpu()] if ctx is None else ctx
        self.ctx = [ctx] if isinstance(ctx, Context) else list(ctx)
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.optimizer, self.initializer, self.kwargs = optimizer, initializer, dict(kwargs)
        self.numpy_batch_size = numpy_batch_size
        self.allow_extra_params = allow_extra_params
        self.arg_params = self._own(arg_params, symbol.list_arguments())
        self.aux_params = self._own(aux_params, symbol.list_auxiliary_states())
        self._predictor: Module | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_predictor": None}

    def _own(self, given: Any, names: Sequence[str]) -> dict[str, Any] | None:
        """The given arrays, those of other names too where they are refused later."""
        if given is None:
            return None
        return {n: a for n, a in given.items() if n in names or not self.allow_extra_params}

    def _refuse_extra(self) -> None:
        """Raise ParamError where parameters are not the symbol's and may not be passed over."""
        names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        given = {"arg_params": self.arg_params, "aux_params": self.aux_params}
        for (argument, arrays), known in zip(given.items(), names, strict=True):
            extra = sorted(set(arrays or ()) - set(known))
            if extra and not self.allow_extra_params:
                expected = "names that the symbol has, or allow_extra_params"
                raise ParamError(complaint("FeedForward", argument, expected, extra))

    def _source(self, X: Any, y: Any, train: bool) -> DataIter:
        """An iterator over `X` and `y`, arrays or an iterator themselves."""
        if not isinstance(X, (np.ndarray, nd.NDArray)):
            if not hasattr(X, "provide_data"):
                expected, got = "an array or a DataIter", shown(X)
                raise ArgumentError(complaint("FeedForward", "X", expected, got))
            return X
        if y is None:
            if train:
                raise ParamError(complaint("FeedForward.fit", "y", "labels for the array X", None))
            y = np.zeros(X.shape[0], np.float32)
        y = y.asnumpy() if isinstance(y, nd.NDArray) else np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1 or len(y) != X.shape[0]:
            expected, got = f"{X.shape[0]} numbers, one a row of X", f"shape {y.shape}"
            raise ParamError(complaint("FeedForward", "y", expected, got))
        rows = min(X.shape[0], self.numpy_batch_size)
        last = "roll_over" if train else "pad"
        return NDArrayIter(X, y, rows, shuffle=train, last_batch_handle=last)

    def _checked(self, eval_data: Any) -> DataIter | None:
        """The data to score on: an iterator, or a pair of arrays."""
        if isinstance(eval_data, (tuple, list)) and len(eval_data) == 2:
            return self._source(np.asarray(eval_data[0]), eval_data[1], train=False)
        return eval_data if eval_data is None else self._source(eval_data, None, train=False)

    def _module(self, source: DataIter, logger: Any = logging, **more: Any) -> Module:
        """A module of the symbol for the inputs that `source` provides."""
        data = [desc[0] for desc in source.provide_data]
        labels = [desc[0] for desc in source.provide_label or ()]
        known = self.arg_params or {}
        arguments = self.symbol.list_arguments()
        read = _read_as_labels(self.symbol)
        unknown = [n for n in arguments if n not in (*known, *labels, *data)]
        labels += [n for n in unknown if n in read or n.endswith("label")]
        labels = [name for name in labels if name in arguments]
        return Module(self.symbol, data, labels, logger, self.ctx, **more)

    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        monitor: Any = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
    ) -> None:
        """Train on `X` and `y`, arrays, or `X` an iterator; the parameters become `arg_params`.

        `eval_data`, an iterator or a pair of arrays, is scored after every epoch. Callbacks are
        those of `Module.fit`, but `batch_end_callback` is told how many batches there were.
        """
        if self.num_epoch is None:
            raise ParamError(complaint("FeedForward.fit", "num_epoch", "a number of epochs", None))
        source = self._source(X, y, train=True)
        source.reset()
        if self.epoch_size is not None:
            source = ResizeIter(source, self.epoch_size, reset_internal=False)
        module = self._module(source, logger or logging, work_load_list=work_load_list)
        metric = eval_metric if hasattr(eval_metric, "update_dict") else metrics.create(eval_metric)
        module.fit(
            source,
            self._checked(eval_data),
            metric,
            epoch_end_callback,
            [_counting(each) for each in as_list(batch_end_callback)],
            kvstore,
            self.optimizer,
            self.kwargs,
            eval_end_callback,
            eval_batch_end_callback,
            self.initializer,
            self.arg_params,
            self.aux_params,
            allow_missing=True,
            begin_epoch=self.begin_epoch,
            num_epoch=self.num_epoch,
            monitor=monitor,
        )
        self.arg_params, self.aux_params = module.get_params()
        self._predictor = None

    def _bound(self, source: DataIter, labels: Any = None) -> Module:
        """The module that predicts, bound to what `source` provides and to labels to score by."""
        if self.arg_params is None:
            raise GnomonError("FeedForward: there are no parameters: fit it, or load it")
        self._refuse_extra()
        known = self._predictor
        if known is None or (known.data_shapes, known.label_shapes) != (
            source.provide_data,
            labels or None,
        ):
            known = self._predictor = self._module(source)
            known.bind(source.provide_data, labels or None, False)
            known.set_params(self.arg_params, self.aux_params, allow_extra=True)
        return known

    def predict(
        self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True
    ) -> Any:
        """The outputs for `X`, an array or an iterator, as a NumPy array (a list for several).

        With `return_data` (outputs, data, labels), each an array or a list of them.
        """
        source = self._source(X, None, train=False)
        rows: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        predicted = self._bound(source).iter_predict(source, num_batch, reset)
        for outputs, _, batch in predicted:
            end = batch.data[0].shape[0] - (batch.pad or 0)
            rows[0].append([out.asnumpy() for out in outputs])
            if return_data:
                rows[1].append([a[:end].asnumpy() for a in batch.data])
                rows[2].append([a[:end].asnumpy() for a in batch.label or ()])
        found = [_joined(parts) for parts in rows]
        return tuple(found) if return_data else found[0]

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> float | list[float]:
        """The metric over `X`, an iterator with labels; a list where several were asked for."""
        source = self._source(X, None, train=False)
        module = self._bound(source, source.provide_label)
        asked = metrics.create(eval_metric)
        scored = module.score(source, asked, num_batch, batch_end_callback, reset=reset)
        values = [value for _, value in scored]
        return values if isinstance(asked.get()[0], list) else values[0]

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint; its epoch is `num_epoch` by default."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None or self.arg_params is None:
            got = "no epoch" if epoch is None else "no parameters"
            raise ParamError(complaint("FeedForward.save", "epoch", "a fitted model", got))
        params = self.arg_params, self.aux_params or {}
        save_checkpoint(prefix, epoch, self.symbol, *params, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """The model of a checkpoint; `kwargs` go to the constructor."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        given = {"arg_params": arg_params, "aux_params": aux_params, "begin_epoch": epoch}
        return FeedForward(symbol, ctx=ctx, **{**given, **kwargs})

    @staticmethod
    def create(
        symbol: Any,
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = Uniform(0.01),  # noqa: B008
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        **kwargs: Any,
    ) -> FeedForward:
        """A model, fitted; `kwargs` go to the constructor."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X,
            y,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            logger,
            work_load_list,
            None,
            eval_end_callback,
            eval_batch_end_callback,
        )
        return model


def _joined(batches: list[list[Any]]) -> Any:
    """The arrays of all batches joined by rows: one, or a list of several."""
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return columns[0] if len(columns) == 1 else columns


def _counting(callback: BatchCallback) -> BatchCallback:
    """`callback`, told how many batches there were: `Module.fit` tells the last one's number."""

    def counted(param: BatchEndParam) -> object:
        return callback(param._replace(nbatch=param.nbatch + 1))

    return counted
