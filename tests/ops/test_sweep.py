"""Every operator with other dtypes, options and special numbers gives what MXNet gave.

`tests/golden/make_sweep.py` recorded it. A part that a fixed seed draws is tried each time, the
rest with `-m long`. What differs stands in DIFFERS with its reason, and must differ.
"""

from __future__ import annotations

import functools
import json
import random
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from golden.inputs import initial
from ops.test_golden import compare, inputs, run

from gnomon.base import GnomonError

FILE = Path(__file__).parent.parent / "golden" / "sweep"
RECORDS = json.loads(FILE.with_suffix(".json").read_text(encoding="utf-8"))
ALWAYS = frozenset(random.Random(18).sample(range(len(RECORDS)), 100))

# docs/differences.md says more of each
DIFFERS = {
    "a rectifier of NaN is 0 in oneDNN": (
        "Activation-relu-float32 special data",
        "RNN-rnn_relu special *",
        "hard_sigmoid-float32 special data",
    ),
    "NaN comes last": ("argsort-up special data", "sort-up special data", "topk-up special data"),
    "a choice gives its gradient to the operand that is taken, where MXNet finds none at NaN": (
        "_maximum-float32 special *",
        "_minimum-float32 special *",
        "broadcast_maximum-same special *",
        "broadcast_minimum-same special *",
        "Pooling_v1-max valid special data",
        "SVMOutput-linear False special data",
    ),
    "a row of a softmax that holds NaN or an infinity is NaN": (
        "log_softmax-float32 special data",
        "softmax-float32 special data",
    ),
    "a product of others, not the product divided by an element": (
        "nanprod-all special data",
        "prod-all special data",
        "prod-all float16",
    ),
    "weights of samples and places that are not finite": (
        "BilinearSampler-* special *",
        "SpatialTransformer-* special loc",
        "_contrib_DeformableConvolution-plain special data",
        "_contrib_DeformablePSROIPooling-fixed special data",
        "_contrib_ROIAlign-plain special data",
    ),
    "scores and corners that are no numbers": (
        "_contrib_MultiBoxDetection-plain special *",
        "_contrib_MultiProposal-plain special cls_prob",
        "_contrib_Proposal-plain special cls_prob",
        "_contrib_bipartite_matching-plain special data",
        "_contrib_box_iou-corner special lhs",
    ),
    "derivatives at poles, and the sign of zeros": (
        "_power-float32 special lhs",
        "broadcast_power-same special lhs",
        "gamma-float32 special data",
        "gammaln-float32 special data",
        "rsqrt-float32 special data",
        "_linalg_gelqf-float32 special A",
        "_contrib_SyncBatchNorm-True special gamma",
    ),
    "likelihoods of what cannot be drawn": (
        "_random_pdf_exponential-False-float32 special sample",
        "_random_pdf_gamma-False-float32 special sample",
        "_random_pdf_normal-False-float32 special sigma",
        "_random_pdf_uniform-False-float32 special sample",
    ),
    "numbers that an integer dtype has not: the nearest, NaN 0": (
        "Cast-* dtype=uint8",
        "Convolution-1d int8",
        "amp_cast-98 dtype=int32",
        "amp_cast-98 dtype=*int8",
        "amp_cast-back dtype=uint8",
        "arccos-float32 int[36]*",
        "arcsin-float32 int[36]*",
        "arctanh-float32 *int*",
        "degrees-float32 *int8",
        "erfinv-float32 *int*",
        "exp-float32 int8",
        "expm1-float32 int8",
        "gamma-float32 *int*",
        "one_hot-values dtype=uint8",
        "tan-float32 uint8",
    ),
    "operators of reals refuse integers": (
        "_contrib_hawkesll-108 *int*",
        "smooth_l1-1.0 *int*",
    ),
    "edges of bins between integers": ("_histogram-845 *int*",),
    "labels that are blanks": ("CTCLoss-first blank_label=last", "CTCLoss-last blank_label=first"),
    "drawn by chance": ("Dropout-predict mode=always",),
    "gradients flow through the mean and deviation that are shown": (
        "GroupNorm-763 output_mean_var=True",
        "LayerNorm-* output_mean_var=True",
    ),
    "the derivative along the last axis": ("SoftmaxActivation-channel mode=instance",),
    "multiplied by the head gradient": ("SoftmaxOutput-* out_grad=True",),
    "fractions of steps in float16 are cut off in MXNet": (
        "_arange-between dtype=float16",
        "_contrib_arange_like-45 float16",
    ),
    "computed in the dtype, not in float32": (
        "_contrib_BilinearResize2D-up True float64",
        "_random_pdf_dirichlet-False float*",
        "_contrib_box_encode-float32 float16",
    ),
    "1 over the deviation, as BatchNorm shows": ("_contrib_SyncBatchNorm-* output_mean_var=True",),
    "what stands in `out` is not read": ("*all_finite-* init_output=False",),
}


@functools.cache
def stored():
    """The arrays of every record, and the keys of each one's."""
    arrays, keys = np.load(FILE.with_suffix(".npz")), defaultdict(list)
    for key in arrays.files:
        keys[int(key.partition("/")[0])].append(key)
    return arrays, keys


def cases():
    """Every record, those that are not always tried marked."""
    for number, record in enumerate(RECORDS):
        marks = () if number in ALWAYS else pytest.mark.long
        yield pytest.param(number, id=record["id"], marks=marks)


def follow(number):
    """Run a record and compare all that it gives with MXNet's."""
    record, (arrays, keys) = RECORDS[number], stored()
    recorded = {key.partition("/")[2]: arrays[key] for key in keys[number]}
    values = inputs(record)
    before = {k: initial(values[k].shape, values[k].dtype) for k in record.get("grad", [])}
    coarse = "float16" if "float16" in record["id"].rpartition(" ")[2] else None
    compare(run(record, values, before, "write"), recorded, before, "write", coarse)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", list(cases()))
def test_as_mxnet(number):
    name = RECORDS[number]["id"]
    if any(fnmatch(name, pattern) for patterns in DIFFERS.values() for pattern in patterns):
        with pytest.raises((AssertionError, GnomonError)):
            follow(number)
    else:
        follow(number)


def test_reasons_are_those_of_records():
    names = [record["id"] for record in RECORDS]
    every = [pattern for patterns in DIFFERS.values() for pattern in patterns]
    assert [p for p in every if not any(fnmatch(name, p) for name in names)] == []
