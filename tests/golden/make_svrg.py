"""Record SVRG from MXNet 1.9.1, as svrg.json."""

import json
from pathlib import Path

import mxnet as mx
import svrg
from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule


def main() -> None:
    found = {
        "steps": {
            rows: {each: svrg.steps(mx, SVRGModule, rows, each) for each in svrg.OPTIMIZERS}
            for rows in svrg.ROWS
        },
        "fitted": {rows: svrg.fitted(mx, SVRGModule, rows) for rows in svrg.ROWS},
        "fitted longer": svrg.fitted(mx, SVRGModule, "whole", 6),
    }
    path = Path(__file__).with_name("svrg.json")
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
