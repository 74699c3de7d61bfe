"""The base class of all neural network modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from operator import methodcaller
from typing import Any, Self

import rushlight
from rushlight import Tensor

from .hook import (
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from .registration import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import _EXTRA_STATE_KEY_SUFFIX, Stateful, _IncompatibleKeys

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX",
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# The fields that hold hooks, each an empty ordered dictionary at first.
_HOOK_FIELDS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _addindent(text: str, width: int) -> str:
    """`text` with all its lines but the first moved right by `width`."""
    return text.replace("\n", "\n" + " " * width)


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format of a call of `to` in any of its forms; None where not given."""
    if args or kwargs:
        rushlight.empty(0).to(*args, **kwargs)  # raises for a call that Tensor.to does not understand
    first = args[0] if args else kwargs.get("tensor", kwargs.get("other"))
    device, dtype, rest = kwargs.get("device"), kwargs.get("dtype"), args[1:]
    if isinstance(first, Tensor):
        device, dtype = first.device, first.dtype
    elif isinstance(first, rushlight.dtype):
        dtype = first
    elif args:
        device = first
        dtype, rest = (rest[0], rest[1:]) if rest else (dtype, rest)
    return device, dtype, rest[0] if rest else kwargs.get("non_blocking", False), kwargs.get("memory_format")


