"""Images and records a second: `ImageRecordIter` beside a plain script, PyTorch and MXNet.

    python benchmarks/io.py [--mxnet PYTHON]

256x256 JPEGs from a record file, random crops of 224x224, mirrored, normalised, in float32 batches
of 128 by 2 threads. The plain script decodes with simplejpeg, crops and mirrors in uint8 on 2
threads. PyTorch has 2 workers that do in NumPy what torchvision's transforms do. MXNet runs by the
interpreter PYTHON. All run in turn, several times; the ratios are of the medians. Of iterators that
make batches ahead the first ones of a run are not timed, as they may have been ready. On a machine
that does other work, what the processor does for an image, in all processes of a contender, says
more: it stands beside.

Then: records a second beside reading the file, memory while batches wait, and what a ResNet-20
waits for data of the time that it trains from such a file.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from measure import processor_time

import gnomon as mx

IMAGES, BATCH, THREADS, SIDE, CROP, ROUNDS = 2048, 128, 2, 256, 224, 5
AHEAD = 6  # batches that iterators may have ready before they are asked: these are not timed
MEAN, STD = np.array([123.7, 116.8, 103.9], np.float32), np.array([58.4, 57.1, 57.4], np.float32)
OPTIONS = {
    "data_shape": (3, CROP, CROP), "batch_size": BATCH, "preprocess_threads": THREADS,
    "rand_crop": True, "rand_mirror": True, "mean_r": 123.7, "mean_g": 116.8, "mean_b": 103.9,
    "std_r": 58.4, "std_g": 57.1, "std_b": 57.4, "round_batch": False,
}  # fmt: skip


def picture(rng: np.random.Generator) -> np.ndarray:
    """An image with the smooth parts and the edges of a photograph."""
    small = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    smooth = cv2.resize(small, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    noise = rng.normal(0, 6, smooth.shape)
    return np.clip(smooth + noise, 0, 255).astype(np.uint8)


def write(path: str) -> None:
    """A record file of `IMAGES` JPEGs."""
    rng = np.random.default_rng(0)
    data = [simplejpeg.encode_jpeg(picture(rng), quality=90, colorspace="RGB") for _ in range(64)]
    with mx.recordio.MXRecordIO(path, "w") as out:
        for k in range(IMAGES):
            out.write(mx.recordio.pack((0, float(k % 10), k, 0), data[k % 64]))


def contents(path: str) -> list[bytes]:
    """The JPEGs in the file."""
    with mx.recordio.MXRecordIO(path, "r") as file:
        return [mx.recordio.unpack(each)[1] for each in file]


def part(data: bytes, rng: np.random.Generator) -> np.ndarray:
    """A random crop of a JPEG, mirrored or not."""
    image = simplejpeg.decode_jpeg(data, fastdct=False, fastupsample=False)
    top, left = rng.integers(0, SIDE - CROP + 1, 2)
    image = image[top : top + CROP, left : left + CROP]
    return cv2.flip(image, 1) if rng.random() < 0.5 else image


def plain(path: str) -> Callable[[], int]:
    """Batches of uint8 on two threads: what can be had by hand."""
    images = contents(path)

    def fill(batch: np.ndarray, first: int, start: int, stop: int) -> None:
        rng = np.random.default_rng(first + start)
        for k in range(start, stop):
            batch[k] = part(images[first + k], rng)

    def epoch() -> int:
        count = 0
        with ThreadPoolExecutor(THREADS) as pool:
            for first in range(0, IMAGES, BATCH):
                batch = np.empty((BATCH, CROP, CROP, 3), np.uint8)
                step = BATCH // THREADS
                work = [pool.submit(fill, batch, first, k, k + step) for k in range(0, BATCH, step)]
                for each in work:
                    each.result()
                count += len(batch)
        return count

    return epoch


def own(path: str) -> Callable[[], float]:
    """gnomon's iterator."""
    it = mx.io.ImageRecordIter(path_imgrec=path, **OPTIONS)

    def epoch() -> float:
        it.reset()
        return steady(it)

    return epoch


def steady(it: mx.io.DataIter) -> float:
    """Images a second of an iterator's epoch but for the first batches; rests until it rests."""
    count = 0
    for number, batch in enumerate(it):
        batch.data[0].wait_to_read()
        if number == AHEAD:
            begin = time.perf_counter()
        elif number > AHEAD:
            count += len(batch.data[0])
    found = count / (time.perf_counter() - begin)
    time.sleep(AHEAD * BATCH / found)
    return found


class Images:
    """Images and labels by number, as PyTorch's loader takes them."""

    def __init__(self, path: str) -> None:
        self.images = contents(path)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, k: int) -> tuple[np.ndarray, int]:
        image = part(self.images[k], np.random.default_rng()).astype(np.float32)
        return np.ascontiguousarray(((image - MEAN) / STD).transpose(2, 0, 1)), k % 10


def torch_loader(path: str) -> Callable[[], int]:
    """PyTorch's loader with two workers."""
    from torch.utils.data import DataLoader

    loader = DataLoader(Images(path), BATCH, num_workers=THREADS, persistent_workers=True)
    return lambda: sum(len(images) for images, _ in loader)


