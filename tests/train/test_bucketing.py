"""`BucketingModule`: what the symbols of its buckets share."""

import gnomon as mx
from gnomon.io import DataBatch


def test_layers_without_names_of_their_own_share_parameters_among_buckets():
    def network(key):
        rows = mx.sym.sum(mx.sym.Variable("data"), axis=1, keepdims=True)
        layer = mx.sym.FullyConnected(rows, num_hidden=3)
        return mx.sym.SoftmaxOutput(layer, name="softmax"), ["data"], ["softmax_label"]

    def batch(key):
        arrays = [mx.nd.ones((2, key))], [mx.nd.zeros(2)]
        described = [("data", (2, key))], [("softmax_label", (2,))]
        return DataBatch(*arrays, None, None, key, *described)

    module = mx.mod.BucketingModule(network, default_bucket_key=4)
    with mx.name.Prefix("outer_"):  # does not reach the buckets' symbols
        module.bind(batch(4).provide_data, batch(4).provide_label)
        module.init_params()
        module.init_optimizer()
        for key in 4, 2, 3:
            module.forward_backward(batch(key))
            module.update()
    assert sorted(module.get_params()[0]) == ["fullyconnected0_bias", "fullyconnected0_weight"]
