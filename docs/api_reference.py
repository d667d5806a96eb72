"""The API reference: one page per namespace and one per public name, written from docstrings.

A Sphinx extension. Before Sphinx reads the sources, `write_pages` writes MyST pages into
`docs/api`, which is not under version control. A namespace is a public module that is reachable
from `accnp`; its names are those of its `__all__`, and those that `tests/api/names.tsv` lists,
since modules also provide names on first use. `tests/test_docs_site.py` checks that none is
missing.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTION = re.compile(
    r"^(Args|Parameters|Returns|Yields|Raises|Warns|Attributes|Examples?|Notes?|References"
    r"|See Also):?$"
)
TITLES = {"Args": "Parameters", "Example": "Examples", "Note": "Notes"}
TERMS = {"Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"}  # in NumPy style
LISTS = {"Args", "Parameters", "Raises", "Attributes"}
ENTRY = re.compile(r"^([\w*][\w*., ]*?)(?:, also an? ([\w, ]+))?: (.*)$")
ROOT = "accnp"
# Namespaces that programs import by name and that no other namespace lists.
UNLISTED = ["accnp.example_libraries.optimizers", "accnp.example_libraries.stax"]
TABLE = Path(__file__).parent.parent / "tests" / "api" / "names.tsv"


def public_attributes(module: ModuleType) -> list[str]:
    """The public names of a module: its `__all__`, or what it defines without underscore."""
    stated = getattr(module, "__all__", None)
    if stated is not None:
        return sorted(set(stated))
    return sorted(
        name
        for name in dir(module)
        if not name.startswith("_") and is_defined_within(getattr(module, name, None), module)
    )


def is_defined_within(value: object, module: ModuleType) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return home == module.__name__ or str(home).startswith(f"{module.__name__}.")


def namespaces() -> dict[str, ModuleType]:
    """The public modules by their dotted names, `accnp` first."""
    found: dict[str, ModuleType] = {}
    pending = [ROOT, *UNLISTED]
    while pending:
        path = pending.pop(0)
        module = resolve(path)
        if not isinstance(module, ModuleType) or any(module is other for other in found.values()):
            continue
        found[path] = module
        for name in public_attributes(module):
            value = getattr(module, name, None)
            if not isinstance(value, ModuleType) or not value.__name__.startswith(f"{ROOT}."):
                continue
            if path != ROOT or getattr(import_module(f"{ROOT}.numpy"), name, None) is not value:
                pending.append(f"{path}.{name}")  # `accnp.fft` is listed as `accnp.numpy.fft`
    return found


def resolve(path: str) -> object:
    """The object with a dotted name."""
    if path in UNLISTED:
        return import_module(path)
    head, _, name = path.rpartition(".")
    return getattr(resolve(head), name) if head else import_module(path)


def public_names() -> dict[str, list[str]]:
    """The names of each namespace, modules excluded.

    `accnp` repeats the names of `accnp.numpy`, which are listed there only.
    """
    found: dict[str, list[str]] = {}
    modules = namespaces()
    arrays = modules[f"{ROOT}.numpy"]
    for path, module in modules.items():
        names = [n for n in public_attributes(module) if not is_module(module, n)]
        if path == ROOT:
            names = [n for n in names if getattr(arrays, n, names) is not getattr(module, n)]
        found[path] = names
    paths = {id(module): path for path, module in modules.items()}
    for name, value in names_on_first_use():
        last = name.rpartition(".")[2]
        path = paths.get(id(value))
        if path and last not in found[path] and not is_module(modules[path], last):
            found[path] = sorted([*found[path], last])
    return found


def names_on_first_use() -> Iterator[tuple[str, ModuleType]]:
    """The names of the table that a module provides, with the module."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        name = f"{ROOT}.{line.split(chr(9))[0]}"
        head, _, last = name.rpartition(".")
        try:
            module = resolve(head)
        except AttributeError:
            continue
        if isinstance(module, ModuleType) and head != ROOT and hasattr(module, last):
            yield name, module


