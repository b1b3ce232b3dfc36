"""More expressions of random programs: operators that need arrays of a certain kind.

What an operator needs is made on the spot from a seed, so that it mostly computes: positive
definite matrices, boxes, indices, sequences. Each function gives text for `nd` and `sym`.
"""

from __future__ import annotations

from tests.crossing.expressions import WEIGHED, Pool

LAYOUTS = {1: "(2, 3, 7)", 2: "(2, 3, 5, 6)", 3: "(1, 2, 4, 3, 5)"}


def real(p: Pool) -> str:
    """An array of floats, most of which operators of layers take."""
    return p.some(lambda v: str(v.dtype).find("float") >= 0)


def linear(p: Pool, f: str) -> str:
    """Factorizations and triangles, of matrices that have them."""
    x = p.some(lambda v: len(v.shape) >= 2 and v.shape[-1] == v.shape[-2])
    lower = p.rng.random() < 0.7
    spd = f"({f}.linalg.syrk({x}) + {f}.linalg.makediag({f}.ones_like({f}.sum({x}, axis=-1))) * 9)"
    right, back = (p.rng.random() < 0.5 for _ in range(2))
    return p.rng.choice([
        f"{f}.linalg.potrf({spd})",
        f"{f}.linalg.potri({f}.linalg.potrf({spd}))",
        f"{f}.linalg.sumlogdiag({f}.linalg.potrf({spd}))",
        f"{f}.linalg.det({spd})",
        f"{f}.linalg.inverse({spd})",
        f"{f}.linalg.slogdet({spd})[1]",
        f"{f}.linalg.trmm({spd}, {x}, transpose={back}, rightside={right}, lower={lower})",
        f"{f}.linalg.trsm({spd}, {x}, transpose={back}, rightside={right}, lower={lower})",
        f"{f}.linalg.gemm({x}, {x}, {x}, alpha=0.5, beta=2.0, transpose_b={back})",
        f"{f}.linalg.extractdiag({x}, offset={p.rng.randint(-1, 1)})",
        f"{f}.linalg.extracttrian({x}, lower={lower})",
        f"{f}.linalg.makediag({p.of(1)}, offset={p.rng.randint(-1, 1)})",
        f"{f}.linalg.maketrian({f}.slice_axis({f}.reshape({x}, shape=(-1,)), axis=0, begin=0, "
        "end=1))",
    ])  # fmt: skip


def layer(p: Pool, f: str) -> str:
    """Layers of 1 to 3 dimensions, whose weights fit what they are given."""
    dims = p.rng.choice((1, 2, 2, 3))
    x = p.of(dims + 2)
    shape = p.shape(x)
    channels = shape[1] if len(shape) == dims + 2 else 1
    kernel, stride, pad, dilate = (
        tuple(p.rng.choice(c) for _ in range(dims)) for c in ((1, 2, 3), (1, 1, 2), (0, 1), (1, 2))
    )
    size = f"kernel={kernel}, stride={stride}, pad={pad}"
    more = f", dilate={dilate}" if p.rng.random() < 0.3 else ""
    groups = channels if p.rng.random() < 0.3 else 1
    count = groups * p.rng.randint(1, 2)
    weight = f"{f}.ones(({count}, {channels // groups}, {str(kernel)[1:-1].rstrip(',')}))"
    back = f"{f}.ones(({channels}, {count // groups}, {str(kernel)[1:-1].rstrip(',')}))"
    kind = p.rng.choice(["max", "avg", "sum", "lp"])
    given = f"num_filter={count}, num_group={groups}, no_bias=True"
    return p.rng.choice([
        f"{f}.Convolution({x}, {weight}, {size}{more}, {given})",
        f"{f}.Convolution({x}, {weight}, {f}.ones(({count},)), {size}, num_filter={count}, "
        f"num_group={groups})",
        f"{f}.Deconvolution({x}, {back}, {size}, {given})",
        f"{f}.Pooling({x}, {size}, pool_type={kind!r}, p_value=2, "
        f"count_include_pad={p.rng.random() < 0.5})",
        f"{f}.Pooling({x}, {size}, pool_type='avg', pooling_convention='full')",
        f"{f}.Pooling({x}, kernel={kernel}, pool_type={kind!r}, p_value=1, global_pool=True)",
        f"{f}.BatchNorm({x}, *[{f}.ones(({channels},)) for _ in range(4)], fix_gamma="
        f"{p.rng.random() < 0.5}, use_global_stats={p.rng.random() < 0.5})",
        f"{f}.GroupNorm({x}, {f}.ones(({channels},)), {f}.ones(({channels},)), "
        f"num_groups={p.rng.choice((1, channels))})",
        f"{f}.InstanceNorm({x}, {f}.ones(({channels},)), {f}.ones(({channels},)))",
        f"{f}.LeakyReLU({x}, {f}.ones(({channels},)) / 4, act_type='prelu')",
        f"{f}.LeakyReLU({x}, act_type='elu', slope=0.5)",
        f"{f}.softmax({x}, axis=1, temperature=0.5)",
        f"{f}.SoftmaxActivation({x}, mode='channel')",
    ])  # fmt: skip


