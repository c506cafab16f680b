#!/usr/bin/env bash
# Installs what drives a real browser through the console's pages, and what attacks its API. Does nothing when it is already there.
# The browser itself comes from the system: on Debian, apt-get install chromium.
set -euo pipefail
cd "$(dirname "$0")"
venv=$(cd ../.. && pwd)/target/clients/schemathesis

main() {
  require node 'Node.js 20 or newer'
  require npm 'npm'
  require python3 'Python 3.11 or newer'
  browser
  playwright
  schemathesis
}

# The system's own, which is installed where we may. A function of the browser's name would be taken for it.
browser() {
  local browser=${AMENDS_CHROMIUM:-chromium}
  if ! command -v "$browser" >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Chromium" >&2
    apt-get update --quiet=2 >&2 && apt-get install --quiet=2 --yes --no-install-recommends chromium >&2
  fi
  require "$browser" 'Chromium (on Debian: apt-get install chromium)'
}

playwright() {
  if cmp --silent package-lock.json node_modules/.installed.json; then return; fi
  echo "installing what is in tests/console" >&2
  npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  cp package-lock.json node_modules/.installed.json
}

schemathesis() {
  if cmp --silent requirements.txt "$venv/installed.txt"; then return; fi
  echo "installing schemathesis" >&2
  rm -rf "$venv"
  mkdir -p "$(dirname "$venv")"
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --requirement requirements.txt >&2
  cp requirements.txt "$venv/installed.txt"
}

require() {
  if ! command -v "$1" >/dev/null; then
    echo "$2 is needed for the tests of the console, and \`$1\` is not on the PATH" >&2
    exit 1
  fi
}

main
