"""Records of operators on images: resizing, sampling, regions, and old poolings."""

from make_case import case, d, n, u, v


def resizing():
    """Other sizes."""
    for tag, attrs in (
        ("one", {}),
        ("two", {"output_size": [2]}),
        ("parts", {"output_size": [3, 4]}),
    ):
        case("_contrib_AdaptiveAvgPooling2D", {"data": n(2, 3, 5, 7)}, attrs, tag=tag)
    for corners in (True, False):
        for tag, attrs in (
            ("up", {"height": 7, "width": 9}),
            ("down", {"height": 3, "width": 2}),
            ("scale", {"scale_height": 1.7, "scale_width": 0.6}),
        ):
            attrs = {**attrs, "align_corners": corners}
            case(
                "_contrib_BilinearResize2D", {"data": n(1, 2, 5, 4)}, attrs, tag=f"{tag} {corners}"
            )
    odd = {"mode": "odd_scale", "scale_height": 1.7, "scale_width": 0.7}
    case("_contrib_BilinearResize2D", {"data": n(1, 1, 5, 4)}, odd, tag="odd_scale")
    for mode in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
        case("_contrib_BilinearResize2D", {"data": n(1, 1, 5, 4)}, {"mode": mode}, tag=mode)
    inputs = {"data": n(1, 2, 4, 3), "like": n(1, 2, 2, 6)}
    case("_contrib_BilinearResize2D", inputs, {"mode": "like"}, tag="like", grad=["data"])


def sampling():
    """Grids and what they sample."""
    case("BilinearSampler", {"data": n(2, 3, 4, 5), "grid": u(-0.9, 0.9, 2, 2, 3, 4)})
    case(
        "BilinearSampler", {"data": n(1, 2, 4, 5), "grid": u(-1.6, 1.6, 1, 2, 3, 4)}, tag="outside"
    )
    affine = {"transform_type": "affine", "target_shape": [3, 4]}
    case("GridGenerator", {"data": n(2, 6)}, affine, tag="affine")
    case("GridGenerator", {"data": n(2, 2, 3, 4)}, {"transform_type": "warp"}, tag="warp")
    attrs = {**affine, "sampler_type": "bilinear"}
    case("SpatialTransformer", {"data": n(2, 3, 5, 6), "loc": u(-0.5, 0.5, 2, 6)}, attrs)


def regions():
    """Parts of images."""
    case(
        "Crop", {"arg0": n(1, 2, 5, 6)}, {"num_args": 1, "h_w": [2, 3], "offset": [1, 2]}, tag="at"
    )
    middle = {"num_args": 1, "h_w": [2, 3], "center_crop": True}
    case("Crop", {"arg0": n(1, 2, 5, 6)}, middle, tag="middle")
    case("Crop", {"arg0": n(1, 2, 5, 6), "arg1": n(1, 1, 3, 2)}, {"num_args": 2}, tag="like")
    rois = v([0, 0, 0, 3, 3], [1, 1, 1, 5, 4], [0, 4, 4, 2, 2], [1, -3, 0, 30, 9])
    for tag, attrs in (("whole", {"spatial_scale": 1}), ("half", {"spatial_scale": 0.5})):
        attrs = {"pooled_size": [2, 3], **attrs}
        case("ROIPooling", {"data": d(2, 3, 5, 6), "rois": rois}, attrs, tag=tag, grad=["data"])
    for tag, attrs in (
        ("plain", {"pad_size": 1}),
        ("patch", {"kernel_size": 3, "max_displacement": 2, "stride2": 2, "pad_size": 3}),
        ("stride", {"stride1": 2, "max_displacement": 2, "pad_size": 2}),
        ("difference", {"pad_size": 1, "is_multiply": False}),
    ):
        case("Correlation", {"data1": n(2, 3, 6, 7), "data2": n(2, 3, 6, 7)}, attrs, tag=tag)


def layers():
    """Layers that once were, or that belong to others."""
    for kind in ("max", "avg", "sum"):
        for convention in ("valid", "full"):
            attrs = {"kernel": [3, 3], "stride": [2, 2], "pad": [1, 1], "pool_type": kind,
                     "pooling_convention": convention}  # fmt: skip
            case("Pooling_v1", {"data": n(2, 3, 5, 6)}, attrs, tag=f"{kind} {convention}")
        case("Pooling_v1", {"data": d(2, 3, 5, 6)}, {"kernel": [1, 1], "global_pool": True,
             "pool_type": kind}, tag=f"{kind} global")  # fmt: skip
    states = {"gamma": u(0.5, 2, 3), "beta": n(3), "moving_mean": n(3), "moving_var": u(0.5, 2, 3)}
    for train in (True, False):
        case("_contrib_SyncBatchNorm", {"data": n(4, 3, 2), **states},
             {"key": "bn", "fix_gamma": False, "ndev": 1}, tag=f"{train}", train=train,
             grad=["data", "gamma", "beta"] if train else False)  # fmt: skip


for group in (resizing, sampling, regions, layers):
    group()
