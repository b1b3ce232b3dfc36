"""A child of test_limits.py: works at a stage under a limit on memory, then again without one.

    python tests/limits.py STAGE MIB FOLDER

MIB is how much more memory than before the stage the process may map. Says 'ok' or the error that
came under the limit, then 'again' once the same work has given the right result without it.
"""

from __future__ import annotations

import errno
import re
import resource
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

DEEP = 5000  # levels of lists within lists, which take 0.7 MB of stack to print
# an ImportError is how Python's loader says that a library, not ours, found no room
EXPECTED = "MemoryError", "DeviceError", "GnomonError", "ImportError"
# what CPython 3.11 to 3.14 say where one of their own functions failed and forgot to say why
LOST = re.compile(
    r"^error return without exception set$"
    r"|^<built-in function (exec|compile|__import__|__build_class__)> returned NULL without"
    r"|^<function _(find_and_load|handle_fromlist|call_with_frames_removed)\b.* returned NULL "
    r"|^<class '(type|abc\.ABCMeta|enum\.EnumType)'> returned NULL without"
    r"|^(creation|execution) of module [\w.]+ failed without"
    r"|^initialization of [\w.]+ failed without"
)


def mapped() -> int:
    """Bytes of memory that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def grow_stack() -> None:
    """Have stack enough: where the kernel finds no room for more, it ends any program."""
    nested: list[Any] = []
    for _ in range(DEEP):
        nested = [nested]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * DEEP)
    with suppress(RecursionError):  # later Pythons stop earlier
        repr(nested)
    sys.setrecursionlimit(before)
    while nested:  # level by level
        nested = nested.pop()


def limit(mib: int | None) -> None:
    """Let the process map so much more; None for any amount."""
    most = resource.RLIM_INFINITY if mib is None else mapped() + (mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


class Stages:
    """What is done under a limit: each prepares, and gives the work, which tells if it is right."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def start(self) -> Callable[[], Any]:
        """Import all there is and compute something."""
        import_module("llvmlite.binding")

        def work() -> bool:
            mx = import_module("gnomon")
            return bool((mx.nd.ones((2, 3)) * 2).sum().asscalar() == 12)

        return work

    def compile(self) -> Callable[[], Any]:
        """Compile the first kernel."""
        shadow = import_module("gnomon.shadow")

        def work() -> bool:
            x = shadow.Tensor(np.zeros(5, np.float32))
            x[:] = shadow.fn.exp(x)
            return x.numpy().tolist() == [1.0] * 5

        return work

    def libraries(self) -> Callable[[], Any]:
        """Load OpenBLAS and oneDNN."""
        mx = import_module("gnomon")
        x, weight = mx.nd.ones((4, 64, 32, 32)), mx.nd.ones((64, 64, 3, 3))
        mx.nd.waitall()

        def work() -> bool:
            product = mx.nd.dot(mx.nd.ones((200, 200)), mx.nd.ones((200, 200))).asnumpy()
            made = mx.nd.Convolution(x, weight, num_filter=64, kernel=(3, 3), no_bias=True)
            return bool((product == 200).all() and (made.asnumpy() == 64 * 9).all())

        return work

    def bind(self) -> Callable[[], Any]:
        """Bind a network, forward and backward."""
        mx = import_module("gnomon")
        mx.nd.ones((2,)).asnumpy()
        return self._bind((2, 3, 16, 16))

    def _bind(self, shape: tuple[int, ...]) -> Callable[[], Any]:
        mx = import_module("gnomon")

        def work() -> bool:
            net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=8)
            net = mx.sym.FullyConnected(net, num_hidden=10)
            executor = net.simple_bind(mx.cpu(), data=shape)
            for array in executor.arg_arrays:
                array[:] = 1
            executor.forward(is_train=True)
            executor.backward(executor.outputs)
            return bool((executor.outputs[0].asnumpy() == 8 * (shape[-1] - 2) ** 2 * 28 + 1).all())

        return work

    def bind_again(self) -> Callable[[], Any]:
        """Bind where every kernel is there already: only the arrays need memory."""
        work = self._bind((64, 3, 66, 66))
        assert work()
        return work

    def save(self) -> Callable[[], Any]:
        """Save and load 40 MB."""
        mx = import_module("gnomon")
        array, path = mx.nd.arange(10_000_000), str(self.folder / "x.params")
        mx.nd.save(path, {"a": array[:10]})
        mx.nd.load(path)

        def work() -> bool:
            mx.nd.save(path, {"a": array})
            return bool((mx.nd.load(path)["a"][-1:] == 9_999_999).asscalar())

        return work


def is_pythons(error: Exception) -> bool:
    """Whether Python's own import, exec or class statement lacked memory or lost an error."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    imports = last.startswith("<frozen importlib")
    if isinstance(error, OSError):  # the importer has no memory to list a folder
        return imports and error.errno == errno.ENOMEM
    return isinstance(error, SystemError) and (imports or LOST.search(str(error)) is not None)


def main() -> None:
    stage, mib, folder = sys.argv[1:]
    work = getattr(Stages(folder), stage)()
    grow_stack()
    limit(int(mib))
    said = "ok"
    try:
        assert work()
    except Exception as error:
        kinds = ["ImportError"] if is_pythons(error) else [k.__name__ for k in type(error).__mro__]
        found = [kind for kind in EXPECTED if kind in kinds]
        if not found:
            traceback.print_exc()
        said = found[0] if found else f"unexpected {error!r}"
    limit(None)
    assert work()
    print(f"{said} again")


if __name__ == "__main__":
    main()
