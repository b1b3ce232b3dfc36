"""The module of one symbol."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import initializer as initializers
from gnomon import optimizer as opt
from gnomon.base import GnomonError, ParamError, check_kind, complaint, shown
from gnomon.context import contexts, cpu
from gnomon.ground.files import naming, read_bytes, replacing
from gnomon.initializer import InitDesc, Uniform  # noqa: F401  MXNet's has it
from gnomon.io import DataDesc
from gnomon.module import store as stores
from gnomon.module.base_module import BaseModule
from gnomon.module.checkpoint import load_checkpoint, params_file, save_params
from gnomon.module.executor_group import DataParallelExecutorGroup
from gnomon.module.inputs import (
    data_of,
    described,
    fits,
    found_names,
    known_names,
    labels_of,
    resized,
    work_loads,
)
from gnomon.module.parameters import check_given, check_names, fill, room_for
from gnomon.symbol import Symbol


class Module(BaseModule):
    """A symbol with parameters, bound to one or several devices.

    Args:
        symbol: the network; its arguments that are not data, labels or states are parameters.
        data_names: arguments that take data.
        label_names: arguments that take labels; names the symbol lacks are told and passed over.
        context: a device, or a list of devices that share each batch.
        work_load_list: relative speeds of the devices.
        fixed_param_names: parameters that are not trained.
        state_names: arguments that keep their values from batch to batch.
        group2ctxs: devices of the groups named by the attribute `ctx_group`.
        compression_params: how gradients are compressed between processes.
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = cpu(),  # noqa: B008
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(logger)
        if not isinstance(symbol, Symbol):
            raise TypeError(complaint("Module", "symbol", "a Symbol", shown(symbol)))
        self._symbol = symbol
        self._context = contexts("Module", "context", context)
        self._work_load_list = work_loads(work_load_list, len(self._context))
        self._group2ctxs = group2ctxs
        self._compression_params = compression_params
        arguments = symbol.list_arguments()
        self._data_names = known_names("data_names", data_names, arguments)
        self._label_names = found_names("label_names", label_names, arguments)
        self._state_names = known_names("state_names", state_names, arguments)
        self._fixed_param_names = known_names("fixed_param_names", fixed_param_names, arguments)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._arg_params: dict[str, Any] | None = None
        self._aux_params: dict[str, Any] | None = None
        self._params_dirty = False  # the devices' parameters are newer than _arg_params
        self._exec_group: DataParallelExecutorGroup | None = None
        self._data_shapes: list[DataDesc] | None = None
        self._label_shapes: list[DataDesc] | None = None
        self._takes_labels = False
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore = False
        self._updater: Any = None
        self._preload_opt_states: str | None = None

    # Checkpoints

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module from a checkpoint; `kwargs` go to the constructor. It must still be bound."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        if load_optimizer_states:
            module._preload_opt_states = _states_file(prefix, epoch)
        return module

    def save_checkpoint(
        self,
        prefix: str,
        epoch: int,
        save_optimizer_states: bool = False,
        remove_amp_cast: bool = True,
    ) -> None:
        """Write `prefix-symbol.json`, `prefix-0012.params` and, if asked, `prefix-0012.states`."""
        params = self.get_params()
        self._symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
        save_params(params_file(prefix, epoch), *params)
        logging.info('Saved checkpoint to "%s"', params_file(prefix, epoch))
        if save_optimizer_states:
            self.save_optimizer_states(_states_file(prefix, epoch))
            logging.info('Saved optimizer state to "%s"', _states_file(prefix, epoch))

    def save_optimizer_states(self, fname: str) -> None:
        """Write the optimizer's states to a file."""
        self._need("save_optimizer_states", "optimizer_initialized")
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
        else:
            states = self._updater.get_states()
            with replacing("Module.save_optimizer_states", fname) as stream:
                stream.write(states)

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        self._need("load_optimizer_states", "optimizer_initialized")
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            states = read_bytes("Module.load_optimizer_states", fname)
            with naming(fname):
                self._updater.set_states(states)

    # Names and shapes

    @property
    def data_names(self) -> list[str]:
        """Names of the data inputs."""
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        """DataDesc of each data input."""
        self._need("data_shapes", "binded")
        return self._data_shapes or []

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """DataDesc of each label; None where there are none."""
        self._need("label_shapes", "binded")
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output."""
        return self._group("output_shapes").get_output_shapes()

    def _group(self, where: str) -> DataParallelExecutorGroup:
        self._need(where, "binded")
        assert self._exec_group is not None
        return self._exec_group

    # Binding

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Take memory and compile for inputs of these (name, shape) pairs or DataDescs.

        `inputs_need_grad` asks for gradients of the data; `shared_module` lends its parameters'
        memory. Binding a bound module again does nothing unless `force_rebind`.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise ParamError(
                complaint("Module.bind", "inputs_need_grad", "False without for_training", True)
            )
        if shared_module is not None and not (
            shared_module.binded and shared_module.params_initialized
        ):
            raise GnomonError("Module.bind: shared_module must be bound and initialized first")
        if self.binded and self.params_initialized:
            self._sync_params()
        data = described("data_shapes", data_shapes, self._data_names)
        labels = described("label_shapes", label_shapes, self._label_names, optional=True)
        group = DataParallelExecutorGroup(
            self._symbol,
            self._context,
            self._work_load_list,
            data,
            labels,
            self._param_names,
            for_training,
            inputs_need_grad,
            shared_group=None if shared_module is None else shared_module._exec_group,
            logger=self.logger,
            fixed_param_names=self._fixed_param_names,
            grad_req=grad_req,
            state_names=self._state_names,
            group2ctxs=self._group2ctxs,
        )
        self._bind_params(group, shared_module)
        self._exec_group = group
        self._data_shapes, self._label_shapes = data, labels
        self._takes_labels = bool(labels)  # else those of batches are passed over
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.binded = True  # last: an interrupt before leaves a module that may be bound again
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)

    def _bind_params(self, group: DataParallelExecutorGroup, shared_module: Any) -> None:
        """Give the newly bound executors their parameters, or make room for them."""
        if shared_module is not None:
            self._arg_params, self._aux_params = (
                shared_module._arg_params,
                shared_module._aux_params,
            )
            self.params_initialized = True
        elif self.params_initialized:
            group.set_params(self._arg_params or {}, self._aux_params or {})
        else:
            self._arg_params = room_for(self._param_names, group.param_arrays)
            self._aux_params = room_for(self._aux_names, group.aux_arrays)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Rebind to inputs of other shapes, keeping the parameters."""
        group = self._group("reshape")
        data = described("data_shapes", data_shapes, self._data_names)
        labels = described("label_shapes", label_shapes, self._label_names, optional=True)
        group.reshape(data, labels)
        self._data_shapes, self._label_shapes = data, labels
        self._takes_labels |= bool(labels)

    # Parameters

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(arg_params, aux_params) by name, on the processor; the module's own, not copies."""
        self._need("get_params", "binded", "params_initialized")
        self._sync_params()
        return self._arg_params or {}, self._aux_params or {}

    def set_params(
        self,
        arg_params: dict[str, Any] | None,
        aux_params: dict[str, Any] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Copy the given arrays into the parameters and auxiliary states of their names.

        Names that the symbol lacks are passed over, as in MXNet; but those of a partial set
        (`allow_missing`) are an error unless `allow_extra`.
        """
        if allow_missing and not allow_extra and (force_init or not self.params_initialized):
            self._need("set_params", "binded")
            check_names("arg_params", self._arg_params or {}, arg_params)
            check_names("aux_params", self._aux_params or {}, aux_params)
        if allow_missing and self.params_initialized:
            self._params_dirty = True  # others stay as they are, averages that forward moved too
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def _sync_params(self) -> None:
        if self._params_dirty and self._exec_group is not None:
            self._exec_group.get_params(self._arg_params or {}, self._aux_params or {})
            self._params_dirty = False

    def init_params(
        self,
        initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give the parameters values: those given by name, the others by the initializer.

        Initialized parameters stay as they are unless `force_init`. Arrays of names that the symbol
        lacks are passed over, whatever `allow_extra` says; with `allow_missing` not all need be
        given.
        """
        if self._keeps_params(force_init, arg_params or aux_params):
            return
        group = self._group("init_params")
        self._sync_params()
        initializer = initializers.create(initializer)
        if initializer is not None and not callable(initializer):
            expected = "an initializer or its name"
            got = shown(initializer)
            raise ParamError(complaint("Module.init_params", "initializer", expected, got))
        mine = self._arg_params or {}, self._aux_params or {}
        given = arg_params, aux_params
        for own, theirs in zip(mine, given, strict=True):
            check_given(own, theirs, allow_missing)
        for own, theirs in zip(mine, given, strict=True):
            fill(own, theirs, initializer, self._symbol.attr_dict())
        group.set_params(*mine)
        self._params_dirty = False
        self.params_initialized = True

    # Optimizer

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Choose how `update` changes the parameters: an optimizer, on a store or beside it.

        Unless `optimizer_params` says otherwise, gradients are divided by the batch size.
        """
        self._need("init_optimizer", "binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        self._sync_params()
        group = self._group("init_optimizer")
        params = self._arg_params or {}
        store, on_store = stores.choose_store(kvstore, len(self._context), params)
        self._optimizer = self._made_optimizer(optimizer, optimizer_params, store, on_store)
        self._kvstore, self._update_on_kvstore = store, on_store
        self._updater = None if on_store else opt.get_updater(self._optimizer)
        if store is not None:
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            if on_store:
                store.set_optimizer(self._optimizer)
            stores.start_store(store, group.param_arrays, params, self._param_names, on_store)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _made_optimizer(self, optimizer: Any, settings: Any, store: Any, on_store: bool) -> Any:
        batch_size = self._group("init_optimizer").batch_size
        if store is not None and "dist" in store.type and "_sync" in store.type:
            batch_size *= store.num_workers
        count = 1 if on_store else len(self._context)
        names = {
            i * count + device: name
            for i, name in enumerate(self._param_names)
            for device in range(count)
        }
        if isinstance(optimizer, str):
            known = {"sym": self.symbol, "param_idx2name": names, "rescale_grad": 1.0 / batch_size}
            return opt.create(optimizer, **known | dict(settings))
        if not isinstance(optimizer, opt.Optimizer):
            got = type(optimizer).__name__
            expected = "the name of an optimizer, or an Optimizer"
            raise ParamError(complaint("Module.init_optimizer", "optimizer", expected, got))
        if optimizer.rescale_grad != 1.0 / batch_size:
            warnings.warn(
                "Module.init_optimizer: the optimizer has rescale_grad="
                f"{optimizer.rescale_grad:g}, not 1/batch size={1.0 / batch_size:g}: "
                "is this intended?",
                stacklevel=3,
            )
        if not optimizer.idx2name:
            optimizer.idx2name = names
        return optimizer

    def borrow_optimizer(self, shared_module: Any) -> None:
        """Update by the optimizer, with the states, of another module."""
        check_kind("borrow_optimizer", "shared_module", shared_module, Module, "a Module")
        shared_module._need("borrow_optimizer", "optimizer_initialized")
        self._optimizer = shared_module._optimizer
        self._kvstore = shared_module._kvstore
        self._update_on_kvstore = shared_module._update_on_kvstore
        self._updater = shared_module._updater
        self.optimizer_initialized = True

    # One batch

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, rebinding if its shapes are new."""
        self._need("forward", "binded", "params_initialized")
        self._fitted(data_batch).forward(data_batch, is_train)

    def forward_backward(self, data_batch: Any) -> None:
        """Compute outputs and gradients of one batch, in one native call where that is legal."""
        kind = type(self)
        if kind.forward is not Module.forward or kind.backward is not Module.backward:
            super().forward_backward(data_batch)
            return
        self._need("forward_backward", "binded", "params_initialized")
        self._fitted(data_batch).forward_backward(data_batch)

    def _fitted(self, batch: Any) -> DataParallelExecutorGroup:
        """The executors, bound to the shapes of `batch`."""
        if not (fits(self._data_shapes, data_of(batch)) and self._labels_fit(labels_of(batch))):
            self.reshape(*self._shapes_of(batch))
        return self._exec_group or self._group("forward")

    def _labels_fit(self, labels: Any) -> bool:
        return not labels or not self._takes_labels or fits(self._label_shapes, labels)

    def _shapes_of(self, batch: Any) -> tuple[Any, Any]:
        """What the batch is; a batch may bring its own descriptions, and may lack labels."""
        arrays = labels_of(batch)
        data = getattr(batch, "provide_data", None) or resized(self.data_shapes, batch.data)
        own = getattr(batch, "provide_label", None)
        if own or not arrays or not self._takes_labels:
            return data, own if self._takes_labels else None
        names = [(name, ()) for name in self._label_names]
        labels = self._label_shapes or described("label_shapes", names, self._label_names)
        return data, resized(labels, arrays)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients; `out_grads` are those of outputs that are no losses."""
        self._need("backward", "binded", "params_initialized")
        self._group("backward").backward(out_grads)

    def update(self) -> None:
        """Change the parameters by the gradients."""
        self._need("update", "binded", "params_initialized", "optimizer_initialized")
        self._params_dirty = True
        updater = None if self._update_on_kvstore else self._updater
        self._group("update").update(self._kvstore, updater)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Outputs, joined over the devices, or a list per device for each."""
        self._need("get_outputs", "binded", "params_initialized")
        return self._group("get_outputs").get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data inputs; the module must be bound with `inputs_need_grad`."""
        self._need("get_input_grads", "binded", "params_initialized")
        return self._group("get_input_grads").get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """States, joined over the devices, or a list per device for each."""
        self._need("get_states", "binded", "params_initialized")
        return self._group("get_states").get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states: to `states` (a list per device for each), or all to one value."""
        self._need("set_states", "binded", "params_initialized")
        self._group("set_states").set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Count the outputs against `labels`, arrays of the whole batch, in a metric."""
        self._group("update_metric").update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor watch the executors."""
        self._group("install_monitor").install_monitor(mon)


def _states_file(prefix: str, epoch: int) -> str:
    return params_file(prefix, epoch).removesuffix("params") + "states"
