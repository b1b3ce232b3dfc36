"""Networks in mixed precision, told to MXNet and to gnomon: symbols, and steps of a scaled loss."""

import json

OPTIONS = {
    "usual": {},
    "params": {"cast_optional_params": True, "data_names": ["data", "softmax_label"]},
    "excluded": {"excluded_sym_names": ["fc"]},
    "bfloat16": {"target_dtype": "bfloat16"},
    "lists": {"target_dtype_ops": ["FullyConnected"], "fp32_ops": ["Convolution", "SoftmaxOutput"]},
}
SCALES = [1, 1e38, 1, 1, 1, 1, 1e38, 1e38, 1]  # of the input in each step


def network(mx):
    """Operators of every list: in the target dtype, in float32, conditional, widest, either."""
    sym = mx.sym
    conv = sym.Convolution(sym.var("data"), num_filter=4, kernel=(3, 3), name="conv")
    norm = sym.BatchNorm(conv, name="bn")
    soft = sym.Activation(
        sym.Activation(norm, act_type="relu", name="relu"), act_type="softrelu", name="sr"
    )
    pool = sym.Pooling(soft, kernel=(2, 2), global_pool=True, name="pool")
    both = sym.broadcast_add(conv, pool, name="both")
    ends = [sym.FullyConnected(both, num_hidden=3, name=name) for name in ("fc", "fc2")]
    whole = sym.elemwise_add(*ends, name="whole")
    return sym.SoftmaxOutput(whole, name="softmax")


def told(symbol):
    """Each node in words that do not tell casts' names: operator, dtypes, inputs."""
    nodes = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
    return [
        [
            node["op"],
            "" if node["op"] == "amp_cast" else node["name"],
            {k: v for k, v in (node.get("attrs") or {}).items() if "dtype" in k},
            [pair[:2] for pair in node["inputs"]],
        ]
        for node in nodes
    ]


def converted(mx, amp):
    """The network with each of the options."""
    return {name: told(amp.convert_symbol(network(mx), **given)) for name, given in OPTIONS.items()}


def scaled_steps(mx, amp):
    """Steps of a network in float32 with a scaled loss: factor, weights and gradients of each."""
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.One())
    given = {"learning_rate": 0.1, "rescale_grad": 0.5}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", given, update_on_kvstore=False)
    amp.init_trainer(trainer)
    trainer._amp_loss_scaler._scale_seq_len = 3
    rows = []
    for factor in SCALES:
        with mx.autograd.record():
            loss = net(mx.nd.ones((2, 3)) * factor).sum()
            with amp.scale_loss(loss, trainer) as scaled:
                mx.autograd.backward(scaled)
        used, grad = trainer._scale, net.weight.grad().asnumpy().ravel().tolist()
        trainer.step(1)
        weight = net.weight.data().asnumpy().ravel().tolist()
        rows.append([trainer._amp_loss_scaler.loss_scale, used, str(grad), weight])
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 3))).sum()
        with amp.scale_loss([loss, loss], trainer) as scaled:
            mx.autograd.backward(scaled)
    amp.unscale(trainer)
    rows.append([trainer._scale, 0, str(net.weight.grad().asnumpy().ravel().tolist()), []])
    return rows
