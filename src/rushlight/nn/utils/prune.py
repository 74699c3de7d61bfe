"""Pruning: parameters multiplied by masks of zeros and ones before each call.

A pruned parameter ``name`` of a module is kept as ``name_orig``, its mask as the buffer ``name_mask``; a hook before
each call computes the attribute ``name``. Pruning again combines the masks.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import rushlight
from rushlight import Tensor

from ..modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

_M = TypeVar("_M", bound=Module)


class BasePruningMethod(ABC):
    """A way of choosing what to prune: subclasses define :meth:`compute_mask` and ``PRUNING_TYPE``.

    That is ``"unstructured"`` (single numbers), ``"structured"`` (whole slices) or ``"global"``; it tells a further
    pruning of the same parameter what is left to choose from.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances `t`, which are those of the numbers that `default_mask` has left."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned parameter: the original times its mask."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        pruned: Tensor = mask.to(dtype=original.dtype) * original
        return pruned

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes the parameter `name` of `module` by this method, after those that pruned it before; the hook.

        `importance_scores` stand for the parameter where the method compares; another shape is an ``AssertionError``.
        """
        earlier = _hook_for(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier is not None:
            key, hook = earlier
            if not isinstance(hook, PruningContainer):
                hook = PruningContainer(hook)
            hook.add_pruning_method(method)
            method = hook
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {original.shape}"
            )
        if earlier is None:
            default_mask = rushlight.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=rushlight.contiguous_format)
        mask = method.compute_mask(importance_scores, default_mask)
        # all is known to be right: only now is the module changed
        if earlier is None:
            parameter = module._parameters.pop(name)
            module.register_parameter(name + "_orig", parameter)
        else:
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """`t` pruned by this method, without a module; arguments as for :meth:`apply` and :meth:`compute_mask`."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = rushlight.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned numbers the parameter for good. The hook itself stays, see the function :func:`remove`."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        parameter = module._parameters.pop(name + "_orig")
        assert parameter is not None
        parameter.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, parameter)


def _hook_for(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The pruning hook of a parameter, and its key."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, of which the last is still to choose from what the others have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for i, method in enumerate(args):
            if not i:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Appends a method; one for another parameter is a ``ValueError``, something else a ``TypeError``."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask`, which holds what the earlier methods left, with what the last one chooses of it set to 0."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        left: Any = mask == 1
        if method.PRUNING_TYPE == "structured":
            # a slice is left unless all of it is pruned
            if not hasattr(method, "dim"):
                raise AttributeError(f"{type(method).__name__} is structured and needs an attribute 'dim'")
            dim = method.dim % t.dim()
            others = tuple(d for d in range(t.dim()) if d != dim)
            left = (slice(None),) * dim + ((mask.sum(dim=others) != 0 if others else mask != 0),)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        elif method.PRUNING_TYPE != "unstructured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = mask.clone()
        mask[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return mask


def _check_amount(amount: Any) -> None:
    """`amount` is a share between 0 and 1, or a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_to_prune(amount: float, size: int) -> int:
    """How many of `size` elements `amount` stands for; ``ValueError`` for more than there are."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


def _checked_dim(t: Tensor, dim: int) -> int:
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return dim % t.dim()


def _check_structured(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {t.shape} with {t.dim()} dims"
        )


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """What the methods that prune single numbers share."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    @abstractmethod
    def _chosen(self, t: Tensor, count: int) -> Tensor:
        """The places of the `count` numbers to prune, in the flattened `t`."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _number_to_prune(self.amount, t.numel())
        mask = default_mask.clone(memory_format=rushlight.contiguous_format)
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes single numbers at random: `amount` of them, or that share."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return rushlight.rand_like(t).view(-1).topk(count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> BasePruningMethod:  # type: ignore[override]
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the single numbers of least absolute value: `amount` of them, or that share."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return t.abs().reshape(-1).topk(count, largest=False).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """What the methods that prune slices along `dim` share."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    @abstractmethod
    def _kept(self, t: Tensor, dim: int, count: int) -> Tensor:
        """Which slices to keep, after pruning `count`: numbers or flags."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(t)
        dim = _checked_dim(t, self.dim)
        count = _number_to_prune(self.amount, t.shape[dim])
        if not count:
            return default_mask
        slices = rushlight.zeros_like(t)
        slices[(slice(None),) * dim + (self._kept(t, dim, count),)] = 1
        return slices * default_mask.to(dtype=slices.dtype)


class RandomStructured(_Structured):
    """Prunes slices along `dim` at random: `amount` of them, or that share."""

    def _kept(self, t: Tensor, dim: int, count: int) -> Tensor:
        chances = rushlight.rand(t.shape[dim])
        return chances > rushlight.kthvalue(chances, k=count).values

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> BasePruningMethod:
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along `dim` of least norm `n`: `amount` of them, or that share."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, dim: int, count: int) -> Tensor:
        others = [d for d in range(t.dim()) if d != dim]
        norms = rushlight.norm(t, p=self.n, dim=others)
        return rushlight.topk(norms, k=t.shape[dim] - count, largest=True).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """See :meth:`BasePruningMethod.apply`."""
        return super().apply(module, name, mask=mask)


def identity(module: _M, name: str) -> _M:
    """`module`, with a mask of ones for the parameter `name`."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: _M, name: str, amount: float) -> _M:
    """`module`, with `amount` numbers of the parameter `name`, or that share, pruned at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: _M, name: str, amount: float, importance_scores: Tensor | None = None) -> _M:
    """`module`, with the `amount` (or share) of numbers of the parameter `name` pruned of least absolute value."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: _M, name: str, amount: float, dim: int) -> _M:
    """`module`, with `amount` slices along `dim` of the parameter `name`, or that share, pruned at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: _M, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> _M:
    """`module`, with the `amount` (or share) of slices along `dim` of the parameter `name` pruned of least norm `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: _M, name: str, mask: Tensor) -> _M:
    """`module`, with the parameter `name` pruned where `mask` is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes pairs of a module and a parameter's name together, as if all were one parameter.

    `pruning_method` is a class of an unstructured method, which `kwargs` go to; others are a ``TypeError``.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is None:
        importance_scores = {}
    elif not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    scores = [importance_scores.get(pair, getattr(*pair)).reshape(-1) for pair in pairs]
    masks = []
    for module, name in pairs:
        mask = getattr(module, name + "_mask", None)
        masks.append(rushlight.ones_like(getattr(module, name)) if mask is None else mask)
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    whole = container.compute_mask(rushlight.cat(scores), rushlight.cat([mask.reshape(-1) for mask in masks]))
    start = 0
    for (module, name), mask in zip(pairs, masks, strict=True):
        custom_from_mask(module, name, whole[start : start + mask.numel()].view_as(mask))
        start += mask.numel()


def remove(module: _M, name: str) -> _M:
    """`module`, with the pruned numbers of `name` as a parameter for good; ``ValueError`` if it is not pruned."""
    found = _hook_for(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether `module` or one of its submodules has a pruned parameter."""
    return any(
        isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values()
    )
