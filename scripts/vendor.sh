#!/bin/sh
# Fetch the plotting scripts that the report page carries, by name and version, checked by hash.
set -eu

static=$(cd "$(dirname "$0")/.." && pwd)/src/halfmask/report/static
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# vendor <package> <version> <sha256 of the minified build>
vendor() {
  archive=$(cd "$work" && npm pack --silent "$1@$2")
  mkdir "$work/$1"
  tar -xzf "$work/$archive" -C "$work/$1"
  build="$work/$1/package/build/$1.min.js"
  echo "$3  $build" | sha256sum --check --quiet
  cp "$build" "$static/$1.min.js"
  cp "$work/$1/package/LICENSE" "$static/$1.LICENSE"
  echo "$1 $2"
}

vendor vega 6.4.0 8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f
vendor vega-lite 6.4.3 35a9821df838825b05a6a73e9414b58747a1b18321583858ed903c66393a5c7e