def is_module(module: ModuleType, name: str) -> bool:
    return isinstance(getattr(module, name, None), ModuleType)


def escape(text: str) -> str:
    """Prose as Markdown: only code in backticks keeps a meaning."""
    parts = re.split(r"(`+[^`]+`+)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*_\[\]<>#|{}$~`])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?m)^(\s*)([-+=:])", r"\1\\\2", parts[i])
    return "".join(parts)


def fence(lines: list[str], language: str) -> str:
    return f"````{language}\n{textwrap.dedent(chr(10).join(lines)).strip(chr(10))}\n````\n"


def prose(text: str) -> Iterator[str]:
    """Paragraphs, examples and indented blocks as Markdown."""
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        lines = block.split("\n")
        start = next((i for i, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
        if start is None and lines[0].startswith("    "):
            yield fence(lines, "text")
            continue
        if start is None and lines[0].startswith("- "):
            items = re.split(r"(?m)^- ", block)[1:]
            yield "\n".join(f"- {escape(item.strip(chr(10)))}" for item in items) + "\n"
            continue
        before = lines[:start]
        if any(before):
            yield escape(textwrap.dedent("\n".join(before))) + "\n"
        if start is not None:
            yield fence(lines[start:], "pycon")


def entries(text: str) -> Iterator[str]:
    """Lines `name: description` of a section as a definition list."""
    for item in re.split(r"\n(?=\S)", textwrap.dedent(text).strip("\n")):
        first, *rest = item.split("\n")
        described = ENTRY.match(first)
        body = " ".join([described[3] if described else first, *(line.strip() for line in rest)])
        if described:
            names = ", ".join(filter(None, described.group(1, 2)))
            yield f"`{names}`\n: {escape(body)}\n"
        else:
            yield escape(body) + "\n"


def terms(text: str) -> Iterator[str]:
    """Items of a section in NumPy style as a definition list: `name : type`, then indented text."""
    for item in re.split(r"\n(?=\S)", textwrap.dedent(text).strip("\n")):
        first, *rest = item.split("\n")
        name, _, kind = first.partition(" : ")
        title = f"`{name}`" + (f" : {escape(kind)}" if kind else "")
        body = "\n".join(prose("\n".join(rest))).strip("\n")
        yield f"{title}\n: {body.replace(chr(10), chr(10) + '  ')}\n" if body else f"{title}\n"


def related(text: str) -> Iterator[str]:
    """Lines `name : summary` of See Also as a list."""
    for line in re.sub(r"\n +", " ", textwrap.dedent(text).strip("\n")).split("\n"):
        names, _, what = line.partition(" : ")
        marked = ", ".join(f"`{name}`" for name in names.split(", "))
        yield f"- {marked}" + (f": {escape(what)}" if what else "")
    yield ""


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    sections: list[tuple[str, bool, list[str]]] = [("", False, [])]
    lines = inspect.cleandoc(text).split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        heading = SECTION.match(line)
        underlined = bool(re.fullmatch(r"-{3,}", following))
        if heading and (underlined or line.endswith(":")):
            sections.append((heading[1], underlined, []))
        elif not re.fullmatch(r"-{3,}", line):
            sections[-1][2].append(line)
    written = []
    for title, underlined, lines in sections:
        body = "\n".join(lines)
        if title:
            written.append(f"**{TITLES.get(title, title)}**\n")
        if underlined and title == "See Also":
            written += related(body)
        elif underlined and title in TERMS:
            written += terms(body)
        elif title in LISTS and not underlined:
            # What follows the indented part of a section is prose again.
            head, mark, tail = body.partition("\n\n") if ">>>" in body else (body, "", "")
            written += [*entries(head), *(prose(tail) if mark else ())]
        else:
            written += prose(body)
    return "\n".join(written)


def signature(value: object) -> str:
    """The parameters of a callable, without annotations; empty where Python has none."""
    if not callable(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<[^<>]*>", "...", text.replace("\n", " "))


def docstring(value: object) -> str:
    """The docstring of a function, class or module; of other objects it is their type's."""
    if isinstance(value, (type, ModuleType)) or callable(value):
        return inspect.getdoc(value) or ""
    return ""


def summary(value: object) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join(docstring(value).strip().split("\n\n")[0].split())
    sentence = re.match(r".*?[.:](?= |$)", paragraph)
    text = (sentence[0] if sentence else paragraph).replace("|", "\\|")
    return escape(text) if text else f"A constant of type `{type(value).__name__}`."


def describe(path: str, value: object) -> Iterator[str]:
    """A name's signature and docstring; those of its methods if it is a class of accnp."""
    kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
    yield f"```{{py:{kind}}} {path}{signature(value)}\n```\n"
    if kind == "data":
        yield summary(value) + "\n"
    yield markdown(docstring(value))
    if isinstance(value, type) and value.__module__.startswith(ROOT):
        for name, member in sorted(vars(value).items()):
            inner: Callable[..., object] | None = getattr(member, "__func__", None) or (
                member if callable(member) else getattr(member, "fget", None)
            )
            if name.startswith("_") or inner is None:
                continue
            directive = "property" if isinstance(member, property) else "method"
            parameters = "" if directive == "property" else signature(inner)
            yield f"\n```{{py:{directive}}} {path}.{name}{parameters}\n```\n"
            yield markdown(docstring(inner))


@cache
def error_classes() -> dict[str, type[BaseException]]:
    """The public error and warning classes of `accnp.errors`; `error_pages.py` describes them."""
    module = import_module(f"{ROOT}.errors")
    return {
        name: value
        for name, value in sorted(vars(module).items())
        if isinstance(value, type)
        and issubclass(value, BaseException)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


def error_page(value: object) -> str:
    """The page of an error class, relative to the folder of the API reference; "" for others."""
    if not isinstance(value, type) or error_classes().get(value.__name__) is not value:
        return ""
    return f"../errors/{value.__name__}.md"


def write_pages(folder: Path) -> int:
    """Write the pages of all public names into `folder`; returns the number of names."""
    names = public_names()
    wanted: dict[Path, str] = {}
    for path, members in names.items():
        text = docstring(resolve(path))
        rows = []
        for name in members:
            value = resolve(f"{path}.{name}")
            place = error_page(value) or f"{path}/{name}.md"
            rows.append(f"| [`{name}`]({place}) | {summary(value)} |\n")
            if error_page(value):
                continue
            page = "\n".join(describe(f"{path}.{name}", value))
            title = f"{path}.{name}".replace("_", "\\_")
            breadcrumbs = f"[API reference](../index.md) / [{path}](../{path}.md) / {escape(name)}"
            wanted[folder / path / f"{name}.md"] = (
                f"---\norphan: true\n---\n\n# {title}\n\n{breadcrumbs}\n\n{page}\n"
            )
        table = "| Name | Summary |\n|---|---|\n" + "".join(rows) if rows else ""
        wanted[folder / f"{path}.md"] = f"# {path}\n\n{markdown(text)}\n\n{table}"
    listing = "\n".join(names)
    wanted[folder / "index.md"] = (
        "# API reference\n\nEach namespace has a page with its public names. All names of "
        f"`accnp.numpy` are also names of `accnp`.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{listing}\n```\n"
    )
    write_files(folder, wanted)
    return sum(map(len, names.values()))


def write_files(folder: Path, wanted: dict[Path, str]) -> None:
    """Make these the Markdown files of a folder; files that have the text already keep their time,
    so that Sphinx does not read them again."""
    for old in folder.rglob("*.md") if folder.exists() else ():
        if old not in wanted:
            old.unlink()
    for page, text in wanted.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def on_builder_inited(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "api")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", on_builder_inited)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
