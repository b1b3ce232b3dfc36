"""Records of LSTMs with projected states, which MXNet computes here but cannot train."""

from make_case import case, n, u

for layers, both, dtype in ((1, False, "float32"), (2, False, "float64"), (2, True, "float32")):
    ways, size, projected = 1 + both, 5, 3
    count = sum(
        ways * (4 * size * ((4 if k == 0 else projected * ways) + projected + 2) + projected * size)
        for k in range(layers)
    )
    inputs = {
        "data": n(4, 2, 4),
        "parameters": u(-0.5, 0.5, count),
        "state": n(layers * ways, 2, projected),
        "state_cell": n(layers * ways, 2, size),
    }
    attrs = {"mode": "lstm", "state_size": size, "num_layers": layers, "bidirectional": both,
             "projection_size": projected, "state_outputs": True}  # fmt: skip
    tag = f"projected {layers} {ways}"
    case("RNN", inputs, attrs, tag=tag, dtype=dtype, train=False, grad=False)
