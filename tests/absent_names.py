"""What PyTorch has and rushlight has not yet, as far as tests meet it (see conftest.py)."""

# dotted names below torch
ABSENT = {
    "as_subclass": "Tensor.as_subclass",
    "complex": "complex",
    "conj": "Tensor.conj",
    "forward_ad": "autograd.forward_ad",
    "geqrf": "geqrf",
    "grad": "func.grad",
    "linalg": "linalg",
    "matrix_exp": "matrix_exp",
    "quantile": "quantile",
    "view_as_real": "view_as_real",
    "vmap": "func.vmap",
}
