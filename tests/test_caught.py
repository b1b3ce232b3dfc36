"""What programs catch: errors of bad calls are of the classes that MXNet's are of."""

import pytest

import gnomon as mx
from gnomon import gluon, nd


def trainer(name, **settings):
    return gluon.Trainer(gluon.nn.Dense(2, in_units=3).collect_params(), name, settings)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda folder: float(nd.ones((2, 3))), TypeError),
        (lambda folder: int(nd.ones((2, 3))), TypeError),
        (lambda folder: nd.ones((2, 3)).asscalar(), ValueError),
        (lambda folder: nd.save(str(folder / "x"), 3), ValueError),
        (lambda folder: nd.save(str(folder / "x"), [1, 2]), TypeError),
        (lambda folder: mx.Context("cqu"), KeyError),
        (lambda folder: mx.optimizer.create("sdg"), ValueError),
        (lambda folder: mx.optimizer.create("sgd", momentun=0.9), TypeError),
        (lambda folder: trainer("sdg"), ValueError),
        (lambda folder: trainer("sgd", momentun=0.9), TypeError),
        (lambda folder: gluon.utils.download("http://127.0.0.1:9/x", retries=0), OSError),
        (lambda folder: mx.recordio.MXRecordIO(str(folder / "x"), "w").write(3), TypeError),
        (lambda folder: mx.metric.CustomMetric(max).get_config(), NotImplementedError),
    ],
)  # fmt: skip
def test_classes_of_errors(call, kind, tmp_path):
    with pytest.raises(kind):
        call(tmp_path)
