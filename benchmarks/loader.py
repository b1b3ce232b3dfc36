"""Images a second of `DataLoader` with two workers, beside PyTorch's, where that is installed.

    python benchmarks/loader.py

28x28 images with a transform in Python: a random crop of the padded image, a random mirror image,
normalization. Both libraries run in turn, many times; the ratio is the median of those of turns.
With it stands what the processor does for an image, in all processes together.
"""

from __future__ import annotations

import importlib.util
import statistics
import time

import numpy as np
from measure import processor_time

import gnomon as mx

IMAGES, BATCH, WORKERS, ROUNDS = 4_800, 64, 2, 20


def changed(image: np.ndarray) -> np.ndarray:
    """A random part of the image, mirrored or not, normalized."""
    padded = np.pad(image, ((0, 0), (2, 2), (2, 2)))
    top, left = np.random.randint(0, 5, 2)
    part = padded[:, top : top + 28, left : left + 28]
    part = part[:, :, ::-1] if np.random.rand() < 0.5 else part
    return (part.astype(np.float32) / 255 - 0.13) / 0.31


class Images:
    """Images and labels by number."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (IMAGES, 1, 28, 28)).astype(np.uint8)
        self.labels = rng.integers(0, 10, IMAGES)

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return changed(self.images[index]), int(self.labels[index])


def epoch(loader) -> tuple[float, float]:
    """Images a second, and processor time for an image, of one epoch."""
    spent, begin = processor_time(), time.perf_counter()
    count = sum(len(labels) for _, labels in loader)
    assert count == IMAGES
    return count / (time.perf_counter() - begin), (processor_time() - spent) / count


def main() -> None:
    """Print the rates, and their ratio."""
    source = Images()
    own = mx.gluon.data.DataLoader(source, BATCH, shuffle=True, num_workers=WORKERS)
    loaders = {"gnomon": own}
    if importlib.util.find_spec("torch"):
        from torch.utils.data import DataLoader

        how = {"num_workers": WORKERS, "persistent_workers": True}
        loaders["PyTorch"] = DataLoader(source, BATCH, shuffle=True, **how)
    for loader in loaders.values():
        epoch(loader)  # starts the workers
    found = {name: [] for name in loaders}
    for turn in range(ROUNDS):
        for name, loader in list(loaders.items())[:: -1 if turn % 2 else 1]:
            found[name].append(epoch(loader))
    for name, turns in found.items():
        rates, seconds = zip(*turns, strict=True)
        work = statistics.mean(seconds) * 1e6
        print(f"{name:8} {statistics.median(rates):9.0f} images a second, {work:.1f} us of work")
    if "PyTorch" in found:
        pairs = zip(found["gnomon"], found["PyTorch"], strict=True)
        print(f"ratio    {statistics.median(a / b for (a, _), (b, _) in pairs):9.2f}")


if __name__ == "__main__":
    main()
