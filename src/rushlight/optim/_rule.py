"""Optimizers that apply one formula to each parameter on its own."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import rushlight
from rushlight import Tensor

from .optimizer import Optimizer

Options: TypeAlias = dict[str, Any]
State: TypeAlias = dict[str, Any]
Number: TypeAlias = float | Tensor


class UpdateRule(Optimizer):
    """An optimizer given by the formula that updates a parameter from its gradient and state.

    A subclass says how the state begins (:meth:`_new_state`), calls the kernel that updates a whole group of parameters
    (:meth:`_native`), and gives the step as a formula in tensor operations (:meth:`_rule`), which serves steps that are
    differentiated and what the kernel leaves.
    """

    # Options that older checkpoints may lack, with the values that they had.
    _added_options: ClassVar[Options] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key, value in self._added_options.items():
                group.setdefault(key, value)
            for p in group["params"]:
                self._restore(self.state.get(p, {}))

    def _restore(self, state: State) -> None:
        """Brings the state of a parameter, loaded from an older checkpoint, into today's form."""
        if "step" in state and not isinstance(state["step"], Tensor):
            state["step"] = scalar(float(state["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters that have gradients.

        ``closure``, if given, evaluates the model anew and returns the loss, which the step then returns.
        """
        loss = None
        if closure is not None:
            with rushlight.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("differentiable", False):
                self._update(group["params"], group)
                continue
            left = self._native(group["params"], group)
            if left is not None and self._begin(left, group):
                left = self._native(left, group)
            if left is not None:
                self._update(left, group)
        return loss

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        """Updates those of ``params`` that the core's kernel can update, in one pass; returns the others.

        Without state yet, or of a dtype or memory order that has no kernel, a parameter is left to the formula.
        """
        return params

    def _begin(self, params: Sequence[Tensor], group: Options) -> bool:
        """Creates the state of parameters that have none, and says whether there were any."""
        began = False
        for p in params:
            if p.grad is not None and not self.state.get(p):
                state = self._new_state(p, group)
                if state:
                    self.state[p] = state
                    began = True
        return began

    def _update(self, params: Sequence[Tensor], group: Options) -> None:
        """Applies the formula to each of ``params``, by tensor operations."""
        differentiable = group.get("differentiable", False)
        options = group if differentiable else self._options(group)
        with rushlight.set_grad_enabled(differentiable):
            for p in params:
                if p.grad is None:
                    continue
                state = self.state.get(p)
                if not state:
                    state = self._new_state(p, group)
                self._update_one(p, state, options, differentiable)
                if state:
                    self.state[p] = state

    def _update_one(self, p: Tensor, state: State, options: Options, differentiable: bool) -> None:
        if "step" in state:
            state["step"] += 1
        grad: Any = p.grad
        value, tensors = p, {k: v for k, v in state.items() if isinstance(v, Tensor)}
        if p.is_complex():
            # Real and imaginary parts are parameters of their own to every formula.
            value, grad = rushlight.view_as_real(p), rushlight.view_as_real(grad)
            tensors = {k: rushlight.view_as_real(v) if v.is_complex() else v for k, v in tensors.items()}
        target, targets = value, tensors
        if differentiable:
            # The graph keeps what the formula read; the results go to the originals.
            value, tensors = value.clone(), {k: v.clone() for k, v in tensors.items()}
        new_value, new_tensors = self._rule(value, -grad if options.get("maximize") else grad, tensors, options)
        target.copy_(new_value)
        for key, new in new_tensors.items():
            if key in targets:
                targets[key].copy_(new)
            else:
                new = new.clone() if differentiable else new
                state[key] = rushlight.view_as_complex(new) if p.is_complex() else new

    def _options(self, group: Options) -> Options:
        """The options of a step that is not differentiated: Python numbers, where the group may have tensors."""
        return plain_numbers(group)

    def _new_state(self, p: Tensor, group: Options) -> State:
        """The state that a parameter begins with."""
        raise NotImplementedError(f"{type(self).__name__} does not define _new_state")

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        """The new value of ``p`` under the gradient ``g``, and the entries of its state that change.

        ``state["step"]``, where there is one, counts this step already. Nothing is changed in place.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _rule")


def scalar(value: float) -> Tensor:
    """A number of the state, as the 0-d tensor that checkpoints hold: float32 unless float64 is the default."""
    wide = rushlight.get_default_dtype() == rushlight.float64
    return rushlight.tensor(value, dtype=rushlight.float64 if wide else rushlight.float32)


def zeros_like(p: Tensor) -> Tensor:
    """Zeros for the state of ``p``, in its memory format."""
    return rushlight.zeros_like(p, memory_format=rushlight.preserve_format)


def plain_numbers(options: Options) -> Options:
    """``options`` with Python numbers in the place of tensors, and without parameters."""

    def plain(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.item()
        return tuple(plain(v) for v in value) if isinstance(value, tuple) else value

    return {key: plain(value) for key, value in options.items() if key not in ("params", "param_names")}


# a + scale * (...): a Python number goes into the fused operation, which does not round the product to a half type; a
# tensor is an operand like the others and gets its gradient.


def add_scaled(a: Tensor, b: Tensor, scale: Number) -> Tensor:
    """``a + scale * b``."""
    return a + b * scale if isinstance(scale, Tensor) else rushlight.add(a, b, alpha=scale)


def add_product(a: Tensor, b: Tensor, c: Tensor, scale: Number) -> Tensor:
    """``a + scale * b * c``."""
    return a + b * scale * c if isinstance(scale, Tensor) else rushlight.addcmul(a, b, c, value=scale)


def add_quotient(a: Tensor, b: Tensor, c: Tensor, scale: Number) -> Tensor:
    """``a + scale * b / c``."""
    return a + b * scale / c if isinstance(scale, Tensor) else rushlight.addcdiv(a, b, c, value=scale)


# Checks of options. They are phrased so that NaN fails them.


def check_rate(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """Refuses a learning rate that is negative, or a tensor of more than one element."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        lr = lr.item()
    if not lr >= 0.0:
        raise ValueError(message.format(lr))


def check_not_negative(value: Any, message: str) -> None:
    """Refuses a negative value."""
    if not value >= 0.0:
        raise ValueError(message.format(value))


def check_betas(betas: Sequence[Any]) -> None:
    """Refuses decay rates outside [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_implementation(foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Refuses combinations of options that ask for two implementations at once.

    All of them name the same native pass here; the checks keep programs portable.
    """
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
