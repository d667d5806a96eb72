"""The entry of a kernel: `name(argv, counter, n, chunk)`, which launches call.

It takes chunks of the kernel's range from the counter until n is reached; without a counter (null),
it runs chunk..n. If the kernel has non-temporal stores, the word before the entry is 1, and a
counter of 1 runs chunk..n with them.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ATTRIBUTES", "DRIVER", "ENTRY", "LIBRARY", "SIZED", "VECTORS", "entry_at", "entry_text"]

ENTRY = "accnp_entry"
# Named metadata of modules: all loops are vector code; a library kernel, which many kernels call;
# all sizes are constants; a driver, whose work is done by the kernels that it calls.
VECTORS, LIBRARY, SIZED, DRIVER = "accnp.vectors", "accnp.library", "accnp.sized", "accnp.driver"
ATTRIBUTES = 770  # the number of the attribute group of entries
_INTEGERS = {f"{kind}{n}": f"i{8 * n}" for kind in "iu" for n in (1, 2, 4, 8)} | {"b1": "i8"}
# How an entry takes a chunk of 0..n: it begins at `claim` and jumps to `work`, which runs
# `%first`..`%end`, or to `out` if no chunk is left.
_CLAIM = """claim:
  %first = atomicrmw add i64* %counter, i64 %chunk monotonic
  %over = icmp sge i64 %first, %n
  br i1 %over, label %out, label %claimed
claimed:
  %room = sub nsw i64 %n, %first
  %less = icmp slt i64 %chunk, %room
  %size = select i1 %less, i64 %chunk, i64 %room
  %end = add nsw i64 %first, %size
  br label %work
"""


def entry_text(
    name: str,
    signature: Sequence[str],
    kinds: Sequence[str],
    callee: str,
    leading: Sequence[str],
    before: Sequence[str] = (),
    after_counter: Sequence[str] = (),
    stores_nontemporally: bool = False,
    linkage: str = "",
) -> str:
    """Return the LLVM text of an entry.

    Parameters
    ----------
    name : str
        The name of the entry.
    signature : sequence of str
        A token for each argument; with `*` for a pointer.
    kinds : sequence of str
        The LLVM type of each argument.
    callee : str
        The type of the result and the name of the function that does `%lo`..`%hi`.
    leading : sequence of str
        Its arguments before those of the signature, with their types.
    before, after_counter : sequence of str, optional
        Instructions at the start, and such that use `%word`, the counter as an integer.
    stores_nontemporally : bool, optional
        Whether the kernel has non-temporal stores.
    linkage : str, optional
        The linkage of the entry.

    Raises
    ------
    ValueError
        If an argument is a floating-point or complex number.
    """
    lines: list[str] = []
    passed = [*leading]
    for at, (token, kind) in enumerate(zip(signature, kinds, strict=True)):
        lines.append(f"  %p{at} = getelementptr inbounds i64, i64* %argv, i64 {at}")
        lines.append(f"  %v{at} = load i64, i64* %p{at}")
        if token.endswith("*"):
            lines.append(f"  %a{at} = inttoptr i64 %v{at} to {kind}")
        elif token in ("i8", "u8"):
            lines.append(f"  %a{at} = add i64 %v{at}, 0")
        elif token in ("f4", "f8", "c8", "c16"):
            raise ValueError(f"get_kernel: pass a {token} by pointer; got {token!r}")
        else:
            lines.append(f"  %a{at} = trunc i64 %v{at} to {kind}")
        passed.append(f"{kind} %a{at}")
    return "\n".join(
        [
            f"define {linkage}void @{name}(i64* noalias nocapture readonly %argv, "
            f"i64* noalias nocapture %counter, i64 %n, i64 %chunk) #{ATTRIBUTES} "
            f"prefix i64 {int(stores_nontemporally)} {{",
            "start:",
            *before,
            *lines,
            "  %word = ptrtoint i64* %counter to i64",
            "  %alone = icmp ult i64 %word, 2",
            *after_counter,
            "  br i1 %alone, label %work, label %claim",
            f"{_CLAIM}work:",
            "  %lo = phi i64 [%chunk, %start], [%first, %claimed]",
            "  %hi = phi i64 [%n, %start], [%end, %claimed]",
            f"  call {callee}({', '.join(passed)})",
            "  br i1 %alone, label %out, label %claim",
            "out:",
            "  ret void",
            "}",
        ]
    )


def entry_at(address: int, signature: Sequence[str]) -> str:
    """Return the text of a module with the entry of a function that is loaded already.

    Parameters
    ----------
    address : int
        The address of the function.
    signature : sequence of str
        A token for each argument after the first and the last step.
    """
    kinds = ["i8*" if t.endswith("*") else _INTEGERS[t] for t in signature]
    types = ", ".join(["i64", "i64", *kinds])
    function = f"void ({types})*"
    text = entry_text(
        ENTRY,
        signature,
        kinds,
        "void %function",
        ["i64 %lo", "i64 %hi"],
        before=[f"  %function = inttoptr i64 {address} to {function}"],
    )
    return f"{text}\nattributes #{ATTRIBUTES} = {{ nounwind }}\n"
