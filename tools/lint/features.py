"""The list of features, tests/features.tsv, and the tests of the tree whose names contain its numbers.

The list has ctest's names without the parts that depend on the run: `Saver.F230_some` covers `Saver.F230_some`, every
value `All/Saver.F230_some/3` and the same test in another environment, `saver_async.Saver.F230_some`. Python tests are
`interop.F240_some`: folder and function.
    features.py --add   adds unlisted tests to the rows of their numbers
"""
import re
import sys

LIST = "tests/features.tsv"
ROWS = 397
STATES = ("whole", "partial", "absent")
NUMBER = re.compile(r"(?:^|[._])F(\d{3})(?!\d)")
GTEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
PYTHON = re.compile(r"^def (F\d{3}_\w+)\(", re.MULTILINE)
HEAD = "row\tarea\ttitle\tstate\tlacks\ttests"


class Row:
    """One line: number, area, title, state, what is missing (of partial and absent rows), names of tests."""

    def __init__(self, line):
        cells = line.split("\t")
        cells += [""] * (6 - len(cells))
        self.number, self.area, self.title, self.state, self.lacks = cells[:5]
        self.tests = " ".join(cells[5:]).split()

    def __str__(self):
        cells = [self.number, self.area, self.title, self.state, self.lacks, " ".join(self.tests)]
        return "\t".join(cells).rstrip("\t")


def rows_of(text):
    """The rows of the list, in order, without the head and lines that begin with #."""
    return [Row(line) for line in text.split("\n") if line and line != HEAD and not line.startswith("#")]


def name_of(test):
    """The list's name of a test, from ctest's name."""
    test = re.sub(r"^[^./]+\.(?=[^.]+\.)", "", test)
    test = re.sub(r"^([^./]+)/[^./]+\.([^/]+)$", r"\1.\2", test)  # of a suite of types: Suite/Type.Test
    return re.sub(r"^[^./]+/|/.*$", "", test)


def numbers_of(test):
    return [f"F{number}" for number in NUMBER.findall(test)]


def tests_of(files):
    """{name: path} of the tests of a tree whose names contain a feature number. files is {path: text}."""
    tests = {}
    for path, text in files.items():
        if not path.startswith(("tests/", "tools/")) or not text:
            continue
        names = []
        if path.endswith(".cc"):
            names = [".".join(match) for match in GTEST.findall(text)]
        elif path.startswith("tests/") and path.endswith("_test.py"):
            names = [path.split("/")[-2] + "." + name for name in PYTHON.findall(text)]
        tests.update({name: path for name in names if numbers_of(name)})
    return tests


def faults_of_row(row, tests):
    if row.state not in STATES:
        yield f"state '{row.state}', wanted one of {', '.join(STATES)}"
    if not row.area or not row.title:
        yield "area or title is missing"
    if row.state == "whole" and not row.tests:
        yield "whole, and no test proves it"
    if row.state == "whole" and row.lacks:
        yield f"whole, and lacks '{row.lacks}'"
    if row.state == "partial" and not row.lacks:
        yield "partial, and does not say what it lacks"
    if row.state == "absent" and row.tests:
        yield f"absent, and names the test {row.tests[0]}"
    for test in row.tests:
        if row.number not in numbers_of(test):
            yield f"names the test {test}, which does not bear its number"
        elif test not in tests:
            yield f"names the test {test}, which is not there"
    if len(set(row.tests)) < len(row.tests):
        yield "names a test twice"


def faults_of(text, files):
    """Texts of the faults of the list, and of differences between it and the tests of the tree."""
    rows, tests = rows_of(text), tests_of(files)
    wanted = [f"F{number:03d}" for number in range(1, ROWS + 1)]
    found = [row.number for row in rows]
    for number in sorted(set(wanted) - set(found)):
        yield f"{number} is missing"
    for number in sorted(set(found) - set(wanted)):
        yield f"'{number}' is no row, wanted F001 to F{ROWS}"
    if sorted(found) != found or len(set(found)) < len(found):
        yield "rows are not sorted, or one is there twice"
    for row in rows:
        for fault in faults_of_row(row, tests):
            yield f"{row.number}: {fault}"
    listed = {(row.number, test) for row in rows for test in row.tests}
    for test, path in sorted(tests.items()):
        for number in numbers_of(test):
            if number not in wanted:
                yield f"{path}: {test} bears {number}, which is no row"
            elif (number, test) not in listed:
                yield f"{path}: {test} bears {number}, whose row does not name it"


def with_tests_added(text, files):
    """The list, with unlisted tests added to its rows."""
    tests = sorted(tests_of(files))
    lines = []
    for line in text.split("\n"):
        if re.match(r"F\d{3}\t", line):
            row = Row(line)
            row.tests += [test for test in tests if row.number in numbers_of(test) and test not in row.tests]
            line = str(row)
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    from lint import list_files
    if sys.argv[1:] != ["--add"]:
        sys.exit(__doc__)
    tree = list_files()
    changed = with_tests_added(tree[LIST], tree)
    with open(LIST, "w", encoding="utf-8") as file:
        file.write(changed)
