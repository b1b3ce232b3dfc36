"""`mx.executor_manager`: executors on several devices, as programs older than `mx.mod` use them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.context import Context
from gnomon.io import DataDesc
from gnomon.module.executor_group import DataParallelExecutorGroup as _Group
from gnomon.module.executor_group import split_batch
from gnomon.module.inputs import data_of
from gnomon.ndarray import NDArray
from gnomon.symbol import Symbol

__all__ = ["DataDesc", "DataParallelExecutorGroup", "DataParallelExecutorManager"]

Slices = Sequence[slice]
Targets = Sequence[tuple[slice, Any]]  # rows of a batch, and the array that they go to


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """The rows of a batch that each device gets."""
    return split_batch(batch_size, work_load_list)


def _load_general(data: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copy each array into its target: an array, or rows of it into those of a list."""
    for source, target in zip(data, targets, strict=True):
        if isinstance(target, NDArray):
            source.copyto(target)
        else:
            for rows, part in target:
                source[rows].copyto(part)


def _load_data(batch: Any, targets: Sequence[NDArray | Targets]) -> None:
    """Copy a batch's data to where each device reads them."""
    _load_general(batch.data, targets)


def _load_label(batch: Any, targets: Sequence[NDArray | Targets]) -> None:
    """Copy a batch's labels to where each device reads them."""
    _load_general(batch.label, targets)


def _check_arguments(symbol: Any) -> None:
    """Raises ParamError where two arguments or auxiliary states of a network have one name."""
    for names in (symbol.list_arguments(), symbol.list_auxiliary_states()):
        for name in names:
            if names.count(name) > 1:
                got = f"{name!r} twice"
                raise ParamError(complaint("Symbol", "arguments", "a name for each", got))


class DataParallelExecutorGroup:
    """Executors of one symbol, each fed with a slice of every batch.

    Args:
        sym: the network.
        arg_names: its arguments, in order.
        param_names: those of them that are parameters.
        ctx: a device for each slice.
        slices: the rows of a batch for each device.
        train_data: an iterator that says the shapes of batches.
        shared_group: a group whose parameters are used.
    """

    def __init__(
        self,
        sym: Any,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        ctx: Sequence[Context],
        slices: Slices,
        train_data: Any,
        shared_group: DataParallelExecutorGroup | None = None,
    ) -> None:
        _check("DataParallelExecutorGroup", sym, arg_names)
        check_kind(
            "DataParallelExecutorGroup", "slices", slices, (list, tuple), "a slice for each device"
        )
        for part in slices:
            check_kind("DataParallelExecutorGroup", "slices", part, slice, "slices")
        self.sym, self.slices = sym, list(slices)
        shared: _Group | None = None if shared_group is None else shared_group._group
        data, labels = (list(map(_desc, given or ())) for given in _shapes(train_data))
        load = [part.stop - part.start for part in slices]
        self._group: _Group = _Group(sym, ctx, load, data, labels, param_names, True, False, shared)
        self._batch: Any = None

    @property
    def train_execs(self) -> list[Any]:
        """The executors, one for each device."""
        return self._group.execs

    @property
    def param_arrays(self) -> list[list[Any]]:
        """Each parameter on every device."""
        return self._group.param_arrays

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """The gradient of each parameter on every device."""
        return self._group.grad_arrays

    @property
    def aux_arrays(self) -> list[list[Any]]:
        """Each auxiliary state on every device."""
        return self._group.aux_arrays

    def load_data_batch(self, data_batch: Any) -> None:
        """Take the batch that `forward` computes; DTypeError where it has no data."""
        data_of(data_batch)
        self._batch = data_batch

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs of the batch that was loaded.

        Raises:
            ParamError: none was.
        """
        if self._batch is None:
            raise ParamError("forward: load a batch first, by load_data_batch")
        self._group.forward(self._batch, is_train)

    def backward(self) -> None:
        """Compute the gradients; the outputs are losses."""
        self._group.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Have a metric see the labels and outputs of the batch."""
        self._group.update_metric(metric, labels, pre_sliced)


