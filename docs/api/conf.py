# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the API reference; ci/build_api.sh does, from the installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import rmm_uvm

sys.path.insert(0, str(Path(__file__).parent))
project = "rmm-uvm"
copyright = "2026, the rmm-uvm authors"
version = release = rmm_uvm.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "plain_names"]
root_doc = "index"
html_theme = "basic"
html_use_index = True
html_copy_source = False
templates_path: list[str] = []

# Docstrings are NumPy's; types stand in them already.
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Environment", "params_style")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
# What an alias stands for is long, and says less than its name.
autodoc_preserve_defaults = True
# `name` in a docstring is a name: a link where there is something to link to.
default_role = "any"
