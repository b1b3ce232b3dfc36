"""`gnomon cache warm`: compile what programs need before they are first run on this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from gnomon import config, symbol
from gnomon import ndarray as nd
from gnomon.base import GnomonError
from gnomon.commands import typical
from gnomon.context import cpu
from gnomon.runtime.compiler import objects
from gnomon.runtime.compiler.disk import Disk
from gnomon.shape import named_shape

Shapes = Mapping[str, tuple[int, ...]]
T = TypeVar("T")


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
    place, began = _place(), time.perf_counter()
    if options.model is not None:
        shapes = dict(named_shape("cache warm", word) for word in options.shapes)
        made, found = _counted(partial(warm, options.model, shapes, options.train))
    else:
        made, found = _typically()
        objects.set_prepared()
    seconds = time.perf_counter() - began
    print(f"{made} kernels compiled into {place.folder}, {found} were there: {seconds:.1f} s")
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


def _place() -> Disk:
    """Where kernels are kept.

    Raises:
        GnomonError: nowhere.
    """
    place = objects.disk()
    if place is None:
        raise GnomonError(f"cache warm: nothing is kept: {objects.why_not()}")
    return place


def _counted(work: Callable[[], None]) -> tuple[int, int]:
    """How many kernels some work compiled, and how many it found.

    Raises:
        GnomonError: they could not be written.
    """
    compiled, loaded, place = objects.COUNTS.compiled, objects.COUNTS.loaded, _place()
    work()
    nd.waitall()
    made, found = objects.COUNTS.compiled - compiled, objects.COUNTS.loaded - loaded
    if made and not place.usable:
        raise GnomonError(f"cache warm: {made} kernels compiled, and {place.folder} not written")
    return made, found


def _typically() -> tuple[int, int]:
    """As `_counted`, of typical work: a process for each part, as one compiles one at a time."""
    counts = apart([partial(_part, name) for name in typical.PARTS])
    return sum(made for made, _ in counts), sum(found for _, found in counts)


def _part(name: str) -> tuple[int, int]:
    """As `_counted`, of a part, on one thread: the others have the rest of the processor."""
    config.set("num_threads", 1)
    return _counted(typical.PARTS[name])


def apart(works: Sequence[Callable[[], T]]) -> list[T]:
    """What these give, each in a process of its own.

    They are told of by pipes alone: not every machine has semaphores between processes.

    Raises:
        GnomonError: what one of them raises, or one was killed.
    """
    spawn = get_context("spawn")
    workers = []
    for work in works:
        receiving, sending = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=_tell, args=(work, sending))
        worker.start()
        sending.close()
        workers.append((worker, receiving))
    found = []
    for worker, receiving in workers:
        try:
            found.append(receiving.recv())
        except EOFError:
            worker.join()
            said = f"cache warm: a process that compiled ended with code {worker.exitcode}"
            raise GnomonError(said) from None
        worker.join()
    for result in found:
        if isinstance(result, GnomonError):
            raise result
    return found


def _tell(work: Callable[[], object], sending: Connection) -> None:
    """Send what `work` gives, or raises."""
    try:
        found = work()
    except GnomonError as error:  # it is raised where it is received
        found = error
    except Exception as error:  # which may be of a kind that does not travel
        found = GnomonError(f"cache warm: {type(error).__name__}: {error}")
    sending.send(found)
