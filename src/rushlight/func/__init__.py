"""Functions of functions: derivatives and batches that compose (``torch.func``).

``grad``, ``grad_and_value``, ``vjp``, ``jvp``, ``linearize``, ``jacrev``, ``jacfwd``, ``hessian`` and ``vmap`` take a
function and give one; they nest in any order. Functions should be pure: everything they need comes by their arguments,
and what they compute goes out by their results.
"""

from .. import _vmap as _vmap
from .forward import jvp, linearize
from .functionalize import functionalize
from .jacobian import hessian, jacfwd, jacrev
from .rearrange import rearrange
from .reverse import grad, grad_and_value, vjp
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .vmap import debug_unwrap, vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
