"""`gnomon cache warm`: compile what a network needs before it is first run on this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnomon import config, symbol
from gnomon.base import GnomonError
from gnomon.context import cpu
from gnomon.runtime.compiler.objects import COUNTS

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


def warm(model: Path, shapes: Shapes, train: bool) -> int:
    """Bind and run the network of a symbol's file once, on zeros; gives the exit code.

    Its kernels are in `cache_dir` afterwards. With `train`, those of its gradients are as well.

    Raises:
        GnomonError: nothing is kept on disk, or the shapes do not fit the network.
        FileError: the file cannot be read.
    """
    if not config.get("disk_cache") or not config.get("disk_cache_limit"):
        raise GnomonError("cache warm: the settings disk_cache and disk_cache_limit forbid it")
    began, compiled, loaded = time.perf_counter(), COUNTS.compiled, COUNTS.loaded
    net = symbol.load(str(model))
    given: dict[str, Any] = dict(shapes)
    bound = net.simple_bind(cpu(), grad_req="write" if train else "null", **given)
    outputs = bound.forward(is_train=train)
    if train:
        bound.backward(outputs)
    for array in (*outputs, *(x for x in bound.grad_arrays if x is not None)):
        array.wait_to_read()
    made, found = COUNTS.compiled - compiled, COUNTS.loaded - loaded
    seconds = time.perf_counter() - began
    print(f"{made} kernels compiled, {found} were there: {seconds:.1f} s")
    print(f"kept in {config.get('cache_dir') / 'kernels'}")
    return 0
