# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One ``except`` clause catches every error of the package, and one filter every warning."""

from pathlib import Path

import pytest

from rmm_uvm import errors

TROUBLESHOOTING = Path(__file__).resolve().parents[2] / "docs/use/troubleshooting.md"

EXCEPTIONS = [
    getattr(errors, name)
    for name in errors.__all__
    if not issubclass(getattr(errors, name), Warning)
]
WARNINGS = [
    getattr(errors, name) for name in errors.__all__ if issubclass(getattr(errors, name), Warning)
]


def test_lists_are_complete() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined == set(errors.__all__)
    assert {errors.UvmError, errors.DriverError} <= set(EXCEPTIONS)
    assert {errors.UvmWarning, errors.CapacityWarning} <= set(WARNINGS)


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_exception_caught_by_root(kind: type[Exception]) -> None:
    with pytest.raises(errors.UvmError, match="why"):
        raise kind("why")


@pytest.mark.parametrize("kind", WARNINGS)
def test_warning_is_user_warning(kind: type[Warning]) -> None:
    assert issubclass(kind, errors.UvmWarning)
    assert issubclass(kind, UserWarning)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.DataError, ValueError),
        (errors.AvailabilityError, RuntimeError),
        (errors.DriverError, RuntimeError),
    ],
)
def test_exception_caught_by_builtin(kind: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)


def test_exception_is_no_memory_error() -> None:
    # Out of memory has its own way: whoever handles it must not catch a wrong argument.
    assert not any(issubclass(kind, MemoryError) for kind in EXCEPTIONS)


@pytest.mark.parametrize("kind", WARNINGS)
def test_troubleshooting_says_what_to_do_about_a_warning(kind: type[Warning]) -> None:
    is_a_root = kind in (errors.UvmWarning, errors.FindingWarning)
    assert (f"\n| `{kind.__name__}` | " in TROUBLESHOOTING.read_text()) is not is_a_root