MXNET = """
import sys, time, mxnet as mx
AHEAD, BATCH = {ahead}, {batch}
{steady}
it = mx.io.ImageRecordIter(path_imgrec={path!r}, verbose=False, **{options!r})
for line in sys.stdin:
    it.reset()
    print("took", steady(it), flush=True)
"""


def real(python: str, path: str) -> Callable[[], float]:
    """MXNet's iterator in its own process; an epoch gives images a second."""
    program = MXNET.format(
        path=path, options=OPTIONS, ahead=AHEAD, batch=BATCH, steady=inspect.getsource(steady)
    )
    process = subprocess.Popen(
        [python, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip

    def epoch() -> float:
        process.stdin.write("\n")
        process.stdin.flush()
        line = next(each for each in process.stdout if each.startswith("took"))
        return float(line.split()[1])

    return epoch


def rate(epoch: Callable[[], int]) -> Callable[[], float]:
    """Images a second of an epoch."""

    def measured() -> float:
        begin = time.perf_counter()
        count = epoch()
        return count / (time.perf_counter() - begin)

    return measured


def images(path: str, mxnet: str | None) -> None:
    """Images a second of all that there are."""
    runs = {"gnomon": own(path), "plain script": rate(plain(path))}
    if importlib.util.find_spec("torch"):
        runs["PyTorch"] = rate(torch_loader(path))
    if mxnet:
        runs["MXNet"] = real(mxnet, path)
    for run in runs.values():
        run()
    rates: dict[str, list[float]] = {name: [] for name in runs}
    works: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = processor_time()
            rates[name].append(run())
            works[name].append((processor_time() - begin) / IMAGES * 1e6)
    found = {name: statistics.median(each) for name, each in rates.items()}
    work = {name: statistics.median(each) for name, each in works.items()}
    for name, median in found.items():
        ratio, effort = found["gnomon"] / median, work[name] / work["gnomon"]
        print(
            f"{name:13}{median:8.0f} images a second; gnomon is {ratio:.2f} of it; "
            f"{work[name]:.0f} us of work for an image, {effort:.2f} of gnomon's"
        )


def reading(path: str) -> None:
    """Records beside the bytes of the file."""
    size = Path(path).stat().st_size

    def whole() -> float:
        begin = time.perf_counter()
        with Path(path).open("rb") as stream:
            while stream.read(1 << 20):
                pass
        return size / (time.perf_counter() - begin)

    def records() -> float:
        begin = time.perf_counter()
        with mx.recordio.MXRecordIO(path, "r") as file:
            for _ in file:
                pass
        return size / (time.perf_counter() - begin)

    rates = {"file": [], "records": []}
    for _ in range(3 * ROUNDS):
        rates["file"].append(whole())
        rates["records"].append(records())
    file, record = (statistics.median(each) / 1e9 for each in rates.values())
    print(f"reading the file {file:.2f} GB/s, its records {record:.2f} GB/s: {record / file:.2f}")


def memory(path: str) -> None:
    """How much memory grows while batches wait to be read."""
    for ahead in (1, 8):
        it = mx.io.ImageRecordIter(path_imgrec=path, prefetch_buffer=ahead, **OPTIONS)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            it.reset()
            for batch in it:
                batch.data[0].wait_to_read()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"prefetch_buffer={ahead}: memory grows by {grown:.0f} MB")


def blocks(channels: int, stride: int) -> mx.gluon.nn.HybridSequential:
    """Three residual blocks of ResNet-20."""
    layer = mx.gluon.nn.HybridSequential()
    for k in range(3):
        first = stride if k == 0 else 1
        layer.add(mx.gluon.model_zoo.vision.BasicBlockV1(channels, first, downsample=k == 0))
    return layer


def timed(it: mx.io.DataIter, spent: list[float]) -> Iterator[mx.io.DataBatch]:
    """The batches of an iterator; `spent` gets what each one was waited for."""
    while True:
        begin = time.perf_counter()
        try:
            batch = it.next()
            batch.data[0].wait_to_read()
        except StopIteration:
            return
        spent.append(time.perf_counter() - begin)
        yield batch


def training(path: str) -> None:
    """How much of its time a ResNet-20 waits for 32x32 crops."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        net.add(blocks(channels, stride))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    options = {**OPTIONS, "data_shape": (3, 32, 32)}
    it = mx.io.ImageRecordIter(path_imgrec=path, **options)
    for epoch in range(3):
        it.reset()
        spent: list[float] = []
        begin = time.perf_counter()
        for batch in timed(it, spent):
            with mx.autograd.record():
                value = loss(net(batch.data[0]), batch.label[0])
            value.backward()
            trainer.step(BATCH)
            mx.nd.waitall()  # else the next batch would wait for the step, not for data
        whole = time.perf_counter() - begin
        if epoch:
            print(f"ResNet-20: {sum(spent) / whole:.1%} of {whole:.1f} s waits for data")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", help="an interpreter that imports MXNet")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/images.rec"
        write(path)
        images(path, given.mxnet)
        reading(path)
        memory(path)
    with tempfile.TemporaryDirectory() as folder:
        global SIDE, CROP
        SIDE, CROP = 36, 32
        path = f"{folder}/small.rec"
        write(path)
        training(path)


if __name__ == "__main__":
    main()
