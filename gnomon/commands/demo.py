"""`gnomon demo`: a LeNet learns 1,797 real handwritten digits, and says where the time went.

1,437 digits train, 360 are held out, always the same ones. The trained network is saved as a
checkpoint, and a fresh process loads it and must come to the same accuracy.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from gnomon import config, initializer, kvstore, random, recordio
from gnomon import symbol as sym
from gnomon.base import FormatError, GnomonError
from gnomon.ground.record import record
from gnomon.io import NDArrayIter
from gnomon.lr_scheduler import FactorScheduler
from gnomon.module import Module
from gnomon.module.checkpoint import BatchEndParam, params_file

RECORDS = "digits.rec"
PIXELS = 8
INK = 16.0  # the largest value of a pixel
HELD_OUT = 360
EPOCHS_AT_ONE_RATE = 4
SPLIT_SEED = 1998  # the year of the data set; which digits are held out must never change


class Digits(NamedTuple):
    """Pictures (n, 1, 8, 8) with values from 0 to 1, and the digits they show (n,)."""

    pictures: np.ndarray
    labels: np.ndarray


def read_digits() -> Digits:
    """All digits in the package.

    >>> digits = read_digits()
    >>> digits.pictures.shape, digits.labels[:5].tolist()
    ((1797, 1, 8, 8), [0.0, 1.0, 2.0, 3.0, 4.0])
    """
    path = files("gnomon") / "data" / RECORDS
    pictures, labels = [], []
    with recordio.MXRecordIO(str(path), "r") as records:
        for record in records:
            header, content = recordio.unpack(record)
            if len(content) != PIXELS * PIXELS:
                raise FormatError(f"{path}: expected {PIXELS * PIXELS} bytes, got {len(content)}")
            pictures.append(np.frombuffer(content, dtype=np.uint8))
            labels.append(header.label)
    grey = np.stack(pictures).reshape(-1, 1, PIXELS, PIXELS).astype(np.float32) / INK
    return Digits(grey, np.array(labels, dtype=np.float32))


def split(digits: Digits) -> tuple[Digits, Digits]:
    """The digits to train on, and those held out; the same in every run on every machine."""
    # RandomState's numbers are promised never to change, unlike those of default_rng.
    order = np.random.RandomState(SPLIT_SEED).permutation(len(digits.labels))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    return (
        Digits(digits.pictures[train], digits.labels[train]),
        Digits(digits.pictures[held_out], digits.labels[held_out]),
    )


def lenet() -> Any:
    """The network: two convolutions with pooling, two fully connected layers, softmax.

    >>> lenet().list_outputs()
    ['softmax_output']
    """
    net = sym.Variable("data")
    for number, filters in enumerate((16, 32), 1):
        net = sym.Convolution(
            net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{number}"
        )
        net = sym.Activation(net, act_type="tanh", name=f"tanh{number}")
        net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{number}")
    net = sym.FullyConnected(sym.Flatten(net, name="flatten"), num_hidden=64, name="fc1")
    net = sym.Activation(net, act_type="tanh", name="tanh3")
    net = sym.FullyConnected(net, num_hidden=10, name="fc2")
    return sym.SoftmaxOutput(net, name="softmax")


# Where the time goes


@record(frozen=False, slots=False)
class Stopwatch:
    """Seconds by stage; a stage inside another counts for the inner one alone."""

    seconds: dict[str, float] = field(default_factory=dict)
    _inside: list[float] = field(default_factory=lambda: [0.0])

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a block for `name`."""
        begin = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            elapsed = time.perf_counter() - begin
            own = elapsed - self._inside.pop()
            self._inside[-1] += elapsed
            self.seconds[name] = self.seconds.get(name, 0.0) + own

    def table(self, total: float) -> str:
        """A line per stage, and one for what none of them saw."""
        rows = {**self.seconds, "everything else": total - sum(self.seconds.values())}
        lines = [f"  {name:<26}{s:8.3f} s {100 * s / total:5.1f}%" for name, s in rows.items()]
        return "\n".join([*lines, f"  {'all':<26}{total:8.3f} s"])


def _timed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """`method` of a class with a `watch`, counted as the stage `name`."""

    @functools.wraps(method)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.watch.stage(name):
            return method(self, *args, **kwargs)

    return counted


class TimedModule(Module):
    """A module that tells a stopwatch what it is doing."""

    def __init__(self, watch: Stopwatch, *args: Any, **kwargs: Any) -> None:
        self.watch = watch
        super().__init__(*args, **kwargs)

    bind = _timed("bind and compile", Module.bind)
    init_params = _timed("initialize", Module.init_params)
    init_optimizer = _timed("initialize", Module.init_optimizer)
    # One stage: where the step is one native call, `forward_backward` waits and `update` makes it.
    forward_backward = _timed("forward, backward, update", Module.forward_backward)
    update = _timed("forward, backward, update", Module.update)
    update_metric = _timed("metric", Module.update_metric)
    save_checkpoint = _timed("checkpoint", Module.save_checkpoint)


class TimedIter(NDArrayIter):
    """Batches from memory that tell a stopwatch how long they took."""

    def __init__(self, watch: Stopwatch, *args: Any, **kwargs: Any) -> None:
        self.watch = watch
        super().__init__(*args, **kwargs)

    next = _timed("batches", NDArrayIter.next)
    reset = _timed("batches", NDArrayIter.reset)


# Progress


