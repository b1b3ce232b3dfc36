"""Nodes of bound symbols that are alike keep what they hand on apart."""

import pytest

import gnomon as mx


class Kept(mx.operator.CustomOp):
    """A square, by what forward kept."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.kept = in_data[0].copy()
        self.assign(out_data[0], req[0], self.kept * self.kept)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * self.kept * out_grad[0])


@mx.operator.register("test_kept")
class KeptProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Kept()


def squares_of_one_name(x):
    """(x ** 2 + 1) ** 2, both squares by nodes of one name."""
    once = mx.sym.Custom(x, op_type="test_kept", name="square")
    return mx.sym.Custom(once + 1, op_type="test_kept", name="square")


def squares_of_one_node(x):
    """The same, where the second node is composed of the first."""
    square = mx.sym.Custom(mx.sym.var("x"), op_type="test_kept", name="square")
    return square(x=square(x=x) + 1)


@pytest.mark.parametrize("network", [squares_of_one_name, squares_of_one_node])
def test_nodes_of_one_name_have_operators_of_their_own(network):
    bound = network(mx.sym.var("u")).simple_bind(mx.cpu(), u=(2,))
    bound.arg_dict["u"][:] = mx.nd.array([1, 2])
    for _ in range(2):
        assert bound.forward(is_train=True)[0].asnumpy().tolist() == [4, 25]
        bound.backward(mx.nd.ones((2,)))
        assert bound.grad_dict["u"].asnumpy().tolist() == [8, 40]