class DataParallelExecutorManager:
    """A network on several devices: parameters, batches, gradients.

    Args:
        symbol: the network.
        ctx: a device, or a list of devices that share each batch.
        train_data: an iterator that says the shapes of batches.
        arg_names, param_names, aux_names: the symbol's lists; read off it where None.
        work_load_list: how much of a batch each device gets.
        logger: where warnings go.
        sym_gen: a symbol for each bucket, from its key.

    >>> import numpy as np
    >>> import gnomon as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(net, mx.sym.var("goal"))
    >>> data = mx.io.NDArrayIter(np.ones((4, 2)), np.zeros(4), 4, label_name="goal")
    >>> manager = DataParallelExecutorManager(net, mx.cpu(), data)
    >>> manager.set_params({"fc_weight": mx.nd.ones((1, 2)), "fc_bias": mx.nd.zeros(1)}, {})
    >>> manager.load_data_batch(next(data))
    >>> manager.forward(is_train=True)
    >>> manager.backward()
    >>> manager.grad_arrays[0][0].asnumpy()
    array([[8., 8.]], dtype=float32)
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Any,
        train_data: Any,
        arg_names: Sequence[str] | None = None,
        param_names: Sequence[str] | None = None,
        aux_names: Sequence[str] | None = None,
        work_load_list: Sequence[float] | None = None,
        logger: Any = None,
        sym_gen: Callable[[Any], Any] | None = None,
    ) -> None:
        where = "DataParallelExecutorManager"
        check_kind(where, "symbol", symbol, Symbol, "a Symbol")
        self.ctx = _devices(where, ctx)
        loads = list(work_load_list or [1] * len(self.ctx))
        if len(loads) != len(self.ctx):
            expected = f"{len(self.ctx)} numbers, one for each device"
            raise ParamError(complaint(where, "work_load_list", expected, loads))
        given = {desc.name for descs in _shapes(train_data) for desc in map(_desc, descs or ())}
        self.arg_names = list(arg_names or symbol.list_arguments())
        self.param_names = list(param_names or (n for n in self.arg_names if n not in given))
        self.aux_names = list(aux_names or symbol.list_auxiliary_states())
        self.logger = logger or logging.getLogger("gnomon")
        self.symbol, self.sym_gen = symbol, sym_gen
        self.slices = split_batch(train_data.batch_size, loads)
        self.execgrp = self._made(symbol, train_data)
        self._groups = {getattr(train_data, "default_bucket_key", None): self.execgrp}
        self.curr_execgrp = self.execgrp
        self._monitor: Any = None

    def _made(
        self, symbol: Any, data: Any, shared: DataParallelExecutorGroup | None = None
    ) -> DataParallelExecutorGroup:
        names = symbol.list_arguments()
        return DataParallelExecutorGroup(
            symbol, names, self.param_names, self.ctx, self.slices, data, shared
        )

    @property
    def param_arrays(self) -> list[list[Any]]:
        """Each parameter on every device."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """The gradient of each parameter on every device."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[Any]]:
        """Each auxiliary state on every device."""
        return self.execgrp.aux_arrays

    def install_monitor(self, monitor: Any) -> None:
        """Have a `mx.mon.Monitor` see what executors compute.

        Raises:
            ParamError: the network comes from `sym_gen`, whose executors are made later.
        """
        if self.sym_gen is not None:
            raise ParamError(complaint("install_monitor", "sym_gen", "None", "a function"))
        self.execgrp._group.install_monitor(monitor)

    def set_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy parameters and states to all devices; others than the network's are passed over."""
        self.execgrp._group.set_params(arg_params, aux_params, allow_extra=True)

    def copy_to(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy the means over the devices into these arrays."""
        self.execgrp._group.get_params(arg_params, aux_params)

    def load_data_batch(self, data_batch: Any) -> None:
        """Take the next batch; with `sym_gen`, the executors of its bucket."""
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self._groups:
                made = self._made(self.sym_gen(key), data_batch, self.execgrp)
                self._groups[key] = made
            self.curr_execgrp = self._groups[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs of the batch."""
        self.curr_execgrp.forward(is_train)

    def backward(self) -> None:
        """Compute the gradients."""
        self.curr_execgrp.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Have a metric see the labels and outputs of the batch."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)


def _devices(where: str, ctx: Any) -> list[Context]:
    """A list of devices; TypeError where it is something else."""
    found = [ctx] if isinstance(ctx, Context) else ctx
    check_kind(where, "ctx", found, (list, tuple), "a Context, or a list of them")
    for each in found:
        check_kind(where, "ctx", each, Context, "Contexts")
    return list(found)


def _shapes(data: Any) -> tuple[Any, Any]:
    """What an iterator provides; TypeError where it is none."""
    if not (hasattr(data, "provide_data") and hasattr(data, "provide_label")):
        expected, got = "a DataIter", shown(data)
        raise TypeError(complaint("executor_manager", "train_data", expected, got))
    return data.provide_data, data.provide_label


def _desc(given: Any) -> DataDesc:
    return given if isinstance(given, DataDesc) else DataDesc(*given)


def _check(where: str, symbol: Any, names: Sequence[str]) -> None:
    """Raises ParamError where a name is twice among a network's arguments, or is none of them."""
    check_kind(where, "sym", symbol, Symbol, "a Symbol")
    check_kind(where, "arg_names", names, (list, tuple), "a list of names")
    _check_arguments(symbol)
    known = symbol.list_arguments()
    if unknown := [n for n in names if n not in known]:
        raise ParamError(complaint(where, "arg_names", f"among {known}", unknown[0]))
