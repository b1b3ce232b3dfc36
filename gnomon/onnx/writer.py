"""The ONNX graph that an export makes, and what a translation may ask of the node it translates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import GnomonError
from gnomon.dtype import DType
from gnomon.graph.node import Entry, Node
from gnomon.onnx.library import element, onnx
from gnomon.onnx.table import Unsupported

OPSET = 17
IR_VERSION = 8


class Free(NamedTuple):
    """A size that an input decides: what it is for two different sizes of the inputs."""

    one: int
    other: int


Size = int | Free


def times(size: Size, factor: int) -> Size:
    """A size multiplied by a number."""
    return size * factor if isinstance(size, int) else Free(size.one * factor, size.other * factor)


class Writer:
    """An ONNX graph in the making: nodes in order, constants by name, names that are taken."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.names = set(taken)
        self.sources: dict[Free, tuple[str, int]] = {}  # the axis of an input that has this size
        self._interned: dict[Any, str] = {}
        self.prefix = ""

    def name(self, wish: str) -> str:
        """`wish`, with a number behind where it is taken."""
        name, k = wish, 0
        while name in self.names:
            k += 1
            name = f"{wish}_{k}"
        self.names.add(name)
        return name

    def many(self, kind: str, count: int, *inputs: str, **attrs: Any) -> list[str]:
        """Add a node of `count` outputs; their names. Attributes that are None stay out."""
        given = {k: v for k, v in attrs.items() if v is not None}
        outputs = [self.name(f"{self.prefix}/{kind}") for _ in range(count)]
        node = onnx("helper").make_node(kind, inputs, outputs, outputs[0], **given)
        self.nodes.append(node)
        return outputs

    def op(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """Add a node of one output; its name."""
        return self.many(kind, 1, *inputs, **attrs)[0]

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """The name of a constant of this value; equal ones are kept once."""
        array = np.asarray(value, dtype.numpy if isinstance(dtype, DType) else dtype)
        key = array.dtype.str, array.dtype.name, array.shape, array.tobytes()
        if key not in self._interned:
            name = self._interned[key] = self.name(f"{self.prefix}/const")
            self.constants[name] = array
        return self._interned[key]

    def cast(self, x: str, dtype: DType | str) -> str:
        """`x` as another dtype."""
        return self.op("Cast", x, to=element(dtype))

    def rename(self, old: str, new: str) -> None:
        """Give an output of one of the last nodes, which later ones may read, a new name."""
        self.names.discard(old)
        for node in reversed(self.nodes):
            node.input[:] = [new if n == old else n for n in node.input]
            if old in node.output:
                if len(node.output) == 1:
                    node.name = new
                node.output[:] = [new if n == old else n for n in node.output]
                return

    def axes_op(self, kind: str, x: str, axes: Sequence[int], **attrs: Any) -> str:
        """`Squeeze`, `Unsqueeze` or `ReduceSum`, which take axes as an input."""
        return self.op(kind, x, self.const(list(axes)), **attrs)

    def slice(self, x: str, axes: Sequence[int], begin: Any, end: Any, step: Any = None) -> str:
        """`x` from `begin` to `end` along axes, in steps."""
        steps = [self.const(list(step))] if step is not None else []
        parts = (self.const(list(v)) for v in (begin, end, axes))
        return self.op("Slice", x, *parts, *steps)

    def tensor(self, array: np.ndarray[Any, Any]) -> Any:
        """An array as the value of an attribute."""
        return onnx("numpy_helper").from_array(array)

    def sizes(self, codes: Sequence[Size]) -> str:
        """The name of a shape: numbers, and sizes that are read from the inputs.

        Raises:
            Unsupported: no input has a size that is left open.
        """
        if all(isinstance(size, int) for size in codes):
            return self.const(list(codes))
        parts = []
        for size in codes:
            if isinstance(size, int):
                parts.append(self.const([size]))
                continue
            if size not in self.sources:
                raise Unsupported("a size that is left open, and that no input has")
            name, axis = self.sources[size]
            parts.append(self.op("Gather", self.op("Shape", name), self.const([axis])))
        return self.op("Concat", *parts, axis=0)

    def reshape(self, x: str, old: Sequence[Size], new: Sequence[Size]) -> str:
        """`x`, of shape `old`, in the shape `new`.

        Sizes that are left open are copied where they stand at the same place, or are what is left,
        or are read from an input.

        Raises:
            Unsupported: several of them can be none of these.
        """
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        codes: list[Size] = [
            0 if k < same and isinstance(s, Free) else s for k, s in enumerate(new)
        ]
        opened = [k for k, size in enumerate(codes) if isinstance(size, Free)]
        if opened:
            derived = [k for k in opened if codes[k] not in self.sources]
            codes[(derived or opened)[0]] = -1
        return self.op("Reshape", x, self.sizes(codes))


class Call:
    """A node that is translated: its operator with parameters, and the names of what it reads."""

    def __init__(
        self,
        node: Node,
        inputs: Sequence[str],
        shapes: Mapping[Entry, Sequence[Size]],
        types: Mapping[Entry, DType],
        values: Callable[[Entry], np.ndarray[Any, Any] | None],
    ) -> None:
        self.node, self.op, self.inputs = node, node.op, list(inputs)
        self._entries = node.inputs
        self._shapes, self._types, self._values = shapes, types, values

    def shape(self, k: int = 0) -> tuple[Size, ...]:
        """The shape of input `k`; sizes that inputs of the model decide are `Free`."""
        return tuple(self._shapes[self._entries[k]])

    def out_shape(self, k: int = 0) -> tuple[Size, ...]:
        """The shape of output `k`."""
        return tuple(self._shapes[Entry(self.node, k)])

    def rank(self, k: int = 0) -> int:
        """The number of axes of input `k`."""
        return len(self.shape(k))

    def dims(self, k: int = 0) -> tuple[int, ...]:
        """The shape of input `k`, which must be fixed.

        Raises:
            Unsupported: it is left open.
        """
        return fixed(self.shape(k), f"of input {k}")

    def dtype(self, k: int = 0) -> DType:
        """The dtype of input `k`."""
        return self._types[self._entries[k]]

    def out_dtype(self, k: int = 0) -> DType:
        """The dtype of output `k`."""
        return self._types[Entry(self.node, k)]

    def axis(self, axis: int, k: int = 0) -> int:
        """An axis of input `k` counted from the front."""
        return axis + self.rank(k) if axis < 0 else axis

    def value(self, k: int) -> np.ndarray[Any, Any]:
        """The values of input `k`, which must be a parameter.

        Raises:
            Unsupported: it is computed, or an input of the model.
        """
        array = self._values(self._entries[k])
        if array is None:
            raise Unsupported(f"input {k} must not depend on the model's inputs")
        return array


def fixed(shape: Sequence[Size], what: str) -> tuple[int, ...]:
    """`shape` if no size in it is left open.

    Raises:
        Unsupported: one is.
    """
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) != len(shape):
        raise Unsupported(f"the shape {what} must be fixed, some of its sizes are left open")
    return sizes


def failure(kind: str, path: str, lines: Sequence[str]) -> GnomonError:
    """One error of all that has no translation."""
    listed = "".join(f"\n  {line}" for line in lines)
    return Unsupported(f"{kind} {path!r}: {len(lines)} nodes have no translation:{listed}")
