#!/usr/bin/env bash
# Installs the AG-UI client that runs things through the gateway in tests. Does nothing when it is already there.
set -euo pipefail
cd "$(dirname "$0")"

for tool in node npm; do
  if ! command -v "$tool" >/dev/null; then
    echo "Node.js 20 or newer is needed for the tests of AG-UI, and \`$tool\` is not on the PATH" >&2
    exit 1
  fi
done
if cmp --silent package-lock.json node_modules/.installed.json; then exit 0; fi
echo "installing what is in tests/agui" >&2
npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2
cp package-lock.json node_modules/.installed.json
