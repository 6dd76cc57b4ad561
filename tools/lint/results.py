"""Reads the JUnit file of a ctest run: prints failures and skip reasons and a last line "passed failed skipped", or
with --features the table of feature rows (F042 and so on in the tests' names) with their state."""
import collections
import re
import sys
import xml.etree.ElementTree as tree


def cases(path):
    """Yields (name, state, output), state being passed, failed or skipped."""
    for case in tree.parse(path).getroot().iter("testcase"):
        state = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        output = case.findtext("system-out") or ""
        yield case.get("name"), state, output


def skip_reason(output):
    match = re.search(r"Skipped\n(.+)", output)
    return match.group(1).strip() if match else "no reason given"


def features(path):
    rows = collections.defaultdict(list)
    for name, state, _ in cases(path):
        for row in re.findall(r"F(\d{3})(?!\d)", name):
            rows[int(row)].append((state, name))
    for row in sorted(rows):
        states = {state for state, _ in rows[row]}
        verdict = "FAILED" if "failed" in states else "done" if "passed" in states else "skipped"
        names = [name for _, name in rows[row]]
        print(f"F{row:03d}  {verdict:8s} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else ""))
    done = sum(any(s == "passed" for s, _ in v) and all(s != "failed" for s, _ in v) for v in rows.values())
    print(f"{done} of {len(rows)} rows that have a test are done")


def counts(path):
    count = collections.Counter()
    reasons = collections.Counter()
    for name, state, output in cases(path):
        count[state] += 1
        if state == "failed":
            print(f"FAILED {name}")
            print("\n".join("    " + line for line in output.splitlines()[-30:]))
        elif state == "skipped":
            reasons[skip_reason(output)] += 1
    for reason, number in sorted(reasons.items()):
        print(f"skipped {number}: {reason}")
    print(count["passed"], count["failed"], count["skipped"])


if __name__ == "__main__":
    if sys.argv[1] == "--features":
        features(sys.argv[2])
    else:
        counts(sys.argv[1])
