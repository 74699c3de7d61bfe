"""The command `rushlight`: run a program written for PyTorch, see the demonstration, ask about the installation."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pickle import UnpicklingError

from rushlight.version import TORCH_API, VERSION

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (of the process, if None) and returns the exit code."""
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    exit_code: int = arguments.command(arguments)
    return exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rushlight", description="PyTorch's automatic differentiation as a small, fast library for CPUs."
    )
    parser.add_argument(
        "--version", action="version", version=f"rushlight {VERSION} (interface of PyTorch {TORCH_API})"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run",
        help="run a program written for PyTorch; its `import torch` is rushlight",
        usage="rushlight run [-h] (SCRIPT | -m MODULE) [ARGUMENT ...]",
    )
    run.add_argument("-m", dest="is_module", action="store_true", help="run a module, as `python -m` does")
    run.add_argument("program", metavar="SCRIPT", help="file, folder or archive with a __main__.py, or module after -m")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="passed on to the program")
    run.set_defaults(command=_run)

    demo = commands.add_parser("demo", help="train a small network on handwritten digits and draw its graph")
    demo.add_argument("--model", choices=("mlp", "resnet18"), default="mlp", help="network (default: %(default)s)")
    demo.add_argument("--epochs", type=_positive, default=None, help="passes over the training images")
    demo.add_argument("--seed", type=int, default=0, help="of the random numbers (default: %(default)s)")
    demo.add_argument("--out", default="rushlight-demo", help="folder for the pictures (default: %(default)s)")
    demo.set_defaults(command=_demo)

    info = commands.add_parser("info", help="say what is installed and what it uses, or what a checkpoint file holds")
    info.add_argument("file", nargs="?", metavar="FILE", help="checkpoint to list without loading its tensors")
    info.set_defaults(command=_info)
    return parser


def _fail(error: Exception, exit_code: int = 1) -> int:
    print(f"rushlight: {error}", file=sys.stderr)
    return exit_code


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return number


def _run(arguments: argparse.Namespace) -> int:
    from rushlight import run

    start = run.run_module if arguments.is_module else run.run_script
    try:
        start(arguments.program, arguments.arguments)
    except run.ProgramNotFound as error:
        return _fail(error, error.exit_code)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from rushlight import demo

    try:
        demo.main(model=arguments.model, out=arguments.out, epochs=arguments.epochs, seed=arguments.seed)
    except (ModuleNotFoundError, OSError) as error:  # a part that is not installed, a folder that cannot be written
        return _fail(error)
    return 0


def _info(arguments: argparse.Namespace) -> int:
    try:
        lines = _checkpoint(arguments.file) if arguments.file else _installation()
    except (OSError, EOFError, RuntimeError, ValueError, UnpicklingError) as error:
        return _fail(error)
    print("\n".join(lines))
    return 0


def _installation() -> list[str]:
    import rushlight

    return _report(rushlight._C._build_info(), rushlight.memory_stats())


def _checkpoint(file: str) -> list[str]:
    from rushlight.io import describe

    return describe(file)


def _report(build: Mapping[str, object], memory: Mapping[str, object]) -> list[str]:
    """What `rushlight info` prints: one indented block per mapping, one line per fact."""
    facts: dict[str, object] = {
        "rushlight": VERSION,
        "interface": f"PyTorch {TORCH_API}",
        "python": sys.version.split()[0],
    }
    facts.update(build)
    facts["allocator"] = memory
    return _indented(facts, 0)


def _indented(facts: Mapping[str, object], depth: int) -> list[str]:
    width = max((len(_title(key)) for key in facts), default=0) + 2
    lines = []
    for key, value in facts.items():
        start = "  " * depth + f"{_title(key) + ':':{width}}"
        if isinstance(value, Mapping):
            lines.append(start.rstrip())
            lines += _indented(value, depth + 1)
        else:
            lines.append(start + _fact(key, value))
    return lines


def _title(key: str) -> str:
    return key.replace("_", " ")


def _fact(key: str, value: object) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return " ".join(str(item) for item in value) or "none"
    if isinstance(value, int) and not isinstance(value, bool) and ("bytes" in key or key.endswith("limit")):
        return f"{value:,}"
    return str(value)
