"""Functions and augmenters of `mx.image`, pixel by pixel: what the real library and gnomon run.

What is drawn comes from Python's and NumPy's generators, so that a seed gives the same draws.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

EIGEN = {
    "eigval": np.array([55.46, 4.794, 1.148]),
    "eigvec": np.array(
        [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
    ),
}
MEAN, STD = np.array([120.0, 110.0, 100.0]), np.array([58.0, 57.0, 56.0])
SIZES = {"size": (7, 5)}
# name -> (augmenter, its settings, dtype of the image)
AUGMENTERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "resize": ("ResizeAug", {"size": 8}, "uint8"),
    "resize, areas": ("ResizeAug", {"size": 5, "interp": 3}, "uint8"),
    "resize, floats": ("ResizeAug", {"size": 14, "interp": 1}, "float32"),
    "force": ("ForceResizeAug", SIZES, "uint8"),
    "force, nearest": ("ForceResizeAug", {"size": (20, 9), "interp": 0}, "uint8"),
    "random crop": ("RandomCropAug", SIZES, "uint8"),
    "random crop, larger": ("RandomCropAug", {"size": (20, 5), "interp": 1}, "uint8"),
    "sized crop": ("RandomSizedCropAug", {**SIZES, "area": (0.3, 0.8), "ratio": (0.7, 1.4),
                                          "interp": 1}, "uint8"),
    "sized crop, one area": ("RandomSizedCropAug", {**SIZES, "area": 0.5, "ratio": (0.9, 1.1)},
                             "uint8"),
    "sized crop, none fits": ("RandomSizedCropAug", {**SIZES, "area": 0.99, "ratio": (3, 4)},
                              "uint8"),
    "centre": ("CenterCropAug", SIZES, "uint8"),
    "centre, larger": ("CenterCropAug", {"size": (20, 11), "interp": 1}, "uint8"),
    "brightness": ("BrightnessJitterAug", {"brightness": 0.4}, "float32"),
    "contrast": ("ContrastJitterAug", {"contrast": 0.4}, "float32"),
    "saturation": ("SaturationJitterAug", {"saturation": 0.4}, "float32"),
    "hue": ("HueJitterAug", {"hue": 0.3}, "float32"),
    "colours": ("ColorJitterAug", {"brightness": 0.3, "contrast": 0.2, "saturation": 0.1},
                "float32"),
    "lighting": ("LightingAug", {"alphastd": 0.2, **EIGEN}, "float32"),
    "normalized": ("ColorNormalizeAug", {"mean": MEAN, "std": STD}, "float32"),
    "means alone": ("ColorNormalizeAug", {"mean": MEAN, "std": None}, "float32"),
    "gray": ("RandomGrayAug", {"p": 0.5}, "float32"),
    "mirrored": ("HorizontalFlipAug", {"p": 0.5}, "uint8"),
    "cast": ("CastAug", {}, "uint8"),
    "cast to int32": ("CastAug", {"typ": "int32"}, "uint8"),
}  # fmt: skip
# what stands for a list of augmenters
JOINED: dict[str, Callable[[Any], Any]] = {
    "in order": lambda image: image.SequentialAug(
        [image.CastAug(), image.HorizontalFlipAug(0.5), image.BrightnessJitterAug(0.3)]
    ),
    "in any order": lambda image: image.RandomOrderAug(
        [image.HorizontalFlipAug(0.5), image.RandomCropAug((7, 5)), image.CenterCropAug((6, 5))]
    ),
    "borrowed": lambda image: Borrowed(image.DetBorrowAug(image.HorizontalFlipAug(0.5))),
    "made": lambda image: image.SequentialAug(
        image.CreateAugmenter((3, 7, 6), resize=9, rand_crop=True, rand_mirror=True, mean=True,
                              std=True, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.1,
                              pca_noise=0.1, rand_gray=0.3, inter_method=1)
    ),
    "made, resized": lambda image: image.SequentialAug(
        image.CreateAugmenter((3, 7, 6), rand_crop=True, rand_resize=True, inter_method=1)
    ),
    "made, plain": lambda image: image.SequentialAug(image.CreateAugmenter((3, 7, 6))),
}  # fmt: skip
# name -> what is done with the module and an image of bytes
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{f"imresize {k}": lambda m, x, k=k: m.imresize(x, 9, 7, interp=k) for k in range(5)},
    **{f"larger {k}": lambda m, x, k=k: m.imresize(x, 19, 17, interp=k) for k in range(5)},
    "resize_short": lambda m, x: m.resize_short(x, 7),
    "resize_short, larger": lambda m, x: m.resize_short(x, 15, interp=1),
    "resize_short, what suits": lambda m, x: m.resize_short(x, 15, interp=9),
    "fixed_crop": lambda m, x: m.fixed_crop(x, 1, 2, 6, 5),
    "fixed_crop, resized": lambda m, x: m.fixed_crop(x, 1, 2, 6, 5, size=(4, 8), interp=1),
    "random_crop": lambda m, x: m.random_crop(x, (7, 5)),
    "center_crop": lambda m, x: m.center_crop(x, (7, 15)),
    "random_size_crop": lambda m, x: m.random_size_crop(x, (6, 5), 0.4, (0.8, 1.25)),
    "color_normalize": lambda m, x: m.color_normalize(x.astype("f4"), x[:1, :1].astype("f4")),
    "scale_down": lambda m, x: m.scale_down((x.shape[1], x.shape[0]), (30, 11)),
    **{f"border {k}": lambda m, x, k=k: m.copyMakeBorder(x, 1, 2, 3, 0, type=k, values=9)
       for k in range(5)},
}  # fmt: skip


class Borrowed:
    """An augmenter of detection, of whose results the image counts."""

    def __init__(self, augmenter: Any) -> None:
        self.augmenter = augmenter

    def __call__(self, image: Any) -> Any:
        return self.augmenter(image, np.zeros((1, 5)))[0]

    def dumps(self) -> Any:
        return self.augmenter.dumps()


def picture() -> np.ndarray[Any, Any]:
    """An image (height, width, RGB) that is nowhere the same."""
    return np.random.RandomState(0).randint(0, 256, (10, 12, 3)).astype(np.uint8)


def written(found: Any) -> Any:
    """An array, a part and its place, or numbers, as JSON has them."""
    if isinstance(found, tuple):
        return [written(each) for each in found]
    if not hasattr(found, "asnumpy"):
        return int(found)
    values = found.asnumpy()
    return [values.dtype.name, list(values.shape), np.round(values, 3).ravel().tolist()]


def seeded(seed: int) -> None:
    """Start both generators."""
    random.seed(seed)
    np.random.seed(seed)


def results(mx: Any) -> dict[str, Any]:
    """What all of them give, for three seeds where something may be drawn."""
    found: dict[str, Any] = {}
    for name, call in FUNCTIONS.items():
        seeded(1)
        found[f"function {name}"] = written(call(mx.image, mx.nd.array(picture(), dtype="uint8")))
    made = {n: (getattr(mx.image, kind)(**given), dtype)
            for n, (kind, given, dtype) in AUGMENTERS.items()}  # fmt: skip
    made.update({name: (make(mx.image), "uint8") for name, make in JOINED.items()})
    for name, (augmenter, dtype) in made.items():
        rows = []
        for seed in range(3):
            seeded(seed)
            rows.append(written(augmenter(mx.nd.array(picture(), dtype=dtype))))
        found[f"augmenter {name}"] = rows
        found[f"told {name}"] = augmenter.dumps()
    return found
