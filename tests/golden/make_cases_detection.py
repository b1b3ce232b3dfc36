"""Records of operators on boxes and regions that detectors learn with."""

from make_case import case, d, floats, n, u, v

ANCHORS = v([[0.1, 0.2, 0.5, 0.9], [0, 0, 1, 1], [0.3, 0.3, 0.9, 0.4], [0.2, 0, 0.4, 0.8]])


def coding():
    """Moves between anchors and boxes, and matches."""
    batch = v([[0.1, 0.2, 0.5, 0.9], [0, 0, 1, 1], [0.3, 0.3, 0.9, 0.4]],
              [[0.2, 0, 0.4, 0.8], [0, 0.1, 0.8, 1], [0.3, 0.1, 0.5, 0.4]])  # fmt: skip
    inputs = {
        "samples": v([1, 0, 0.6], [0.5, -1, 2]), "matches": v([0, 1, 1], [1, 0, 0]),
        "anchors": batch, "refs": v([[0.2, 0.2, 0.6, 0.7], [0, 0, 0.5, 0.6]],
        [[0.4, 0.1, 0.5, 0.8], [0.3, 0.3, 0.6, 0.9]]),
        "means": v(0, 0.1, 0, -0.2), "stds": v(0.1, 0.1, 0.2, 0.2)}  # fmt: skip
    floats("_contrib_box_encode", inputs, types=("float32", "float64"))
    for tag, attrs in (
        ("plain", {}),
        ("corner", {"format": "corner", "std0": 0.1, "std1": 0.2, "std2": 0.3, "std3": 0.4}),
        ("clip", {"clip": 0.3, "std2": 0.5}),
    ):
        case("_contrib_box_decode", {"data": n(2, 4, 4), "anchors": ANCHORS}, attrs, tag=tag)
    case("_contrib_box_decode", {"data": n(2, 4, 4), "anchors": ANCHORS}, dtype="float16")
    for tag, attrs in (
        ("plain", {"threshold": 0.1}),
        ("ascend", {"threshold": 0.3, "is_ascend": True}),
        ("one", {"threshold": -5, "topk": 1}),
        ("two", {"threshold": 5, "topk": 2, "is_ascend": True}),
        ("all", {"threshold": -5, "topk": 0}),
    ):
        case("_contrib_bipartite_matching", {"data": d(2, 5, 6)}, attrs, tag=tag)
        case("_contrib_bipartite_matching", {"data": d(7, 4)}, attrs, tag=tag + " high")
    ties = v([[0.5, 0.5], [0.5, 0.2], [0.3, 0.5]], [[0.5, 0.05], [0.5, 0.2], [0.3, 0.5]])
    case("_contrib_bipartite_matching", {"data": ties}, {"threshold": 0.25}, tag="ties")
    case("_contrib_bipartite_matching", {"data": ties}, {"threshold": 0.5}, tag="limit")


def regions():
    """Parts of regions of images."""
    rois = v([0, 0, 0, 8, 8], [1, 1, 1, 3, 3], [0, -5, -6, 20, 30], [1, 2, 3, 2.5, 3.2])
    for tag, attrs in (
        ("plain", {}),
        ("ratio", {"sample_ratio": 2}),
        ("sensitive", {"position_sensitive": True}),
        ("sensitive ratio", {"position_sensitive": True, "sample_ratio": 3}),
        ("aligned", {"aligned": True, "sample_ratio": 1}),
    ):
        attrs = {"pooled_size": (2, 2), "spatial_scale": 0.5, **attrs}
        case("_contrib_ROIAlign", {"data": n(2, 8, 6, 7), "rois": rois}, attrs, tag=tag)
    attrs = {"pooled_size": (3, 2), "spatial_scale": 0.25, "aligned": True}
    wide = {"data": n(2, 2, 6, 7), "rois": rois}
    case("_contrib_ROIAlign", wide, attrs, tag="wide", dtype="float64")
    attrs = {"pooled_size": (1, 3), "spatial_scale": 0.7}
    case("_contrib_ROIAlign", wide, attrs, tag="half", dtype="float16")


