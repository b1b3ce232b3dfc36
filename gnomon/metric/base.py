"""The metric every other one is a formula in, and the registry of them.

State of a metric: a sum and a count since the last `reset_local` (`sum_metric`, `num_inst`) and
the same since the last `reset` (`global_sum_metric`, `global_num_inst`). Its value is their
quotient, NaN before the first update. A subclass gives `measure`, or overrides `update` and
changes the four itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gnomon.base import ShapeError, UnknownNameError, check_kind, complaint, shown
from gnomon.ground.arguments import CheckedArguments
from gnomon.ground.folder_registry import FolderRegistry
from gnomon.registry import class_name, enter_class, get_alias_func

Value = tuple[Any, Any]
METRICS: FolderRegistry[type[EvalMetric]] = FolderRegistry(
    "metric", "gnomon.metric", ignore_case=True
)


class EvalMetric(CheckedArguments):
    """A number that says how good predictions are, averaged over all updates since `reset`.

    `output_names` and `label_names` choose, for `update_dict`, which outputs and labels count.
    """

    def __init__(
        self,
        name: Any,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = bool(kwargs.pop("has_global_stats", False))
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def reset(self) -> None:
        """Forget everything."""
        self.num_inst = 0
        self.sum_metric = 0.0
        self.global_num_inst = 0
        self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Forget what came since the last `reset_local`, but not the global sums."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def update(self, labels: Any, preds: Any) -> None:
        """Count one batch: lists of label arrays and of prediction arrays, pair by pair."""
        for label, pred in self._pairs(labels, preds):
            self._add(*self.measure(label, pred))

    def _pairs(self, labels: Any, preds: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Each label array of a batch with its prediction array."""
        where = type(self).__name__
        labels, preds = check_label_shapes(labels, preds, wrap=True, where=where)
        for label, pred in zip(labels, preds, strict=True):
            yield numbers(where, "labels", label), numbers(where, "preds", pred)

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        """Sum and count of one label array and one prediction array."""
        raise NotImplementedError(
            f"{type(self).__name__} must define measure(label, pred) or update(labels, preds)"
        )

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "measure" in vars(cls):
            type.__setattr__(cls, "measure", _of_numbers(cls.measure))

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Count one batch given as mappings name -> array."""
        self.update(
            self._chosen("label", label, self.label_names),
            self._chosen("pred", pred, self.output_names),
        )

    def _chosen(
        self, argument: str, arrays: Mapping[str, Any], names: Sequence[str] | None
    ) -> list[Any]:
        where = f"{type(self).__name__}.update_dict"
        check_kind(where, argument, arrays, Mapping, "arrays by name")
        if names is None:
            return list(arrays.values())
        missing = [name for name in names if name not in arrays]
        if missing:
            expected, got = f"arrays named {missing}", list(arrays)
            raise UnknownNameError(complaint(where, argument, expected, got))
        return [arrays[name] for name in names]

    def _add(self, total: float, count: int) -> None:
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def summary(self, total: float, count: int) -> float:
        """The metric's value from a sum and a count."""
        value: Any = total / count if count else float("nan")
        return value.item() if isinstance(value, np.generic) else value

    def get(self) -> Value:
        """(name, value), or (names, values), since the last `reset_local`."""
        return self.name, self.summary(self.sum_metric, self.num_inst)

    def get_global(self) -> Value:
        """(name, value), or (names, values), since the last `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.summary(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, float]]:
        """`get()` as a list of (name, value) pairs."""
        return _paired(self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """`get_global()` as a list of (name, value) pairs."""
        if not self._has_global_stats:  # a subclass may have its own `get_name_value`
            return self.get_name_value()
        return _paired(self.get_global())

    def get_config(self) -> dict[str, Any]:
        """What `create` needs to make this metric again, with its class under `metric`."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }


class NamedMetric(EvalMetric):
    """Base of metrics that have no options, only a name of their class."""

    _name: ClassVar[str]

    def __init__(
        self,
        name: Any = None,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        name = self._name if name is None else name
        super().__init__(name, output_names, label_names, has_global_stats=True)


def _paired(value: Value) -> list[tuple[str, float]]:
    names, values = value
    if not isinstance(names, list):
        return [(names, values)]
    return list(zip(names, values, strict=True))


def numbers(where: str, argument: str, array: Any) -> np.ndarray:
    """A NumPy array with the values of an NDArray (which is waited for) or of an array-like.

    Raises:
        TypeError: these are no numbers.
    """
    try:
        found = array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)
    except ValueError:  # lists of different lengths
        found = np.empty(0, object)
    if found.dtype.kind in "OSUMm":
        raise TypeError(complaint(where, argument, "an array of numbers", shown(array)))
    return found


def _of_numbers(measure: Callable[..., tuple[float, int]]) -> Callable[..., tuple[float, int]]:
    """A class's `measure` with what it is called with as NumPy arrays."""

    @functools.wraps(measure)
    def checked(self: EvalMetric, label: Any, pred: Any) -> tuple[float, int]:
        where = f"{type(self).__name__}.measure"
        return measure(self, numbers(where, "label", label), numbers(where, "pred", pred))

    return checked


def check_label_shapes(
    labels: Any, preds: Any, wrap: bool = False, shape: bool = False, where: str = "metric"
) -> tuple[Any, Any]:
    """`labels` and `preds`, when they are equally many (or, with `shape`, of equal shape).

    With `wrap` a single array comes back as a list of one. ShapeError when they differ.
    """
    if wrap:
        labels = labels if isinstance(labels, (list, tuple)) else [labels]
        preds = preds if isinstance(preds, (list, tuple)) else [preds]
    for name, value in (("labels", labels), ("preds", preds)):
        if not hasattr(value, "shape" if shape else "__len__"):
            expected = "an array" if shape else "a list of arrays"
            raise TypeError(complaint(where, name, expected, shown(value)))
    want = labels.shape if shape else len(labels)
    got = preds.shape if shape else len(preds)
    if not shape and not want and got:
        expected = f"{got}, one for each prediction"
        raise ShapeError(complaint(where, "labels", expected, "none: the data has no labels"))
    if want != got:
        kind = "shape" if shape else "number of arrays"
        raise ShapeError(complaint(where, "preds", f"{kind} {want} as the labels have", got))
    return labels, preds


def register(klass: type[EvalMetric] | None = None, *aliases: str) -> Any:
    """Make a metric class known to `create` by its lower-case name; use it as a decorator."""
    if klass is None or isinstance(klass, str):
        names = aliases if klass is None else (klass, *aliases)
        return lambda cls: register(cls, *names)
    enter_class(METRICS, class_name("metric.register", klass), klass, aliases)
    return klass


METRICS.serves(EvalMetric)
alias = get_alias_func(EvalMetric, "metric")
