#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the other scripts: what a machine needs, and an environment to install into.
#
#   check_prerequisites       ends the script with one line when something is missing
#   require_browser           Chromium for the tests of reports; as root on Debian it is installed
#   make_builder              what compiles the package and the C++ tests, in build/venv-build: sets $builder
#   more_rmm MINOR...         has what is built from then on compiled for these RMMs too, as 26.6
#   make_environment NAME [EXTRAS]   installs rmm-uvm, and rmm-uvm-mortgage without a GPU, into
#                             build/venv-NAME: sets $environment
#   tree_seed                 prints a number for what is drawn by chance
#   changed_since             prints the commit before the change; nothing if it is not known
#   changed PATH...           whether any of these changed, or the change is not known
#
# PYTHON and CXX choose another python3 and g++.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
compiler=${CXX:-g++}

missing() {
  echo "missing: $1" >&2
  exit 1
}

check_prerequisites() {
  [ "$(uname -s)" = Linux ] || missing "Linux; this is $(uname -s)"
  [ "$(uname -m)" = x86_64 ] || missing "an x86-64 machine; this is $(uname -m)"
  getconf GNU_LIBC_VERSION >/dev/null 2>&1 || missing "glibc; RMM has no wheels for other C libraries"
  command -v "$python" >/dev/null || missing "python3, 3.11 or newer (Debian, Ubuntu: apt install python3)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    missing "Python 3.11 or newer; $python is $("$python" -V 2>&1). Another one: PYTHON=/path/to/python3"
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    missing "Python's venv (Debian, Ubuntu: apt install python3-venv)"
  "$python" -c 'import pathlib, sys, sysconfig
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file())' ||
    missing "Python's headers (Debian, Ubuntu: apt install python3-dev)"
  command -v "$compiler" >/dev/null || missing "g++, 12 or newer (Debian, Ubuntu: apt install g++)"
  local version
  version=$("$compiler" -dumpversion)
  [ "${version%%.*}" -ge 12 ] || missing "g++ 12 or newer; $compiler is $version. Another one: CXX=g++-12"
}

# Of what is committed: for other code others are tried, and for the same code always the same, so
# that what passed once does not fail elsewhere.
tree_seed() {
  local tree
  tree=$(git -C "$repository" rev-parse --verify --quiet 'HEAD^{tree}') || tree=1
  echo $((16#1${tree:0:7})) # never 0, which is no seed to libFuzzer
}

# CHANGED_SINCE, or the commit where HEAD left origin/main. A clone of main itself has none.
changed_since() {
  local base
  base=$(git -C "$repository" merge-base HEAD "${CHANGED_SINCE:-origin/main}" 2>/dev/null) || return 0
  [ "$base" = "$(git -C "$repository" rev-parse HEAD)" ] && [ -z "${CHANGED_SINCE:-}" ] || echo "$base"
}

# changed_files BASE PATH...: also files that are not committed, and files that were removed.
changed_files() {
  git -C "$repository" diff --name-only "$1" -- "${@:2}"
  git -C "$repository" ls-files -o --exclude-standard -- "${@:2}"
}

changed() {
  local base
  base=$(changed_since)
  [ -z "$base" ] || [ -n "$(changed_files "$base" "$@")" ]
}

require_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && return
  done
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
  else
    missing "Chromium, in which reports are tested (Debian, Ubuntu: apt install chromium)"
  fi
}

# make_venv FOLDER: a virtual environment whose pip runs. One that was interrupted, or belongs to a
# Python that is gone, is made anew. The pip and the setuptools that a Python brings along are as old
# as that Python, and have known vulnerabilities by now: newer ones take their place.
make_venv() {
  "$1/bin/python" -m pip --version >/dev/null 2>&1 ||
    "$python" -m venv --clear --upgrade-deps "$1" >/dev/null
}

# An environment of its own, so that nothing that only building needs hides what the package lacks.
make_builder() {
  builder=$repository/build/venv-build
  echo "installing what it is built with into ${builder#"$repository"/}"
  make_venv "$builder"
  "$builder/bin/python" -c '
import sys, tomllib
for path in sys.argv[1:]:
    print(*tomllib.load(open(path, "rb"))["build-system"]["requires"], sep="\n")
print("cmake", "ninja", sep="\n")
' "$repository/pyproject.toml" "$repository/mortgage/pyproject.toml" >"$builder/requirements.txt"
  "$builder/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -r "$builder/requirements.txt"
}

# more_rmm MINOR...: the wheels that are needed go to build/rmm. CUDA 12 has the same headers.
more_rmm() {
  local minor folder folders=
  for minor in "$@"; do
    folder=$repository/build/rmm/$minor
    if [ ! -d "$folder" ]; then
      rm -rf "$folder.partial"
      "$builder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$folder.partial" "rmm-cu13==$minor.*" "librmm-cu13==$minor.*"
      mv "$folder.partial" "$folder"
    fi
    folders+=";$folder"
  done
  export RMM_UVM_MORE_RMM=${folders#;}
}

# build_wheels FOLDER SOURCES...: the wheels of packages, built by what make_builder has.
build_wheels() {
  PATH=$builder/bin:$PATH "$builder/bin/python" -m pip wheel --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --wheel-dir "$@"
}

# install_wheels FOLDER WHEEL[EXTRAS]...: these very wheels and what they need, into a virtual environment.
# Python files are compiled when they are imported first: most never are.
install_wheels() {
  local install=("$1/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check)
  shift
  # Twice, since pip leaves what is installed at the same version.
  "${install[@]}" "$@"
  "${install[@]}" --force-reinstall --no-deps "${@%\[*\]}"
}

make_environment() {
  environment=$repository/build/venv-$1
  make_builder
  make_venv "$environment"
  local extras=${2:+[$2]} wheels
  echo "installing rmm-uvm$extras and rmm-uvm-mortgage[cpu] into ${environment#"$repository"/}"
  wheels=$(mktemp -d)
  build_wheels "$wheels" "$repository" "$repository/mortgage"
  install_wheels "$environment" \
    "$(echo "$wheels"/rmm_uvm-*.whl)$extras" "$(echo "$wheels"/rmm_uvm_mortgage-*.whl)[cpu]"
  rm -r "$wheels"
}
