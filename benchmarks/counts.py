"""Count kernels, bytes moved, traces, kernel sources and allocations of the expressions of all
groups, and the modules that `import accnp` loads, so that none of these grow unnoticed.

`python -m benchmarks.counts` compares with `tests/expected/counts/`; `--write` rewrites these
files; `--only GROUP...` limits either to some groups. The expressions are in `EXPRESSIONS`. The
counts depend neither on the speed of the machine nor on the contents of its caches.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import accnp
from accnp import engine
from accnp.engine.describe import iterate_plans
from accnp.engine.steps import KernelStep, Plan
from accnp.runtime.buffer import pool_stats
from benchmarks import registry
from benchmarks.expressions import Expression, asarray, wide

__all__ = ["count", "count_group", "count_imports", "differences", "read", "write"]

FOLDER = Path(__file__).parent.parent / "tests" / "expected" / "counts"
IMPORT = "import"  # not a group of rows: what importing accnp loads
_STEADY = 3


def count(expression: Expression) -> dict[str, float]:
    """Return the counts of one expression at its full size.

    kernels: launches of one call in the steady state; steps: library calls and host loops;
    MB: megabytes that must be moved, according to the plans; texts: different sources that were
    compiled; traces: of all calls; plans: plans made; allocations: blocks that later calls take
    from the system.
    """
    with wide(expression.x64):
        f, arguments = expression.make(accnp)
        arguments = accnp.tree_util.tree_map(asarray(accnp), arguments)
        accnp.block_until_ready(arguments)
        call = f if expression.eager else accnp.jit(f)
        accnp.clear_caches()  # what ran before in this process does not count
        engine._plans.clear()
        begun = accnp.counters()
        for _ in range(3):
            accnp.block_until_ready(call(*arguments))
        known, free = accnp.counters(), pool_stats()
        for _ in range(_STEADY):
            accnp.block_until_ready(call(*arguments))
        ended, now = accnp.counters(), pool_stats()
        plans = list(engine._plans.values())
        if not expression.eager:
            plans += [entry.plan for entry in _entries(call)]
        return {
            "kernels": round((ended["launches"] - known["launches"]) / _STEADY),
            "steps": sum(not isinstance(s, KernelStep) for p in plans for s in p.steps),
            "MB": round(sum(s.nbytes for p in plans for s in p.steps) / 1e6, 3),
            "texts": len({text for p in plans for text in _texts(p)}),
            "traces": ended["traces"] - begun["traces"],
            "plans": len(plans),
            "allocations": now["allocations"] - free["allocations"],
        }


def _entries(function: Any) -> list[Any]:
    """Return the traced signatures of a jitted function, without duplicates."""
    return list({id(e): e for e in function._cache.values()}.values())


def _texts(plan: Plan) -> Iterable[tuple[str, tuple[str, ...]]]:
    for _, inner, _ in iterate_plans(plan, None):
        for step in inner.steps:
            if isinstance(step, KernelStep):
                yield step.text.source, step.text.signature


def count_group(name: str) -> dict[str, dict[str, float]]:
    """Return the counts of a group's expressions."""
    (group,) = registry.groups([name]).values()
    return {n: count(e) for n, e in group.expressions.items() if e.counted}


def count_imports() -> dict[str, Any]:
    """Return the modules that `import accnp` loads beyond NumPy: the number of accnp's own, and the
    others."""
    code = """
import json, sys
import numpy
before = set(sys.modules)
import accnp
new = set(sys.modules) - before
tops = {m.split(".")[0] for m in new} - {"accnp"}
standard = (tops & sys.stdlib_module_names) - {"__future__"}  # an editable install loads it
print(json.dumps({
    "modules": sum(m.split(".")[0] == "accnp" for m in new),
    "packages": " ".join(sorted(tops - standard)),
    "standard library of %d.%d" % sys.version_info[:2]: " ".join(sorted(standard)),
}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def read(group: str) -> dict[str, Any]:
    """Return the stored counts of a group."""
    file = FOLDER / f"{group}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write(group: str, rows: Mapping[str, Any]) -> None:
    """Store the counts of a group, one line per expression."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [f'"{name}": {json.dumps(row)}' for name, row in sorted(rows.items())]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{group}.json").write_text(text, encoding="utf-8")


def differences(group: str, current: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Describe the differences between the current counts of a group and the stored ones."""
    out = []
    for name in sorted({*current, *before}):
        new, old = current.get(name), before.get(name)
        if name.startswith("standard library of") and (new is None or old is None):
            continue  # the file was written by another version of Python
        if new is None or old is None:
            out.append(f"{group}/{name}: {'no longer counted' if new is None else 'not on file'}")
        elif isinstance(new, Mapping) and isinstance(old, Mapping):
            changed = [
                f"{k} {old.get(k)} on file, {new.get(k)} now"
                for k in dict.fromkeys([*old, *new])
                if old.get(k) != new.get(k)
            ]
            out += [f"{group}/{name}: {', '.join(changed)}"] if changed else []
        elif new != old:
            out.append(f"{group}/{name}: {old} on file, {new} now")
    return out


def main(argv: list[str] | None = None) -> int:
    """Count and compare with the stored counts, or write them; return 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="groups")
    parser.add_argument("--write", action="store_true", help="put the counts on file")
    options = parser.parse_args(argv)
    changes = []
    for name in options.only or [*registry.names(), IMPORT]:
        current = count_imports() if name == IMPORT else count_group(name)
        if options.write:
            write(name, current)
        else:
            changes += differences(name, current, read(name))
    if not options.write:
        print("\n".join(changes) if changes else "all counts are those on file")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
