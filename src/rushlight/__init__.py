"""rushlight: PyTorch's autograd as a small, fast library. ``import rushlight as torch`` runs PyTorch programs on CPUs."""

from . import _openmp  # isort: skip  (before the core, whose runtime reads its settings once)
from . import version as version
from .version import __version__ as __version__
from ._C import *  # isort: skip
from . import _C as _C
from .operators import wiring as _wiring  # isort: skip  (declares the pointwise operators)
from ._constants import *  # isort: skip
from ._missing import lazy_module
from ._C import *  # isort: skip  (now with the declared operators)

# what * leaves out
_private = {name for name in _C._operator_names if name[0] == "_"} | {
    name for name in vars(_C) if name[:9] == "_foreach_"
}
globals().update({name: getattr(_C, name) for name in _private if hasattr(_C, name)})
from . import _tensor as _tensor  # isort: skip  (methods of Tensor that are written in Python)
from ._creation import *  # isort: skip
from ._settings import *  # isort: skip
from . import _tensor_transfer as _tensor_transfer  # isort: skip
from .functional import *  # isort: skip
from .operators.calculus import *  # isort: skip
from .operators.reduction import *  # isort: skip
from .operators.sorting import *  # isort: skip
from .operators.contract import *  # isort: skip
from ._torch_function import DisableTorchFunction as DisableTorchFunction  # isort: skip  (Tensor has all its members)
from ._torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._tensor_str import set_printoptions as set_printoptions
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .random import get_rng_state as get_rng_state
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import seed as seed
from .random import set_rng_state as set_rng_state

from . import autograd as autograd  # isort: skip

_SUBMODULES = (
    "accelerator",
    "amp",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "fft",
    "func",
    "hub",
    "io",
    "jit",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "serialization",
    "signal",
    "special",
    "testing",
    "torch_version",
    "types",
    "utils",
    "vision",
    "xpu",
)
_ELSEWHERE = {
    **dict.fromkeys(("cdist", "cosine_similarity", "pairwise_distance", "pdist"), "rushlight.nn.functional.distance"),
    **dict.fromkeys(
        (
            "cosine_embedding_loss",
            "ctc_loss",
            "grid_sampler",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "hinge_embedding_loss",
            "margin_ranking_loss",
            "poisson_nll_loss",
            "triplet_margin_loss",
        ),
        "rushlight.nn.functional.by_number",
    ),
    **dict.fromkeys(
        ("gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"),
        "rushlight.nn.functional.rnn",
    ),
    **dict.fromkeys(("det", "logdet", "slogdet"), "rushlight.linalg.solve"),
    **dict.fromkeys(
        (
            "autocast",
            "clear_autocast_cache",
            "get_autocast_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_enabled",
        ),
        "rushlight.amp.autocast_mode",
    ),
    "GradScaler": "rushlight.amp.grad_scaler",
    "geqrf": "rushlight.linalg.factor",
    "lu_unpack": "rushlight.linalg.lu",
    **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "rushlight.linalg.low_rank"),
    **dict.fromkeys(("histogram", "histogramdd"), "rushlight.operators.histogram"),
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
        "rushlight.operators.window",
    ),
    **dict.fromkeys(("igamma", "igammac"), "rushlight.operators.pointwise_scipy"),
    **dict.fromkeys(("istft", "stft"), "rushlight.operators.spectral"),
    **dict.fromkeys(("chain_matmul", "matrix_exp", "matrix_power"), "rushlight.linalg.product"),
    **dict.fromkeys(
        (
            "cholesky",
            "cholesky_inverse",
            "cholesky_solve",
            "frobenius_norm",
            "inverse",
            "lu",
            "lu_solve",
            "nuclear_norm",
            "orgqr",
            "ormqr",
            "pinverse",
            "qr",
            "svd",
            "triangular_solve",
        ),
        "rushlight.linalg.legacy",
    ),
    "save": "rushlight.serialization",
    "load": "rushlight.serialization",
    "compile": "rushlight.compiler",
    "pointwise": "rushlight.operators.fused",
    "vmap": "rushlight.func",
}
# the modules that define torch's functions of tensors
_OFFERS = (
    "rushlight.functional",
    "rushlight.linalg.",
    "rushlight.nn.functional.",
    *[f"rushlight.operators.{m}" for m in ("calculus", "contract", "histogram", "reduction", "sorting", "spectral")],
    "rushlight.operators.pointwise_scipy",
)
__getattr__, __dir__ = lazy_module(__name__, submodules=_SUBMODULES, names=_ELSEWHERE, offers=_OFFERS)
