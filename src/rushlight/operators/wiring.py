"""What the declarations need beside the table: aliases, and the forms that keywords choose."""

from .. import _C
from . import pointwise as _table  # noqa: F401  (the import declares the operators)
from . import pointwise_activation as _activation_table  # noqa: F401
from . import pointwise_choice as _choice_table  # noqa: F401
from . import pointwise_loss as _loss_table  # noqa: F401
from . import pointwise_special as _special_table  # noqa: F401
from .declare import install

ALIASES = {
    "absolute": "abs",
    "negative": "neg",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "fix": "trunc",
}

_C._pointwise_forms("add", scaled="add_scaled")
_C._pointwise_forms("sub", scaled="sub_scaled")
_C._pointwise_forms("rsub", scaled="rsub_scaled")
_C._pointwise_forms("div", floored="floor_divide", truncated="trunc_divide")
_C._pointwise_forms("pow", power=True)

install()
for _alias, _name in ALIASES.items():
    for _place in (_C, _C.Tensor):
        for _ending in ("", "_"):
            _function = getattr(_place, _name + _ending, None)
            if _function is not None:
                setattr(_place, _alias + _ending, _function)
