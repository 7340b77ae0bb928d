# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device memory that other processes open, without a copy.

A process exports a buffer of its IPC pool (`rmm_uvm.ipc_pool`): it gets a handle, plain bytes, and
sends it by whatever means. Another process of the same user, on the same machine, gives it to
`open` and has the buffer, at its own address, ordered after the exporter's stream. A lease keeps
the memory from being used anew until the reader has closed it.

Covers export, open, handles and leases. Does not cover sending handles, nor data in managed memory,
which have no handle: copy them into the pool first.

See Also
--------
docs/use/ipc.md : life of a lease, and what a handle grants to whom.
"""

from rmm_uvm.ipc.opened import Opened, open
from rmm_uvm.ipc.pool import IpcPool, Lease

__all__ = ["IpcPool", "Lease", "Opened", "open"]
