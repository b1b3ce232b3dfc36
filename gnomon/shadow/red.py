"""Reducers by name: `red.sum`, `red.maximum`, `red.minimum`, ... and those that users make.

>>> import numpy as np
>>> from gnomon import shadow
>>> @shadow.op
... def larger_in_size(a, b):
...     return a if abs(a) > abs(b) else b
>>> extreme = shadow.red.make(larger_in_size, 0.0)
>>> x = shadow.Tensor(np.array([[1, -5, 2], [3, 0, -2]], np.float32))
>>> y = shadow.TensorContainer((2,))
>>> y[:] = shadow.reduce_with_axis(extreme, x, 1)
>>> y.numpy()
array([-5.,  3.], dtype=float32)
"""

from gnomon.expr import reducer
from gnomon.expr.reducer import Reducer
from gnomon.expr.reducer import from_operator as make

sum = reducer.SUM
prod = reducer.PROD
maximum = reducer.MAXIMUM
minimum = reducer.MINIMUM
bitwise_and = reducer.AND
bitwise_or = reducer.OR
bitwise_xor = reducer.XOR

__all__ = [
    "Reducer", "bitwise_and", "bitwise_or", "bitwise_xor", "make", "maximum", "minimum", "prod",
    "sum",
]  # fmt: skip
