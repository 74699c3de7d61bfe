"""Recurrent networks over sequences, and their cells for one step."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight
from rushlight import Tensor

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The entries of `tensor` along `dim` in the order of `permutation`."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What :class:`RNN`, :class:`LSTM` and :class:`GRU` share: parameters, checks and the way through a sequence.

    Parameters of layer ``k``: ``weight_ih_l{k}`` of shape ``(gates · hidden_size, inputs)``, ``weight_hh_l{k}``, with
    `bias` also ``bias_ih_l{k}`` and ``bias_hh_l{k}``, with `proj_size` ``weight_hr_l{k}``, and the same with the
    suffix ``_reverse`` for the other direction; drawn uniformly from ``± 1/sqrt(hidden_size)``.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if isinstance(dropout, bool) or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being "
                f"zeroed, got {dropout}"
            )
        if self.dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        self._check_sizes()
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._add_weights(layer, suffix, device, dtype)
        self.reset_parameters()

    def _check_sizes(self) -> None:
        for name, kind in (("input_size", int), ("hidden_size", int), ("bias", bool)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero, got {getattr(self, name)}")
        if self.num_layers <= 0:
            raise ValueError(f"num_layers must be greater than zero, got {self.num_layers}")
        if self.proj_size < 0:
            raise ValueError(
                f"proj_size should be a positive integer or zero to disable projections, got {self.proj_size}"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError(
                f"proj_size has to be smaller than hidden_size, got {self.proj_size} and {self.hidden_size}"
            )
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    def _add_weights(self, layer: int, suffix: str, device: Any, dtype: rushlight.dtype | None) -> None:
        """Registers the parameters of one layer and direction."""
        output = self.proj_size or self.hidden_size
        inputs = output * (2 if self.bidirectional else 1) if layer else self.input_size
        rows = _GATES[self.mode] * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, output)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            name = f"{kind}_l{layer}{suffix}"
            setattr(self, name, Parameter(rushlight.empty(shape, device=device, dtype=dtype)))
            names.append(name)
        self._all_weights.append(names)

    def reset_parameters(self) -> None:
        """Draws all parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: it is there for programs that arrange the weights for a GPU's library."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        # looked up at each call: parametrizations and functional_call put other tensors in their place
        return [getattr(self, name) for names in self._all_weights for name in names]

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """``RuntimeError`` or ``ValueError`` unless dtype, dimensions and width of `input` fit the module."""
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state: layers times directions, batch, features."""
        if batch_sizes is None:
            batch = input.shape[0] if self.batch_first else input.shape[1]
        else:
            batch = int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """``RuntimeError`` with `msg` unless `hx` has the expected shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Checks the input and the initial state before anything is computed."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    # The hidden state is one tensor, or for LSTM a pair: the three methods below and the two above know which.

    def _check_state_dim(self, hx: Any, batched: bool) -> None:
        dim = 3 if batched else 2
        if hx.dim() != dim:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {dim}-D but got {hx.dim()}-D tensor")

    def _batch_of_one(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _sole_of_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _initial_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return rushlight.zeros(shape, dtype=input.dtype, device=input.device)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            name = type(self).__name__
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._initial_state(input, None)
        else:
            self._check_state_dim(hx, batched)
            if not batched:
                hx = self._batch_of_one(hx)
        self.check_forward_args(input, hx, None)
        output, *last = getattr(rushlight, self.mode.lower())(
            input,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        hidden = last[0] if len(last) == 1 else tuple(last)
        if batched:
            return output, hidden
        return output.squeeze(batch_dim), self._sole_of_batch(hidden)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if hx is None:
            hx = self._initial_state(data, batch_sizes)
        else:
            self._check_state_dim(hx, True)
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, *last = getattr(rushlight, self.mode.lower())(
            data,
            batch_sizes,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        hidden = self.permute_hidden(last[0] if len(last) == 1 else tuple(last), unsorted_indices)
        return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), hidden

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        batched = ("N", "T", self.input_size) if self.batch_first else ("T", "N", self.input_size)
        return batched, ("T", self.input_size)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        return text + "".join(
            f", {name}={getattr(self, name)}" for name, default in defaults.items() if getattr(self, name) != default
        )


class RNN(RNNBase):
    """Elman's network, ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or with ``nonlinearity="relu"``.

    Arguments: `input_size`, `hidden_size`, `num_layers` = 1, `nonlinearity` = ``"tanh"``, `bias` = True, `batch_first`
    = False, `dropout` = 0.0 (after each layer but the last), `bidirectional` = False. Input ``(T, N, I)``, or ``(N, T,
    I)`` with `batch_first`, ``(T, I)`` for one sample, or a packed sequence, and optionally the initial state
    ``(layers · directions, N, H)``. Result: the outputs of the last layer, and the last state.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units; arguments, input and result as for :class:`RNN`, without `nonlinearity`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory; as :class:`GRU`, but the state is a pair ``(h, c)``, and `proj_size` narrows ``h``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state, which no projection narrows."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _check_state_dim(self, hx: Any, batched: bool) -> None:
        h, c = hx
        dim = 3 if batched else 2
        if h.dim() != dim or c.dim() != dim:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {dim}-D but got ({h.dim()}-D, {c.dim()}-D) tensors"
            )

    def _batch_of_one(self, hx: Any) -> Any:
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _sole_of_batch(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _initial_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        layers, batch, features = self.get_expected_hidden_size(input, batch_sizes)
        dtype, device = input.dtype, input.device
        return (
            rushlight.zeros(layers, batch, features, dtype=dtype, device=device),
            rushlight.zeros(layers, batch, self.hidden_size, dtype=dtype, device=device),
        )


class RNNCellBase(Module):
    """What the cells share: ``weight_ih (gates · H, I)``, ``weight_hh (gates · H, H)``, ``bias_ih``, ``bias_hh``."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(rushlight.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(rushlight.empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(rushlight.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dim(self, x: Tensor, what: str) -> None:
        if x.dim() not in (1, 2):
            name = type(self).__name__
            raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {x.dim()}D instead")

    def _step(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """One step of a cell whose state is one tensor."""
        self._check_dim(input, "input")
        if hx is not None:
            self._check_dim(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = rushlight.zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        result: Tensor = function(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        return ("N", self.input_size), (self.input_size,)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of an Elman network: input ``(N, I)`` or ``(I,)`` and state ``(N, H)`` (default zeros) to the next."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity == "tanh":
            return self._step(rushlight.rnn_tanh_cell, input, hx)
        if self.nonlinearity == "relu":
            return self._step(rushlight.rnn_relu_cell, input, hx)
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class GRUCell(RNNCellBase):
    """One step of gated recurrent units; arguments as for :class:`RNNCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(rushlight.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory: input ``(N, I)`` and states ``(h, c)`` of ``(N, H)`` to the next states."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_dim(input, "input")
        if hx is not None:
            for i, state in enumerate(hx):
                self._check_dim(state, f"hx[{i}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = rushlight.zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = rushlight.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
