"""Compares weir with the best peer of each workload of a results file of tools/bench peers.

usage: peer_gates.py RESULTS.json GATES.tsv

Prints a table of the workloads with a gate: the median over the rounds of weir's time as a share of the best peer's,
the gate and the goal. Exits with 1 if a gate is missed, or if weir did not run a workload that peers ran.
"""
import json
import statistics
import sys

LIBRARIES = {"openblas", "openblas-avx512", "onednn"}  # called directly: no peers


def gates_of(path):
    gates = {}
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                workload, most, goal = line.split()
                gates[workload] = (float(most), goal)
    return gates


def verdict(rows, gate):
    """(text of the ratio, whether the gate is met) for the rows of one workload."""
    ran = [row for row in rows if row["ns"] and row.get("check_ok", True)]
    weir = [row for row in ran if row["engine"] == "weir"]
    peers = [row for row in ran if row["engine"] != "weir" and row["engine"] not in LIBRARIES]
    if not weir:
        why = next((row["skip"] for row in rows if row["engine"] == "weir" and "skip" in row), "no result that agrees")
        return why[:60], False
    if not peers:
        return "no peer", True
    best = min(peers, key=lambda row: statistics.median(row["ns"]))
    ratio = statistics.median(own / other for own, other in zip(weir[0]["ns"], best["ns"]))
    return "%.2f of %s" % (ratio, best["engine"]), ratio <= gate


def main():
    with open(sys.argv[1]) as file:
        results = json.load(file)
    gates = gates_of(sys.argv[2])
    by_workload = {}
    for row in results["rows"]:
        by_workload.setdefault(row["workload"], []).append(row)
    missed = 0
    print("| workload | weir | gate | | goal |")
    print("|---|---|---|---|---|")
    for workload, rows in sorted(by_workload.items()):
        if workload not in gates:
            continue
        gate, goal = gates[workload]
        text, met = verdict(rows, gate)
        missed += not met
        print("| %s | %s | %s | %s | %s |" % (workload, text, gate, "met" if met else "MISSED", goal))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
