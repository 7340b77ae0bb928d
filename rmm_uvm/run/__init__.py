# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Running other programs, watched: what ``rmm-uvm run`` does.

A script or module runs in this process (`program`), any other command in a child (`command`). What
is asked for is a `request.RunRequest`; installing, watching and telling is in `watching`.
"""