def picture(p: Pool, f: str) -> str:
    """Operators of images and boxes."""
    x = p.of(4)
    size = p.rng.choice((2, 3, 5))
    return p.rng.choice([
        f"{f}.contrib.AdaptiveAvgPooling2D({x}, output_size={size})",
        f"{f}.contrib.BilinearResize2D({x}, height={size}, width={size + 1})",
        f"{f}.UpSampling({x}, scale={p.rng.choice((2, 3))}, sample_type='nearest')",
        f"{f}.BilinearSampler({x}, {f}.tanh({f}.slice_axis({f}.concat({x}, {x}, dim=1), axis=1, "
        "begin=0, end=2)))",
        f"{f}.GridGenerator({f}.ones(({size}, 6)) / 2, transform_type='affine', "
        f"target_shape=({size}, 4))",
        f"{f}.SpatialTransformer({x}, {f}.ones(({(p.shape(x) or (1,))[0]}, 6)) / 3, "
        f"target_shape=({size}, 4), transform_type='affine', sampler_type='bilinear')",
        f"{f}.im2col({x}, kernel=(2, 2), stride=(1, 2), pad=(1, 0))",
        f"{f}.Pad({x}, mode='reflect', pad_width=(0, 0, 0, 0, 1, 1, 1, 0))",
        f"{f}.Crop({x}, h_w=(1, 2), offset=(0, 0), num_args=1)",
        f"{f}.LRN({x}, nsize=5, alpha=0.5)",
        f"{f}.contrib.box_iou({f}.slice_axis({p.of(2)}, axis=-1, begin=0, end=4), "
        f"{f}.ones((3, 4)))",
        f"{f}.flip({x}, axis={p.rng.choice(['(2, 3)', '3', '(1,)'])})",
        f"{f}.ROIPooling({x}, {f}.zeros(({size}, 5)), pooled_size=(2, 2), spatial_scale=0.5)",
        f"{f}.slice({x}, begin=(None, None, None, -1), end=(None, None, None, None), "
        "step=(None, 1, 2, -1))",
    ])  # fmt: skip


def sequence(p: Pool, f: str) -> str:
    """Operators of sequences: of time first, with lengths or without."""
    x = p.of(3)
    shape = (*p.shape(x), 1, 1, 1)
    lengths = f"{f}.ones(({shape[1]},))"
    hidden = p.rng.choice((1, 2, 5))
    gates = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
    mode = p.rng.choice(list(gates))
    size = gates[mode] * hidden * (shape[2] + hidden + 2)
    state = f"{f}.zeros((1, {shape[1]}, {hidden}))"
    states = f"{state}, {state}" if mode == "lstm" else state
    axis = p.rng.choice((0, 1))
    return p.rng.choice([
        f"{f}.RNN({x}, {f}.ones(({size},)) / 8, {states}, mode={mode!r}, state_size={hidden}, "
        "num_layers=1)",
        f"{f}.SequenceMask({x}, {f}.ones(({shape[1 - axis]},)), use_sequence_length=True, "
        f"axis={axis}, value={p.number()})",
        f"{f}.SequenceLast({x}, {lengths}, use_sequence_length=True)",
        f"{f}.SequenceReverse({x}, {lengths}, use_sequence_length=True)",
        f"{f}.CTCLoss({x}, {f}.ones(({shape[1]}, 1)))",
        f"{f}.contrib.div_sqrt_dim({x})",
        f"{f}.contrib.interleaved_matmul_selfatt_qk({f}.concat({x}, {x}, {x}, dim=2), heads=1)",
        f"{f}.batch_dot({x}, {x}, transpose_a={p.rng.random() < 0.5}, "
        f"transpose_b={p.rng.random() < 0.5})",
        f"{f}.softmax({x}, {f}.ones({shape[:2]}), use_length=True, axis=2)",
    ])  # fmt: skip


