"""training.json: updates, schedules, batches, short trainings and summaries."""

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import training


def make(folder) -> None:
    """Write them."""
    found = {
        "optimizers": {name: training.optimize(mx, name) for name in training.OPTIMIZERS},
        "together": {name: training.optimize(mx, name, True) for name in training.TOGETHER},
        "rounded": {name: training.optimize_rounded(mx, name) for name in training.FAULTY_HALVES},
        "halves": {name: training.optimize_half(mx, name) for name in training.OPTIMIZERS},
        "metrics": {name: training.measure(mx, name) for name in training.METRICS},
        "initial": {
            name: training.initial(mx, name) for name in (*training.INITIALIZERS, *training.DRAWN)
        },
        "schedules": {name: training.schedule(mx, name) for name in training.SCHEDULES},
        "iterators": {name: training.iterate(mx, name) for name in training.ITERATORS},
        "fits": {name: training.fit(mx, name) for name in training.FITS},
        "summaries": {name: training.summarize(mx, name) for name in training.SUMMARIES},
    }
    (folder / "training.json").write_text(json.dumps(found) + "\n")
