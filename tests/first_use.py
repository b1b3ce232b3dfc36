"""A child of test_fork.py: forks while another thread uses something for the first time.

    python tests/first_use.py WHAT SECONDS

The thread begins, and the fork follows so much later; the forked child then does the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np

import gnomon as mx

HANG = 60  # seconds until a child that hangs is ended


def imports() -> None:
    """Everything from the first import on."""
    assert mx.nd.ones((2,)).asnumpy().tolist() == [1, 1]
    assert mx.sym.Variable("x").name == "x"


def compiles() -> None:
    """The first kernel."""
    x = mx.shadow.Tensor(np.zeros(3, np.float32))
    x[:] = mx.shadow.fn.exp(x)
    assert x.numpy().tolist() == [1, 1, 1]


def tensors() -> None:
    """The first kernel, from the import of what compiles on."""
    compiles()


def blas() -> None:
    """OpenBLAS."""
    a = mx.nd.ones((100, 100))
    assert (mx.nd.dot(a, a).asnumpy() == 100).all()


def onednn() -> None:
    """oneDNN."""
    x, weight = mx.nd.ones((4, 64, 16, 16)), mx.nd.ones((64, 64, 3, 3))
    made = mx.nd.Convolution(x, weight, num_filter=64, kernel=(3, 3), no_bias=True)
    assert (made.asnumpy() == 64 * 9).all()


def engine() -> None:
    """The engine and its threads."""
    mx.engine.get().push_sync(lambda run_ctx: None, mx.cpu(), (), ())
    mx.nd.waitall()


#: what has been used already when each begins
READY: dict[str, Callable[[], object]] = {
    "imports": lambda: None,
    "compiles": lambda: mx.shadow,
    "tensors": lambda: None,
    "blas": imports,
    "onednn": imports,
    "engine": lambda: mx.nd,
}


def main() -> None:
    work, seconds = globals()[sys.argv[1]], float(sys.argv[2])
    READY[sys.argv[1]]()
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if not child:
        signal.alarm(HANG)
        guarded()
        os._exit(len(failed))
    ended = os.waitpid(child, 0)[1]
    guarded()
    for thread in threads:
        thread.join(HANG)
    assert not failed, failed
    assert not ended, f"the child ended with {ended}"


if __name__ == "__main__":
    main()
