# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the site of documents and API reference; ci/build_api.sh does.

Sources are read where they lie, from the repository's root on, so that links lead to the same
places as in the repository. The reference is made from the installed package.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import rmm_uvm

sys.path.insert(0, str(Path(__file__).parent / "api"))
project = "rmm-uvm"
copyright = "2026, the rmm-uvm authors"
version = release = rmm_uvm.__version__
extensions = [
    *("myst_parser", "sphinx_copybutton"),
    *("sphinx.ext.autodoc", "sphinx.ext.napoleon", "plain_names"),
]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "benchmarks/README.md", "cpp/README.md"]
exclude_patterns = ["build", "dist", ".*"]
templates_path: list[str] = []

html_theme = "pydata_sphinx_theme"
html_title = "rmm-uvm"
html_extra_path = ["site/index.html"]
html_static_path = ["site/static"]
html_css_files = ["wide.css"]
html_use_index = True
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navigation_depth": 3,
    "show_nav_level": 1,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_heading_anchors = 4

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

_CONTENTS = {
    "README": [
        *("docs/use/README.md", "docs/understand/README.md", "docs/measure/README.md"),
        *("docs/api/index.rst", "CONTRIBUTING.md", "CHANGELOG.md"),
    ],
    "CONTRIBUTING": ["benchmarks/README.md", "cpp/README.md"],
    "docs/understand/decisions/README": ["0*"],
}


def _add_contents(app: Any, document: str, source: list[str]) -> None:
    """Have the contents of a folder be what its README lists: pages below it, in that order."""
    listed = _CONTENTS.get(document, [])
    if re.fullmatch(r"docs/(use|understand|measure)(/libraries)?/README", document):
        listed = re.findall(r"^(?:\| |- )\[[^]]*\]\(([^)#]*)\)", source[0], re.MULTILINE)
    if listed:
        entries = "\n".join(listed)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{entries}\n```\n"


def _is_on_its_own_page(app: Any, *asked: Any) -> bool | None:
    """Leave errors and warnings of the front page to that of `rmm_uvm.errors`."""
    one = asked[2]
    is_error = inspect.isclass(one) and issubclass(one, BaseException)
    return True if is_error and app.env.docname == "docs/api/rmm_uvm" else None


def setup(app: Any) -> None:
    """Make the contents, and have each thing documented once."""
    app.connect("source-read", _add_contents)
    app.connect("autodoc-skip-member", _is_on_its_own_page)
