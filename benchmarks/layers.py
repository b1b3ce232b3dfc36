"""Single layers of networks: gnomon with and without oneDNN, beside its peers, turn by turn.

    python benchmarks/layers.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

A row is a layer forward and backward ("train") or forward alone ("predict"), on data in memory. The
rows in float64 have no library; those of the networks in `train.py` say what is lost where oneDNN
cannot be loaded, which needs the system's libgomp. The table gives each median and, in brackets,
the median ratio to gnomon's time of the same round.
"""

from __future__ import annotations

import sys
from pathlib import Path

import measure
from peers.layers import ROWS
from peers.protocol import start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "layer_module.py", ("gnomon",)),
    "without oneDNN": ("gnomon", "layer_module.py", ("gnomon", "onednn")),
    "MXNet": ("mxnet", "layer_module.py", ("mxnet",)),
    "torch": ("torch", "layer_torch.py", ()),
}


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("layer", names))
    for row in measure.chosen(list(ROWS), options.rows):
        for how in ("train", "predict"):
            able, _ = measure.prepared(peers, row=row, train=how == "train")
            seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
            print(measure.row(f"{row}, {how}", names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
