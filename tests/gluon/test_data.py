"""`gluon.data`: data sets, samplers, and loaders whose workers come to grief."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.gluon import data
from gnomon.gluon.data import shared

WAYS = [
    {},
    {"num_workers": 2},
    {"num_workers": 1, "prefetch": 1},
    {"num_workers": 2, "thread_pool": True},
]


class Squares(data.Dataset):
    """Numbers, their squares as arrays, and trouble at chosen ones."""

    def __init__(self, length=10, trouble=None):
        self.length, self.trouble = length, trouble or {}

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        if idx in self.trouble:
            self.trouble[idx]()
        return np.full((2, 3), idx, np.float32), idx * idx


def raises():
    raise KeyError("a sample that cannot be read")


class Odd(Exception):
    """An exception that cannot be pickled back."""

    def __init__(self, a, b):
        super().__init__(f"{a} {b}")


def raises_oddly():
    raise Odd(1, 2)


@pytest.mark.parametrize("how", WAYS)
def test_batches_in_order(how):
    loader = data.DataLoader(Squares(), batch_size=4, **how)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert [type(b) for b in batches] == [list] * 3
        xs = np.concatenate([x.asnumpy() for x, _ in batches])
        ys = np.concatenate([y.asnumpy() for _, y in batches])
        np.testing.assert_array_equal(xs[:, 0, 0], np.arange(10))
        np.testing.assert_array_equal(ys, np.arange(10) ** 2)
        assert ys.dtype == np.int64
    loader.clean()


@pytest.mark.parametrize("how", WAYS)
def test_batches_of_arrays_and_any_structure(how):
    arrays = mx.nd.arange(24).reshape((6, 4))
    (batch,) = data.DataLoader(data.ArrayDataset(arrays), batch_size=6, **how)
    np.testing.assert_array_equal(batch.asnumpy(), arrays.asnumpy())

    def batchify(samples):
        return {"x": mx.nd.array(samples), "n": (len(samples), np.array(samples)), "s": "word"}

    (batch,) = data.DataLoader(data.SimpleDataset([1, 2]), 2, batchify_fn=batchify, **how)
    assert batch["x"].asnumpy().tolist() == [1, 2]
    assert isinstance(batch["x"], mx.nd.NDArray)
    assert batch["s"] == "word"
    count, numbers = batch["n"]
    assert count == 2
    assert isinstance(numbers, np.ndarray)


def test_batches_can_be_changed():
    for x, _ in data.DataLoader(Squares(), batch_size=5, num_workers=1):
        x += 1
        x[:] = x * 2
        assert x.asnumpy()[0, 0, 0] in (2, 12)


def test_last_batches_and_samplers():
    numbers = data.SimpleDataset(range(7))

    def sizes(**how):
        return [len(b) for b in data.DataLoader(numbers, **how)]

    assert sizes(batch_size=3) == sizes(batch_size=3.0) == [3, 3, 1]
    assert sizes(batch_size=3, last_batch="discard") == [3, 3]
    rolling = data.DataLoader(numbers, batch_size=3, last_batch="rollover")
    assert [[b.asnumpy().tolist() for b in rolling] for _ in range(2)] == [
        [[0, 1, 2], [3, 4, 5]],
        [[6, 0, 1], [2, 3, 4]],
    ]
    assert len(rolling) == 3
    assert sizes(batch_sampler=[[0, 1], [2]]) == [2, 1]
    assert sizes(batch_size=2, sampler=data.SequentialSampler(3, start=4)) == [2, 1]
    np.random.seed(3)
    order = np.arange(7)
    np.random.shuffle(order)
    np.random.seed(3)
    (batch,) = data.DataLoader(numbers, batch_size=7, shuffle=True)
    assert batch.asnumpy().tolist() == order.tolist()
    evens = data.FilterSampler(lambda x: x % 2 == 0, numbers)
    assert list(evens) == [0, 2, 4, 6]
    assert len(evens) == 4


def test_datasets():
    numbers = data.SimpleDataset(range(10))
    assert list(numbers.filter(lambda x: x > 7)) == [8, 9]
    assert list(numbers.shard(4, 0)) == [0, 1, 2]
    assert list(numbers.shard(4, 3)) == [8, 9]
    assert list(numbers.take(2)) == [0, 1]
    assert len(numbers.take(None)) == len(numbers.take(99)) == 10
    assert list(numbers.sample(data.SequentialSampler(2, 3))) == [3, 4]
    seen = []
    now = numbers.take(2).transform(lambda x: seen.append(x) or x + 1, lazy=False)
    assert (list(now), seen) == ([1, 2], [0, 1])
    pairs = data.ArrayDataset(mx.nd.arange(3), [4, 5, 6])
    assert pairs.transform(lambda a, b: a + b)[1] == 6
    assert pairs.transform_first(lambda a: -a)[2] == (-2, 6)
    with pytest.raises(ShapeError, match="array 1"):
        data.ArrayDataset([1, 2], [1])
    with pytest.raises(ParamError, match="index"):
        numbers.shard(2, 2)
    with pytest.raises(ParamError, match="count"):
        numbers.take(-1)


def test_random_numbers_of_workers_follow_from_the_seed():
    class Random(Squares):
        def __getitem__(self, idx):
            return np.append(np.random.rand(2), mx.nd.random.uniform(shape=1).asnumpy())

    def drawn(workers):
        np.random.seed(5)
        loader = data.DataLoader(Random(), batch_size=2, num_workers=workers)
        return np.concatenate([b.asnumpy() for b in loader])

    first, second, other = drawn(2), drawn(2), drawn(3)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, other)
    assert len(np.unique(first)) == first.size


@pytest.mark.parametrize("how", WAYS[1:])
def test_what_a_worker_raises_is_told(how):
    loader = data.DataLoader(Squares(trouble={5: raises}), batch_size=2, **how)
    found = iter(loader)
    next(found), next(found)
    with pytest.raises(KeyError, match="cannot be read") as caught:
        next(found)
    who = "thread" if "thread_pool" in how else r"worker \d"
    assert any(__import__("re").search(rf"{who}.*batch 2", note) for note in caught.value.__notes__)
    loader._dataset.trouble.clear()
    assert len(list(loader)) == 5


def test_an_exception_that_cannot_be_sent():
    loader = data.DataLoader(Squares(trouble={1: raises_oddly}), batch_size=2, num_workers=1)
    with pytest.raises(GnomonError, match=r"worker 0.*batch 0[\s\S]*Odd: 1 2"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("make", [np.ones, mx.nd.ones])
def test_samples_of_several_shapes_are_told(make, workers):
    loader = data.DataLoader([make((2,)), make((3,))], batch_size=2, num_workers=workers)
    with pytest.raises(ShapeError, match=r"DataLoader.*one shape.*\(2,\), \(3,\)"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([1, "a"], "str: 'a'"),
        ([None, None], "NoneType: None"),
        ([{"x": 1}], "dict"),
        ([np.array([1, None])], "ndarray: .*dtype=object"),
    ],
)
def test_samples_that_are_no_numbers_are_told(samples, words, workers):
    loader = data.DataLoader(samples, batch_size=2, num_workers=workers)
    with pytest.raises(
        DTypeError, match=f"DataLoader.*'dataset': expected samples of num.*{words}"
    ):
        list(loader)


def test_a_batch_that_cannot_be_sent():
    loader = data.DataLoader(Squares(), 2, batchify_fn=lambda _: lambda: 0, num_workers=1)
    said = r"(pickle|get) local"  # by Python 3.11, and from 3.13 on
    with pytest.raises((AttributeError, pickle.PicklingError), match=said) as caught:
        list(loader)
    assert "worker 0" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    ("end", "words"),
    [(lambda: os._exit(3), "with code 3"), (lambda: os.kill(os.getpid(), 9), "by signal SIGKILL")],
)
def test_a_worker_that_dies_ends_the_epoch(end, words):
    loader = data.DataLoader(Squares(trouble={5: end}), batch_size=2, num_workers=2)
    begin = time.monotonic()
    with pytest.raises(GnomonError, match=rf"worker \d \(process \d+\) died at batch \d, {words}"):
        list(loader)
    assert time.monotonic() - begin < 30
    loader._dataset.trouble.clear()
    assert len(list(loader)) == 5  # with new workers


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), GnomonError),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), GnomonError),
        (lambda: os._exit(3), GnomonError),
        (lambda: sys.exit(2), GnomonError),
        (raises, KeyError),
    ],
    ids=["kill", "crash", "exit", "leave", "raise"],
)
def test_an_end_of_a_worker_is_never_waited_for(end, error):
    """Wherever it comes, however many there are, and with work pending when they are forked."""
    rng = np.random.default_rng(0)
    for run in range(50):
        x = mx.nd.ones((200, 200))
        for _ in range(6):
            x = mx.nd.dot(x, x) * 1e-3
        samples = Squares(trouble={int(rng.integers(10)): end})
        how = {"num_workers": 1 + run % 3, "prefetch": (None, 0, 1, 8)[run % 4]}
        loader = data.DataLoader(samples, batch_size=2, pin_memory=bool(run % 2), **how)
        begin = time.monotonic()
        with pytest.raises(error):
            list(loader)
        assert time.monotonic() - begin < 30
        samples.trouble.clear()
        assert len(list(loader)) == 5
        assert np.isfinite(x.asnumpy()).all()
        loader.clean()


@pytest.mark.parametrize("how", [{"num_workers": 1}, {"num_workers": 1, "thread_pool": True}])
def test_a_worker_that_is_too_slow(how):
    slow = {3: lambda: time.sleep(60)}
    loader = data.DataLoader(Squares(4, slow), batch_size=2, timeout=0.5, **how)
    begin = time.monotonic()
    with pytest.raises(GnomonError, match=r"batch 1.*0\.5 s"):
        list(loader)
    assert time.monotonic() - begin < 30  # it is not waited for


def test_a_timeout_of_the_data_set_itself():
    def late():
        raise multiprocessing.TimeoutError("the disk")

    loader = data.DataLoader(Squares(4, {3: late}), batch_size=2, num_workers=1, thread_pool=True)
    with pytest.raises(multiprocessing.TimeoutError, match="the disk"):
        list(loader)


class Words(data.Dataset):
    """Words that follow from large numbers."""

    def __getitem__(self, idx):
        return f"the word {idx}"


@pytest.mark.timeout(60)
def test_numbers_and_batches_that_no_pipe_holds():
    numbers = [range(10**12 * k, 10**12 * k + 50_000) for k in range(1, 5)]
    loader = data.DataLoader(
        Words(), batch_sampler=numbers, batchify_fn=list, num_workers=1, prefetch=4
    )
    assert [batch[-1] for batch in loader] == [f"the word {each[-1]}" for each in numbers]


KILLED = """
import os, signal, time
import numpy as np
from gnomon.gluon import data

