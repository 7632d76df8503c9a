#!/usr/bin/env bash
# The whole loop on real text, with two clouds on this machine: plan, train, trace, calibrate, plan
# again. Writes demo/; `./run demo` builds first and calls it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=build/release/bin
cluster=examples/two-clouds.cluster.toml
model=examples/small.model.toml
job=examples/demo.job.toml
text=/usr/share/games/fortunes
out=demo

say() { printf '\n== %s\n' "$*"; }
# Shows a command, then runs it.
show() {
  printf '$ %s\n' "$*"
  "$@"
}

rm -rf $out
mkdir -p $out

say "1/6 Text to tokens ($text)"
show $bin/nebula-exec tokenize --text $text --tokenizer $out/tokenizer.model --pieces 4096 \
  --out $out/train.tok --heldout $out/heldout.tok --heldout-share 0.05

say "2/6 What the model's layers cost on this machine"
show $bin/nebula-exec profile --cluster $cluster --device cpu-core --model $model --job $job \
  --beside 1 --out $out/costs.json

say "3/6 Plan"
show $bin/nebula-plan --cluster $cluster --model $model --job $job --costs $out/costs.json \
  --out $out/plan.json

say "4/6 Train by the plan: one process a stage, TLS between them, the line emulated"
show $bin/nebula-exec launch --plan $out/plan.json --data $out/train.tok \
  --heldout $out/heldout.tok --out $out/run --emulate-wan

say "5/6 Calibrate by the traces, compare, plan again"
show $bin/nebula-sim calibrate --traces $out/run/traces --costs $out/costs.json \
  --out $out/calibration.json
show $bin/nebula-sim compare --plan $out/plan.json --traces $out/run/traces --costs $out/costs.json
$bin/nebula-sim compare --plan $out/plan.json --traces $out/run/traces --costs $out/costs.json \
  --json >$out/compare.json
show $bin/nebula-plan --cluster $cluster --model $model --job $job \
  --calibration $out/calibration.json --out $out/plan-again.json

say "6/6 The naive plan for comparison: float32, one micro-batch"
show $bin/nebula-plan --cluster $cluster --model $model --job $job --costs $out/costs.json \
  --stages 2 --micro-batches 1 --codec float32 --out $out/naive.json --quiet
show $bin/nebula-exec launch --plan $out/naive.json --data $out/train.tok --out $out/naive \
  --emulate-wan --max-steps 6

say "Summary"
python3 examples/demo_summary.py $out
