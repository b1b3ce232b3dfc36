"""What a module must say about one batch; everything else follows from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gnomon.base import GnomonError
from gnomon.ground.arguments import CheckedArguments


def required(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that raises, naming itself, unless a subclass defines it.

    A module that is never asked for its gradients need not have any: so no abstract methods.
    """

    @functools.wraps(method)
    def missing(self: Any, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define {method.__name__}")

    return missing


class Computation(CheckedArguments):
    """A computation with parameters: shapes, parameters, forward, backward, update."""

    @property
    @required
    def data_names(self) -> list[str]:
        """Names of the data inputs."""

    @property
    @required
    def output_names(self) -> list[str]:
        """Names of the outputs."""

    @property
    @required
    def data_shapes(self) -> list[Any]:
        """DataDesc of each data input, once bound."""

    @property
    @required
    def label_shapes(self) -> list[Any] | None:
        """DataDesc of each label, once bound; None where there are none."""

    @property
    @required
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output, once bound."""

    @required
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
        """Take memory and compile for inputs of these shapes."""

    @required
    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give the parameters values: those given by name, the others by the initializer."""

    @required
    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(arg_params, aux_params) by name, on the processor."""

    @required
    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Choose how `update` changes the parameters."""

    @required
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""

    @required
    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients of the last forward."""

    @required
    def update(self) -> None:
        """Change the parameters by the gradients of the last backward."""

    @required
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Outputs of the last forward."""

    @required
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data inputs of the last backward."""

    @required
    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Count the outputs of the last forward in a metric."""

    @required
    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor watch the computation."""

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """States carried from batch to batch: none, unless the module has some."""
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states carried from batch to batch."""
        if states or value is not None:
            raise GnomonError(f"{type(self).__name__}.set_states: this module has no states")
