"""How long the command line takes to start, against importing the libraries that it cannot do without.

    python benchmarks/startup.py [RUNS]

Prints the ratio of medians for `gpumix --help` against typer and rich, and for `gpumix check` against pulp, highspy,
pydantic, typer and yaml; the commands take turns, so that a busy machine slows all alike.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROBLEM = str(ROOT / "problems" / "platform.yaml")
COMMANDS = {
    "import typer, rich": [sys.executable, "-c", "import typer, rich"],
    "gpumix --help": [sys.executable, "-m", "optimizer", "--help"],
    "import pulp, highspy, pydantic, typer, yaml": [
        sys.executable,
        "-c",
        "import pulp, highspy, pydantic, typer, yaml",
    ],
    "gpumix check": [sys.executable, "-m", "optimizer", "check", PROBLEM],
}
RATIOS = (
    ("gpumix --help", "import typer, rich", 1.5),
    ("gpumix check", "import pulp, highspy, pydantic, typer, yaml", 1.2),
)


def seconds(command: list[str]) -> float:
    """Wall time of one run."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - started


def main() -> None:
    """Run all commands in turn and print medians and ratios."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        seconds(command)  # warm up the file cache
    for _ in range(runs):
        for name, command in COMMANDS.items():
            found[name].append(seconds(command))
    medians = {name: statistics.median(times) for name, times in found.items()}
    for name, times in found.items():
        print(f"{name:48} median {medians[name]:.3f} s, least {min(times):.3f} s")
    for ours, theirs, goal in RATIOS:
        print(f"{ours} / {theirs}: {medians[ours] / medians[theirs]:.2f} (goal {goal})")


if __name__ == "__main__":
    main()
