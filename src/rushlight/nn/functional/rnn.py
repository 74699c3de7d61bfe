"""Recurrent networks over sequences, composed of one matrix product for all steps' inputs and a cell for each step.

The functions have the names and arguments of PyTorch's operators: ``lstm(input, hx, params, has_biases, num_layers,
dropout, train, bidirectional, batch_first)`` for sequences of one length, and with ``data, batch_sizes`` in the place
of `input`, and without `batch_first`, for packed ones. `params` lists for each layer and direction the weights ``w_ih,
w_hh[, b_ih, b_hh][, w_hr]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = [
    "gru",
    "gru_cell",
    "lstm",
    "lstm_cell",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
]

_State = tuple[Tensor, ...]
#: one step: what the input adds to the gates, and the state before, to the state after
_Step = Callable[..., _State]
#: the weights of one layer and direction: w_ih, w_hh, b_ih, b_hh, w_hr
_Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]


def _lstm_state(gates: Tensor, c: Tensor) -> _State:
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_state(given: Tensor, kept: Tensor, h: Tensor) -> Tensor:
    given_r, given_z, given_n = given.chunk(3, -1)
    kept_r, kept_z, kept_n = kept.chunk(3, -1)
    n = (given_n + (given_r + kept_r).sigmoid() * kept_n).tanh()
    return n + (given_z + kept_z).sigmoid() * (h - n)


def _lstm_step(weights: _Weights) -> _Step:
    _, w_hh, _, _, w_hr = weights
    recurrent = w_hh.t()
    projection = None if w_hr is None else w_hr.t()

    def step(given: Tensor, h: Tensor, c: Tensor) -> _State:
        h, c = _lstm_state(rushlight.addmm(given, h, recurrent), c)
        return (h if projection is None else h @ projection), c

    return step


def _gru_step(weights: _Weights) -> _Step:
    _, w_hh, _, b_hh, _ = weights
    recurrent = w_hh.t()

    def step(given: Tensor, h: Tensor) -> _State:
        kept = h @ recurrent if b_hh is None else rushlight.addmm(b_hh, h, recurrent)
        return (_gru_state(given, kept, h),)

    return step


def _elman_step(nonlinearity: Callable[[Tensor], Tensor]) -> Callable[[_Weights], _Step]:
    def make(weights: _Weights) -> _Step:
        recurrent = weights[1].t()

        def step(given: Tensor, h: Tensor) -> _State:
            return (nonlinearity(rushlight.addmm(given, h, recurrent)),)

        return step

    return make


def _over_steps(step: _Step, inputs: Sequence[Tensor], state: _State, reverse: bool) -> tuple[list[Tensor], _State]:
    """The outputs at all steps and the last state, for samples of one length."""
    outputs = []
    for given in reversed(inputs) if reverse else inputs:
        state = step(given, *state)
        outputs.append(state[0])
    return (outputs[::-1] if reverse else outputs), state


def _over_packed_steps(
    step: _Step, inputs: Sequence[Tensor], state: _State, reverse: bool
) -> tuple[list[Tensor], _State]:
    """The same for samples in the order of their lengths, of which fewer take part in each later step."""
    outputs = []
    if reverse:  # samples join, the longest first
        initial, state = state, tuple(s[:0] for s in state)
        for given in reversed(inputs):
            have, want = state[0].shape[0], given.shape[0]
            if want > have:
                state = tuple(rushlight.cat([s, i[have:want]]) for s, i in zip(state, initial, strict=True))
            state = step(given, *state)
            outputs.append(state[0])
        return outputs[::-1], state
    ended: list[_State] = []  # samples leave, the shortest first
    for given in inputs:
        want = given.shape[0]
        if want < state[0].shape[0]:
            ended.append(tuple(s[want:] for s in state))
            state = tuple(s[:want] for s in state)
        state = step(given, *state)
        outputs.append(state[0])
    ended.append(state)
    return outputs, tuple(rushlight.cat(parts[::-1]) for parts in zip(*ended, strict=True))


def _layer_weights(params: Sequence[Tensor], has_biases: bool, projected: bool) -> list[_Weights]:
    """`params` apart, one entry for each layer and direction."""
    size = 2 + 2 * has_biases + projected
    weights: list[_Weights] = []
    for i in range(0, len(params), size):
        own = params[i : i + size]
        biases = (own[2], own[3]) if has_biases else (None, None)
        weights.append((own[0], own[1], *biases, own[-1] if projected else None))
    return weights


def _given(x: Tensor, weights: _Weights, fold_recurrent_bias: bool) -> Tensor:
    """What the inputs of all steps add to the gates: one matrix product."""
    w_ih, _, b_ih, b_hh, _ = weights
    bias = b_ih if b_ih is None or b_hh is None or not fold_recurrent_bias else b_ih + b_hh
    return rushlight._C._nn.linear(x, w_ih, bias)


def _run(
    make_step: Callable[[_Weights], _Step],
    x: Tensor,
    sizes: list[int] | None,
    states: _State,
    weights: list[_Weights],
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """All layers over `x`, ``(T, N, I)`` or packed by `sizes`; each of `states` is ``(layers · directions, N, H)``."""
    directions = 2 if bidirectional else 1
    fold = make_step is not _gru_step  # a gate of the GRU multiplies its recurrent bias
    walk = _over_steps if sizes is None else _over_packed_steps
    if sizes is None and not x.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    last: list[_State] = []
    for k in range(0, len(weights), directions):
        both = []
        for d in range(directions):
            given = _given(x, weights[k + d], fold)
            inputs = given.unbind(0) if sizes is None else given.split(sizes)
            state = tuple(s[k + d] for s in states)
            outputs, state = walk(make_step(weights[k + d]), inputs, state, d == 1)
            both.append(rushlight.stack(outputs) if sizes is None else rushlight.cat(outputs))
            last.append(state)
        x = both[0] if directions == 1 else rushlight.cat(both, -1)
        if dropout and train and k + directions < len(weights):
            x = rushlight.dropout(x, dropout, True)
    return (x, *(rushlight.stack(parts) for parts in zip(*last, strict=True)))


def _sequence(
    make_step: Callable[[_Weights], _Step], projected: Callable[[_State], bool], args: tuple[Any, ...]
) -> tuple[Tensor, ...]:
    """Calls :func:`_run` with the arguments of either of the two forms."""
    if isinstance(args[3], bool):
        x, hx, params, has_biases, _, dropout, train, bidirectional, batch_first = args
        sizes = None
    else:
        x, batch_sizes, hx, params, has_biases, _, dropout, train, bidirectional = args
        sizes, batch_first = batch_sizes.tolist(), False
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    weights = _layer_weights(params, has_biases, projected(states))
    if batch_first:
        x = x.transpose(0, 1)
    y, *last = _run(make_step, x, sizes, states, weights, dropout, train, bidirectional)
    return (y.transpose(0, 1) if batch_first else y, *last)


def lstm(*args: Any) -> tuple[Tensor, ...]:
    """Long short-term memory: ``(output, h_n, c_n)``.

    ``c' = sigmoid(f) c + sigmoid(i) tanh(g)``, ``h' = sigmoid(o) tanh(c')`` for the gates ``i, f, g, o`` in this order
    in the rows of the weights; where the two states differ in width, ``h'`` is projected by ``w_hr`` (Sak et al.
    2014).
    """
    return _sequence(_lstm_step, lambda s: s[0].shape[2] != s[1].shape[2], args)


def gru(*args: Any) -> tuple[Tensor, ...]:
    """Gated recurrent unit: ``(output, h_n)``.

    ``n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn))``, ``h' = (1 - sigmoid(z)) n + sigmoid(z) h`` for the gates
    ``r, z, n``.
    """
    return _sequence(_gru_step, lambda s: False, args)


def rnn_tanh(*args: Any) -> tuple[Tensor, ...]:
    """Elman's network, ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``: ``(output, h_n)``."""
    return _sequence(_tanh_step, lambda s: False, args)


