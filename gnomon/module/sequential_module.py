"""Modules one after the other: the outputs of each are the data of the next."""

from __future__ import annotations

import logging
from typing import Any

from gnomon.base import GnomonError, ParamError, complaint, nearest
from gnomon.initializer import Uniform
from gnomon.io import DataBatch, DataDesc
from gnomon.module.base_module import BaseModule
from gnomon.module.inputs import labels_of

METAS = ("take_labels", "auto_wiring")


class SequentialModule(BaseModule):
    """A chain of modules that trains as one.

    >>> import gnomon as mx
    >>> x = mx.sym.Variable("data")
    >>> features = mx.mod.Module(mx.sym.FullyConnected(x, num_hidden=4, name="a"), label_names=None)
    >>> loss = mx.mod.Module(mx.sym.SoftmaxOutput(x, name="softmax"))
    >>> chain = mx.mod.SequentialModule()
    >>> _ = chain.add(features).add(loss, take_labels=True, auto_wiring=True)
    >>> chain.bind([("data", (2, 3))], [("softmax_label", (2,))])
    >>> chain.output_shapes
    [('softmax_output', (2, 4))]
    """

    META_TAKE_LABELS, META_AUTO_WIRING = METAS

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None
        self._data_shapes: Any = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Put a module behind the others, and give the chain; it has to be bound anew.

        Args:
            take_labels: the labels go to this module; its outputs are measured.
            auto_wiring: the outputs before it become its data whatever their names are.
        """
        for name in kwargs:
            if name not in METAS:
                got = repr(name) + nearest(name, METAS)
                expected = f"one of {list(METAS)}"
                raise ParamError(complaint("SequentialModule.add", name, expected, got))
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _takes_labels(self, index: int) -> bool:
        return bool(self._metas[index].get("take_labels"))

    def _first(self, where: str) -> BaseModule:
        if not self._modules:
            raise GnomonError(f"SequentialModule.{where}: there is no module: call add first")
        return self._modules[0]

    # --- names and shapes ---

    @property
    def data_names(self) -> list[str]:
        """Names of the data inputs of the first module."""
        return self._first("data_names").data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs of the last module."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list[Any]:
        """DataDesc of each data input of the first module."""
        self._need("data_shapes", "binded")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        """DataDesc of each label; None where there are none."""
        self._need("label_shapes", "binded")
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output of the last module."""
        self._need("output_shapes", "binded")
        return self._modules[-1].output_shapes

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
        """Bind every module to the output shapes of the one before."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            expected = "False without for_training"
            where = "SequentialModule.bind"
            raise ParamError(complaint(where, "inputs_need_grad", expected, True))
        if shared_module is not None:
            got = type(shared_module).__name__
            raise ParamError(complaint("SequentialModule.bind", "shared_module", "None", got))
        self._first("bind")
        used = False
        for k, module in enumerate(self._modules):
            labels = label_shapes if self._takes_labels(k) else None
            used = used or self._takes_labels(k)
            if self._metas[k].get("auto_wiring"):
                data_shapes = _wired(k, module, data_shapes)
            need_grad = for_training and (inputs_need_grad or k > 0)
            # By name, here and below, as in MXNet: modules of users may take keywords alone.
            module.bind(
                data_shapes=data_shapes,
                label_shapes=labels,
                for_training=for_training,
                inputs_need_grad=need_grad,
                force_rebind=force_rebind,
                shared_module=None,
                grad_req=grad_req,
            )
            data_shapes = module.output_shapes
        self._label_shapes = label_shapes if used else None
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.binded = True

    # --- parameters ---

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(arg_params, aux_params) of all modules."""
        self._need("get_params", "binded", "params_initialized")
        args: dict[str, Any] = {}
        auxs: dict[str, Any] = {}
        for module in self._modules:
            arg, aux = module.get_params()
            args.update(arg)
            auxs.update(aux)
        return args, auxs

    def init_params(
        self,
        initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give the parameters of every module values, as `Module.init_params`."""
        if self.params_initialized and not force_init:
            return
        self._need("init_params", "binded")
        for module in self._modules:
            module.init_params(
                initializer=initializer,
                arg_params=arg_params,
                aux_params=aux_params,
                allow_missing=allow_missing,
                force_init=force_init,
                allow_extra=True,
            )
        self._refuse_doubles()
        self.params_initialized = True

    def _refuse_doubles(self) -> None:
        """Raise where two modules have parameters of one name."""
        owners: dict[str, int] = {}
        for k, module in enumerate(self._modules):
            for name in (name for params in module.get_params() for name in params):
                if name in owners:
                    expected = "a name of its own for each parameter"
                    got = f"{name!r} in modules {owners[name]} and {k}"
                    raise ParamError(
                        complaint("SequentialModule.init_params", "modules", expected, got)
                    )
                owners[name] = k

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Choose how `update` changes the parameters of every module."""
        self._need("init_optimizer", "binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        for module in self._modules:
            module.init_optimizer(
                kvstore=kvstore,
                optimizer=optimizer,
                optimizer_params=optimizer_params,
                force_init=force_init,
            )
        self.optimizer_initialized = True

    # --- one batch ---

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, module by module."""
        self._need("forward", "binded", "params_initialized")
        label = list(labels_of(data_batch))
        batch = data_batch
        for k, module in enumerate(self._modules):
            module.forward(batch, is_train=is_train)
            if k + 1 < len(self._modules):
                names = [desc[0] for desc in self._modules[k + 1].data_shapes]
                data = module.get_outputs()
                shapes = [DataDesc(n, d.shape) for n, d in zip(names, data, strict=True)]
                batch = DataBatch(
                    data,
                    label,
                    pad=getattr(data_batch, "pad", None),
                    provide_data=shapes,
                    provide_label=getattr(data_batch, "provide_label", None),
                )

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients, from the last module to the first."""
        self._need("backward", "binded", "params_initialized")
        for k in reversed(range(len(self._modules))):
            self._modules[k].backward(out_grads=out_grads)
            if k:
                out_grads = self._modules[k].get_input_grads()

    def update(self) -> None:
        """Change the parameters of every module by its gradients."""
        self._need("update", "binded", "params_initialized", "optimizer_initialized")
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Outputs of the last module."""
        self._need("get_outputs", "binded", "params_initialized")
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data inputs of the first module."""
        self._need("get_input_grads", "binded", "params_initialized")
        if not self.inputs_need_grad:
            raise GnomonError("SequentialModule.get_input_grads: bind with inputs_need_grad=True")
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Count the outputs of the modules that take labels in a metric."""
        self._need("update_metric", "binded", "params_initialized")
        for k, module in enumerate(self._modules):
            if self._takes_labels(k):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor watch every module."""
        self._need("install_monitor", "binded")
        for module in self._modules:
            module.install_monitor(mon)


def _wired(index: int, module: BaseModule, shapes: Any) -> list[DataDesc]:
    """What comes in under the names that `module` gives its data."""
    names = module.data_names
    if len(names) != len(shapes):
        got = f"{len(shapes)} outputs before it"
        expected = f"data for {names} of module {index}"
        raise ParamError(complaint("SequentialModule.bind", "data_shapes", expected, got))
    return [DataDesc(name, tuple(each[1])) for name, each in zip(names, shapes, strict=True)]