def sensitive():
    """Parts that have channels of their own, and rotated regions."""
    rois = v([0, 0.6, 0.2, 7.3, 8.1], [1, 2.1, 1, 3, 3.2], [1, -5, -6, 20, 30], [0, 9, 9, 2, 2])
    for tag, attrs in (
        ("plain", {"pooled_size": 2}),
        ("groups", {"pooled_size": 3, "group_size": 2}),
    ):
        attrs = {"spatial_scale": 0.5, "output_dim": 2, **attrs}
        case("_contrib_PSROIPooling", {"data": n(2, 8, 5, 6), "rois": rois}, attrs, tag=tag)
    attrs = {"spatial_scale": 0.5, "output_dim": 2, "group_size": 2, "pooled_size": 3}
    inputs = {"data": n(2, 8, 5, 6), "rois": rois}
    more = {**attrs, "no_trans": True, "sample_per_part": 2}
    case("_contrib_DeformablePSROIPooling", inputs, more, tag="fixed")
    for tag, moves, more in (
        ("plain", (4, 2, 3, 3), {"trans_std": 0.1}),
        ("parts", (4, 2, 2, 2), {"trans_std": 0.05, "part_size": 2, "sample_per_part": 3}),
        ("classes", (4, 4, 2, 2), {"trans_std": 0.05, "part_size": 2, "sample_per_part": 2}),
    ):
        moved = {**inputs, "trans": n(*moves)}
        case("_contrib_DeformablePSROIPooling", moved, {**attrs, **more}, tag=tag)
    turned = v([0, 6, 8, 10, 6, 30], [1, 2, 2, 1, 18, -100], [1, 3, 3, 5, 5, 0])
    for tag, attrs in (("plain", {}), ("ratio", {"sampling_ratio": 3})):
        attrs = {"pooled_size": (2, 3), "spatial_scale": 0.5, **attrs}
        inputs = {"data": n(2, 3, 6, 7), "rois": turned}
        case("_contrib_RROIAlign", inputs, attrs, tag=tag, grad=False)


def deformed():
    """Convolutions with deformed windows."""
    for tag, attrs, taps, size, weight in (
        ("plain", {"kernel": (2, 2)}, 4, (3, 4), (3, 4, 2, 2)),
        ("groups", {"kernel": (2, 3), "pad": (1, 1), "num_deformable_group": 2}, 12, (5, 5),
         (3, 4, 2, 3)),
        ("strides", {"kernel": (2, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0)}, 4,
         (3, 3), (3, 4, 2, 2)),
        ("shared", {"kernel": (2, 2), "num_group": 2, "num_filter": 4, "num_deformable_group": 2,
         "no_bias": True}, 8, (3, 4), (4, 2, 2, 2)),
    ):  # fmt: skip
        attrs = {"num_filter": 3, **attrs}
        inputs = {"data": n(2, 4, 4, 5), "offset": n(2, 2 * taps, *size)}
        rest = {"weight": n(*weight)} | ({} if attrs.get("no_bias") else {"bias": n(3)})
        case("_contrib_DeformableConvolution", {**inputs, **rest}, attrs, tag=tag)
        inputs["mask"] = n(2, taps, *size)
        case("_contrib_ModulatedDeformableConvolution", {**inputs, **rest}, attrs, tag=tag)
    attrs = {"num_filter": 3, "kernel": (2, 2), "pad": (1, 1)}
    still = {"data": n(2, 4, 4, 5), "offset": ["z", [2, 8, 5, 6]], "weight": n(3, 4, 2, 2)}
    more = {**attrs, "no_bias": True}
    case("_contrib_DeformableConvolution", still, more, tag="still", dtype="float64")
    data, offset, weight = still.values()
    still = {"data": data, "offset": offset, "mask": ["o", [2, 4, 5, 6]], "weight": weight}
    case("_contrib_ModulatedDeformableConvolution", still, more, tag="still", dtype="float64")


def proposals():
    """Regions that a network proposes."""
    for tag, attrs in (
        ("plain", {}),
        ("all", {"rpn_pre_nms_top_n": 0, "output_score": True, "threshold": 0.3}),
        ("iou", {"iou_loss": True, "rpn_min_size": 8}),
        ("anchors", {"scales": [2, 3], "ratios": [0.7, 1.3], "feature_stride": 8}),
    ):
        attrs = {"rpn_pre_nms_top_n": 100, "rpn_post_nms_top_n": 12, "threshold": 0.6,
                 "rpn_min_size": 20, **attrs}  # fmt: skip
        count = len(attrs.get("scales", range(4))) * len(attrs.get("ratios", range(3)))
        for name, batch in (("Proposal", 1), ("MultiProposal", 2)):
            info = [[90, 100, 1.5], [64, 80, 1]] if tag != "anchors" else [[40, 44, 1], [38, 48, 1]]
            inputs = {
                "cls_prob": d(batch, 2 * count, 5, 6),
                "bbox_pred": u(-1, 1, batch, 4 * count, 5, 6),
                "im_info": v(*info[:batch]),
            }
            case(f"_contrib_{name}", inputs, attrs, tag=tag, grad=False)


for group in (coding, regions, sensitive, deformed, proposals):
    group()
