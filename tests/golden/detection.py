"""Augmenters of detection, rotation and `ImageDetIter`: what the real library and gnomon run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

LABEL = np.array(
    [[0, 0.1, 0.1, 0.4, 0.5], [1, 0.5, 0.5, 0.9, 0.8], [2, 0.5, 0.5, 0.51, 0.51]], np.float32
)
CROPS = [
    {},
    {"min_object_covered": 0.9, "area_range": (0.5, 1.0)},
    {"min_object_covered": 0, "min_eject_coverage": 0.9},
    {"aspect_ratio_range": 1.0, "area_range": (0.3, 0.35), "max_attempts": 3},
    {"aspect_ratio_range": (0.2, 5.0), "area_range": (0.01, 3.0)},
    {"min_object_covered": 1.0, "max_attempts": 5},
]
PADS = [
    {},
    {"aspect_ratio_range": (0.5, 2.0), "area_range": (0.5, 2.0), "pad_val": (1, 2, 3)},
    {"area_range": (1.0, 1.05), "max_attempts": 5},
]
CHAINS = [
    {"inter_method": 1},
    {"resize": 30, "rand_crop": 0.7, "rand_pad": 0.6, "rand_mirror": True, "mean": True,
     "std": True, "inter_method": 1, "min_object_covered": [0.1, 0.5, 0.9]},
    {"rand_crop": 1, "rand_gray": 0.5, "brightness": 0.2, "contrast": 0.2, "saturation": 0.2,
     "hue": 0.1, "pca_noise": 0.1, "inter_method": 1},
]  # fmt: skip
ROTATIONS = [(30, False, False), (90, False, False), (-45, True, False), (200, False, True)]


def picture(mx: Any, height: int = 40, width: int = 60) -> Any:
    """An image that is nowhere the same."""
    y, x = np.mgrid[:height, :width]
    values = np.stack([3 * y + x, 255 - 2 * y, (x * y) % 256], axis=2) % 256
    return mx.nd.array(values, dtype="uint8")


def augmenters(mx: Any) -> list[Any]:
    """All augmenters and chains of them, in order."""
    image = mx.image
    return [
        image.DetHorizontalFlipAug(0.5),
        *(image.DetRandomCropAug(**given) for given in CROPS),
        *(image.DetRandomPadAug(**given) for given in PADS),
        image.DetRandomSelectAug([image.DetHorizontalFlipAug(1), image.DetRandomPadAug()], 0.3),
        image.CreateMultiRandCropAugmenter([0.1, 0.3], skip_prob=0.2),
    ]


def summary(image: Any, label: Any) -> list[Any]:
    """What is compared of an image and its label."""
    values = image.asnumpy().astype("d")
    means = np.round(values.mean(axis=(0, 1)), 4).tolist()
    return [list(values.shape), means, np.round(label.astype("d"), 5).tolist()]


def drawn(mx: Any) -> list[Any]:
    """What the augmenters make of an image, with several seeds."""
    found = []
    for each in augmenters(mx):
        results = []
        for seed in range(12):
            random.seed(seed)
            image, label = each(picture(mx), LABEL.copy())
            results.append(summary(image, label))
        found.append([each.dumps(), results])
    for given in CHAINS:
        chain = mx.image.CreateDetAugmenter((3, 20, 30), **given)
        results = []
        for seed in range(4):
            random.seed(seed)
            np.random.seed(seed)
            image, label = picture(mx), LABEL.copy()
            for each in chain:
                image, label = each(image, label)
            results.append(summary(image, label))
        found.append([[each.dumps() for each in chain], results])
    return found


def rotated(mx: Any) -> list[Any]:
    """Images and batches, rotated."""
    one = mx.nd.array(np.arange(40).reshape(2, 4, 5))
    two = mx.nd.array(np.arange(80).reshape(2, 2, 4, 5))
    images = [mx.image.imrotate(one, *given) for given in ROTATIONS]
    images.append(mx.image.imrotate(two, mx.nd.array([30, 60]), zoom_in=True))
    np.random.seed(3)
    images.append(mx.image.random_rotate(one, (-30, 30)))
    images.append(mx.image.random_rotate(two, (-90, 90), zoom_out=True))
    return [np.round(x.asnumpy().astype("d"), 4).tolist() for x in images]


def labelled(folder: Any) -> list[Any]:
    """Rows of an `imglist` whose images are `folder / "0.png"` to "4.png"."""
    rows = []
    for k in range(5):
        objects = [x for i in range(1 + k % 3) for x in (i, 0.1 * i, 0.1, 0.1 * i + 0.3, 0.5)]
        rows.append([np.array([2, 5, *objects]), f"{folder}/{k}.png"])
    return rows


def batches(mx: Any, folder: Any) -> list[Any]:
    """What `ImageDetIter` gives of files in a folder."""
    found = []
    for handle in ("pad", "discard", "roll_over"):
        random.seed(5)
        it = mx.image.ImageDetIter(
            2, (3, 20, 30), imglist=labelled(folder), path_root="", shuffle=True, rand_crop=0.5,
            rand_pad=0.5, rand_mirror=True, inter_method=1,
            last_batch_handle=handle,
        )  # fmt: skip
        for epoch in range(3):
            if epoch:
                it.reset()
            for batch in it:
                data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
                means = np.round(data.astype("d").mean(axis=(2, 3)), 3).tolist()
                found.append([epoch, means, np.round(label.astype("d"), 5).tolist(), batch.pad])
    return found


def files(mx: Any, folder: Any, cv2: Any) -> None:
    """Write the images that `labelled` names."""
    for k in range(5):
        cv2.imwrite(f"{folder}/{k}.png", picture(mx, 40 + k, 60 - k).asnumpy()[:, :, ::-1])


def results(mx: Any, folder: Any, cv2: Any) -> dict[str, Any]:
    """All of it."""
    files(mx, folder, cv2)
    return {"drawn": drawn(mx), "rotated": rotated(mx), "batches": batches(mx, folder)}
