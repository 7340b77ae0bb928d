# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the API reference; ci/build_api.sh does, from the installed package."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

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


def _is_on_its_own_page(app: Any, *asked: Any) -> bool | None:
    """Leave errors and warnings of the front page to that of `rmm_uvm.errors`."""
    one = asked[2]
    is_error = inspect.isclass(one) and issubclass(one, BaseException)
    return True if is_error and app.env.docname == "rmm_uvm" else None


def setup(app: Any) -> None:
    """Have each thing documented once."""
    app.connect("autodoc-skip-member", _is_on_its_own_page)
