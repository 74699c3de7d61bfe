"""Loops of special functions: float32 against SciPy in double, float64 at chosen points against values of forty digits."""

import math

import numpy as np
import pytest
import scipy.special

import rushlight as torch

RNG = np.random.default_rng(0)

# What mpmath gives with forty digits, rounded to double, on both sides of every border between two ways of computing.
POINTS: dict[str, list[tuple[float, float]]] = {
    "erf": [
        (1e-300, 1.1283791670955126e-300),
        (1e-05, 1.1283791670579e-05),
        (0.3, 0.3286267594591274),
        (0.74, 0.7046780778547458),
        (0.76, 0.7175367528055908),
        (1.5, 0.9661051464753108),
        (-2.7, -0.9998656672600594),
        (5.8, 0.9999999999999998),
    ],
    "erfc": [
        (-3.0, 1.9999779095030015),
        (-0.3, 1.3286267594591274),
        (0.3, 0.6713732405408726),
        (0.49, 0.4883317388114769),
        (0.6, 0.3961439091520741),
        (2.5, 0.0004069520174449589),
        (9.0, 4.13703174651381e-37),
        (20.5, 8.450842369572458e-185),
        (26.4, 4.4017768588035426e-305),
    ],
    "erfcx": [
        (-20.0, 1.0442939379528289e174),
        (-1.5, 18.653886256262734),
        (0.001, 0.9988726200811514),
        (0.5, 0.6156903441929259),
        (3.75, 0.14558972127503855),
        (40.0, 0.014100335983377814),
        (1000000.0, 5.641895835474742e-07),
        (1e200, 5.641895835477563e-201),
    ],
    "log_ndtr": [
        (-100000.0, -5000000012.431864),
        (-37.5, -707.6689893175072),
        (-1.01, -1.8563130623431785),
        (-0.99, -1.8258103178428124),
        (-1e-09, -0.6931471813578298),
        (0.5, -0.3689464152886564),
        (6.0, -9.865876455243758e-10),
        (12.0, -1.776482112077679e-33),
    ],
    "erfinv": [
        (1e-300, 8.86226925452758e-301),
        (-0.014, -0.012407813670451481),
        (0.5, 0.4769362762044699),
        (0.99, 1.8213863677184494),
        (-0.9999, -2.75106390571208),
        (0.99999999, 4.052237243268763),
        (0.9999999999999999, 5.8635847487551676),
    ],
    "ndtri": [
        (1e-300, -37.0470962993612),
        (1e-18, -8.757290348782314),
        (3e-17, -8.365225621581438),
        (1e-06, -4.753424308822899),
        (0.01, -2.326347874040841),
        (0.3165, -0.4775085977181892),
        (0.75, 0.6744897501960817),
        (0.9999999999999999, 8.209536151601387),
    ],
    "lgamma": [
        (1e-300, 690.7755278982137),
        (0.1, 2.252712651734206),
        (0.7499, 0.2033895502295561),
        (0.7501, 0.20317237805183128),
        (0.9999, 5.7729791561193866e-05),
        (1.0001, -5.771334222047127e-05),
        (1.5, -0.12078223763524522),
        (2.0001, 4.2281658112919945e-05),
        (2.2501, 0.12492897232565424),
        (3.0, 0.6931471805599453),
        (7.99, 8.50501160608848),
        (8.01, 8.545324429747733),
        (171.5, 709.1431630309282),
        (10000000000.0, 220258509288.81058),
        (1e300, 6.897755278982137e302),
    ],
    "digamma": [
        (1e-300, -9.999999999999999e299),
        (0.01, -100.56088545786868),
        (0.5, -1.9635100260214235),
        (1.0, -0.5772156649015329),
        (2.5, 0.7031566406452432),
        (9.99, 2.250700372831201),
        (10.01, 2.2528037003181356),
        (100000.0, 11.512920464961896),
        (1e300, 690.7755278982137),
    ],
    "polygamma": [
        (1e-100, 1e200),
        (0.01, 10001.621213528313),
        (0.5, 4.934802200544679),
        (1.0, 1.6449340668482264),
        (2.5, 0.49035775610023485),
        (9.99, 0.10527695014824179),
        (10.01, 0.10505595320551508),
        (100000.0, 1.0000050000166667e-05),
        (1e100, 1e-100),
    ],
    "i0": [
        (0.0, 1.0),
        (1e-05, 1.000000000025),
        (1.0, 1.2660658777520084),
        (-5.0, 27.239871823604446),
        (7.99, 423.5842036746737),
        (8.01, 431.5817860520924),
        (40.0, 1.48947747934199e16),
        (700.0, 1.5295933476718737e302),
        (712.0, 2.4684110577627523e307),
    ],
    "i1": [
        (0.0, 0.0),
        (1e-05, 5.0000000000625004e-06),
        (1.0, 0.565159103992485),
        (-5.0, -24.335642142450528),
        (7.99, 396.1152262074013),
        (8.01, 403.6669399977041),
        (40.0, 1.4707396163259352e16),
        (-700.0, -1.5285003902339006e302),
        (712.0, 2.4666770135246153e307),
    ],
    "i0e": [
        (0.0, 1.0),
        (1e-05, 0.9999900000749996),
        (1.0, 0.46575960759364043),
        (-5.0, 0.18354081260932836),
        (7.99, 0.14352476537933484),
        (8.01, 0.14333897941113852),
        (40.0, 0.06327827987523534),
        (700.0, 0.015081295651531358),
        (1e300, 3.9894228040143264e-151),
    ],
    "i1e": [
        (0.0, 0.0),
        (1e-05, 4.999950000312499e-06),
        (1.0, 0.20791041534970844),
        (-5.0, -0.16397226694454237),
        (7.99, 0.134217339578281),
        (8.01, 0.13406776900984482),
        (-40.0, -0.062482229074442064),
        (700.0, 0.015070519444716848),
        (1e300, 3.9894228040143264e-151),
    ],
}
ULPS = {"erf": 1.5, "erfc": 4, "log_ndtr": 6, "digamma": 6}  # of float64, 5 where nothing is said
SCIPY = {
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "log_ndtr": scipy.special.log_ndtr,
    "erfinv": scipy.special.erfinv,
    "ndtri": scipy.special.ndtri,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "polygamma": lambda x: scipy.special.polygamma(1, x),
    "i0": scipy.special.i0,
    "i1": scipy.special.i1,
    "i0e": scipy.special.i0e,
    "i1e": scipy.special.i1e,
}


