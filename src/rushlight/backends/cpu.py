"""`torch.backends.cpu`: the vector instructions in use."""

from rushlight._missing import lazy_module

from ._build import cpu_features


def get_cpu_capability() -> str:
    """ "AVX512", "AVX2", "SVE", "NEON" or "DEFAULT": the widest vector instructions that kernels use."""
    features = " ".join(cpu_features())
    for word, capability in (("avx512", "AVX512"), ("avx2", "AVX2"), ("sve", "SVE"), ("neon", "NEON")):
        if word in features:
            return capability
    return "DEFAULT"


__getattr__, __dir__ = lazy_module(__name__)
