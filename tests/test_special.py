"""torch.special: names, values against SciPy over wide ranges, the ends, derivatives."""

import numpy as np
import pytest
from scipy import special as reference

import rushlight as torch
from rushlight.autograd import forward_ad, gradcheck, gradgradcheck

WIDE = np.concatenate([np.linspace(-29.7, 30, 801), np.geomspace(1e-8, 1e4, 200), -np.geomspace(1e-8, 600, 200)])
SHARES = np.concatenate([np.linspace(0.001, 0.999, 401), np.geomspace(1e-300, 1e-1, 100)])
POSITIVE = np.concatenate([np.linspace(0.01, 40, 801), np.geomspace(1e-5, 1e4, 100)])

VALUES = {
    "digamma": (reference.digamma, WIDE),
    "psi": (reference.psi, WIDE),
    "gammaln": (reference.gammaln, WIDE),
    "erfcx": (reference.erfcx, WIDE[WIDE > -26]),
    "erfinv": (reference.erfinv, 2 * SHARES - 1),
    "ndtr": (reference.ndtr, WIDE[WIDE > -37]),
    "log_ndtr": (reference.log_ndtr, WIDE),
    "ndtri": (reference.ndtri, SHARES),
    "i0": (reference.i0, WIDE[abs(WIDE) < 700]),
    "i0e": (reference.i0e, WIDE),
    "i1": (reference.i1, WIDE[abs(WIDE) < 700]),
    "i1e": (reference.i1e, WIDE),
    "entr": (reference.entr, WIDE),
    "expit": (reference.expit, WIDE),
    "bessel_j0": (reference.j0, WIDE),
    "bessel_j1": (reference.j1, WIDE),
    "bessel_y0": (reference.y0, WIDE),
    "bessel_y1": (reference.y1, WIDE),
    "modified_bessel_i0": (reference.i0, WIDE[abs(WIDE) < 700]),
    "modified_bessel_i1": (reference.i1, WIDE[abs(WIDE) < 700]),
    "modified_bessel_k0": (reference.k0, WIDE),
    "modified_bessel_k1": (reference.k1, WIDE),
    "scaled_modified_bessel_k0": (reference.k0e, WIDE),
    "scaled_modified_bessel_k1": (reference.k1e, WIDE),
    "spherical_bessel_j0": (lambda x: np.where(x == 0, 1, np.sin(x) / x), WIDE),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    function, x = VALUES[name]
    with np.errstate(all="ignore"):
        expected = function(x)
    np.testing.assert_allclose(getattr(torch.special, name)(torch.tensor(x)).numpy(), expected, 2e-13, 1e-300)
    single = getattr(torch.special, name)(torch.tensor(x).float())
    assert single.dtype == torch.float32


@pytest.mark.parametrize("n", [0, 1, 2, 5, 10])
def test_polygamma(n):
    result = torch.special.polygamma(n, torch.tensor(POSITIVE))
    np.testing.assert_allclose(result.numpy(), reference.polygamma(n, POSITIVE), 1e-12)


def test_polygamma_below_zero_by_its_recurrence():
    x = torch.cat([torch.arange(-19.0, 0, dtype=torch.float64) + part for part in (0.3, 0.5, 0.75)])  # far from poles
    for n in (1, 2, 3):
        # psi_n(x + 1) - psi_n(x) = (-1)^n n! / x^(n + 1)
        step = (-1) ** n * float(np.prod(np.arange(1, n + 1))) / x ** (n + 1)
        torch.testing.assert_close(torch.polygamma(n, x + 1) - torch.polygamma(n, x), step, rtol=1e-9, atol=1e-9)
    assert torch.polygamma(1, torch.tensor([-1e9 - 0.5], dtype=torch.float64)).isfinite().all()


def test_zeta():
    q = np.linspace(0.1, 40, 300)
    for s in (1.5, 2.0, 7.25):
        result = torch.special.zeta(s, torch.tensor(q))
        np.testing.assert_allclose(result.numpy(), reference.zeta(s, q), 1e-12)
    edges = torch.special.zeta(torch.tensor([1.0, 2.0, 0.5, 2.0, 2.5]), torch.tensor([1.0, 0.0, 1.0, -1.0, -0.5]))
    assert edges[[0, 1, 3]].isposinf().all() and edges[[2, 4]].isnan().all()


def test_xlog1py():
    a, b = torch.tensor([0.0, 0.0, 2.0, 0.0]), torch.tensor([-1.0, -3.0, 0.5, float("nan")])
    result = torch.special.xlog1py(a, b)
    assert result[:2].tolist() == [0.0, 0.0] and result[3].isnan()
    torch.testing.assert_close(result[2], 2 * torch.log1p(torch.tensor(0.5)))


def test_ends():
    inf, nan = float("inf"), float("nan")
    poles = torch.digamma(torch.tensor([0.0, -0.0, -1.0, inf]))
    assert poles[0] == -inf and poles[1] == inf and poles[2].isnan() and poles[3] == inf
    inverse = torch.erfinv(torch.tensor([1.0, -1.0, 2.0, nan]))
    assert inverse[:2].tolist() == [inf, -inf] and inverse[2:].isnan().all()
    quantiles = torch.special.ndtri(torch.tensor([0.0, 1.0, -0.1]))
    assert quantiles[:2].tolist() == [-inf, inf] and quantiles[2].isnan()
    assert torch.lgamma(torch.tensor([0.0, -1.0, inf])).isposinf().all()
    assert torch.special.i0e(torch.tensor([inf, -inf])).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, torch.ones(2))