loader = data.DataLoader(data.ArrayDataset(np.ones((64, 100))), 2, num_workers=2)
batches = iter(loader)
next(batches)
print(batches.gi_frame.f_locals["found"]._pool._folder, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_the_memory_of_a_program_that_is_killed_is_free_again():
    command = [sys.executable, "-c", KILLED]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM, done.stderr
    until = time.monotonic() + 30
    while Path(done.stdout.strip()).exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(done.stdout.strip()).exists()


def test_workers_forked_while_work_is_pending():
    x = mx.nd.ones((300, 300))
    for _ in range(5):
        for _ in range(4):
            x = mx.nd.dot(x, x) * 1e-3  # pending while workers are forked
        loader = data.DataLoader(
            data.ArrayDataset(np.ones((8, 3), np.float32)).transform(lambda a: mx.nd.array(a) + 1),
            batch_size=4,
            num_workers=2,
            timeout=60,
        )
        assert [float(b.asnumpy().sum()) for b in loader] == [24.0, 24.0]
        loader.clean()
    assert np.isfinite(x.asnumpy()).all()


def test_workers_and_their_files_are_gone_afterwards():
    loader = data.DataLoader(Squares(), batch_size=2, num_workers=2)
    found = iter(loader)
    next(found)
    pool = found.gi_frame.f_locals["found"]._pool
    processes, folder = [w.process for w in pool.workers], Path(pool._folder)
    assert folder.is_dir()
    found.close()
    assert not any(p.is_alive() for p in processes)
    assert not folder.exists()


def test_a_forked_child_leaves_the_workers_of_its_parent_alone(capfd):
    loader = data.DataLoader(Squares(), batch_size=2, num_workers=2)
    found = iter(loader)
    first = next(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            found.close()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len([first, *found]) == len(loader)
    assert capfd.readouterr().err == ""


def test_workers_end_with_a_loop_that_is_left(monkeypatch, tmp_path):
    def left(loader):
        for _ in loader:
            break

    def raised(loader):
        for _ in loader:
            raise KeyError

    monkeypatch.setattr(shared, "IN_MEMORY", tmp_path)
    before = set(multiprocessing.active_children())
    gc.disable()
    try:
        left(data.DataLoader(Squares(), batch_size=2, num_workers=2))
        loader = data.DataLoader(Squares(), batch_size=2, num_workers=2, pin_memory=True)
        with pytest.raises(KeyError):
            raised(loader)
        assert set(multiprocessing.active_children()) <= before
        assert not list(tmp_path.iterdir())
    finally:
        gc.enable()
    assert len(list(loader)) == 5  # with new workers
    loader.clean()
    assert not list(tmp_path.iterdir())


def test_epochs_begun_ahead():
    loader = data.DataLoader(Squares(), batch_size=5, num_workers=1, auto_reload=True)
    assert [len(list(loader)) for _ in range(3)] == [2, 2, 2]
    loader.clean()
    plain = data.DataLoader(Squares(), batch_size=5)
    plain.refresh()
    assert len(list(plain)) == 2


def test_pinned_batches():
    for x, y in data.DataLoader(Squares(), batch_size=5, pin_memory=True):
        assert (x.context.device_type, y.context.device_type) == ("cpu_pinned", "cpu_pinned")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "batch_size"),
        ({"batch_size": 2, "shuffle": True, "sampler": [1]}, "shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "beside batch_sampler"),
        ({"batch_size": 2, "last_batch": "drop"}, "last_batch"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "3"}, "batch_size.*a whole number or None, got '3'"),
        ({"batch_size": 2.5}, "batch_size.*a whole number or None, got 2.5"),
        ({"batch_size": 1, "timeout": 0}, "timeout"),
    ],
)
def test_arguments_that_contradict(how, words):
    with pytest.raises(ParamError, match=words):
        data.DataLoader(Squares(), **how)


def test_transforms_in_workers():
    t, before = data.vision.transforms, signal.getsignal(signal.SIGINT)
    images = mx.nd.array(np.random.default_rng(0).integers(0, 256, (6, 9, 9, 3)), dtype="uint8")
    change = t.Compose([t.Resize(8), t.RandomFlipLeftRight(), t.ToTensor()])
    source = data.ArrayDataset(images, list(range(6))).transform_first(change)
    loader = data.DataLoader(source, batch_size=3, num_workers=2, timeout=100)
    assert [x.shape for x, _ in loader] == [(3, 3, 8, 8)] * 2
    assert signal.getsignal(signal.SIGINT) is before
