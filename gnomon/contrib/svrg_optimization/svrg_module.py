"""`SVRGModule`: a module that trains by stochastic variance reduced gradients.

Johnson and Zhang, Accelerating Stochastic Gradient Descent using Predictive Variance Reduction
(2013): a step follows `grad(w) - grad(w0) + mean`, where `w0` are the weights of the last full
pass, both gradients are those of the batch, and `mean` is that of all batches at `w0`.
"""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.module import Module

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A module whose gradients are corrected by a full gradient every `update_freq` epochs.

    Args:
        symbol, and all others: as for `Module`.
        update_freq: after how many epochs `fit` takes the gradient of all data anew.

    >>> import numpy as np
    >>> import gnomon as mx
    >>> x = np.linspace(-1, 1, 32, dtype="float32").reshape(-1, 1)
    >>> data = mx.io.NDArrayIter(x, 2 * x, 8, label_name="goal")
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(net, mx.sym.var("goal"))
    >>> model = SVRGModule(net, label_names=["goal"], update_freq=2)
    >>> model.fit(data, eval_metric="mse", num_epoch=20, optimizer_params={"learning_rate": 0.5})
    >>> bool(abs(model.get_params()[0]["fc_weight"].asscalar() - 2) < 0.01)
    True

    Raises:
        ParamError: `update_freq` is no whole number above 0.
    """

    def __init__(self, symbol: Any, *args: Any, update_freq: int | None = None, **kwargs: Any):
        if not isinstance(update_freq, int) or isinstance(update_freq, bool) or update_freq < 1:
            expected = "a number of epochs above 0"
            raise ParamError(complaint("SVRGModule", "update_freq", expected, repr(update_freq)))
        super().__init__(symbol, *args, **kwargs)
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, *args, **kwargs)  # at the weights of the last full pass
        self._param_dict: list[dict[str, Any]] = []  # on each device, the mean of all batches

    def bind(self, data_shapes: Any, label_shapes: Any = None, *args: Any, **kwargs: Any) -> None:
        """As `Module.bind`; gradients of inputs are not corrected."""
        super().bind(data_shapes, label_shapes, *args, **kwargs)
        self._bind_aux()

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """As `Module.reshape`."""
        super().reshape(data_shapes, label_shapes)
        self._mod_aux.reshape(data_shapes, label_shapes)

    def _bind_aux(self) -> None:
        if self.for_training and not self._mod_aux.binded:
            self._mod_aux.bind(self.data_shapes, self.label_shapes)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """As `Module.forward`; in training at the weights of the last full pass too."""
        super().forward(data_batch, is_train)
        if (self.for_training if is_train is None else is_train) and self._param_dict:
            self._mod_aux.forward(data_batch, is_train=True)

    def forward_backward(self, data_batch: Any) -> None:
        """Compute the outputs of a batch and its corrected gradients."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients, corrected where there was a full pass."""
        super().backward(out_grads)
        if not self._param_dict:
            return
        self._mod_aux.backward(out_grads)
        own, other = self._group("backward"), self._mod_aux._group("backward")
        names = [name for name in own.arg_names if name in own.param_names]
        for name, grads, special in zip(names, own.grad_arrays, other.grad_arrays, strict=True):
            for grad, old, means in zip(grads, special, self._param_dict, strict=True):
                if grad is not None:
                    grad += means[name] - old

    def update_full_grads(self, train_data: Any) -> None:
        """Take the mean of the gradients of all batches at the weights as they are now.

        Rows that fill up the last batch count as a part of it, as in MXNet.
        """
        self._mod_aux.init_params(arg_params={}, allow_missing=True, initializer=None)
        self._mod_aux.set_params(*self.get_params())
        group = self._mod_aux._group("update_full_grads")
        names = [name for name in group.arg_names if name in group.param_names]
        table = [(n, g) for n, g in zip(names, group.grad_arrays, strict=True) if g[0] is not None]
        means = [
            {name: grads[k].zeros_like() for name, grads in table}
            for k in range(len(group.contexts))
        ]
        count = 0.0
        train_data.reset()
        for batch in train_data:
            self._mod_aux.forward_backward(batch)
            for name, grads in table:
                for mean, grad in zip(means, grads, strict=True):
                    mean[name] += grad
            count += 1 - (batch.pad or 0) / group.batch_size
        for mean in means:
            for array in mean.values():
                array /= count
        self._param_dict = means

    def _fit_epoch(self, given: dict[str, Any], eval_metric: Any, epoch: int) -> None:
        if epoch % self.update_freq == 0:
            self.update_full_grads(given["train_data"])
            given["train_data"].reset()
        super()._fit_epoch(given, eval_metric, epoch)

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """As `Module.prepare`, for both sets of weights."""
        super().prepare(data_batch, sparse_row_id_fn)
        if self._mod_aux.params_initialized:
            self._mod_aux.prepare(data_batch, sparse_row_id_fn)
