"""Reads the JUnit file of a ctest run: prints failures and skip reasons and a last line "passed failed skipped", where
a second file has what came of tests that ran again; or with --features the table of feature rows (F042 and so on in the
tests' names) with their state; or with --again a pattern of the tests to run again: those that passed, after which the
leak checker itself crashed."""
import collections
import os
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


def checker_crashed(state, output):
    """GCC 12's LeakSanitizer crashes now and then while it looks for leaks, after about one test in 3,000."""
    return state == "failed" and "[  PASSED  ]" in output and "LeakSanitizer has encountered a fatal error" in output


def again(path):
    names = [re.escape(name) for name, state, output in cases(path) if checker_crashed(state, output)]
    if names:
        print("^(" + "|".join(names) + ")$")


def counts(path, path_again):
    count = collections.Counter()
    reasons = collections.Counter()
    ran_again = cases(path_again) if os.path.exists(path_again) else ()
    second = {name: (state, output) for name, state, output in ran_again}
    for name, state, output in cases(path):
        if name in second and checker_crashed(state, output):
            print(f"run again, since the leak checker crashed after it had passed: {name}")
            state, output = second[name]
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
    elif sys.argv[1] == "--again":
        again(sys.argv[2])
    else:
        counts(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
