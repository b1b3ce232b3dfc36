"""Records of operators on boxes: overlap, suppression, anchors, targets, and aligned regions."""

from make_case import case, n, u, v

BOXES = v([0, 0.5, 0, 0, 2, 2], [1, 0.9, 0, 0, 2, 2.1], [0, 0.7, 0, 0, 2, 1.9],
          [-1, 0.95, 0, 0, 2, 2], [0, 0.3, 5, 5, 6, 6], [0, -1, 5, 5, 6, 6],
          [1, 0.91, 5, 5, 6, 6], [0.2, 0.4, 2, 2, 0, 0], [0, 0.35, 2, 2, 0, 0])  # fmt: skip


def overlaps():
    """How much boxes overlap."""
    for form in ("corner", "center"):
        inputs = {"lhs": u(0, 1, 2, 3, 4), "rhs": u(0, 1, 5, 4)}
        case("_contrib_box_iou", inputs, {"format": form}, tag=form)
    half = {"lhs": u(0, 1, 2, 4), "rhs": u(0, 1, 3, 4)}
    case("_contrib_box_iou", half, {"format": "center"}, tag="half", dtype="float16")
    one = {"lhs": v([0, 0, 2, 2], [0, 0, 0, 0]), "rhs": v([0, 0, 2, 1], [0, 0, 0, 0])}
    case("_contrib_box_iou", one, tag="empty", dtype="float64")


def suppression():
    """Which boxes are kept."""
    for tag, attrs in (
        ("plain", {}),
        ("classes", {"id_index": 0}),
        ("background", {"id_index": 0, "background_id": 1}),
        ("forced", {"id_index": 0, "force_suppress": True}),
        ("two", {"topk": 2}),
        ("none", {"topk": 0, "out_format": "center"}),
        ("valid", {"valid_thresh": 0.5}),
        ("invalid", {"valid_thresh": 3}),
        ("low", {"overlap_thresh": 0.1, "id_index": 0}),
        ("to center", {"out_format": "center"}),
        ("from center", {"in_format": "center", "id_index": 0}),
        ("center", {"in_format": "center", "out_format": "center"}),
    ):
        case("_contrib_box_nms", {"data": BOXES}, attrs, tag=tag)
    places = {"coord_start": 0, "score_index": 5, "id_index": 4, "overlap_thresh": 0.2}
    case("_contrib_box_nms", {"data": u(0, 1, 2, 3, 20, 7)}, places, tag="batches")


ANCHORS = v([[0, 0, 0.5, 0.5], [0, 0, 0.55, 0.5], [0.5, 0.5, 1, 1], [0.2, 0.2, 0.4, 0.4],
             [0.1, 0.6, 0.3, 0.9], [0.45, 0.5, 1, 1], [0.7, 0.1, 0.9, 0.3], [0, 0.25, 0.5, 0.5]],
           )  # fmt: skip


def anchors():
    """Anchors, and what is learnt for them."""
    for tag, attrs in (
        ("plain", {}),
        ("many", {"sizes": [0.5, 0.3], "ratios": [1, 2, 0.5]}),
        ("steps", {"sizes": [0.9], "clip": True, "steps": [0.4, 0.3], "offsets": [0.2, 0.7]}),
        ("ratio", {"sizes": [0.4], "ratios": [3, 2]}),
    ):
        case("_contrib_MultiBoxPrior", {"data": n(2, 3, 2, 3)}, attrs, tag=tag, grad=False)
    labels = v([[2, 0.05, 0.05, 0.5, 0.5, 7], [0, 0.5, 0.5, 0.9, 0.9, 7], [-1] * 6],
               [[1, 0, 0, 0.5, 0.5, 7], [3, 0, 0, 0.5, 0.5, 7], [2, 2, 2, 3, 3, 0]],
               [[-1] * 6] * 3, [[0, 2, 2, 3, 3, 7], [-1] * 6, [-1] * 6])  # fmt: skip
    for tag, attrs in (
        ("plain", {}),
        ("high", {"overlap_threshold": 0.9}),
        ("none", {"overlap_threshold": 0}),
        ("mined", {"negative_mining_ratio": 0.4, "ignore_label": -7}),
        ("more", {"negative_mining_ratio": 0.7, "minimum_negative_samples": 3}),
        ("threshold", {"negative_mining_ratio": 0.5, "negative_mining_thresh": 0.2}),
        ("variances", {"variances": [0.2, 0.3, 0.4, 0.5]}),
    ):
        inputs = {"anchor": ANCHORS, "label": labels, "cls_pred": n(4, 4, 8)}
        case("_contrib_MultiBoxTarget", inputs, attrs, tag=tag, grad=False)


def detections():
    """What was found."""
    for tag, attrs in (
        ("plain", {}),
        ("free", {"clip": False, "background_id": 1}),
        ("threshold", {"threshold": 0.5}),
        ("strict", {"nms_threshold": 0.1}),
        ("forced", {"nms_threshold": 0.1, "force_suppress": True}),
        ("two", {"nms_topk": 2, "nms_threshold": 0.1}),
        ("unordered", {"nms_threshold": 0, "threshold": 0.5}),
        ("variances", {"variances": [1, 1, 1, 1], "nms_threshold": 1}),
    ):
        inputs = {"cls_prob": u(0, 1, 2, 3, 8), "loc_pred": n(2, 32), "anchor": ANCHORS}
        case("_contrib_MultiBoxDetection", inputs, attrs, tag=tag, grad=False)
    equal = v([[0.1] * 8, [0.5] * 4 + [0.4] * 4])
    inputs = {"cls_prob": equal, "loc_pred": ["z", [1, 32]], "anchor": ANCHORS}
    case("_contrib_MultiBoxDetection", inputs, {"threshold": 0.5}, tag="equal", grad=False)


for group in (overlaps, suppression, anchors, detections):
    group()
