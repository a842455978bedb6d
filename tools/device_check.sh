#!/usr/bin/env bash
# GPU tests and GPU benchmark on one card, in under eight minutes: tools/device_check.sh [FOLDER]
# FOLDER gets card.txt, products.txt, scaling.csv, scaling.txt and tests.txt. Exit status: 0 if all
# passed.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-outputs/device_check}
python=${PYTHON:-python3}
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | tee "$out/card.txt" ||
    { echo "device_check: no NVIDIA GPU here" >&2; exit 2; }
"$python" -m user_dgl --version | tee -a "$out/card.txt"
failed=0
timeout 120 "$python" -m pytest -m gpu -q -k "not products" --durations=5 2>&1 |
    tee "$out/tests.txt" || failed=1
timeout 170 "$python" tools/bench_scaling.py --device cuda --engines csr --out "$out/scaling.csv" \
    2>&1 | tee "$out/scaling.txt" || failed=1
run=$out/products
timeout 180 "$python" -m user_dgl train configs/large/sbm_products.yaml device=cuda train.epochs=6 \
    output_dir="$run" overwrite=true 2>&1 | tee "$out/products.txt" || failed=1
# The graph itself is not wanted back; what was measured is.
"$python" - "$run" <<'END' | tee -a "$out/products.txt" || failed=1
import json, pathlib, sys
run = pathlib.Path(sys.argv[1])
rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
print("seconds of each epoch:", *(f"{row['seconds']:.3f}" for row in rows))
result = run / "result.json"
if result.exists():
    kept = json.loads(result.read_text())
    print(*(f"{name}: {kept[name]}" for name in ("device", "gpu_peak_memory_mb", "metrics")), sep="\n")
END
rm -rf "$run"
exit $failed
