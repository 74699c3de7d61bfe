"""What importing the package costs: a fresh process each, as a program would see it."""

import json
import subprocess
import sys

import pytest

# What programs rarely use, or what is slow to load: imported inside of functions, on first use.
HEAVY = [
    "scipy",
    "torch",
    "multiprocessing",
    "concurrent",
    "asyncio",
    "PIL",
    "matplotlib",
    "tqdm",
    "rich",
    "sklearn",
    "safetensors",
    "graphviz",
    "cairosvg",
    "mpi4py",
    "email",
    "http",
    "urllib.request",
    "ssl",
    "socket",
    "subprocess",
    "tempfile",
    "shutil",
    "zipfile",
    "tarfile",
    "sqlite3",
    "xml",
    "logging",
    "argparse",
    "unittest",
    "pytest",
    "hypothesis",
    "random",
    "ctypes",
    "numpy.random",
    "numpy.testing",
    "numpy.fft",
    "numpy.polynomial",
    "numpy.ma",
]
PARTS = [
    "nn",
    "optim",
    "io",
    "serialization",
    "utils.data",
    "vision",
    "multiprocessing",
    "distributed",
    "func",
    "fft",
    "amp",
    "cuda",
    "testing",
    "hub",
    "jit",
    "run",
    "cli",
    "demo",
]


def fresh(code):
    """What a new interpreter prints for `code`, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def modules_of(statement):
    return fresh(f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")


@pytest.fixture(scope="module")
def modules():
    return modules_of("import rushlight")


def test_nothing_heavy_is_loaded(modules):
    # the interpreter's own start and NumPy may have loaded some of them
    before = set(modules_of("import numpy"))
    loaded = [m for m in modules if m not in before and any(m == h or m.startswith(h + ".") for h in HEAVY)]
    assert loaded == []
    assert "numpy" in modules


def test_parts_wait_until_they_are_used(modules):
    assert [p for p in PARTS if f"rushlight.{p}" in modules] == []


def test_the_number_of_modules(modules):
    ours = [m for m in modules if m.split(".")[0] == "rushlight"]
    others = set(modules) - set(modules_of("import numpy")) - set(ours)
    assert len(ours) < 60, ours
    assert len(others) < 20, others


def test_a_part_that_is_looked_at_is_loaded():
    code = "import json, sys, rushlight\nrushlight.nn.Linear\nprint(json.dumps('rushlight.nn' in sys.modules))"
    assert fresh(code) is True


def test_nothing_heavy_for_a_model_and_its_training():
    statement = (
        "import rushlight as torch\n"
        "net = torch.nn.Linear(3, 2)\n"
        "torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(4, 3)).sum().backward()"
    )
    loaded = modules_of(statement)
    heavy = ("scipy", "torch", "multiprocessing", "PIL", "matplotlib", "tqdm", "safetensors", "asyncio", "ssl")
    assert [m for m in loaded if m.split(".")[0] in heavy] == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")
def test_resident_memory_with_numpy():
    code = (
        "import rushlight, re\n"
        "print(max(int(kb) for kb in re.findall(r'Vm(?:RSS|HWM):\\s+(\\d+) kB', open('/proc/self/status').read())))"
    )
    megabytes = fresh(code) / 1024
    assert 10 < megabytes < 60


def test_every_submodule_that_is_listed_is_there():
    import rushlight
    from rushlight._missing import LAZY

    submodules, _ = LAZY["rushlight"]
    for name in submodules:
        assert getattr(rushlight, name).__name__ == f"rushlight.{name}"
    assert not hasattr(rushlight, "distributions") or "distributions" in submodules
