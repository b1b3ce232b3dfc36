"""Records of operators on boxes: overlap, suppression, anchors, targets, and aligned regions."""

from make_case import case, u, v

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


for group in (overlaps, suppression):
    group()
