"""What constructors and functions refuse: the error names the argument, and what came."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.gluon import contrib, data, loss, nn, rnn, utils

BIG = mx.nd.ones((50, 50))
IMAGES, ROWS, STEPS = mx.nd.ones((2, 3, 8, 8)), mx.nd.ones((2, 3)), mx.nd.ones((4, 2, 3))
NET = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)


def cell(kind=rnn.LSTMCell):
    made = kind(3)
    made.initialize()
    return made


REFUSED = {
    # layers whose operator would refuse it later, or never
    "Dense: argument 'units': expected a whole number from 1, got -3": lambda: nn.Dense(-3),
    "Dense: argument 'units': .* got '3'": lambda: nn.Dense("3"),
    "Dense: argument 'in_units': .* from 0, got -1": lambda: nn.Dense(3, in_units=-1),
    "Dense: argument 'flatten': expected bool, got None": lambda: nn.Dense(3, flatten=None),
    "Dense: argument 'activation': .*did you mean 'relu'": lambda: nn.Dense(3, "rellu"),
    "Dropout: argument 'rate': expected a number, got 'a'": lambda: nn.Dropout("a"),
    "Dropout: argument 'axes': expected tuple of ints": lambda: nn.Dropout(0.5, "a"),
    "BatchNorm: argument 'axis': expected int, got 'a'": lambda: nn.BatchNorm(axis="a"),
    "LayerNorm: argument 'epsilon': expected float": lambda: nn.LayerNorm(epsilon=[]),
    "GroupNorm: argument 'num_groups': .* got 0": lambda: nn.GroupNorm(0),
    "Embedding: argument 'input_dim'": lambda: nn.Embedding(-1, 3),
    "Conv2D: argument 'strides': expected tuple of ints >= 1": lambda: nn.Conv2D(3, 3, -1),
    "MaxPool2D: argument 'pool_size': .* got 0": lambda: nn.MaxPool2D(0),
    "PReLU: argument 'in_channels': .* got 'a'": lambda: nn.PReLU(in_channels="a"),
    "ELU: argument 'alpha': expected float, got 'a'": lambda: nn.ELU("a"),
    "Swish: argument 'beta': expected a number, got 'a'": lambda: nn.Swish("a"),
    "Sequential: argument 'block': expected a Block, got 3": lambda: nn.Sequential().add(3),
    "LSTM: argument 'hidden_size': .* from 1, got 0": lambda: rnn.LSTM(0),
    "LSTM: argument 'dropout': expected float >= 0": lambda: rnn.LSTM(3, dropout="a"),
    "LSTM: argument 'state_clip_min'": lambda: rnn.LSTM(3, state_clip_min="a"),
    "RNNCell: argument 'activation': expected a string or a function, got 3": lambda: rnn.RNNCell(
        3, activation=3
    ),
    "GRUCell: argument 'hidden_size': .* got 3.0": lambda: rnn.GRUCell(3.0),
    "ZoneoutCell: argument 'zoneout_outputs'": lambda: rnn.ZoneoutCell(cell(), "a"),
    "DropoutCell: argument 'rate'": lambda: rnn.DropoutCell(BIG),
    "SequentialRNNCell: argument 'block'": lambda: rnn.SequentialRNNCell().add(3),
    "L2Loss: argument 'batch_axis': expected tuple of ints or None": lambda: loss.L2Loss(
        batch_axis="a"
    ),
    "HuberLoss: argument 'rho': expected a number, got 'a'": lambda: loss.HuberLoss("a"),
    "SoftmaxCrossEntropyLoss: argument 'axis'": lambda: loss.SoftmaxCELoss(axis="a"),
    "Concurrent: argument 'axis'": lambda: contrib.nn.Concurrent("a"),
    "LSTMPCell: argument 'projection_size'": lambda: contrib.rnn.LSTMPCell(3, 0),
    "LSTMCell: argument 'num_hidden'": lambda: mx.rnn.LSTMCell(0),
    # other constructors, by their annotations
    "DataLoader: argument 'num_workers'": lambda: data.DataLoader(ROWS, 2, num_workers="a"),
    "Trainer: argument 'optimizer_params': expected a mapping": lambda: mx.gluon.Trainer(
        nn.Dense(3).collect_params(), "sgd", BIG
    ),
    "Module: argument 'data_names': expected strings": lambda: mx.mod.Module(NET, [0, 1]),
    "Module: argument 'context': expected a context": lambda: mx.mod.Module(NET, context="a"),
    "CompositeEvalMetric: argument 'metrics'": lambda: mx.metric.CompositeEvalMetric(BIG),
    "PrefetchingIter: argument 'iters': .* got 3": lambda: mx.io.PrefetchingIter(3),
    "Parameter 'dense.*': argument 'init': expected an Initializer": lambda: nn.Dense(
        3, weight_initializer=-3
    ),
    "Dense: argument 'use_bias': expected True or False, got an NDArray": lambda: nn.Dense(
        3, use_bias=BIG
    ),
    "BatchSampler: argument 'sampler': expected several values": lambda: data.BatchSampler(3, 2),
    "Conv2DTranspose: argument 'output_padding'": lambda: nn.Conv2DTranspose(
        3, 3, output_padding=-3
    ),
    "Conv2DRNNCell: argument 'conv_layout': expected one of NCHW": lambda: (
        contrib.rnn.Conv2DRNNCell((3, 8, 8), 4, 3, 3, conv_layout="a")
    ),
    "Conv2DRNNCell: argument 'i2h_kernel'": lambda: contrib.rnn.Conv2DRNNCell(
        (3, 8, 8), 4, None, 3
    ),
    "Resize: argument 'size'": lambda: data.vision.transforms.Resize("a"),
    "CenterCrop: argument 'size'": lambda: data.vision.transforms.CenterCrop(None),
    "SGLD: argument 'lr_scheduler': expected an LRScheduler": lambda: mx.optimizer.SGLD(
        lr_scheduler="a"
    ),
    "RNNCell: argument 'params': expected RNNParams": lambda: mx.rnn.RNNCell(3, params=3),
    # functions and methods
    "split_data: argument 'batch_axis': expected a whole number": lambda: utils.split_data(
        ROWS, 2, "a"
    ),
    "split_data: argument 'axis': expected an axis of 2": lambda: utils.split_data(ROWS, 2, 5),
    "fixed_crop: argument 'w': expected a whole number": lambda: mx.image.fixed_crop(
        IMAGES[0], 0, 0, "a", 2
    ),
    "params_file: argument 'epoch'": lambda: mx.model.load_params("x", "a"),
    "plot_network: argument 'save_format': expected a string": lambda: mx.viz.plot_network(
        NET, save_format=3
    ),
    "split_and_load: argument 'ctx_list': expected at least one": lambda: utils.split_and_load(
        np.ones(3), []
    ),
    "FactorScheduler: argument 'num_update'": lambda: mx.lr_scheduler.FactorScheduler(10)("a"),
    "Mixed: argument 'patterns': .* got '\\('": lambda: mx.init.Mixed(["("], [mx.init.Zero()]),
    "as_in_context: argument 'context'": lambda: ROWS.as_in_context(BIG),
    "print_summary: argument 'shape'": lambda: mx.viz.print_summary(NET, shape=3),
    "LSTMCell 'lstm.*: argument 'states': expected 2 of them": lambda: cell()(ROWS, None),
    "LSTMCell.unroll: argument 'length'": lambda: cell().unroll("a", STEPS),
    "unroll: argument 'inputs'": lambda: cell().unroll(3, 3),
    "argument 'B': expected 50 rows, as the product": lambda: mx.nd.linalg.gemm2(BIG, ROWS),
    "full: argument 'val': expected float, got 'a'": lambda: mx.nd.full((2,), "a"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(GnomonError, match=words):
        REFUSED[words]()


TAKEN = {
    "text for an operator": lambda: nn.BatchNorm(axis="1"),
    "a size of -1": lambda: nn.Conv2D(4, 3, in_channels=-1),
    "any truth value": lambda: nn.InstanceNorm(scale=[], axis=np.int64(1)),
    "an unknown size": lambda: nn.Conv2D(np.int32(4), (3, 3), in_channels=0),
    "a rate that drops nothing": lambda: nn.Dropout(-1),
    "a border of NumPy's numbers": lambda: nn.ReflectionPad2D(np.int64(1)),
    "no axes": lambda: nn.Dropout(0.5, axes=None),
    "a number of no strings": lambda: nn.ELU("1"),
    "an array without axes": lambda: nn.LayerNorm(epsilon=np.array(1e-5)),
}


@pytest.mark.parametrize("what", TAKEN)
def test_layers_that_mxnet_runs(what):
    layer = TAKEN[what]()
    layer.initialize()
    assert layer(IMAGES).shape[0] == 2


def test_other_classes_take_what_mxnet_takes():
    assert mx.optimizer.Adam(learning_rate=None).learning_rate == 0.01
    assert mx.io.NDArrayIter(np.ones((2, 3)), label_name=None).provide_data[0].name == "data"
    assert mx.image.CastAug(np.float16)(IMAGES).dtype == np.float16
    assert mx.lr_scheduler.FactorScheduler(1.5, 0.5, base_lr=1.0)(2) == 0.5
    assert mx.lr_scheduler.PolyScheduler(4, final_lr=np.array(0.5), base_lr=1.0)(4) == 0.5
    assert mx.init.Xavier(magnitude=np.array(2)).magnitude == 2
    assert len(data.DataLoader(ROWS, 1, pin_device_id=None)) == 2
    wrapped = contrib.rnn.VariationalDropoutCell(cell(), drop_inputs=None)
    assert wrapped.unroll(3, mx.nd.ones((2, 3, 4)), merge_outputs=True)[0].shape == (2, 3, 3)
    part, _ = mx.image.random_size_crop(mx.nd.ones((8, 8, 3)), (4, 4), np.float32(0.5), (1, 1))
    assert mx.image.copyMakeBorder(part, 1, 1, 1, 1, value=np.int64(3))[0, 0, 0] == 3
    four = np.int64(4)
    conv = contrib.rnn.Conv2DRNNCell((3, four, 8), four, np.int64(3), np.int64(1))
    assert conv.state_info(2)[0]["shape"][0] == 2
    assert mx.mon.Monitor(four).interval == 4
    crop = data.vision.transforms.RandomResizedCrop(four, scale=np.float32(0.5))
    assert crop(mx.nd.ones((8, 8, 3), dtype="uint8")).shape == (4, 4, 3)


@pytest.mark.parametrize("axis", [None, "0", [], 1])
def test_axes_of_losses(axis):
    assert loss.L2Loss(batch_axis=axis)(ROWS, ROWS).asnumpy().sum() == 0


def test_classes_of_programs_may_mean_something_else():
    class Mish(nn.Activation):
        def hybrid_forward(self, F, x):
            return x * F.tanh(F.Activation(x, act_type="softrelu"))

    assert Mish("mish")(ROWS).shape == ROWS.shape


def test_schedules_that_are_functions_begin_from_no_rate():
    sgd = mx.optimizer.SGD(lr_scheduler=lambda update: 0.1 * update, begin_num_update=0.5)
    assert sgd.learning_rate == 0.05
    with pytest.raises(GnomonError, match="'lr_scheduler': expected an LRScheduler"):
        mx.optimizer.SGD(learning_rate=0.1, lr_scheduler=lambda update: 0.1)


def test_sizes_mean_the_same_in_classes_of_programs():
    class Iterator(mx.io.NDArrayIter):
        pass

    class Convolution(nn.Conv2D):
        def __init__(self, groups):
            super().__init__(4, 3, groups=groups)

    class Recurrent(rnn.LSTM):
        pass

    with pytest.raises(GnomonError, match=r"Iterator: argument 'batch_size': .* got -1"):
        Iterator(np.ones((4, 2)), batch_size=-1)
    with pytest.raises(GnomonError, match=r"Convolution: argument 'groups': .* got 0"):
        Convolution(0)
    with pytest.raises(GnomonError, match=r"Recurrent: argument 'num_layers': .* got 0"):
        Recurrent(3, num_layers=0)


@pytest.mark.parametrize("name", ["num_layers", "projection_size"])
@pytest.mark.parametrize("value", ["2", 2.0, 0, 1 << 20])
def test_sizes_that_layers_count_with_are_numbers(name, value):
    with pytest.raises(GnomonError, match=f"LSTM: argument '{name}'"):
        rnn.LSTM(3, **{name: value})


def test_numbers_in_text_and_without_an_axis():
    assert mx.nd.full((2,), "3").asnumpy().tolist() == [3, 3]
    assert mx.nd.pick(mx.nd.array([1, 2, 3]), mx.nd.array(1)).asnumpy().tolist() == [2]
    with pytest.raises(GnomonError, match="'index': expected shape"):
        mx.nd.pick(ROWS, mx.nd.array(1))


def test_layouts_of_convolutions_that_programs_derive():
    class Pointwise(nn.Conv2D):
        _axes = 2

        def __init__(self, channels):
            super().__init__(channels, 1)

    assert Pointwise(4)._kwargs["layout"] == "NCHW"
    assert nn.conv_layers._Conv(4, 3, layout="NCW")._kwargs["layout"] == "NCW"


def test_private_names_that_programs_use():
    assert issubclass(nn.MaxPool1D, nn.conv_layers._Pooling)
    assert issubclass(rnn.LSTM, rnn.rnn_layer._RNNLayer)
    pool = nn.conv_layers._Pooling(2, None, 0, False, False, "max", "NCW")
    assert pool(STEPS).shape == (4, 2, 1)
    ((name, array),) = mx.io.utils._init_data(np.ones(3), False, "x")
    assert (name, array.shape) == ("x", (3,))
