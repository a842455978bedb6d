#!/usr/bin/env bash
# GPU tests and GPU benchmark on one card, in under eight minutes: tools/device_check.sh [FOLDER]
# FOLDER gets card.txt, tests.txt, scaling.csv and scaling.txt. Exit status: that of the first that
# failed.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-outputs/device_check}
python=${PYTHON:-python3}
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | tee "$out/card.txt" ||
    { echo "device_check: no NVIDIA GPU here" >&2; exit 2; }
"$python" -m user_dgl --version | tee -a "$out/card.txt"
timeout 230 "$python" tools/bench_scaling.py --device cuda --engines csr --out "$out/scaling.csv" 2>&1 |
    tee "$out/scaling.txt"
benchmark=$?
timeout 240 "$python" -m pytest -m gpu -q --durations=5 2>&1 | tee "$out/tests.txt"
tests=$?
exit $((benchmark ? benchmark : tests))
