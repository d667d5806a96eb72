"""Read a kernel of the loop IR from a text file, and print, run or compile it.

python -m accnp.compiler check k.ir
python -m accnp.compiler passes k.ir [--count N]
python -m accnp.compiler numba k.ir
python -m accnp.compiler llvm k.ir
python -m accnp.compiler run k.ir --range 0 8 --integers n0=8
python -m accnp.compiler bisect k.ir --range 0 8 --integers n0=8
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from accnp.compiler.llvm.lower import lower
from accnp.compiler.loops.interpreter import run
from accnp.compiler.loops.ir import LONG, Kernel
from accnp.compiler.loops.parser import parse_kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.verifier import verify
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import Target, bisect, run_passes

VECTOR_BYTES = 64  # size of the vectors in printed kernels


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        kernel = parse_kernel(Path(options.file).read_text())
        verify(kernel)
        print(_output(options, kernel), end="")
    except (OSError, ValueError, IndexError, OverflowError, MemoryError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m accnp.compiler", description="Print, run or compile a kernel of the loop IR"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("check", "verify the kernel and print it"),
        ("passes", "print the kernel after the passes"),
        ("numba", "print the kernel as Numba source"),
        ("llvm", "print the LLVM module of the kernel"),
        ("run", "run the kernel with the interpreter, on arrays of random numbers"),
        ("bisect", "find the first pass after which the kernel computes other values"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("file", help="a file with the text of a kernel")
        if name == "passes":
            command.add_argument("--count", type=int, help="how many passes are run (default: all)")
        if name in ("run", "bisect"):
            command.add_argument("--range", type=int, nargs=2, required=True, metavar=("LO", "HI"))
            command.add_argument("--integers", nargs="*", default=[], metavar="NAME=VALUE")
            command.add_argument("--elements", type=int, default=1024, help="of each array")
            command.add_argument("--seed", type=int, default=0, help="of the random numbers")
    return parser


def _output(options: argparse.Namespace, kernel: Kernel) -> str:
    if options.command == "check":
        return print_kernel(kernel)
    if options.command == "numba":
        return numba_source(kernel)
    target = Target(VECTOR_BYTES)
    if options.command == "passes":
        return print_kernel(run_passes(kernel, target, options.count, check=True))
    if options.command == "llvm":
        return lower(run_passes(kernel, target, check=True), VECTOR_BYTES, "nounwind")
    integers = _integers(options.integers, kernel)
    if options.command == "run":
        return _arrays_text(_run_kernel(kernel, options, integers))
    expected = _run_kernel(kernel, options, integers)

    def is_right(candidate: Kernel) -> bool:
        found = _run_kernel(candidate, options, integers)
        return all(a.tobytes() == found[name].tobytes() for name, a in expected.items())

    found = bisect(kernel, target, is_right)
    return f"{found}\n" if found else "no pass changes the results of the kernel\n"


def _integers(words: Sequence[str], kernel: Kernel) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not value.removeprefix("-").isdecimal() or len(value) > 19:
            raise ValueError(f"--integers: expected NAME=VALUE with an integer; got {word!r}")
        found[name] = int(value)
    unknown = found.keys() - {v.name for v in kernel.integers}
    if unknown:
        raise ValueError(f"--integers: the kernel has no {', '.join(sorted(unknown))}")
    short = [v.name for v in kernel.long if found.get(v.name, LONG) < LONG]
    if short:
        raise ValueError(f"--integers: the kernel needs {LONG} or more for {', '.join(short)}")
    missing = [v.name for v in kernel.integers if v.name not in found]
    if missing:
        raise ValueError(f"--integers must give {', '.join(missing)}")
    return found


def _run_kernel(
    kernel: Kernel, options: argparse.Namespace, integers: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Return the arrays after the steps."""
    random = np.random.default_rng(options.seed)
    size: int = options.elements
    ahead = max([s.distance for s in kernel.shifted], default=0)
    arrays = {
        b.name: (10 * random.normal(size=size + ahead)).astype(b.dtype.numpy)
        for b in kernel.buffers
    }
    of = {s.buffer.name: (s.of.name, s.distance) for s in kernel.shifted}
    for name in arrays:
        base, distance = of.get(name, (name, 0))
        arrays[name] = arrays[base][distance : distance + size]
    run(kernel, arrays, integers, *options.range)
    return arrays


def _arrays_text(arrays: Mapping[str, np.ndarray]) -> str:
    with np.printoptions(threshold=16, edgeitems=4):
        return "".join([f"{name} = {a}\n" for name, a in arrays.items()])


if __name__ == "__main__":
    sys.exit(main())
