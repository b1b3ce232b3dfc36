"""Transforms, samplers, data sets and utilities of Gluon, run alike by both libraries.

`record(mx)` gives names of cases and what they gave: `[dtype, shape, numbers]` for an array, plain
lists for the rest. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def told(found: Any) -> Any:
    """What a case gave, as JSON holds it; of images a third of the numbers."""
    if hasattr(found, "asnumpy"):
        values = found.asnumpy()
        numbers = values.astype(np.float64).ravel()[:: 7 if values.size > 500 else 1]
        return [str(values.dtype), list(values.shape), [round(float(x), 6) for x in numbers]]
    if isinstance(found, (list, tuple)):
        return [told(each) for each in found]
    return found if isinstance(found, (int, str)) else float(found)


def transforms(mx: Any) -> dict[str, Callable[[], Any]]:
    """Those of images that draw nothing, by name."""
    t = mx.gluon.data.vision.transforms
    return {
        "to tensor": t.ToTensor,
        "normalize": lambda: t.Compose([t.ToTensor(), t.Normalize((0.1, 0.2, 0.3), (0.5, 1, 2))]),
        "normalize one": lambda: t.Compose([t.ToTensor(), t.Normalize(0.2, 0.5)]),
        "resize": lambda: t.Resize(20),
        "resize to": lambda: t.Resize((30, 20)),
        "resize, ratio kept": lambda: t.Resize(20, keep_ratio=True),
        "crop and resize": lambda: t.CropResize(3, 4, 20, 15, size=(8, 9), interpolation=1),
        "crop": lambda: t.CropResize(3, 4, 20, 15),
        "cast": lambda: t.Cast("float16"),
        "brightness": lambda: t.RandomBrightness(0.0),
        "contrast": lambda: t.RandomContrast(0.0),
        "saturation": lambda: t.RandomSaturation(0.0),
        "lighting": lambda: t.RandomLighting(0.0),
        "rarely applied": lambda: t.RandomApply(t.Cast("float32"), p=0),
    }


def images(mx: Any) -> dict[str, Any]:
    """What each transform gives of an image, and of a batch where it takes one."""
    rng = np.random.RandomState(0)
    one = mx.nd.array(rng.randint(0, 256, (37, 50, 3)), dtype="uint8")
    two = mx.nd.array(rng.randint(0, 256, (2, 30, 25, 3)), dtype="uint8")
    found = {name: make()(one) for name, make in transforms(mx).items()}
    for name in ("to tensor", "normalize", "resize", "crop", "crop and resize", "cast"):
        found[f"{name}, batch"] = transforms(mx)[name]()(two)
    found["center"] = mx.gluon.data.vision.transforms.CenterCrop((30, 10))(one)
    found["center of a small one"] = mx.gluon.data.vision.transforms.CenterCrop((60, 60))(one)
    planes = mx.nd.array(rng.rand(3, 21, 17).astype(np.float32))
    for degrees, more in ((30, {}), (-45, {"zoom_in": True}), (10, {"zoom_out": True})):
        rotate = mx.gluon.data.vision.transforms.Rotate(degrees, **more)
        found[f"rotate {degrees}"] = rotate(planes)
    return found


def numbers(mx: Any) -> dict[str, Any]:
    """Samplers and data sets."""
    data, more = mx.gluon.data, mx.gluon.contrib.data
    tens = data.SimpleDataset(list(range(10)))
    found = {
        "interval": [list(more.IntervalSampler(10, 3, rollover=r)) for r in (True, False)],
        "filter": list(data.FilterSampler(lambda x: x % 2 == 0, tens)),
        "filtered": list(tens.filter(lambda x: x > 3)),
        "shards": [list(tens.shard(3, k)) for k in range(3)],
        "taken": [list(tens.take(4)), len(tens.take(None))],
        "sampled": list(tens.sample(data.SequentialSampler(3))),
        "transformed": list(tens.transform(lambda x: x * 2)),
        "pair": data.ArrayDataset([1, 2, 3], [4, 5, 6]).transform_first(lambda x: -x)[1],
    }
    for last in ("keep", "discard", "rollover"):
        batches = data.BatchSampler(data.SequentialSampler(10), 4, last)
        found[last] = [list(batches), list(batches), len(batches), list(batches)]
    return found


def utilities(mx: Any) -> dict[str, Any]:
    """Splitting, clipping, and what is computed for sequences of their own lengths."""
    split = mx.gluon.utils.split_data
    four, seven = mx.nd.arange(24).reshape((4, 6)), mx.nd.arange(21).reshape((7, 3))
    arrays = [mx.nd.array([3.0, 4.0]), mx.nd.array([[12.0]])]
    cell = mx.gluon.rnn.GRUCell(3, prefix="cell_")
    cell.initialize(mx.init.One())
    steps = mx.nd.array(np.random.RandomState(1).rand(4, 2, 5))
    unroll = mx.gluon.contrib.rnn.rnn_cell.dynamic_unroll
    return {
        "split": split(four, 2),
        "split columns": split(four, 2, batch_axis=1),
        "split unevenly": split(seven, 3, even_split=False),
        "clipped": [mx.gluon.utils.clip_global_norm(arrays, 5), *arrays],
        "unrolled": unroll(cell, steps, cell.begin_state(2), valid_length=mx.nd.array([2, 4])),
        "function": mx.gluon.nn.Lambda("tanh")(four),
    }


def record(mx: Any) -> dict[str, Any]:
    """All of it."""
    return {k: told(x) for part in (images, numbers, utilities) for k, x in part(mx).items()}
