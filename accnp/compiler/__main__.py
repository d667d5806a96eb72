"""Read kernels of the loop IR from a text file, and print, run or compile them.

python -m accnp.compiler check k.ir
python -m accnp.compiler passes k.ir [--count N]
python -m accnp.compiler numba k.ir
python -m accnp.compiler llvm k.ir
python -m accnp.compiler run k.ir --range 0 8 --integers n0=8
python -m accnp.compiler bisect k.ir --range 0 8 --integers n0=8

A file has one kernel, or a kernel after those that it calls: `run` and `bisect` run the last one.
`accnp.inspect(f)(x).kernels[0].ir` is such a text. The exit status is 2 if an option, the file, or
a kernel in it is wrong; the message says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from accnp.compiler.ir_tools.interpreter import run
from accnp.compiler.ir_tools.parser import parse_kernels
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.llvm.lower import lower
from accnp.compiler.loops.ir import LONG_SIZE, Buffer, Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.types import Pointer, Type
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import PASSES, Target, bisect, run_passes

VECTOR_BYTES = 64  # size of the vectors in printed kernels
_WORD = np.iinfo(np.int64)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        kernels = parse_kernels(Path(options.file).read_text(encoding="utf-8"))
        for k in kernels:
            verify(k)
        print(_output(options, kernels), end="")
    except OSError as error:
        return _fail(options, error.strerror or str(error))
    except UnicodeDecodeError:
        return _fail(options, "is not a text in UTF-8")
    except KeyError as error:  # a function that has no version in Python
        return _fail(options, f"cannot run a kernel that calls {error.args[0]}")
    except (
        ValueError, IndexError, OverflowError, MemoryError, NotImplementedError, RecursionError
    ) as error:  # fmt: skip
        return _fail(options, str(error))
    return 0


def _fail(options: argparse.Namespace, what: str) -> int:
    print(f"{options.file}: {what}", file=sys.stderr)
    return 2


def _integer(first: int, last: int) -> Callable[[str], int]:
    """Return a function that reads an integer from `first` to `last`."""

    def read(text: str) -> int:
        if text.removeprefix("-").isdecimal() and len(text) < 21 and first <= int(text) <= last:
            return int(text)
        to = "or more" if last == _WORD.max else f"to {last}"
        raise argparse.ArgumentTypeError(f"expected an integer of {first} {to}; got {text!r}")

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m accnp.compiler", description="Print, run or compile kernels of the loop IR"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("check", "verify the kernels and print them"),
        ("passes", f"print the kernels after the passes {', '.join(PASSES)}"),
        ("numba", "print the kernels as Numba source"),
        ("llvm", "print the LLVM modules of the kernels"),
        ("run", "run the last kernel with the interpreter, on arrays of random numbers"),
        ("bisect", "find the first pass after which a kernel computes other values"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("file", help="a file with the text of one kernel or more")
        if name == "passes":
            command.add_argument(
                "--count", type=_integer(0, len(PASSES)), metavar="N",
                help=f"how many of the {len(PASSES)} passes are run (default: all)",
            )  # fmt: skip
        if name in ("run", "bisect"):
            number = _integer(0, _WORD.max)
            command.add_argument(
                "--range", type=number, nargs=2, required=True, metavar=("LO", "HI")
            )
            command.add_argument("--integers", nargs="*", default=[], metavar="NAME=VALUE")
            command.add_argument(
                "--elements", type=number, default=1024, metavar="N", help="of each array"
            )
            command.add_argument(
                "--seed", type=number, default=0, metavar="N", help="of the random numbers"
            )
    return parser


def _output(options: argparse.Namespace, kernels: Sequence[Kernel]) -> str:
    if options.command == "check":
        return "\n".join(map(print_kernel, kernels))
    if options.command == "numba":
        return "\n".join(map(numba_source, kernels))
    if options.command == "run":
        return _arrays_text(_run_last(kernels, options))
    target = Target(VECTOR_BYTES)
    for k in kernels:
        if k.threads:
            raise ValueError(f"the passes are for kernels of the CPU; {k.name} is one for GPUs")
    if options.command == "bisect":
        return _bisect(options, kernels, target)
    count = options.count if options.command == "passes" else None
    passed = [run_passes(k, target, count, check=True) for k in kernels]
    if options.command == "passes":
        return "\n".join(map(print_kernel, passed))
    return "\n".join([lower(k, VECTOR_BYTES, "nounwind") for k in passed])


def _bisect(options: argparse.Namespace, kernels: Sequence[Kernel], target: Target) -> str:
    """Run the passes on one kernel after the other, and the last kernel after each of them."""
    expected = _run_last(kernels, options)
    for at, kernel in enumerate(kernels):

        def is_right(candidate: Kernel, at: int = at) -> bool:
            changed = [*kernels[:at], candidate, *kernels[at + 1 :]]
            try:
                actual = _run_last(changed, options)
            except (ValueError, IndexError, OverflowError):
                return False
            return all(a.tobytes() == actual[name].tobytes() for name, a in expected.items())

        wrong = bisect(kernel, target, is_right)
        if wrong is not None:
            number = f"{list(PASSES).index(wrong) + 1} of {len(PASSES)}"
            return f"the pass {wrong} ({number}) changes what the kernel {kernel.name} computes\n"
    of = "the kernel " if len(kernels) == 1 else "the kernels "
    names = ", ".join([k.name for k in kernels])
    return f"none of the {len(PASSES)} passes changes what {of}{names} computes\n"


def _check_calls(kernels: Sequence[Kernel]) -> None:
    """Check that kernels call only those before them, with arguments of their types."""
    known: dict[str, tuple[Type, ...]] = {}
    for k in kernels:
        for name, types in k.callees:
            if known.get(name) != types:
                what = "other arguments" if name in known else "a kernel that is not before it"
                raise ValueError(f"the kernel {k.name} calls {name}, {what}")
        known[k.name] = tuple(
            [Pointer(a.dtype) if isinstance(a, Buffer) else a.dtype for a in k.arguments]
        )


def _integers(options: argparse.Namespace, kernel: Kernel) -> dict[str, int]:
    first, last = options.range
    if first > last:
        raise ValueError(f"--range: expected LO <= HI; got {first} {last}")
    values: dict[str, int] = {}
    for word in options.integers:
        name, _, value = word.partition("=")
        if not value.removeprefix("-").isdecimal() or len(value) > 19:
            raise ValueError(f"--integers: expected NAME=VALUE with an integer; got {word!r}")
        if name in values:
            raise ValueError(f"--integers gives {name} twice")
        values[name] = int(value)
    unknown = values.keys() - {v.name for v in kernel.integers}
    if unknown:
        raise ValueError(f"--integers: the kernel has no {', '.join(sorted(unknown))}")
    short = [v.name for v in kernel.long if values.get(v.name, LONG_SIZE) < LONG_SIZE]
    if short:
        raise ValueError(f"--integers: the kernel needs {LONG_SIZE} or more for {', '.join(short)}")
    missing = [v.name for v in kernel.integers if v.name not in values]
    if missing:
        raise ValueError(f"--integers must give {', '.join(missing)}")
    return values


def _run_last(kernels: Sequence[Kernel], options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return the arrays after the steps of the last kernel."""
    _check_calls(kernels)
    *others, kernel = kernels
    integers = _integers(options, kernel)
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
    run(kernel, arrays, integers, *options.range, kernels={k.name: k for k in others})
    return arrays


def _arrays_text(arrays: Mapping[str, np.ndarray]) -> str:
    with np.printoptions(threshold=16, edgeitems=4):
        return "".join([f"{name} = {a}\n" for name, a in arrays.items()])


if __name__ == "__main__":
    sys.exit(main())
