"""One step of every network of Gluon's zoo, run alike by the real library and by gnomon."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

# the sides of images that the poolings of a family allow, with several pixels at the last layer
SIDES = {"alexnet": 95, "densenet": 224, "inception": 299, "squeezenet": 224}
BATCH, CLASSES = 2, 5


def side(name: str) -> int:
    """The height and width of a network's images."""
    return next((n for family, n in SIDES.items() if name.startswith(family)), 64)


def drawn(key: str, shape: tuple[int, ...]) -> np.ndarray:
    """A parameter's numbers, which its name decides, of a size that keeps that of activations."""
    rng = np.random.RandomState(zlib.crc32(key.encode()))
    if key.endswith("weight"):
        limit = np.sqrt(6 / np.prod(shape[1:]))
        return rng.uniform(-limit, limit, shape).astype("f")
    low = 0.5 if key.endswith(("gamma", "var")) else -0.1
    return rng.uniform(low, low + (1.0 if low > 0 else 0.2), shape).astype("f")


def moved(values: np.ndarray, noise: int) -> np.ndarray:
    """`values`, each off by up to a millionth of itself; as they are where `noise` is 0."""
    off = np.random.RandomState(noise).uniform(-1e-6, 1e-6, values.shape)
    return values * (1 + off) if noise else values


def made(
    mx: Any, name: str, dtype: str = "float32", before: str | None = None, noise: int = 0
) -> tuple[Any, Any]:
    """A network that computes in `dtype`, with parameters that names decide, and its input.

    It computes in `before` first, hybridized and not, where that is given; `noise` moves numbers.
    """
    net = mx.gluon.model_zoo.vision.get_model(name, classes=CLASSES, prefix="net_")
    net.initialize()
    net.cast(before or dtype)
    size = (BATCH, 3, side(name), side(name))
    drawn_x = np.random.RandomState(1).normal(size=size).astype("f")
    x = mx.nd.array(moved(drawn_x, noise), dtype=dtype if noise else "float32")
    for hybrid in (False, True) if before else (False,):
        net.hybridize(hybrid)
        net(x.astype(before or dtype))  # which decides shapes
    net.hybridize(False)
    net.cast(dtype)
    for key, param in net.collect_params().items():
        if param.grad_req == "null" and key.endswith("gamma"):
            continue  # a scale that is fixed: MXNet writes 1 over what it was
        values = moved(drawn(key[len(net.prefix) :], param.shape), noise)
        param.set_data(mx.nd.array(values, dtype=param.dtype))

    def without_drawing(block: Any) -> None:
        if isinstance(block, mx.gluon.nn.Dropout):
            block._rate = 0

    net.apply(without_drawing)
    return net, x.astype(dtype)


def measures(array: Any) -> list[float]:
    """The norm of an array, and its part along a vector of small numbers without a period."""
    values = array.asnumpy().astype("d").ravel()
    along = np.arange(values.size, dtype=np.int64) ** 2 % 10007 % 11 - 5.0
    return [np.linalg.norm(values), values @ along / np.linalg.norm(along)]


def step(
    mx: Any,
    name: str,
    dtype: str = "float32",
    hybrid: bool = False,
    before: str | None = None,
    noise: int = 0,
) -> dict[str, np.ndarray]:
    """What a network predicts and gives in training, and the measures of all gradients.

    Those of the input come first; where a parameter has no gradient, it is measured itself.
    """
    net, x = made(mx, name, dtype, before, noise)
    if hybrid:
        net.hybridize()
    predicted = net(x)
    x.attach_grad()
    with mx.autograd.record():
        output = net(x)
        head = mx.nd.array([[1, -2, 3, -1, 0.5], [0.5, 1, -3, 2, -1]], dtype=dtype)
        total = (output * head).sum()
    total.backward()
    params = net.collect_params().values()
    arrays = [x.grad, *(p.data() if p.grad_req == "null" else p.grad() for p in params)]
    return {
        "predicted": predicted.asnumpy(),
        "output": output.asnumpy(),
        "measures": np.array([measures(a) for a in arrays]),
    }


def deviation(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """How far two results of `step` are from each other, relative to their sizes.

    Gradients that are 0 but for rounding, as of a bias that a BatchNorm takes away, count as large
    as a hundredth of the median.
    """
    norms = expected["measures"][:, :1]
    sizes = {key: np.abs(value).max() for key, value in expected.items()}
    sizes["measures"] = np.maximum(norms, np.median(norms) / 100)
    return max(float(np.max(np.abs(found[key] - expected[key]) / sizes[key])) for key in expected)


def saved(mx: Any, name: str, folder: Path) -> dict[str, str]:
    """Save a network in all ways, and give digests of the files with parameters."""
    net, x = made(mx, name)
    net.hybridize()
    net(x)
    net.save_parameters(str(folder / "attributes.params"))
    net.collect_params().save(str(folder / "names.params"), net.prefix)
    net.export(str(folder / "exported"))
    files = "attributes.params", "names.params", "exported-0000.params"
    return {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in files}
