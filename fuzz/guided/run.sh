#!/usr/bin/env bash
# Runs one target under libFuzzer: fuzz/guided/run.sh TARGET [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -lt 1 ] || [ ! -f "fuzz/guided/fuzz_targets/$1.rs" ]; then
  echo "usage: fuzz/guided/run.sh TARGET [SECONDS]" >&2
  echo "targets: $(cd fuzz/guided/fuzz_targets && echo *.rs | sed 's/\.rs//g')" >&2
  exit 2
fi
made=${CARGO_TARGET_DIR:-target}/fuzz
found=$made/found/$1
mkdir -p "$found"

# The same versions as everywhere else.
cp Cargo.lock fuzz/guided/Cargo.lock
# libFuzzer's own flags are unstable; with this the stable compiler takes them. The sanitizers would still need more.
export RUSTC_BOOTSTRAP=1
# What is new goes to the first folder; the kept corpus is only read.
exec cargo fuzz run --fuzz-dir fuzz/guided --target-dir "$made" --sanitizer none "$1" "$found" "fuzz/corpus/$1" -- \
  -max_total_time="${2:-0}" -timeout=20 -rss_limit_mb=4096 -max_len=16384