def rnn_relu(*args: Any) -> tuple[Tensor, ...]:
    """The same with ``relu`` in the place of ``tanh``."""
    return _sequence(_relu_step, lambda s: False, args)


_tanh_step = _elman_step(rushlight.tanh)
_relu_step = _elman_step(rushlight.relu)


def _check_cell(input: Tensor, hidden: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    for i, h in enumerate(hidden):
        if h.shape[0] != input.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {h.shape[0]}")
        if h.shape[1] != w_hh.shape[1]:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {h.shape[1]}, expected {w_hh.shape[1]}")


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of :func:`lstm` for an input ``(N, I)`` and two states ``(N, H)``: the states after it."""
    h, c = hx
    _check_cell(input, hx, w_ih, w_hh)
    linear = rushlight._C._nn.linear
    h, c = _lstm_state(linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh), c)
    return h, c


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`gru` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    _check_cell(input, (hx,), w_ih, w_hh)
    linear = rushlight._C._nn.linear
    return _gru_state(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`rnn_tanh` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    return _elman_sum(input, hx, w_ih, w_hh, b_ih, b_hh).tanh()


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`rnn_relu` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    return _elman_sum(input, hx, w_ih, w_hh, b_ih, b_hh).relu()


def _elman_sum(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    _check_cell(input, (hx,), w_ih, w_hh)
    linear = rushlight._C._nn.linear
    return linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)
