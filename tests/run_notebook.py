"""Runs a notebook's code cells in order; exits with an error when one fails or nothing was printed."""

import contextlib
import io
import json
import sys

out = io.StringIO()
namespace = {}
with open(sys.argv[1]) as notebook, contextlib.redirect_stdout(out):
    for cell in json.load(notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), namespace)
print(out.getvalue())
sys.exit(0 if out.getvalue() else 1)
