"""`gnomon cache warm`: compile what programs need before they are first run on this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnomon import symbol
from gnomon.base import GnomonError
from gnomon.commands import typical
from gnomon.context import cpu
from gnomon.runtime.compiler import objects

Shapes = Mapping[str, tuple[int, ...]]


def shapes_of(words: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs by name, from words such as `data:1x3x224x224`.

    >>> shapes_of(["data:1x3x224x224", "softmax_label:1"])
    {'data': (1, 3, 224, 224), 'softmax_label': (1,)}

    Raises:
        GnomonError: a word is not a name, a colon and sizes.
    """
    found = {}
    for word in words:
        name, _, sizes = word.partition(":")
        parts = sizes.split("x")
        if not name or not all(part.isdecimal() for part in parts):
            raise GnomonError(f"cache warm: expected NAME:SIZExSIZE..., got {word!r}")
        found[name] = tuple(map(int, parts))
    return found


def main(options: argparse.Namespace) -> int:
    """The command; gives its exit code.

    Raises:
        GnomonError: nothing is kept on disk, a word is no shape, or the shapes do not fit.
        FileError: the file cannot be read.
    """
    if options.model is None and (options.shapes or options.train):
        raise GnomonError(
            "cache warm: name SYMBOL.json, before --shapes and --train, which are its"
        )
    with _told():
        if options.model is not None:
            warm(options.model, shapes_of(options.shapes), options.train)
        else:
            typical.work()
            objects.set_prepared()
    return 0


def warm(model: Path, shapes: Shapes, train: bool) -> None:
    """Bind and run the network of a symbol's file once, on zeros.

    Its kernels are in `cache_dir` afterwards. With `train`, those of its gradients are as well.

    Raises:
        GnomonError: the shapes do not fit the network.
        FileError: the file cannot be read.
    """
    net = symbol.load(str(model))
    for name in shapes:
        if name not in net.list_inputs():
            known = ", ".join(net.list_inputs())
            raise GnomonError(f"cache warm: --shapes: expected inputs among {known}, got {name!r}")
    given: dict[str, Any] = dict(shapes)
    bound = net.simple_bind(cpu(), grad_req="write" if train else "null", **given)
    outputs = bound.forward(is_train=train)
    if train:
        bound.backward(outputs)
    for array in (*outputs, *(x for x in bound.grad_arrays if x is not None)):
        array.wait_to_read()


@contextmanager
def _told() -> Iterator[None]:
    """Say what was compiled inside, and where it is.

    Raises:
        GnomonError: nothing is kept, or it could not be written.
    """
    place = objects.disk()
    if place is None:
        raise GnomonError(f"cache warm: nothing is kept: {objects.why_not()}")
    began, compiled, loaded = time.perf_counter(), objects.COUNTS.compiled, objects.COUNTS.loaded
    yield
    made, found = objects.COUNTS.compiled - compiled, objects.COUNTS.loaded - loaded
    if made and not place.usable:
        raise GnomonError(f"cache warm: {made} kernels compiled, and {place.folder} not written")
    seconds = time.perf_counter() - began
    print(f"{made} kernels compiled into {place.folder}, {found} were there: {seconds:.1f} s")
