"""Recurrent networks over sequences: layers and directions, each of them one native operation.

The functions have the names and arguments of PyTorch's operators: ``lstm(input, hx, params, has_biases, num_layers,
dropout, train, bidirectional, batch_first)`` for sequences of one length, and with ``data, batch_sizes`` in the place
of `input`, and without `batch_first`, for packed ones. `params` lists for each layer and direction the weights ``w_ih,
w_hh[, b_ih, b_hh][, w_hr]``.
"""

from __future__ import annotations

from collections.abc import Sequence
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

#: the weights of one layer and direction: w_ih, w_hh, b_ih, b_hh, w_hr
_Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]


def _layer_weights(params: Sequence[Tensor], has_biases: bool, projected: bool) -> list[_Weights]:
    """`params` apart, one entry for each layer and direction."""
    size = 2 + 2 * has_biases + projected
    weights: list[_Weights] = []
    for i in range(0, len(params), size):
        own = params[i : i + size]
        biases = (own[2], own[3]) if has_biases else (None, None)
        weights.append((own[0], own[1], *biases, own[-1] if projected else None))
    return weights


def _sequence(mode: str, args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """All layers, with the arguments of either of the two forms."""
    if isinstance(args[3], bool):
        x, hx, params, has_biases, _, dropout, train, bidirectional, batch_first = args
        sizes = None
    else:
        x, sizes, hx, params, has_biases, _, dropout, train, bidirectional = args
        batch_first = False
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    weights = _layer_weights(params, has_biases, len(states) == 2 and states[0].shape[2] != states[1].shape[2])
    if batch_first:
        x = x.transpose(0, 1)
    layer = rushlight._C._nn._rnn_layer
    directions = 2 if bidirectional else 1
    last: list[list[Tensor]] = []
    for k in range(0, len(weights), directions):
        both = []
        for d in range(directions):
            h, *c = (s[k + d] for s in states)
            output, *state = layer(mode, x, sizes, h, c[0] if c else None, *weights[k + d], d == 1)
            both.append(output)
            last.append(state)
        x = both[0] if directions == 1 else rushlight.cat(both, -1)
        if dropout and train and k + directions < len(weights):
            x = rushlight.dropout(x, dropout, True)
    return (x.transpose(0, 1) if batch_first else x, *(rushlight.stack(parts) for parts in zip(*last, strict=True)))


def lstm(*args: Any) -> tuple[Tensor, ...]:
    """Long short-term memory: ``(output, h_n, c_n)``.

    ``c' = sigmoid(f) c + sigmoid(i) tanh(g)``, ``h' = sigmoid(o) tanh(c')`` for the gates ``i, f, g, o`` in this order
    in the rows of the weights; where the two states differ in width, ``h'`` is projected by ``w_hr`` (Sak et al.
    2014).
    """
    return _sequence("LSTM", args)


def gru(*args: Any) -> tuple[Tensor, ...]:
    """Gated recurrent unit: ``(output, h_n)``.

    ``n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn))``, ``h' = (1 - sigmoid(z)) n + sigmoid(z) h`` for the gates
    ``r, z, n``.
    """
    return _sequence("GRU", args)


def rnn_tanh(*args: Any) -> tuple[Tensor, ...]:
    """Elman's network, ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``: ``(output, h_n)``."""
    return _sequence("RNN_TANH", args)


def rnn_relu(*args: Any) -> tuple[Tensor, ...]:
    """The same with ``relu`` in the place of ``tanh``."""
    return _sequence("RNN_RELU", args)


def _check_cell(input: Tensor, hidden: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}\nin a recurrent cell"
        )
    for i, h in enumerate(hidden):
        if h.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {h.shape[0]}"
                "\nin a recurrent cell"
            )
        if h.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {h.shape[1]}, expected {w_hh.shape[1]}"
                "\nin a recurrent cell"
            )


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of :func:`lstm` for an input ``(N, I)`` and two states ``(N, H)``: the states after it."""
    _check_cell(input, hx, w_ih, w_hh)
    _, h, c = _step("LSTM", input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)
    return h, c


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`gru` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    _check_cell(input, (hx,), w_ih, w_hh)
    return _step("GRU", input, hx, None, w_ih, w_hh, b_ih, b_hh)[1]


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`rnn_tanh` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    _check_cell(input, (hx,), w_ih, w_hh)
    return _step("RNN_TANH", input, hx, None, w_ih, w_hh, b_ih, b_hh)[1]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of :func:`rnn_relu` for an input ``(N, I)`` and a state ``(N, H)``: the state after it."""
    _check_cell(input, (hx,), w_ih, w_hh)
    return _step("RNN_RELU", input, hx, None, w_ih, w_hh, b_ih, b_hh)[1]


def _step(
    mode: str,
    input: Tensor,
    h: Tensor,
    c: Tensor | None,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple[Tensor, ...]:
    """A layer over a sequence of one step."""
    if b_ih is None and b_hh is not None:
        b_ih = rushlight.zeros_like(b_hh)
    elif b_hh is None and b_ih is not None:
        b_hh = rushlight.zeros_like(b_ih)
    return rushlight._C._nn._rnn_layer(mode, input.unsqueeze(0), None, h, c, w_ih, w_hh, b_ih, b_hh, None, False)