def moved(p: Pool, f: str) -> str:
    """Elements to other places, and counts."""
    x, i = p.some(), p.some()
    shape = p.shape(x) or (1,)
    axis = p.axis(x, over=0)
    cut = p.rng.randint(0, shape[axis] if abs(axis) < len(shape) else 1)
    ones = f"{f}.ones(({len(shape)}, 2))"
    return p.rng.choice([
        f"{f}.scatter_nd({f}.ones((1,)), {f}.zeros((1, 1)), shape=({p.rng.randint(1, 4)},))",
        f"{f}.gather_nd({x}, {ones} * 0)",
        f"{f}.ravel_multi_index({f}.abs({f}.sign({ones})), shape={(3,) * len(shape)})",
        f"{f}.unravel_index({f}.clip({f}.reshape({p.of(1)}, shape=(-1,)), 0, 8), "
        "shape=(3, 3))",
        f"{f}.argsort({x}, axis={axis}, is_ascend={p.rng.random() < 0.5}) * 0",
        f"{f}.topk({x}, axis={axis}, k=1, ret_typ='both')[0]",
        f"{f}.contrib.arange_like({x}, axis={axis}, start=1)",
        f"{f}.contrib.index_array({x})",
        f"{f}.contrib.allclose({x}, {p.like(x)})",
        f"{f}.contrib.index_copy({x}, {f}.zeros((1,)), {f}.slice_axis({x}, axis=0, begin=0, "
        "end=1))",
        f"{f}.choose_element_0index({p.of(2)}, {f}.argmax({p.of(2)}, axis=1))",
        f"{f}.split_v2({x}, ({cut},), axis={axis})[0]" if f == "nd" else f"{f}.identity({x})",
        f"{f}.moments({x}, axes=({axis},), keepdims={p.rng.random() < 0.5})[1]",
        f"{f}.multi_sum_sq({x}, {x}, num_arrays=2)",
        f"{f}.amp_cast({x}, dtype='float16')",
        f"{f}.hard_sigmoid({x}, alpha=0.5, beta=0.25)",
        f"{f}.contrib.quadratic({x}, a=1, b=2, c=3)",
        f"{f}.contrib.gradientmultiplier({x}, scalar=-2)",
        f"{f}.squeeze({f}.expand_dims({x}, axis={axis}))",
        f"{f}.reverse({x}, axis=({abs(axis) % max(len(shape), 1)},))",
        f"{f}.take({x}, {i}, axis={axis}, mode={p.rng.choice(['clip', 'wrap'])!r})",
        f"{f}.where({f}.sign({x}), {x}, {x})",
        f"{f}.maximum({x}, {x})" if f == "nd" else f"{f}.broadcast_maximum({x}, {x})",
        f"({x} - {x}) + {x} * 1",
        f"{x} / {x}",
        f"{x} * 0 + {p.number()}",
    ])  # fmt: skip


def loss(p: Pool, f: str) -> str:
    """Outputs that are losses: their gradient is their own."""
    x = p.of(2)
    rows, classes = (*p.shape(x), 1, 1)[:2]
    labels = f"{f}.zeros(({rows},))"
    normal = p.rng.choice(["null", "batch", "valid"])
    scale = p.rng.choice((1.0, 0.5))
    given = f"grad_scale={scale}, normalization={normal!r}"
    return p.rng.choice([
        f"{f}.SoftmaxOutput({x}, {labels}, {given}, smooth_alpha={p.rng.choice((0.0, 0.1))})",
        f"{f}.SoftmaxOutput({x}, {labels}, {given}, use_ignore=True, ignore_label=0)",
        f"{f}.SVMOutput({x}, {labels}, margin=0.5, use_linear={p.rng.random() < 0.5})",
        f"{f}.LogisticRegressionOutput({x}, {p.like(x)}, grad_scale={scale})",
        f"{f}.LinearRegressionOutput({x}, {p.like(x)}, grad_scale={scale})",
        f"{f}.MakeLoss({x}, {given.replace('null', 'batch')})",
        f"{f}.softmax_cross_entropy({x}, {labels})",
        f"{f}.smooth_l1({x}, scalar=3.0)",
        f"{f}.Embedding({f}.clip({p.some()}, 0, {rows - 1}), {x}, input_dim={rows}, "
        f"output_dim={classes})",
    ])  # fmt: skip


MORE = [linear] + [layer] * 3 + [picture, sequence] + [moved] * 4 + [loss]


def expression(p: Pool, f: str) -> str:
    """A random one, of all operators."""
    return p.rng.choice(WEIGHED if p.rng.random() < 0.75 else MORE)(p, f)