class Module(Stateful):
    """The base class of all neural network modules: parameters, buffers and submodules, and a `forward`.

    Parameters and modules assigned as attributes are registered (see `parameters`, `modules`, `state_dict`); call
    `super().__init__()` before assigning any. Calling a module calls its `forward` with the hooks around it.
    """

    dump_patches: bool = False
    call_super_init: bool = False
    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            raise TypeError(
                f"{type(self).__name__}.__init__() "
                + (
                    f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                    if kwargs
                    else f"takes 1 positional argument but {len(args) + 1} were given"
                )
            )
        # Past __setattr__, which has nothing to look for yet.
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_non_persistent_buffers_set"] = set()
        fields["_is_full_backward_hook"] = None
        for name in _HOOK_FIELDS:
            fields[name] = OrderedDict()
        fields["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Modules saved by early versions of PyTorch lack some fields.
        for name in _HOOK_FIELDS:
            state.setdefault(name, OrderedDict())
        state.setdefault("_non_persistent_buffers_set", set())
        state.setdefault("_is_full_backward_hook", None)
        self.__dict__.update(state)

    # The call: the base type's, which runs `_call_impl` if there are hooks, else `forward` ----------------------------

    def forward(self, *input: Any) -> Any:
        """Compute the module's result; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        """The shapes of input that a layer accepts; none if it accepts all.

        Each entry is a number, the letter of a free dimension, or `...` for any number of dimensions.
        """
        return ()

    def _operands_fit(self, shapes: list[tuple[int, ...]]) -> str:
        """What a layer of several operands expects of their shapes, where these are none of it; else nothing."""
        return ""

    def _explain(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Add the layer, what it expects and what it found to an error about its operands.

        The innermost module does so. An error that other code than the layer's raised is left alone, unless the
        operands' shapes are not what the layer expects.
        """
        if hasattr(error, "_explained"):
            return
        error._explained = True  # type: ignore[attr-defined]
        operands = _tensors_of(args)
        if not operands or not isinstance(args[0], Tensor):
            return
        found = [tuple(x.shape) for x in operands]
        shapes, expected = self._input_shapes(), ""
        if shapes and not any(_fits(found[0], shape) for shape in shapes):
            expected = "an input of shape " + " or ".join(map(_shown, shapes))
            del found[1:]
        elif len(found) > 1:
            expected = self._operands_fit(found)
        if expected:
            text = f"expected {expected}, found {' and '.join(map(str, found))}"
        elif _raised_by_us(error):
            text = self._types_fit(operands[0]) if shapes else ""
            text = text or "found " + " and ".join([f"{tuple(x.shape)} of {x.dtype}" for x in operands])
        else:
            return
        error.args = (f"{error}\n{self._get_name()}({self.extra_repr()}) {text}", *error.args[1:])

    def _types_fit(self, input: Tensor) -> str:
        """What to say where the input is not of the parameters' type; else nothing."""
        parameter = next((p for p in self._parameters.values() if p is not None), None)
        if parameter is None or parameter.dtype == input.dtype:
            return ""
        return f"expected an input of {parameter.dtype}, found {tuple(input.shape)} of {input.dtype}"

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Not available: rushlight runs eagerly."""
        raise NotImplementedError("Module.compile: rushlight runs modules eagerly and has no compiler to give them to")

    # Walking and converting -----------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every module of the tree, children before their parents; returns this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the numbers of parameters, their gradients and buffers by what `fn` makes of them.

        Parameters and gradients stay the same objects, so that optimizers keep hold of them.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        with rushlight.no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                # The gradient first belongs to the old numbers; nothing looks at it between the two assignments.
                gradient = parameter.grad
                parameter.data = fn(parameter)
                if gradient is not None:
                    gradient.data = fn(gradient)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert parameters and buffers in place; returns this module.

        Forms: `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)`, `to(tensor, non_blocking)`,
        `to(memory_format=)`. `dtype` must be floating point or complex (TypeError) and applies to tensors of such
        dtypes only; a memory format applies to tensors of four and five dimensions.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            kept = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, kept, non_blocking, memory_format=memory_format)
            return tensor.to(device, kept, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory on `device` with unset numbers; returns this module."""
        return self._apply(lambda tensor: rushlight.empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to `dst_type`; returns this module."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floats_to(self, dtype: Any) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32; returns this module."""
        return self._floats_to(rushlight.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64; returns this module."""
        return self._floats_to(rushlight.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16; returns this module."""
        return self._floats_to(rushlight.float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16; returns this module."""
        return self._floats_to(rushlight.bfloat16)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU; returns this module."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device; Tensor.cuda raises where there is none."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Move parameters and buffers to an XPU; Tensor.xpu raises where there is none."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def ipu(self, device: Any = None) -> Self:
        """Move parameters and buffers to an IPU; Tensor.ipu raises where there is none."""
        return self._apply(methodcaller("ipu", device))

    def mtia(self, device: Any = None) -> Self:
        """Move parameters and buffers to an MTIA device; Tensor.mtia raises where there is none."""
        return self._apply(methodcaller("mtia", device))

    def share_memory(self) -> Self:
        """Move parameters and buffers into memory that other processes see (Tensor.share_memory_)."""
        return self._apply(lambda tensor: tensor.share_memory_())

    # Modes and gradients --------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode (evaluation mode if `mode` is False) for this module and all below it; returns this one.

        `mode` of another type raises ValueError.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and all below it; returns this one."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters of this module and all below it record operations; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros if `set_to_none` is False."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()

    # Printing -------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr` shows of the module beside its name and submodules; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(lines) <= 1 and not children:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _tensors_of(args: tuple[Any, ...]) -> list[Tensor]:
    """The tensors among the arguments of a call, and those of tuples and lists of them."""
    parts = [part for x in args for part in (x if isinstance(x, tuple | list) else (x,))]
    return [x for x in parts if isinstance(x, Tensor)]


def _raised_by_us(error: Exception) -> bool:
    """Whether the innermost Python code that an error comes from is this package's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("rushlight.")


def _shown(shape: tuple[Any, ...]) -> str:
    """A pattern of `Module._input_shapes`, for people."""
    sizes = ", ".join("*" if size is ... else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 and shape[0] is not ... else f"({sizes})"


def _fits(found: tuple[int, ...], shape: tuple[Any, ...]) -> bool:
    """Whether the sizes `found` match the pattern `shape` of `Module._input_shapes`."""
    if ... in shape:
        start = shape.index(...)
        ending = shape[start + 1 :]
        if len(found) < len(shape) - 1:
            return False
        found = found[:start] + found[len(found) - len(ending) :]
        shape = shape[:start] + ending
    return len(found) == len(shape) and all(
        isinstance(want, str) or size == want for size, want in zip(found, shape, strict=True)
    )
