"""Images a second of `DataLoader` with two workers, beside PyTorch's, where that is installed.

    python benchmarks/loader.py

28x28 images with a transform in Python: a random crop of the padded image, a random mirror image,
normalization. Both libraries run in turn, several times; the ratio is of the medians.
"""

from __future__ import annotations

import importlib.util
import statistics
import time

import numpy as np

import gnomon as mx

IMAGES, BATCH, WORKERS, ROUNDS = 12_000, 64, 2, 5


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


def rate(loader) -> float:
    """Images a second of one epoch."""
    begin = time.perf_counter()
    count = sum(len(labels) for _, labels in loader)
    assert count == IMAGES
    return count / (time.perf_counter() - begin)


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
        rate(loader)  # starts the workers
    rates = {name: [] for name in loaders}
    for _ in range(ROUNDS):
        for name, loader in loaders.items():
            rates[name].append(rate(loader))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, median in medians.items():
        print(f"{name:8} {median:9.0f} images a second (from {min(rates[name]):.0f})")
    if "PyTorch" in medians:
        print(f"ratio    {medians['gnomon'] / medians['PyTorch']:9.2f}")


if __name__ == "__main__":
    main()
