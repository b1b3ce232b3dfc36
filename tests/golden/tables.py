"""Iterators over tables and over MNIST's files: what the real library and gnomon run."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

CSV = {"data_csv": "d.csv", "data_shape": (3,)}
SVM = {"data_libsvm": "a.svm", "data_shape": (6,)}
IDX = {"image": "im", "label": "lb", "shuffle": False, "silent": True}
# name -> (iterator, its options)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "csv": ("CSVIter", {**CSV, "batch_size": 3}),
    "csv, labels": ("CSVIter", {**CSV, "label_csv": "l.csv", "batch_size": 3}),
    "csv, no rounds": ("CSVIter", {**CSV, "label_csv": "l.csv", "batch_size": 3,
                                   "round_batch": False}),
    "csv, two axes": ("CSVIter", {"data_csv": "d.csv", "data_shape": (1, 3), "batch_size": 2,
                                  "label_csv": "d.csv", "label_shape": (3,)}),
    "csv, whole numbers": ("CSVIter", {**CSV, "batch_size": 7, "dtype": "int32"}),
    "csv, long whole numbers": ("CSVIter", {**CSV, "batch_size": 7, "dtype": "int64"}),
    "csv, batches as large": ("CSVIter", {**CSV, "batch_size": 7}),
    "csv, without prefetching": ("CSVIter", {**CSV, "batch_size": 2, "prefetch_buffer": 1}),
    "svm": ("LibSVMIter", {**SVM, "batch_size": 2}),
    "svm, rounds": ("LibSVMIter", {**SVM, "batch_size": 4}),
    "svm, labels": ("LibSVMIter", {**SVM, "label_libsvm": "l.svm", "label_shape": (4,),
                                   "batch_size": 3}),
    "mnist": ("MNISTIter", {**IDX, "batch_size": 3}),
    "mnist, flat": ("MNISTIter", {**IDX, "batch_size": 2, "flat": True}),
    "mnist, whole": ("MNISTIter", {**IDX, "batch_size": 7}),
    "mnist, as text": ("MNISTIter", {**IDX, "batch_size": 3, "flat": "True", "shuffle": "0"}),
    **{f"mnist, part {k}": ("MNISTIter", {**IDX, "batch_size": 1, "num_parts": 3,
                                          "part_index": k}) for k in range(3)},
    "mnist, shuffled": ("MNISTIter", {**IDX, "batch_size": 7, "shuffle": True, "seed": 3}),
}  # fmt: skip


def write(folder: Any) -> None:
    """The files that the cases name."""
    rng = np.random.RandomState(1)
    rows = rng.randint(-50, 50, (7, 3))
    (folder / "d.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    (folder / "l.csv").write_text("".join(f"{k / 2}\n" for k in range(7)))
    sparse = ["1 0:1.5 3:2", "0 1:1", "2 2:3 3:4 5:0.25", "1 0:7", "0.5", "-1 5:1e-2"]
    (folder / "a.svm").write_text("\n".join(sparse) + "\n")
    labels = ["-2 0:1 2:5", "-3 1:2", "0 2:3", "1 0:4", "1 1:5", "-2.5 3:1"]
    (folder / "l.svm").write_text("\n".join(labels) + "\n")
    pictures = rng.randint(0, 256, (7, 4, 5)).astype(np.uint8)
    (folder / "im").write_bytes(struct.pack(">4I", 0x803, *pictures.shape) + pictures.tobytes())
    (folder / "lb").write_bytes(struct.pack(">2I", 0x801, 7) + bytes(range(7)))


def numbers(array: Any) -> list[Any]:
    """Storage, dtype and values."""
    values = array.asnumpy()
    return [array.stype, values.dtype.name, np.round(values.astype("d"), 6).tolist()]


def described(descriptions: Any) -> list[Any]:
    """Names, shapes and dtypes of what a batch has."""
    return [[d.name, list(d.shape), np.dtype(d.dtype).name, d.layout] for d in descriptions]


def epochs(mx: Any, folder: Any, name: str, suffix: str = "") -> dict[str, Any]:
    """Batches of three epochs, shuffled rows in the order of labels; `suffix` ends files' names."""
    kind, options = CASES[name]
    files = {k: f"{folder}/{v}{suffix}" if k.split("_")[0] in ("data", "label", "image") and
             isinstance(v, str) else v for k, v in options.items()}  # fmt: skip
    it = getattr(mx.io, kind)(**files)
    found = []
    for epoch in range(3):
        if epoch:
            it.reset()
        for batch in it:
            data, label = numbers(batch.data[0]), numbers(batch.label[0])
            if batch.pad and options.get("round_batch") is False:  # what pads is of no meaning
                data[2], label[2] = data[2][: -batch.pad], label[2][: -batch.pad]
            if options.get("shuffle") is True:
                rows = sorted(zip(label[2], data[2], strict=True))
                data[2], label[2] = [r[1] for r in rows], [r[0] for r in rows]
            found.append([epoch, data, label, batch.pad])
    return {"data": described(it.provide_data), "label": described(it.provide_label),
            "batches": found}  # fmt: skip