def _function(name):
    if name == "polygamma":
        return lambda x: torch.polygamma(1, x)
    return getattr(torch.special if hasattr(torch.special, name) else torch, name)


def _sample(name):
    spread = RNG.standard_normal(20_000) * 4
    if name == "erfinv":
        return np.concatenate([RNG.uniform(-1, 1, 10_000), 1 - 10 ** RNG.uniform(-7, -1, 10_000)])
    if name == "ndtri":
        return np.concatenate([RNG.uniform(0, 1, 10_000), 10 ** RNG.uniform(-37, -1, 10_000)])
    if name in ("lgamma", "digamma", "polygamma"):
        return np.concatenate([np.abs(spread) + 1e-3, 10 ** RNG.uniform(-5, 5, 10_000)])
    return np.concatenate([spread, spread * 10])


@pytest.mark.parametrize("name", POINTS)
def test_double_at_points(name):
    x, expected = (np.array(column) for column in zip(*POINTS[name], strict=True))
    found = _function(name)(torch.from_numpy(x)).numpy()
    assert (np.abs(found - expected) / np.spacing(np.abs(expected))).max() <= ULPS.get(name, 5)


@pytest.mark.parametrize("name", POINTS)
def test_float_against_double(name):
    x = _sample(name).astype(np.float32)
    found = _function(name)(torch.from_numpy(x)).numpy()
    with np.errstate(over="ignore"):
        wide = SCIPY[name](x.astype(np.float64))
        rounded = wide.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    error = np.abs(found[finite] - wide[finite]) / np.spacing(np.abs(rounded[finite]))
    assert error.max() <= (2 if name == "erf" else 0.75)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_values(dtype):
    inf, nan = math.inf, math.nan
    for name, pairs in {
        "erf": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
        "erfc": [(0.0, 1.0), (inf, 0.0), (-inf, 2.0), (30.0, 0.0), (-30.0, 2.0), (nan, nan)],
        "erfcx": [(0.0, 1.0), (inf, 0.0), (-inf, inf), (-30.0, inf), (nan, nan)],
        "log_ndtr": [(0.0, -math.log(2)), (inf, 0.0), (-inf, -inf), (nan, nan)],
        "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan), (-1.5, nan), (nan, nan)],
        "ndtri": [(0.0, -inf), (0.5, 0.0), (1.0, inf), (1.5, nan), (-0.1, nan), (nan, nan)],
        "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, inf), (-0.0, inf), (-1.0, inf), (inf, inf), (-inf, inf), (nan, nan)],
        "digamma": [(0.0, -inf), (-0.0, inf), (-1.0, nan), (inf, inf), (-inf, nan), (nan, nan)],
        "i0": [(0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan)],
        "i1": [(0.0, 0.0), (-0.0, 0.0), (inf, nan), (nan, nan)],
        "i0e": [(0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan)],
        "i1e": [(0.0, 0.0), (-0.0, 0.0), (inf, 0.0), (nan, nan)],
    }.items():
        x, expected = torch.tensor([p[0] for p in pairs], dtype=dtype), torch.tensor([p[1] for p in pairs], dtype=dtype)
        found = _function(name)(x)
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-6, atol=0, msg=name)
        assert torch.equal(torch.signbit(found)[expected == 0], torch.signbit(expected)[expected == 0]), name


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_below_zero(name):
    x = -np.abs(RNG.standard_normal(500) * 5)
    mixed = np.where(np.arange(500) % 3 == 0, x, -x)  # beside numbers that the fast way serves
    found = _function(name)(torch.from_numpy(mixed)).numpy()
    np.testing.assert_allclose(found, SCIPY[name](mixed), rtol=1e-10, atol=1e-12)
