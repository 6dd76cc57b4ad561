"""Reads the JUnit file of a ctest run: prints failures and skip reasons and a last line "passed failed skipped".
    results.py --features FOLDER…   reads tests.xml of the build folders and prints the table of feature rows

A row is done if tests/features.tsv marks it whole and each of its tests passed. The first folder must have results; the
others count if they have any. The exit status is 1 if a test of a row failed, if a test of a whole row did not run or
does not exist, if list and tests disagree, or if results are older than the tree."""
import collections
import glob
import os
import re
import sys
import time
import xml.etree.ElementTree as tree

import features
import lint

NOT_COMPILED = (".md", ".tsv")
SUITE = re.compile(r"\.\*\d*$")  # in ctest's name of what ran in one process
ENDED = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+\.[^\s,]+)[^\n]* \(\d+ ms\)$", re.MULTILINE)
STATES_OF_GTEST = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def cases(path):
    """Yields (name, state, output), state being passed, failed or skipped."""
    for case in tree.parse(path).getroot().iter("testcase"):
        state = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        name, output = case.get("name"), case.findtext("system-out") or ""
        if SUITE.search(name):
            yield from cases_of_suite(name, state, output)
        else:
            yield name, state, output


def cases_of_suite(name, state, output):
    """The cases of a suite that ran in one process, from what GoogleTest printed. A process that failed although none
    of its tests did, as by a leak, counts as a failed case of the suite's name; so does one that ran none or ended
    before its last."""
    prefix = re.match(r"(?:[^./]+\.(?=.+\.\*\d*$))?", name).group()
    begin, count, failed = 0, 0, False
    for end in ENDED.finditer(output):
        count, failed = count + 1, failed or end[1] == "FAILED"
        yield prefix + end[2], STATES_OF_GTEST[end[1]], output[begin:end.end()]
        begin = end.end()
    ran = re.search(r"\[=+\] (\d+) tests? from \d+ test suites? ran\.", output[begin:])
    if count == 0 or not ran or int(ran[1]) != count or (state == "failed" and not failed):
        yield name, "failed", output[begin:]


def skip_reason(output):
    match = re.search(r"Skipped\n(.+)", output)
    return match.group(1).strip() if match else "no reason given"


def begun(path):
    """Start time of the run, in seconds; the file's modification time if it has no start time."""
    stamp = tree.parse(path).getroot().get("timestamp") or ""
    try:
        return time.mktime(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return os.path.getmtime(path)


def newer_than(path, files, folder):
    """A source or a built file that changed after the run of path began, or None."""
    built = [os.path.join(top, name) for part in ("bin", "lib") for top, _, names in os.walk(f"{folder}/{part}")
             for name in names]
    built += [file for file in glob.glob(f"{folder}/tests/*") if os.path.isfile(file) and os.access(file, os.X_OK)]
    times = {file: os.path.getmtime(file) for file in built + [f for f in files if not f.endswith(NOT_COMPILED)]}
    newest = max(times, key=times.get, default=None)
    return newest if newest and int(times[newest]) > begun(path) else None


def states_of(path):
    """{name: state} of the tests with a feature number: the worst state over a test's values and environments."""
    worst = ("passed", "skipped", "failed")
    states = {}
    for test, state, _ in cases(path):
        name = features.name_of(test)
        if features.numbers_of(name):
            states[name] = max(state, states.get(name, state), key=worst.index)
    return states


def verdict_of(row, runs, there):
    """(verdict, texts) of a row: done, partial, absent, FAILED, missing or skipped. runs is {folder: {name: state}};
    the first folder decides which tests passed. there has the names of all tests of the tree."""
    first = next(iter(runs.values()))
    failed = [f"{test} failed in {folder}" for folder, states in runs.items() for test in row.tests
              if states.get(test) == "failed"]
    missing = [f"{test} is not there" for test in row.tests if test not in there]
    skipped = [f"{test} was skipped" if test in first else f"{test} did not run" for test in row.tests
               if test in there and first.get(test, "skipped") == "skipped"]
    for verdict, texts in (("FAILED", failed), ("missing", missing), ("skipped", skipped)):
        if texts and (row.state == "whole" or verdict != "skipped"):
            return verdict, texts
    if row.state == "whole":
        return "done", []
    return row.state, ([f"lacks {row.lacks}"] if row.lacks else []) + skipped


def table(text, files, runs):
    """Prints the rows and the count; false if a row and its results disagree."""
    rows, there = features.rows_of(text), features.tests_of(files)
    count = collections.Counter()
    for row in rows:
        verdict, texts = verdict_of(row, runs, there)
        count[verdict] += 1
        print(f"{row.number}  {verdict:8s} {row.area:14s} {row.title}" + (": " if texts else "") + "; ".join(texts))
    rest = ", ".join(f"{count[verdict]} {verdict}" for verdict in ("partial", "absent", "FAILED", "missing", "skipped"))
    print(f"{count['done']} of {features.ROWS} rows are done, {rest}")
    return not count["FAILED"] + count["missing"] + count["skipped"]


def feature_table(folders):
    """The exit status of --features."""
    files = lint.list_files()
    text = files.get(features.LIST) or ""
    runs, wrong = {}, list(features.faults_of(text, files))
    for folder in folders:
        path = os.path.join(folder, "tests.xml")
        newer = os.path.isfile(path) and newer_than(path, files, folder)
        if folder == folders[0] and (newer or not os.path.isfile(path)):
            print(f"{path}: {newer} is newer, so the results are not about this tree: run tools/test" if newer else
                  f"{path}: no results yet, run tools/test", file=sys.stderr)
            return 1
        if newer:
            print(f"{path} is left out: {newer} is newer")
        elif os.path.isfile(path):
            runs[folder] = states_of(path)
    good = table(text, files, runs)
    for fault in wrong:
        print(f"{features.LIST}: {fault}", file=sys.stderr)
    return 0 if good and not wrong else 1


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
        sys.exit(feature_table(sys.argv[2:]))
    counts(sys.argv[1])
