"""A module with a symbol for each bucket, like sequences of like length, and shared parameters.

The module of the default bucket owns the parameters; that of another bucket is made when its first
batch comes and borrows their memory and the optimizer. Inputs of the default bucket should be the
largest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import DTypeError, GnomonError, ParamError, complaint
from gnomon.context import cpu
from gnomon.initializer import Uniform
from gnomon.module.base_module import BaseModule
from gnomon.module.checkpoint import load_params, params_file, save_params
from gnomon.module.module import Module
from gnomon.name import NameManager

Generated = tuple[Any, Sequence[str], Sequence[str]]


class BucketingModule(BaseModule):
    """A module that chooses its symbol by the `bucket_key` of a batch.

    Args:
        sym_gen: function of a bucket key that gives (symbol, data names, label names).
        default_bucket_key: the bucket that the module is first bound to.
        logger, context, work_load_list, fixed_param_names, state_names, group2ctxs,
            compression_params: as for `Module`.
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], Generated],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = cpu(),  # noqa: B008
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(logger)
        if default_bucket_key is None:
            raise ParamError(complaint("BucketingModule", "default_bucket_key", "a key", None))
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._given: dict[str, Any] = {
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }
        self._loaded: tuple[Any, Any] | None = None
        self._monitor: Any = None
        self._forget()
        self._module(default_bucket_key)

    def _forget(self) -> None:
        self.binded = False
        self._buckets: dict[Any, Module] = {}
        self._curr_module: Any = None
        self._curr_bucket_key: Any = None

    def _module(self, key: Any) -> Module:
        """A new module for a bucket.

        Names are counted anew for each: layers without a name of their own share parameters.
        """
        with NameManager():
            made = self._sym_gen(key)
        if not (isinstance(made, tuple) and len(made) == 3):
            expected = "a function that gives (symbol, data names, label names)"
            got = f"{type(made).__name__} for the bucket {key!r}"
            raise ParamError(complaint("BucketingModule", "sym_gen", expected, got))
        symbol, data_names, label_names = made
        return Module(symbol, data_names, label_names, **self._given)

    # --- checkpoints ---

    @staticmethod
    def load(
        prefix: str, epoch: int, sym_gen: Any = None, default_bucket_key: Any = None, **kwargs: Any
    ) -> BucketingModule:
        """A module with the parameters of a checkpoint; it must still be bound."""
        if sym_gen is None:
            expected = "the function that gives the symbols"
            raise ParamError(complaint("BucketingModule.load", "sym_gen", expected, None))
        arg_params, aux_params = load_params(prefix, epoch)
        given = {"arg_params": arg_params, "aux_params": aux_params, **kwargs}
        return BucketingModule.load_dict(None, sym_gen, default_bucket_key, **given)

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Any] | None = None,
        sym_gen: Any = None,
        default_bucket_key: Any = None,
        arg_params: Any = None,
        aux_params: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """A module with the given parameters, of a dict of symbols by bucket key or of `sym_gen`.

        Symbols in `sym_dict` take `data` and `softmax_label`.
        """
        if (sym_dict is None) == (sym_gen is None):
            got = "both" if sym_dict else "none"
            expected = "sym_dict or sym_gen"
            raise ParamError(complaint("BucketingModule.load_dict", "sym_dict", expected, got))
        if sym_gen is None:
            sym_gen = lambda key: (sym_dict[key], ("data",), ("softmax_label",))  # noqa: E731
        module = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        module._loaded = arg_params, aux_params
        module.params_initialized = True
        return module

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Write the parameters, `prefix-KEY-symbol.json` for each bucket, and `prefix.buckets`."""
        self._need("save_checkpoint", "binded", "params_initialized")
        for key, module in self._buckets.items():
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        if all(isinstance(key, int) for key in self._buckets):
            nd.save(f"{prefix}.buckets", nd.array(list(self._buckets), dtype="int32"))
        save_params(params_file(prefix, epoch), *self.get_params())

    # --- names and shapes ---

    @property
    def symbol(self) -> Any:
        """The network of the current bucket."""
        self._need("symbol", "binded")
        return self._curr_module.symbol

    @property
    def data_names(self) -> list[str]:
        """Names of the data inputs of the current bucket, before binding of the default one."""
        return self._described().data_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs of the current bucket, before binding of the default one."""
        return self._described().output_names

    def _described(self) -> Module:
        return self._curr_module or self._module(self._default_bucket_key)

    @property
    def data_shapes(self) -> list[Any]:
        """DataDesc of each data input of the current bucket."""
        self._need("data_shapes", "binded")
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        """DataDesc of each label of the current bucket."""
        self._need("label_shapes", "binded")
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output of the current bucket."""
        self._need("output_shapes", "binded")
        return self._curr_module.output_shapes

    # --- binding ---

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
        """Bind the default bucket to these shapes; others are bound when their batches come."""
        if shared_module is not None:
            expected = "None (the buckets share among themselves)"
            got = type(shared_module).__name__
            raise ParamError(complaint("BucketingModule.bind", "shared_module", expected, got))
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        before = self.get_params() if self.binded and self.params_initialized else self._loaded
        self._forget()
        module = self._module(self._default_bucket_key)
        module.bind(
            data_shapes, label_shapes, for_training, inputs_need_grad, False, None, grad_req
        )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._grad_req = grad_req
        self.binded = True
        self._enter(self._default_bucket_key, module)
        self.optimizer_initialized = False
        if before is not None:
            self.set_params(*before)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Make a bucket the current one, binding its module to these shapes where it is new."""
        self._need("switch_bucket", "binded")
        if bucket_key in self._buckets:
            self._curr_module = self._buckets[bucket_key]
            self._curr_bucket_key = bucket_key
            return
        owner = self._buckets[self._default_bucket_key]
        module = self._module(bucket_key)
        lacking = [name for name in module._param_names if name not in owner._param_names]
        if lacking:
            expected = f"the parameters of the default bucket, {owner._param_names}"
            got = f"{lacking} too for the bucket {bucket_key!r}"
            raise ParamError(complaint("BucketingModule", "sym_gen", expected, got))
        how = self.for_training, self.inputs_need_grad, False, owner, self._grad_req
        module.bind(data_shapes, label_shapes, *how)
        self._enter(bucket_key, module)

    def _enter(self, key: Any, module: Module) -> None:
        self._buckets[key] = self._curr_module = module
        self._curr_bucket_key = key
        if self._monitor is not None:
            module.install_monitor(self._monitor)

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Bind the bucket of a batch before it is used; the current one stays current."""
        self._need("prepare", "binded", "params_initialized")
        current = self._curr_bucket_key
        self._switch_to(data_batch)
        self._curr_module.prepare(data_batch, sparse_row_id_fn)
        self.switch_bucket(current, None)

    def _switch_to(self, batch: Any) -> None:
        """Make the bucket of a batch the current one.

        Raises:
            DTypeError: the batch does not say of which bucket it is.
        """
        key = getattr(batch, "bucket_key", None)
        if key is None and getattr(batch, "provide_data", None) is None:
            expected = "a batch with a bucket_key, and the shapes of its data as provide_data"
            raise DTypeError(complaint("BucketingModule", "data_batch", expected, "neither"))
        self.switch_bucket(key, batch.provide_data, batch.provide_label)

    # --- parameters ---

    def init_params(
        self,
        initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give the parameters values, as `Module.init_params`."""
        if self._keeps_params(force_init, arg_params or aux_params):
            return
        self._need("init_params", "binded")
        owner = self._buckets[self._default_bucket_key]
        owner.init_params(
            initializer, arg_params, aux_params, allow_missing, force_init, allow_extra
        )
        for module in self._buckets.values():
            module.params_initialized = True
            module._params_dirty = False
        self.params_initialized = True

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(arg_params, aux_params) by name, on the processor."""
        self._need("get_params", "binded", "params_initialized")
        owner = self._buckets[self._default_bucket_key]
        dirty = any(module._params_dirty for module in self._buckets.values())
        for module in self._buckets.values():
            module._params_dirty = False
        owner._params_dirty = dirty
        return owner.get_params()

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """States of the current bucket."""
        self._need("get_states", "binded", "params_initialized")
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states of the current bucket."""
        self._need("set_states", "binded", "params_initialized")
        self._curr_module.set_states(states, value)

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Choose how `update` changes the parameters; all buckets share the optimizer."""
        self._need("init_optimizer", "binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        owner = self._buckets[self._default_bucket_key]
        self.get_params()  # they are what a store begins with
        owner.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not owner:
                module.borrow_optimizer(owner)
        self.optimizer_initialized = True

    # --- one batch ---

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch by the module of its bucket."""
        self._need("forward", "binded", "params_initialized")
        self._switch_to(data_batch)
        self._curr_module.forward(data_batch, is_train)

    def forward_backward(self, data_batch: Any) -> None:
        """Compute outputs and gradients of a batch by the module of its bucket."""
        self._need("forward_backward", "binded", "params_initialized")
        self._switch_to(data_batch)
        self._curr_module.forward_backward(data_batch)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients of the last forward."""
        self._need("backward", "binded", "params_initialized")
        self._curr_module.backward(out_grads)

    def update(self) -> None:
        """Change the parameters, which all buckets share, by the gradients."""
        self._need("update", "binded", "params_initialized", "optimizer_initialized")
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Outputs of the last forward."""
        self._need("get_outputs", "binded", "params_initialized")
        return self._curr_module.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data inputs of the last backward."""
        if not self.inputs_need_grad:
            raise GnomonError("BucketingModule.get_input_grads: bind with inputs_need_grad=True")
        return self._curr_module.get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Count the outputs of the last forward in a metric."""
        self._need("update_metric", "binded", "params_initialized")
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor watch all buckets, those too that come later."""
        self._need("install_monitor", "binded")
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)
