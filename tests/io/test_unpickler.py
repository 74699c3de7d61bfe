"""The pickle machine makes what the standard unpickler makes of the same data."""

import math
import pickle
import pickletools
import random

import pytest

import rushlight as torch  # noqa: F401 - the package before its parts
from rushlight.io.unpickler import Unpickler
from rushlight.io.world import CheckpointWorld


def unpickled(data, **options):
    world = CheckpointWorld("a test", lambda *args: None, {})
    return Unpickler(data, world, "a test", **options).load()


VALUES = [
    None, True, False, 0, 1, -1, 255, 256, 65535, 65536, -65536, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 10**30,
    -(10**700),
    0.0, -0.0, 1e308, math.inf, -math.inf, 5e-324, "", "a", "\u00e9" * 200, "x" * 70_000, "\n\\'\"", "\ud83d",
    b"", b"a", bytes(range(256)), b"y" * 70_000, bytearray(b"abc"), bytearray(), [], [1], [[], [[]]], list(range(2000)),
    (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": 1}, {i: str(i) for i in range(2000)}, {(1, "x"): [None]},
    set(), {1, "b"}, set(range(2000)), frozenset(), frozenset({2, "c"}), 1 + 2j, [1.5, "mixed", None, {"deep": ({},)}],
]  # fmt: skip


@pytest.mark.parametrize("protocol", range(6))
def test_values(protocol):
    for value in VALUES:
        data = pickle.dumps(value, protocol)
        result = unpickled(data)
        assert type(result) is type(value)
        assert result == value
        assert repr(result) == repr(pickle.loads(data))


@pytest.mark.parametrize("protocol", range(6))
def test_optimised_pickles(protocol):
    shared = ["shared"]
    value = [shared, {"again": shared}, (shared, shared)]
    result = unpickled(pickletools.optimize(pickle.dumps(value, protocol)))
    assert result == value
    assert result[0] is result[1]["again"] is result[2][1]


@pytest.mark.parametrize("protocol", range(6))
def test_random_values(protocol):
    rng = random.Random(protocol)

    def make(depth):
        kind = rng.randrange(9 if depth else 5)
        if kind < 5:
            simple = (rng.getrandbits(70) - 2**69, rng.random(), rng.choice(["a", "bc", ""]), None, rng.randbytes(3))
            return simple[kind]
        size = rng.randrange(4)
        if kind == 5:
            return [make(depth - 1) for _ in range(size)]
        if kind == 6:
            return tuple(make(depth - 1) for _ in range(size))
        if kind == 7:
            return {rng.getrandbits(20): make(depth - 1) for _ in range(size)}
        return {rng.getrandbits(20) for _ in range(size)}

    for _ in range(200):
        value = make(4)
        assert unpickled(pickle.dumps(value, protocol)) == value


def test_not_a_number():
    for protocol in range(6):
        assert math.isnan(unpickled(pickle.dumps(math.nan, protocol)))


def test_ten_thousand_levels():
    data = b"\x80\x02" + b"]" * 10_001 + b"a" * 10_000 + b"."
    result, depth = unpickled(data), 0
    while result:
        result, depth = result[0], depth + 1
    assert depth == 10_000


def test_a_window_that_grows():
    """Data that are read piece by piece, as from the beginning of a long file, give the same."""
    value = {"text": "x" * 1000, "many": list(range(500)), "lines": [10**50, "y\n"]}
    for protocol in range(6):
        data = pickle.dumps(value, protocol)
        asked = []

        def longer(count, data=data, asked=asked):
            asked.append(count)
            return data[:count]

        assert unpickled(data[:3], limit=len(data), longer=longer) == value
        assert asked == sorted(asked)
        assert len(asked) < 20


def test_every_cut_is_noticed():
    data = pickle.dumps({"a": [1, 2.5, "text"], "b": (b"bytes", None)}, 2)
    for end in range(len(data)):
        with pytest.raises((EOFError, pickle.UnpicklingError), match="a test: "):
            unpickled(data[:end])


def test_several_pickles_in_a_row():
    data = pickle.dumps([1], 2) + pickle.dumps({"b": 2}, 4)
    machine = Unpickler(data, CheckpointWorld("a test", lambda *args: None, {}), "a test")
    assert machine.load() == [1]
    assert machine.load() == {"b": 2}
    assert machine.position == len(data)
    with pytest.raises(EOFError):
        machine.load()
