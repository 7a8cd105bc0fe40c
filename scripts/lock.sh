#!/usr/bin/env bash
# Pins all dependencies with hashes; the files name no registry.
set -euo pipefail
venv=${VENV:-.venv}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$venv/bin/python" -m venv "$tools"
"$tools/bin/pip" install --quiet pip-tools
build="$tools/build.in"
printf 'hatchling\neditables\n' > "$build"
compile() {
  "$tools/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --no-strip-extras \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --no-annotate \
    "$@" pyproject.toml "$build"
}
compile --extra dev -o requirements-dev.txt
compile -c requirements-dev.txt -o requirements.txt
