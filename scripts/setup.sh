#!/usr/bin/env bash
# Makes the environment VENV with the packages of a requirements file, and halfmask itself in it.
set -euo pipefail
requirements=$1
python=${PYTHON:-python3}
venv=${VENV:-.venv}

fail() { echo "setup: $*" >&2; exit 1; }

command -v "$python" >/dev/null || fail "no '$python' here. Install Python 3.11 or newer, or give PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "'$python' is older than 3.11. Give a newer one: make PYTHON=python3.11"

# A Debian without python3-venv has Python but cannot make environments.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv
  else
    fail "this Python cannot make environments. Run: sudo apt-get install python3-venv"
  fi
fi

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  "$python" -m venv --clear "$venv"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$requirements"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
