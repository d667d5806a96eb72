"""Random functions of numbers with loops, branches, jumps and names of several types."""

from __future__ import annotations

import random

JUMPS = ("break", "continue")


class _Text:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0
        self.lines: list[str] = []

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def expr(self, names: list[str], depth: int = 0) -> str:
        r = self.rng.random()
        if depth > 2 or r < 0.4:
            return self.rng.choice(names)
        if r < 0.55:
            return self.rng.choice(["0", "1", "3", "2.5", "-1", "0.25", "7"])
        a, b = self.expr(names, depth + 1), self.expr(names, depth + 1)
        if r < 0.8:
            return f"({a} {self.rng.choice('+-*')} {b})"
        if r < 0.87:
            return f"({a} if {self.test(names, depth + 1)} else {b})"
        return f"({a} / {b})" if r < 0.93 else f"(-{a})"

    def test(self, names: list[str], depth: int = 0) -> str:
        r = self.rng.random()
        a, b = self.expr(names, depth + 1), self.expr(names, depth + 1)
        one = f"{a} {self.rng.choice(['<', '>', '<=', '>=', '==', '!='])} {b}"
        if r < 0.3 and depth < 2:
            return f"({one} {self.rng.choice(['and', 'or'])} {self.test(names, depth + 1)})"
        if r < 0.35:
            return f"{a} < {b} <= {self.rng.choice(names)}"
        return f"not ({one})" if r < 0.45 else one

    def body(self, names: list[str], depth: int, loop: bool) -> list[str]:
        """Statements; returns the names that have a value after them."""
        names, pad = list(names), "    " * (depth + 1)
        free = [n for n in names if n[0] != "c"]  # no counts of `while` loops
        for _ in range(self.rng.randint(1, 4)):
            r = self.rng.random()
            if r < 0.35 or depth > 3:
                name = self.rng.choice([*free, self.fresh("v")])
                self.lines.append(f"{pad}{name} = {self.expr(names)}")
                names += [name] * (name not in names)
            elif r < 0.42:
                op = self.rng.choice(["+=", "-=", "*="])
                self.lines.append(f"{pad}{self.rng.choice(free)} {op} {self.expr(names)}")
            elif r < 0.47 and len(free) > 1:
                a, b = self.rng.sample(free, 2)
                self.lines.append(f"{pad}{a}, {b} = {b}, {self.expr(names)}")
            elif r < 0.65:
                self.lines.append(f"{pad}if {self.test(names)}:")
                then = self.body(names, depth + 1, loop)
                if self.rng.random() < 0.6:
                    self.lines.append(f"{pad}else:")
                    other = self.body(names, depth + 1, loop)
                    names += [n for n in then if n in other and n not in names]
            elif r < 0.78:
                index = self.fresh("i")
                limits = self.rng.choice(["3", "4", "1, 5", "5, 0, -1", "0, 6, 2"])
                self.lines.append(f"{pad}for {index} in range({limits}):")
                self.body([*names, index], depth + 1, True)
            elif r < 0.86:
                count = self.fresh("c")
                self.lines.append(f"{pad}{count} = 0")
                self.lines.append(f"{pad}while {count} < 4 and {self.test(names)}:")
                self.lines.append(f"{pad}    {count} += 1")
                self.body([*names, count], depth + 1, True)
            elif loop and r < 0.95:
                self.lines.append(f"{pad}if {self.test(names)}:")
                self.lines.append(f"{pad}    {self.rng.choice(JUMPS)}")
            elif r > 0.95:
                self.lines.append(f"{pad}if {self.test(names)}:")
                self.lines.append(f"{pad}    return {self.expr(names)}")
        self.lines.append(f"{pad}pass")
        return names


def generated_function(seed: int, arguments: list[str]) -> str:
    """Return the text of a function `f` of some arguments."""
    text = _Text(random.Random(seed))
    text.lines.append(f"def f({', '.join(arguments)}):")
    names = text.body(arguments, 0, False)
    text.lines.append(f"    return {text.expr(names)}")
    return "\n".join([*text.lines, ""])
