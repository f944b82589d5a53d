"""Runs every workload on both sides in turn, A B A B, each in a process of its own: `make bench`.

Prints a table of medians, spreads (lowest to highest run) and ratios, and writes all numbers with
the facts of the machine to benchmarks/results/.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEER_ENVIRONMENT = HERE.parent / ".venv-peers" / "bin" / "python"
WORKLOADS = ("ops", "tiny", "mlp", "imports")
Runs = dict[str, list[dict[str, float]]]


def find_peer(given: str | None) -> tuple[str | None, str]:
    """A Python that has PyTorch and Lightning, or None and the reason."""
    for python in [given] if given else [str(PEER_ENVIRONMENT), sys.executable]:
        probe = [
            python,
            "-c",
            "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ",
        ]
        probe[-1] += "('torch', 'pytorch_lightning'))))"
        if Path(python).exists() and subprocess.run(probe, capture_output=True).returncode == 0:
            return python, ""
    return None, "pytorch-lightning is not installed: `make peers` makes .venv-peers with it"


def run(python: str, side: str, workload: str, environment: dict[str, str]) -> dict[str, float]:
    """The numbers of one process."""
    command = [python, str(HERE / f"{side}.py"), workload]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def facts(threads: int) -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), cpu)
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def versions(python: str, *names: str) -> dict[str, str]:
    """Versions of distributions in an environment."""
    code = "import importlib.metadata as m, sys; print(*[m.version(n) for n in sys.argv[1:]])"
    found = subprocess.check_output([python, "-c", code, *names], text=True).split()
    return dict(zip(names, found, strict=True))


def summary(runs: list[dict[str, float]], key: str) -> tuple[float, str]:
    """Median over runs, and it with its spread as text."""
    values = [numbers[key] for numbers in runs]
    median = statistics.median(values)
    digits = 0 if median >= 100 else 3 if median < 10 else 1
    return median, f"{median:.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def print_table(results: dict[str, Runs]) -> None:
    """One row for each number; the ratio is peer ÷ ours, so above 1 means that we are faster."""
    print("\n| workload | number | minitorch | peer | peer ÷ ours |\n|---|---|--:|--:|--:|")
    for workload, sides in results.items():
        for key in sides["ours"][0]:
            ours, text = summary(sides["ours"], key)
            peer_text = ratio = "–"
            if sides["peer"] and key in sides["peer"][0]:
                peer, peer_text = summary(sides["peer"], key)
                ratio = f"{peer / ours:.2f}"
            print(f"| {workload} | {key} | {text} | {peer_text} | {ratio} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help=f"some of {WORKLOADS}; default all")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each side")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", help="a Python with torch and pytorch-lightning")
    args = parser.parse_args()

    peer, reason = find_peer(args.peer)
    if peer is None:
        print(f"Measuring without peers: {reason}.")
    threads = {f"{name}_NUM_THREADS": str(args.threads) for name in ("OMP", "OPENBLAS", "MKL")}
    environment = {**os.environ, **threads, "NUMBA_NUM_THREADS": str(args.threads)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an import is measured as users have it
    results: dict[str, Runs] = {}
    for workload in args.workloads or WORKLOADS:
        runs = results[workload] = {"ours": [], "peer": []}
        for i in range(args.rounds):
            print(f"{workload} {i + 1}/{args.rounds}", file=sys.stderr)
            runs["ours"].append(run(sys.executable, "ours", workload, environment))
            if peer is not None:
                runs["peer"].append(run(peer, "peer", workload, environment))

    machine = facts(args.threads)
    machine["ours"] = versions(sys.executable, "minitorch-trainer", "numpy", "numba")
    if peer is not None:
        machine["peer"] = versions(peer, "torch", "pytorch-lightning")
    print_table(results)
    print("\n" + ", ".join(f"{name} {value}" for name, value in machine.items()))
    path = HERE / "results" / f"{machine['time'].replace(':', '')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    print(f"all numbers: {path}")


if __name__ == "__main__":
    main()
