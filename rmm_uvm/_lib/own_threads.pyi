# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from contextlib import AbstractContextManager
from threading import Thread

class OwnThread(Thread): ...

def usual_signals() -> AbstractContextManager[None]: ...