@record(frozen=False, slots=False)
class Progress:
    """One line per epoch; on a terminal it grows with the batches."""

    epochs: int
    batches: int
    out: TextIO
    train: float = 0.0

    def batch(self, param: BatchEndParam) -> None:
        """What `fit` calls after each batch."""
        self.train = param.eval_metric.get()[1]
        if self.out.isatty():
            bar = self._bar(param.nbatch + 1)
            self.out.write(f"\r{self._head(param.epoch)} {bar} train {self.train:6.2%}")
            self.out.flush()

    def epoch(self, number: int, accuracy: float, seconds: float) -> None:
        """What to say at the end of an epoch."""
        start = "\r" if self.out.isatty() else ""
        bar = self._bar(self.batches)
        self.out.write(
            f"{start}{self._head(number)} {bar} train {self.train:6.2%}"
            f"  held out {accuracy:6.2%}  {seconds:5.2f} s\n"
        )
        self.out.flush()

    def _head(self, epoch: int) -> str:
        return f"epoch {epoch + 1:>{len(str(self.epochs))}}/{self.epochs}"

    def _bar(self, done: int, width: int = 24) -> str:
        filled = round(width * done / self.batches)
        return f"[{'=' * filled}{' ' * (width - filled)}]"


# Training and checking


def count_correct(module: Module, data: Any, labels: np.ndarray) -> int:
    """How many of the pictures in the iterator `data` the module gets right."""
    return int((module.predict(data).asnumpy().argmax(axis=1) == labels).sum())


def train(epochs: int, batch_size: int, seed: int, out: Path, started: float) -> int:
    """Train, save, check in a fresh process, report; 0 when the fresh process agrees.

    `started` is how many seconds the process took until now.
    """
    begin = time.perf_counter()
    prefix = _prefix(out)  # first: a folder that cannot be made shall not cost a training
    watch = Stopwatch({"start Python and import": started})
    with watch.stage("read the digits"):
        to_train, held_out = split(read_digits())
    print(
        f"LeNet on {len(to_train.labels)} handwritten digits of 8x8 pixels, "
        f"{len(held_out.labels)} others held out"
    )
    random.seed(seed)
    np.random.seed(seed)
    batches = TimedIter(watch, *to_train, batch_size, shuffle=True)
    module = TimedModule(watch, lenet())
    correct = _fit(module, batches, held_out, epochs, watch)
    module.save_checkpoint(prefix, epochs)
    print(f"saved {prefix}-symbol.json and {params_file(prefix, epochs)}")
    with watch.stage("check in a fresh process"):
        again = check_elsewhere(prefix, epochs, batch_size)
    print(f"loaded in a fresh process: held out {again / HELD_OUT:.2%} ({again} of {HELD_OUT})")
    print("where the time went:")
    print(watch.table(started + time.perf_counter() - begin))
    if again != correct:
        print(f"gnomon: the loaded network gets {again} right, not {correct}", file=sys.stderr)
        return 1
    return 0


def _fit(
    module: TimedModule, batches: TimedIter, held_out: Digits, epochs: int, watch: Stopwatch
) -> int:
    """Train for `epochs`, and tell how many of the held-out digits come out right at the end."""
    size = batches.batch_size
    progress = Progress(epochs, -(-batches.num_data // size), sys.stdout)
    others = NDArrayIter(*held_out, size)
    halved = FactorScheduler(step=EPOCHS_AT_ONE_RATE * progress.batches, factor=0.5, base_lr=0.1)
    correct, last = 0, time.perf_counter()

    def after(epoch: int, *_: Any) -> None:
        nonlocal correct, last
        with watch.stage("score the held-out digits"):
            correct = count_correct(module, others, held_out.labels)
        now = time.perf_counter()
        progress.epoch(epoch, correct / len(held_out.labels), now - last)
        last = now

    module.fit(
        batches,
        kvstore=kvstore.create("local"),
        optimizer="sgd",
        optimizer_params={"lr_scheduler": halved, "momentum": 0.9, "wd": 5e-3},
        initializer=initializer.Xavier(),
        num_epoch=epochs,
        batch_end_callback=progress.batch,
        epoch_end_callback=after,
    )
    return correct


def default_folder() -> Path:
    """Where the demo saves its checkpoint unless told otherwise."""
    return Path(config.get("cache_dir")) / "demo"


def _prefix(out: Path) -> str:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        why = error.strerror or error
        raise GnomonError(
            f"demo: {out} cannot be written ({why}); set --out, or GNOMON_CACHE_DIR"
        ) from error
    return str(out / "lenet")


def check(prefix: str, epoch: int, batch_size: int) -> int:
    """How many held-out digits the network of a checkpoint gets right."""
    _, held_out = split(read_digits())
    data = NDArrayIter(*held_out, batch_size)
    module = Module.load(prefix, epoch)
    module.bind(data.provide_data, data.provide_label, for_training=False)
    return count_correct(module, data, held_out.labels)


def check_elsewhere(prefix: str, epoch: int, batch_size: int) -> int:
    """`check` in a fresh process; GnomonError with what it said where it fails."""
    home = str(Path(__file__).parents[2])  # of this very package, whatever the folder holds
    start = (
        f"import sys; sys.path.insert(0, {home!r}); from gnomon.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", start, "demo", "--check", prefix, str(epoch)]
    command += ["--batch-size", str(batch_size), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GnomonError(f"the fresh process failed ({done.returncode}): {done.stderr.strip()}")
    correct: int = json.loads(done.stdout)["correct"]
    return correct
