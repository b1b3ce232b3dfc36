"""`Constant`: an array of a network that is not trained."""

from __future__ import annotations

import warnings
from typing import Any

from gnomon import initializer
from gnomon import ndarray as nd
from gnomon.gluon.parameter.parameter import Parameter


class Constant(Parameter):
    """An array of a network that is not trained.

    >>> c = Constant("scale", [1.0, 2.0])
    >>> c.initialize()
    >>> c.data().asnumpy(), c.grad_req
    (array([1., 2.], dtype=float32), 'null')
    """

    def __init__(self, name: str, value: Any) -> None:
        self.value = value if isinstance(value, nd.NDArray) else nd.array(value)
        super().__init__(
            name, "null", self.value.shape, self.value.dtype, init=Value(self.value)
        )  # fmt: skip

    @property
    def grad_req(self) -> str:
        """Always 'null'."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            text = f"Constant {self.name!r}: argument 'grad_req': expected 'null', got {req!r}"
            warnings.warn(f"{text}, which is ignored", stacklevel=2)


@initializer.register
class Value(initializer.Initializer):
    """Fills an array with the elements of another one."""

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def dumps(self) -> str:
        """The name alone: the elements are in the file of parameters."""
        return '["value", {}]'

    def _init_weight(self, name: str, arr: Any) -> None:
        arr[:] = self.value
