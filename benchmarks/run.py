"""Runs every workload on both sides in turn, A B A B, each in a process of its own: `make bench`.

Prints for each a table of medians, spreads (lowest to highest process) and ratios as soon as it is
measured, and writes all numbers with the facts of the machine to benchmarks/results/.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kernels import print_speed_ups
from workloads import WORKLOADS

HERE = Path(__file__).parent
PEER_ENVIRONMENT = HERE.parent / ".venv-peers" / "bin" / "python"
CALLS = {
    "ops": "calls.py",
    "imports": "calls.py",
    "loader": "calls.py",
    "conv": "convolutions.py",
    "kernels": "kernels.py",
}
Runs = dict[str, list[dict[str, float]]]


def find_peer(given: str | None) -> tuple[str | None, str]:
    """A Python that has PyTorch and Lightning, or None and the reason."""
    code = "import importlib.util as u, sys; "
    code += "sys.exit(not all(map(u.find_spec, ('torch', 'pytorch_lightning'))))"
    for python in [given] if given else [str(PEER_ENVIRONMENT), sys.executable]:
        if Path(python).exists():
            if subprocess.run([python, "-c", code], capture_output=True).returncode == 0:
                return python, ""
    return None, "pytorch-lightning is not installed: `make peers` makes .venv-peers with it"


def sides_of(workload: str, peer: str | None, modes: list[str]) -> dict[str, list[str]]:
    """Name of each side and its command; ours comes first."""
    ours, theirs = sys.executable, peer or ""
    if workload in CALLS:
        script = str(HERE / CALLS[workload])
        sides = {"minitorch": [ours, script, "minitorch", workload]}
        if workload == "kernels":
            sides["plain"] = [ours, script, "minitorch", "plain"]
        return sides | ({"torch": [theirs, script, "torch", workload]} if peer else {})
    script = str(HERE / "step.py")
    sides = {"minitorch trainer": [ours, script, "minitorch", workload, "trainer"]}
    sides["minitorch raw"] = [ours, script, "minitorch", workload, "raw"]
    if "compile" in modes:
        sides["minitorch compile"] = [ours, script, "minitorch", workload, "trainer-compile"]
        sides["minitorch raw compile"] = [ours, script, "minitorch", workload, "compile"]
    names = {"trainer": "Lightning", "raw": "torch", "compile": "torch.compile"}
    if peer:
        sides |= {names[mode]: [theirs, script, "torch", workload, mode] for mode in modes}
    return sides


def run(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """The numbers of one process."""
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def environment_for(threads: int) -> dict[str, str]:
    """The environment of a process that may use so many threads."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA")
    environment = {**os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in names}}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an import is measured as users have it
    return environment


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


def rate_of_products(threads: int) -> float:
    """GFLOP/s of a large matrix product here: what a floor is computed with."""
    code = (
        "import time, numpy as np; a = np.ones((1024, 1024), np.float32); laps = []\n"
        "for _ in range(12):\n"
        "    start = time.perf_counter(); a @ a; laps.append(time.perf_counter() - start)\n"
        "print(2 * 1024**3 / min(laps) / 1e9)"
    )
    environment = environment_for(threads)
    return float(subprocess.check_output([sys.executable, "-c", code], env=environment))


def print_table(workload: str, sides: Runs, rate: float) -> None:
    """One row for each number; the ratios are side ÷ first side: above 1, ours is faster."""
    print(f"\n{workload}" + (f": {WORKLOADS[workload].text}" if workload in WORKLOADS else ""))
    print(f"| number | {' | '.join(sides)} | {' | '.join(f'{s} ÷ ours' for s in [*sides][1:])} |")
    print("|---" * (2 * len(sides)) + "|")
    first = next(iter(sides.values()))
    logarithms: list[list[float]] = []
    for key in first[0]:
        ours, _ = summary(first, key)
        cells = [summary(runs, key) for runs in sides.values()]
        ratios = [f"{median / ours:.2f}" if ours else "" for median, _ in cells[1:]]
        if workload == "conv":
            logarithms.append([math.log(median / ours) for median, _ in cells[1:]])
        print(f"| {key} | {' | '.join(text for _, text in cells)} | {' | '.join(ratios)} |")
    if logarithms:
        means = [math.exp(statistics.mean(column)) for column in zip(*logarithms, strict=True)]
        print(f"geometric mean of the ratios: {', '.join(f'{mean:.2f}' for mean in means)}")
    flops = WORKLOADS[workload].flops if workload in WORKLOADS else 0
    if flops:
        floor = flops / rate / 1e6
        distance = summary(first, "ms")[0] / floor
        print(f"floor {floor:.2g} ms ({flops / 1e9:.2g} GFLOP): ours takes {distance:.1f} of it")
    sys.stdout.flush()


# Of a workload's numbers: the side that is divided, ours that divides, and the number.
RATIOS = (
    ("Lightning", "minitorch trainer", "ms"),
    ("torch", "minitorch raw", "ms"),
    ("torch.compile", "minitorch raw compile", "ms"),
    ("Lightning", "minitorch trainer", "peak_mb"),
    ("Lightning", "minitorch trainer", "first_step_s"),
)


def print_ratios(results: dict[str, Runs]) -> None:
    """One row for each workload: theirs ÷ ours; then the geometric mean and the lowest."""
    steps = {name: runs for name, runs in results.items() if name in WORKLOADS}
    ratios = [r for r in RATIOS if steps and all(r[0] in runs for runs in steps.values())]
    if not ratios:
        return
    print(f"\n| workload | {' | '.join(f'{a} ÷ {b}, {key}' for a, b, key in ratios)} |")
    print("|---" * (len(ratios) + 1) + "|")
    rows = {
        name: [summary(runs[a], key)[0] / summary(runs[b], key)[0] for a, b, key in ratios]
        for name, runs in steps.items()
    }
    columns = [*zip(*rows.values(), strict=True)]
    rows["geometric mean"] = [math.exp(statistics.mean(map(math.log, c))) for c in columns]
    rows["lowest"] = [min(column) for column in columns]
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    every = (*CALLS, *WORKLOADS)
    parser.add_argument("workloads", nargs="*", help=f"some of {every}; default all")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", help="a Python with torch and pytorch-lightning")
    parser.add_argument("--compile", action="store_true", help="also compiled, on both sides")
    args = parser.parse_args()

    peer, reason = find_peer(args.peer)
    if peer is None:
        print(f"Measuring without peers: {reason}.")
    environment = environment_for(args.threads)
    modes = ["trainer", "raw"] + (["compile"] if args.compile else [])
    machine = facts(args.threads)
    machine["GFLOP/s of a product"] = round(rate_of_products(args.threads))
    machine["ours"] = versions(sys.executable, "minitorch-trainer", "numpy", "numba")
    if peer is not None:
        machine["peer"] = versions(peer, "torch", "pytorch-lightning")
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    results: dict[str, Runs] = {}
    for workload in args.workloads or every:
        sides = sides_of(workload, peer, modes)
        runs: Runs = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, command in sides.items():
                runs[side].append(run(command, environment))
        results[workload] = runs
        if workload == "kernels":
            print_speed_ups(runs)
        else:
            print_table(workload, runs, machine["GFLOP/s of a product"])
    print_ratios(results)

    path = HERE / "results" / f"{machine['time'].replace(':', '')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    print(f"all numbers: {path}")


if __name__ == "__main__":
    main()
