"""Gathers what the demo measured: writes FOLDER/summary.json and prints it in words."""

import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])


def load(name):
    return json.loads((folder / name).read_text())


plan = load("plan.json")
run = load("run/result.json")
summary = {
    "predicted_step_s": plan["predicted"]["step_s"],
    "measured_step_s": next(row["measured"] for row in load("compare.json")["rows"] if row["what"] == "step"),
    "naive_step_s": load("naive/result.json")["median_step_s"],
    "first_loss": run["first_loss"],
    "last_loss": run["last_loss"],
    "heldout_loss": run["heldout_loss"],
    "plan": plan["predicted"]["reason"],
}
(folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")

predicted, measured, naive = (summary[k] for k in ("predicted_step_s", "measured_step_s", "naive_step_s"))
off = (predicted - measured) / measured
print(f"step, predicted before the run  {predicted * 1e3:8.0f} ms   ({off:+.1%} off)")
print(f"step, measured                  {measured * 1e3:8.0f} ms")
print(f"step of the naive plan          {naive * 1e3:8.0f} ms   ({naive / measured:.2f} times as long)")
print(f"loss  {summary['first_loss']:.3f} -> {summary['last_loss']:.3f}, held out {summary['heldout_loss']:.3f}")
print(f"plan  {summary['plan']}")
print(f"files {folder}/: plan.json, costs.json, calibration.json, run/traces (HDF5),")
print("      run/checkpoints, summary.json")
