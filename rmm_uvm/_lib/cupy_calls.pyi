# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterable

from rmm_uvm._lib.residency import ManagedResidency

def watch(
    kinds: Iterable[type], residencies: Iterable[ManagedResidency], before: Callable[..., object]
) -> dict[str, str]: ...
def unwatch(before: Callable[..., object]) -> None: ...
