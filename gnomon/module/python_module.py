"""Modules whose computation is Python: a loss, or any other part of a chain without parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import ParamError, ShapeError, complaint, shown
from gnomon.initializer import Uniform
from gnomon.module.base_module import BaseModule
from gnomon.module.inputs import described, labels_of


class PythonModule(BaseModule):
    """Base of modules written in Python, without parameters.

    A subclass defines `_compute_output_shapes`, `forward`, `backward`, `get_outputs` and
    `get_input_grads`.

    Args:
        data_names, label_names, output_names: names of inputs and outputs.
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ) -> None:
        super().__init__(logger)
        self._data_names = list(data_names)
        self._label_names = list(label_names or ())
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        """Names of the data inputs."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[Any]:
        """DataDesc of each data input."""
        return self._data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        """DataDesc of each label; None where there are none."""
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output."""
        return self._output_shapes

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output, from `data_shapes` and `label_shapes`."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} must define _compute_output_shapes()")

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """None: ({}, {})."""
        return {}, {}

    def init_params(
        self,
        initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Nothing: there are no parameters."""
        self.params_initialized = True

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Nothing: there are no parameters."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Nothing: there are no parameters."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Count the outputs in a metric; a module without labels is not measured."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            expected = "False (the module has one device)"
            raise ParamError(complaint("PythonModule.update_metric", "pre_sliced", expected, True))
        eval_metric.update(labels, self.get_outputs())

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
        """Fix the shapes of inputs and outputs."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            expected = "'write' (Python gradients are written)"
            raise ParamError(complaint("PythonModule.bind", "grad_req", expected, repr(grad_req)))
        self._data_shapes = described("data_shapes", data_shapes, self._data_names)
        self._label_shapes = described(
            "label_shapes", label_shapes, self._label_names, optional=True
        )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.binded = True
        self._output_shapes = self._compute_output_shapes()


class PythonLossModule(PythonModule):
    """A loss at the end of a chain: its output is its data, its gradient comes from Python.

    Args:
        name: begins the name of the output.
        data_names, label_names: one name each.
        grad_func: function of (scores, labels) that gives the gradient of the scores, as an
            NDArray or for `nd.array`. Instead a subclass may define `_backward_impl`, which sets
            `self._scores_grad`.
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        for argument, names in (("data_names", data_names), ("label_names", label_names)):
            if len(names) != 1:
                raise ParamError(complaint("PythonLossModule", argument, "one name", names))
        if grad_func is not None and not callable(grad_func):
            got = shown(grad_func)
            raise ParamError(complaint("PythonLossModule", "grad_func", "a function", got))
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        self._name, self._grad_func = name, grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(self._output_names[0], self._data_shapes[0][1])]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Keep the scores, and in training the labels."""
        self._need("forward", "binded")
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            labels = labels_of(data_batch)
            if not labels:
                got = f"{data_batch!s:.80}"
                expected = "a batch with labels (add the module with take_labels=True)"
                raise ParamError(complaint("PythonLossModule.forward", "data_batch", expected, got))
            self._labels = labels[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The scores; a list for the one device without `merge_multi_context`."""
        return [self._scores] if merge_multi_context else [[self._scores]]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradient of the scores; as for every loss none comes from above."""
        self._need("backward", "binded")
        if out_grads:
            got = f"{len(out_grads)} arrays"
            raise ParamError(complaint("PythonLossModule.backward", "out_grads", "None", got))
        self._backward_impl()

    def _backward_impl(self) -> None:
        """Set `_scores_grad` from `_scores` and `_labels`."""
        if self._grad_func is None:
            name = type(self).__name__
            raise NotImplementedError(f"{name}: give grad_func, or define _backward_impl()")
        grad = self._grad_func(self._scores, self._labels)
        grad = grad if isinstance(grad, nd.NDArray) else nd.array(grad)
        if grad.shape != self._scores.shape:
            where, expected = "PythonLossModule.backward", f"shape {self._scores.shape}"
            raise ShapeError(complaint(where, "the result of grad_func", expected, grad.shape))
        self._scores_grad = grad

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradient of the scores."""
        self._need("get_input_grads", "binded")
        return [self._scores_grad] if merge_multi_context else [[self._scores_grad]]
