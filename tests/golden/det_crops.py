"""What `ImageDetRecordIter` draws: windows, canvases and colours, as numbers to compare."""

from __future__ import annotations

from typing import Any

import numpy as np

HEIGHT, WIDTH = 100, 200
LABEL = [2, 5, 0, 0.3, 0.3, 0.6, 0.7, 1, 0.1, 0.1, 0.2, 0.25]
SMALL = {"rand_crop_prob": 1.0, "min_crop_scales": 0.3}
CASES: dict[str, dict[str, Any]] = {
    "scale": SMALL,
    "half": {**SMALL, "rand_crop_prob": 0.5, "max_crop_scales": 0.6},
    "ratio": {**SMALL, "min_crop_aspect_ratios": 0.5, "max_crop_aspect_ratios": 2.0},
    "overlap": {**SMALL, "min_crop_overlaps": 0.4},
    "most": {**SMALL, "max_crop_overlaps": 0.2},
    "sample": {"rand_crop_prob": 1.0, "min_crop_scales": 0.2, "min_crop_sample_coverages": 0.3},
    "object": {**SMALL, "min_crop_object_coverages": 0.8},
    "trials": {**SMALL, "max_crop_scales": 0.5, "min_crop_object_coverages": 0.95,
               "max_crop_trials": 2},
    "emit": {**SMALL, "crop_emit_mode": "overlap", "emit_overlap_thresh": 0.5},
    "two": {
        "rand_crop_prob": 1.0, "num_crop_sampler": 2,
        "min_crop_scales": (0.3, 0.8), "max_crop_scales": (0.4, 1.0),
        "min_crop_aspect_ratios": (1, 1), "max_crop_aspect_ratios": (1, 1),
        "min_crop_overlaps": (0, 0), "max_crop_overlaps": (1, 1),
        "min_crop_sample_coverages": (0, 0), "max_crop_sample_coverages": (1, 1),
        "min_crop_object_coverages": (0, 0), "max_crop_object_coverages": (1, 1),
        "max_crop_trials": (25, 25),
    },
    "pad": {"rand_pad_prob": 0.7, "max_pad_scale": 3.0},
    "all": {**SMALL, "rand_pad_prob": 0.7, "max_pad_scale": 3.0, "rand_crop_prob": 0.8,
            "rand_mirror_prob": 0.5},
    "contrast": {"max_random_contrast": 0.5, "random_contrast_prob": 0.7},
    "lightness": {"max_random_illumination": 60, "random_illumination_prob": 0.7},
    "saturation": {"max_random_saturation": 60, "random_saturation_prob": 0.7},
    "hue": {"max_random_hue": 60, "random_hue_prob": 0.7},
}  # fmt: skip


def picture() -> Any:
    """An image (height, width, RGB) whose colours say where they are."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[..., 0] = np.arange(WIDTH)
    image[..., 1] = np.arange(HEIGHT)[:, None] * 2
    image[..., 2] = 50
    return image


def numbers(image: Any, label: Any) -> list[float]:
    """What is compared of an image (channels, height, width) and its label."""
    red, green, blue = image
    middle = [float(x[HEIGHT // 2, WIDTH // 2]) for x in image]
    edges = [red[0, 0], red[0, -1], green[0, 0], green[-1, 0]]
    first = [float(x) for x in label[6:11]]
    return [*map(float, edges), *middle, float((blue == 127).mean()), float(label[3]), *first]


def drawn(mx: Any, path: str, epochs: int, **options: Any) -> Any:
    """Rows of `numbers` from a record file of equal images."""
    it = mx.io.ImageDetRecordIter(
        path_imgrec=path, data_shape=(3, HEIGHT, WIDTH), batch_size=50, inter_method=0,
        preprocess_threads=2, **options,
    )  # fmt: skip
    rows = []
    for _ in range(epochs):
        it.reset()
        for batch in it:
            pairs = zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True)
            rows += [numbers(*pair) for pair in pairs]
    return np.array(rows)


def write(mx: Any, path: str, count: int, cv2: Any) -> None:
    """A record file of `count` equal images."""
    data = cv2.imencode(".png", picture()[:, :, ::-1])[1].tobytes()
    out = mx.recordio.MXRecordIO(path, "w")
    for k in range(count):
        out.write(mx.recordio.pack((0, np.array(LABEL, np.float32), k, 0), data))
    out.close()


def quantiles(rows: Any, count: int = 41) -> list[list[float]]:
    """The distribution of each column, as quantiles."""
    return np.quantile(rows, np.linspace(0, 1, count), axis=0).T.round(4).tolist()


def distance(rows: Any, wanted: list[list[float]], rounding: float) -> float:
    """How far the shares of draws up to each quantile are from what they were, at most.

    Draws that differ by no more than `rounding` are equal; where many are equal, a quantile lies
    between two shares.
    """
    most = 0.0
    for column, each in zip(np.sort(rows, axis=0).T, wanted, strict=True):
        shares = np.linspace(0, 1, len(each))
        below = np.searchsorted(column, np.array(each) - rounding, "left") / len(column)
        upto = np.searchsorted(column, np.array(each) + rounding, "right") / len(column)
        most = max(most, float(np.maximum(below - shares, shares - upto).max()))
    return most