@pytest.mark.parametrize(
    "name", ["digamma", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "i0", "i0e", "i1", "i1e", "entr", "gammaln"]
)
def test_derivatives(name):
    function = getattr(torch.special, name)
    x = torch.tensor([0.15, 0.4, 0.85], dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_derivatives_at_zero_of_odd_functions():
    for name in ("i1", "i1e"):
        x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        getattr(torch.special, name)(x).backward()
        assert x.grad.item() == 0.5


def test_two_operands():
    s = torch.tensor([2.0, 3.5], dtype=torch.float64)
    q = torch.tensor([0.7, 1.9], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda q: torch.special.zeta(s, q), (q,))
    a = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.special.xlog1py, (a, q))


def test_whole_numbers_become_floating_and_out_is_written():
    assert torch.special.i0(torch.arange(3)).dtype == torch.float32
    out = torch.empty(2)
    assert torch.special.erfcx(torch.zeros(2), out=out) is out and out.tolist() == [1.0, 1.0]


def test_methods_and_names():
    x = torch.tensor([1.5])
    assert x.polygamma(1) == torch.special.polygamma(1, x)
    assert x.clone().polygamma_(1) == torch.polygamma(1, x)
    assert torch.special.multigammaln(x, 2) == torch.mvlgamma(x, 2)
    with pytest.raises(AttributeError, match=r"torch\.special\.erfinw"):
        torch.special.erfinw  # noqa: B018


def test_airy():
    x = np.concatenate([np.linspace(-20, 30, 801), [0.0, 1e-300, -1e-9, 1e-7, 2e-6]])
    result = torch.special.airy_ai(torch.tensor(x)).numpy()
    np.testing.assert_allclose(result, reference.airy(x)[0], 1e-12, 2e-13)
    assert torch.special.airy_ai(torch.tensor(1e-12)).item() == pytest.approx(0.3550280538878172)


POLYNOMIALS = {
    "chebyshev_polynomial_t": reference.eval_chebyt,
    "chebyshev_polynomial_u": reference.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: reference.eval_chebyu(n, x) - (reference.eval_chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda n, x: reference.eval_chebyu(n, x) + (reference.eval_chebyu(n - 1, x) if n else 0),
    "shifted_chebyshev_polynomial_t": reference.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": reference.eval_sh_chebyu,
    "hermite_polynomial_h": reference.eval_hermite,
    "hermite_polynomial_he": reference.eval_hermitenorm,
    "laguerre_polynomial_l": reference.eval_laguerre,
    "legendre_polynomial_p": reference.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    function, x = getattr(torch.special, name), np.linspace(-2, 2, 81)
    for n in (0, 1, 2, 3, 8, 20, 70):
        expected = POLYNOMIALS[name](n, x)
        scale = np.maximum(1, abs(expected))
        np.testing.assert_allclose(function(torch.tensor(x), n).numpy() / scale, expected / scale, 1e-9, 1e-11)
    degrees = function(torch.tensor([0.3, 0.3, 0.3, 0.3]), torch.tensor([-1.0, -0.5, 2.7, 2.0]))
    assert degrees[:2].tolist() == [0.0, 1.0] and degrees[2] == degrees[3]
    assert function(torch.tensor([float("nan")]), 2).isnan().all()  # PyTorch takes the value beside it
    assert function(torch.arange(3), 1).dtype == torch.float32
    assert not function(torch.ones(2, requires_grad=True), 2).requires_grad


def test_incomplete_gamma_functions():
    a, x = np.meshgrid([0.3, 1.0, 2.5, 40.0], np.linspace(0, 60, 31))
    for name, expected in (("igamma", reference.gammainc), ("igammac", reference.gammaincc)):
        function = getattr(torch, name)
        result = function(torch.tensor(a), torch.tensor(x))
        np.testing.assert_allclose(result.numpy(), expected(a, x), 1e-12, 1e-300)
        assert torch.equal(
            getattr(torch.special, name.replace("igamma", "gammainc"))(*map(torch.tensor, (a, x))), result
        )
        assert torch.equal(getattr(torch.tensor(a), name)(torch.tensor(x)), result)
        assert torch.equal(getattr(torch.tensor(a), name + "_")(torch.tensor(x)), result)
        shape = torch.tensor([0.5, 1.5], dtype=torch.float64)
        q = torch.tensor([0.7, 1.9], dtype=torch.float64, requires_grad=True)
        assert gradcheck(function, (shape, q), check_forward_ad=True)


def test_a_missing_derivative_is_an_error_only_where_it_is_needed():
    a, x = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    for function in (torch.special.gammainc, torch.special.gammaincc, torch.special.zeta):
        y = function(a, x)
        assert torch.autograd.grad(y, x, retain_graph=True)[0].isfinite().all()
        with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
            y.backward()
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(function(a, forward_ad.make_dual(x, torch.ones(1)))).tangent is not None
            with pytest.raises(NotImplementedError, match="is not implemented"):
                function(forward_ad.make_dual(a, torch.ones(1)), x)


def test_the_spherical_bessel_function_has_derivatives_near_zero():
    x = torch.tensor([0.0, 1e-4, 0.2, 0.31, 2.0, -5.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.special.spherical_bessel_j0, (x,))
    assert gradgradcheck(torch.special.spherical_bessel_j0, (x,))
    assert torch.special.spherical_bessel_j0(torch.tensor(float("inf"))).item() == 0
