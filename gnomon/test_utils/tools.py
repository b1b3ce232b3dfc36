"""What tests have around them: contexts, environments, repetitions, folders of data."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import random as python_random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import random, util
from gnomon.base import ParamError, complaint
from gnomon.context import Context, current_context, num_gpus
from gnomon.io import DataIter

_chosen: list[Context] = []


def default_context() -> Context:
    """The context that checks run on: what `set_default_context` chose, or the current one."""
    return _chosen[-1] if _chosen else current_context()


def set_default_context(ctx: Context) -> None:
    """Have checks run on `ctx`."""
    _chosen[:] = [ctx]


def list_gpus() -> range:
    """The numbers of the GPUs that gnomon computes on."""
    return range(num_gpus())


def is_op_runnable() -> bool:
    """Whether every operator runs on the default context: on a processor they do."""
    return default_context().device_type != "gpu"


def has_tvm_ops() -> bool:
    """Whether there are operators made by TVM: no."""
    return False


def is_cd_run() -> bool:
    """Whether the environment says that a release is being made (`CD_JOB`)."""
    return os.environ.get("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Whether the processor is a 64-bit ARM."""
    return platform.machine() == "aarch64"


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that lets a test by chance fail `n - 1` times, each time with another seed.

    Raises:
        ParamError: `n` is below 1.
    """
    if n < 1:
        raise ParamError(complaint("retry", "n", "1 or more", n))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def within(*args: Any, **kwargs: Any) -> Any:
            for attempt in range(n - 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    _seed(np.random.randint(2**31) + attempt)
            return test(*args, **kwargs)

        return within

    return decorate


def _seed(seed: int) -> None:
    for each in (np.random.seed, random.seed, python_random.seed):
        each(seed)


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """A scope with other environment variables: a name and a value, or a mapping; None removes.

    >>> with environment("GNOMON_EXAMPLE", "1"):
    ...     os.environ["GNOMON_EXAMPLE"]
    '1'
    """
    wanted: Mapping[str, str | None] = dict([args]) if len(args) == 2 else args[0]
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            util.setenv(name, value)
        yield
    finally:
        for name, value in before.items():
            util.setenv(name, value)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """A scope in which what the process writes to stderr is thrown away, native code's too."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


class DummyIter(DataIter):
    """An iterator that gives one batch of another again and again: data that costs nothing."""

    def __init__(self, real_iter: Any) -> None:
        super().__init__()
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> Any:
        """The batch."""
        return self.the_batch


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """The path of the program `im2rec`, which makes record files of images.

    That of the folder that the environment variable `home_env` names, where it has one.
    """
    own = Path(__file__).parents[1] / "commands" / "im2rec.py"
    other = Path(os.environ.get(home_env, "")) / "tools" / "im2rec.py"
    return str(other if home_env in os.environ and other.exists() else own)
