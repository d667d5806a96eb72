"""Each error class has a page with its cause, a program that raises it, and the fix.

The pages are the docstrings of `accnp.errors`; the site and the command `accnp docs` show them. The
message of an error names the page of its class.
"""

from __future__ import annotations

import doctest
import re

import pytest

from accnp import __main__ as command
from accnp import errors

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type)
    and issubclass(value, BaseException)
    and value.__module__ == "accnp.errors"
    and name != "Float0Operand"  # raised and caught within the library
}
# Base classes, one that accnp never raises, and a warning of the pytest plugin.
NOT_RAISED = {"JAXTypeError", "JAXIndexError", "KeyReuseError", "PendingResultWarning"}


def raising_example(error: type[BaseException]) -> BaseException | None:
    """Return the error that the examples of a class raise first."""
    namespace: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(error.__doc__ or ""):
        try:
            exec(compile(example.source, "<example>", "single"), namespace)
        except Exception as raised:
            return raised
    return None


@pytest.mark.parametrize("name", CLASSES)
def test_pages_have_cause_fix_and_example(name: str) -> None:
    text = CLASSES[name].__doc__ or ""
    head, *sections = re.split(r"\n\n    (\w+)\n    -+\n", text)
    assert sections[::2] == ["Notes", "Examples"]
    assert len(head.split("\n\n")) > 1  # the cause, after the summary
    assert ">>> " in sections[-1]


@pytest.mark.parametrize("name", sorted(set(CLASSES) - NOT_RAISED))
def test_examples_raise_and_the_text_names_the_page(name: str) -> None:
    raised = raising_example(CLASSES[name])
    assert type(raised) is CLASSES[name]
    assert str(raised).endswith(f"\nSee: python -m accnp docs errors.{name}")
    assert str(raised).count("See: ") == 1


def test_classes_of_programs_have_no_page() -> None:
    class MyError(errors.AxisError):
        pass

    def fail(x: object) -> object:
        raise MyError("mine")

    with pytest.raises(MyError, match=r"^mine$"):
        errors.api_boundary(fail)(1)


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["docs", "errors.AxisError"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("accnp.errors.AxisError\n======")
    assert "Bases: ValueError, IndexError" in text
    assert "An axis is out of bounds" in text
    assert "with_traceback" not in text
