"""What is learnt about operands' layouts is bounded, and enough for many of them in rotation."""

from gnomon import nd
from gnomon.ndarray.core import bounded_cache
from gnomon.ndarray.lazy.recipe import Recipe


def test_many_sizes_in_rotation_are_learnt_once(monkeypatch):
    made = []
    make = Recipe.__init__

    def noted(recipe, *args):
        made.append(recipe)
        make(recipe, *args)

    monkeypatch.setattr(Recipe, "__init__", noted)

    def turn():
        for n in range(300, 400):
            x = nd.ones((n, 2))
            assert (nd.softmax(x) + x).sum().asscalar() == 3 * n

    turn()
    assert made
    made.clear()
    turn()
    turn()
    assert len(made) <= 200, "the second and the third run of each chain, by one operator each"
    made.clear()
    turn()
    assert not made


def test_tables_are_bounded_together():
    found = bounded_cache.BoundedCache(3)
    first, second = {}, {}
    for k in range(10):
        found.put(first, k, k)
        found.put(second, k, k)
        assert len(first) + len(second) == min(3, 2 * k + 2)
    table = {}
    bounded_cache.BoundedCache(1).put(table, "x", 1)
    assert table == {"x": 1}


def test_an_entry_put_again_takes_no_room():
    found, table = bounded_cache.BoundedCache(2), {}
    for value in range(5):
        found.put(table, "same", value)
    found.put(table, "other", 0)
    assert table == {"same": 4, "other": 0}
