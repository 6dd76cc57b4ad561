"""Tests of features.py and results.py: lists, trees and results of a few lines."""
import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import features
import results

FILES = {
    "tests/unit/a_test.cc": "TEST(Graph, F001_listed) {}\nTEST_F(Graph,\n  F002_values) {}\nTEST(Graph, other) {}\n"
                            "TEST_P(Saver, F003_F004_both) {}\nint F005_no_test;\n",
    "tests/interop/interop_test.py": "def F005_events():\n    pass\n",
    "core/graph/graph.cc": "// TEST(Graph, F006_elsewhere)\n",
}
LIST = """# a comment
row\tarea\ttitle\tstate\tlacks\ttests
F001\tgraph\tone\twhole\t\tGraph.F001_listed
F002\tgraph\ttwo\tpartial\ta half\tGraph.F002_values
F003\tgraph\tthree\twhole\t\tSaver.F003_F004_both
F004\tgraph\tfour\twhole\t\tSaver.F003_F004_both
F005\tsummary\tfive\twhole\t\tinterop.F005_events
F006\tgraph\tsix\tabsent
"""
PASSED = {"Graph.F001_listed": "passed", "Graph.F002_values": "passed", "Saver.F003_F004_both": "passed",
          "interop.F005_events": "passed"}


@mock.patch.object(features, "ROWS", 6)
class Lists(unittest.TestCase):
    def faults(self, text, files=None):
        return list(features.faults_of(text, files or FILES))

    def test_a_list_that_agrees_has_no_fault(self):
        self.assertEqual(self.faults(LIST), [])

    def test_each_fault_is_told(self):
        for old, new, fault in (
                ("F002\t", "F02\t", "F002 is missing"),
                ("F006\t", "F999\t", "'F999' is no row, wanted F001 to F6"),
                ("F001\t", "F002\t", "rows are not sorted, or one is there twice"),
                ("one\twhole", "one\tdone", "F001: state 'done', wanted one of whole, partial, absent"),
                ("graph\tone", "\tone", "F001: area or title is missing"),
                ("\tGraph.F001_listed", "", "F001: whole, and no test proves it"),
                ("one\twhole\t", "one\twhole\tmuch", "F001: whole, and lacks 'much'"),
                ("a half", "", "F002: partial, and does not say what it lacks"),
                ("one\twhole", "one\tabsent", "F001: absent, and names the test Graph.F001_listed"),
                ("Graph.F001_listed", "Graph.F001_gone", "F001: names the test Graph.F001_gone, which is not there"),
                ("Graph.F001_listed", "Graph.other",
                 "F001: names the test Graph.other, which does not bear its number"),
                ("interop.F005_events", "",
                 "tests/interop/interop_test.py: interop.F005_events bears F005, whose row does not name it")):
            self.assertIn(old, LIST)
            self.assertIn(fault, self.faults(LIST.replace(old, new)))

    def test_numbers_beyond_the_rows_are_told(self):
        files = FILES | {"tests/unit/b_test.cc": "TEST(Graph, F007_more) {}"}
        self.assertEqual(self.faults(LIST, files),
                         ["tests/unit/b_test.cc: Graph.F007_more bears F007, which is no row"])

    def test_tests_that_are_not_listed_can_be_added(self):
        files = FILES | {"tests/unit/b_test.cc": "TEST(Graph, F001_F002_more) {}"}
        self.assertEqual(len(self.faults(LIST, files)), 2)
        added = features.with_tests_added(LIST, files)
        self.assertEqual(self.faults(added, files), [])
        self.assertTrue(added.startswith("# a comment\n"))

    def test_names_of_ctest_lose_environment_prefix_and_value(self):
        for name in ("Saver.F003_both", "All/Saver.F003_both/3", "saver_async.Saver.F003_both",
                     "saver_async.All/Saver.F003_both/some", "Saver/float.F003_both", "saver_async.Saver/0.F003_both"):
            self.assertEqual(features.name_of(name), "Saver.F003_both")
        self.assertEqual(features.name_of("interop.F005_events"), "interop.F005_events")


@mock.patch.object(features, "ROWS", 6)
class Tables(unittest.TestCase):
    def table(self, *runs, text=LIST, files=None):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            good = results.table(text, files or FILES, {f"build/{i}": states for i, states in enumerate(runs)})
        return good, out.getvalue()

    def test_rows_whose_tests_passed_are_what_the_list_says(self):
        good, text = self.table(PASSED)
        self.assertTrue(good)
        self.assertIn("F001  done     graph          one\n", text)
        self.assertIn("F002  partial  graph          two: lacks a half\n", text)
        self.assertIn("F006  absent   graph          six\n", text)
        self.assertTrue(text.endswith("4 of 6 rows are done, 1 partial, 1 absent, 0 FAILED, 0 missing, 0 skipped\n"))

    def test_one_skip_among_passes_is_seen(self):
        text = LIST.replace("\tGraph.F001_listed", "\tGraph.F001_listed Graph.F001_more")
        files = FILES | {"tests/b_test.cc": "TEST(Graph, F001_more) {}"}
        good, shown = self.table(PASSED | {"Graph.F001_more": "skipped"}, text=text, files=files)
        self.assertFalse(good)
        self.assertIn("F001  skipped  graph          one: Graph.F001_more was skipped\n", shown)

    def test_a_test_that_was_left_out_is_a_skip(self):
        good, text = self.table({name: state for name, state in PASSED.items() if not name.startswith("interop")})
        self.assertFalse(good)
        self.assertIn("F005  skipped  summary        five: interop.F005_events did not run\n", text)
        self.assertIn("3 of 6 rows are done", text)

    def test_a_test_that_is_gone_is_missing(self):
        good, text = self.table(PASSED, files={"tests/unit/a_test.cc": FILES["tests/unit/a_test.cc"]})
        self.assertFalse(good)
        self.assertIn("F005  missing  summary        five: interop.F005_events is not there\n", text)

    def test_failures_count_in_every_folder_and_in_partial_rows(self):
        good, text = self.table(PASSED, {"Graph.F002_values": "failed"})
        self.assertFalse(good)
        self.assertIn("F002  FAILED   graph          two: Graph.F002_values failed in build/1\n", text)

    def test_a_skip_of_a_partial_row_is_shown_and_no_fault(self):
        good, text = self.table(PASSED | {"Graph.F002_values": "skipped"})
        self.assertTrue(good)
        self.assertIn("two: lacks a half; Graph.F002_values was skipped\n", text)


class Suites(unittest.TestCase):
    RAN = ("[ RUN      ] Values/Graph.F001_a/0\nwords [       OK ] Values/Graph.F001_a/0 (5 ms)\n"
           "[ RUN      ] Graph.F002_b\na_test.cc:3: Skipped\nno device\n[  SKIPPED ] Graph.F002_b (0 ms)\n")
    BAD = "[ RUN      ] Graph.c\na_test.cc:7: Failure\n[  FAILED  ] Graph.c, where GetParam() = 1 (12 ms)\n"

    @staticmethod
    def end(count):
        return (f"[==========] {count} tests from 1 test suite ran. (17 ms total)\n"
                "[  FAILED  ] Graph.c, where GetParam() = 1\n")

    def cases(self, status, output, name="Graph.*"):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(f'<testsuite><testcase name="{name}" status="{status}"><system-out>{output}</system-out>'
                       "</testcase></testsuite>")
            file.flush()
            return list(results.cases(file.name))

    def states(self, *arguments, **keys):
        return [(name, state) for name, state, _ in self.cases(*arguments, **keys)]

    def test_each_test_of_a_suite_is_a_case(self):
        self.assertEqual(self.states("run", self.RAN + self.end(2)),
                         [("Values/Graph.F001_a/0", "passed"), ("Graph.F002_b", "skipped")])
        self.assertEqual(results.skip_reason(self.cases("run", self.RAN + self.end(2))[1][2]), "no device")
        self.assertEqual(self.states("fail", self.RAN + self.BAD + self.end(3))[2:], [("Graph.c", "failed")])
        self.assertIn("a_test.cc:7: Failure", self.cases("fail", self.RAN + self.BAD + self.end(3))[2][2])

    def test_the_environment_stands_before_the_names(self):
        for name in ("async.Graph.*", "async.Values/Graph.*", "async.Graph.*2"):
            self.assertEqual(self.states("run", self.BAD + self.end(1), name=name), [("async.Graph.c", "failed")])
        self.assertEqual(self.states("run", self.BAD + self.end(1), name="Values/Graph.*"), [("Graph.c", "failed")])

    def test_a_process_that_fails_after_its_tests_is_a_failure(self):
        cases = self.cases("fail", self.RAN + self.end(2) + "leaked 80 bytes")
        self.assertEqual(cases[2][:2], ("Graph.*", "failed"))
        self.assertIn("leaked 80 bytes", cases[2][2])

    def test_a_process_that_ends_within_a_test_or_runs_none_is_a_failure(self):
        self.assertEqual(self.states("run", self.end(0)), [("Graph.*", "failed")])
        for status in ("run", "fail"):
            self.assertEqual(self.states(status, self.RAN + "[ RUN      ] Graph.d\n")[2:], [("Graph.*", "failed")])


@mock.patch.object(features, "ROWS", 6)
class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for path, text in (FILES | {features.LIST: LIST}).items():
            self.write(path, text, 1000)
        self.write("build/release/tests/graph_test", "", 2000)
        os.chmod("build/release/tests/graph_test", 0o755)
        patch = mock.patch.object(results.lint, "list_files", self.files)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, path, text, time):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(path, (time, time))

    def files(self):
        return {path: open(path, encoding="utf-8").read() for path in [*FILES, features.LIST]}

    def ran(self, folder, states, time=3000):
        text = "".join(f'<testcase name="{name}" status="{state}"/>' for name, state in states.items())
        self.write(f"build/{folder}/tests.xml", f"<testsuite>{text}</testsuite>", time)

    def status(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = results.feature_table(["build/release", "build/asan"])
        return status, out.getvalue() + err.getvalue()

    def test_without_results_there_is_no_table(self):
        status, text = self.status()
        self.assertEqual((status, text), (1, "build/release/tests.xml: no results yet, run tools/test\n"))

    def test_results_of_this_tree_are_read(self):
        self.ran("release", {name: "run" for name in PASSED})
        status, text = self.status()
        self.assertEqual(status, 0, text)
        self.assertIn("4 of 6 rows are done", text)

    def test_the_worst_of_values_and_environments_counts(self):
        names = {name: "run" for name in PASSED}
        self.ran("release", names | {"All/Saver.F003_F004_both/0": "run", "async.Saver.F003_F004_both": "fail"})
        status, text = self.status()
        self.assertEqual(status, 1)
        self.assertIn("2 of 6 rows are done, 1 partial, 1 absent, 2 FAILED", text)

    def test_results_older_than_a_source_or_a_program_are_refused(self):
        self.ran("release", {name: "run" for name in PASSED})
        for path in ("tests/unit/a_test.cc", "build/release/tests/graph_test"):
            os.utime(path, (4000, 4000))
            status, text = self.status()
            self.assertEqual(status, 1)
            self.assertIn(f"build/release/tests.xml: {path} is newer", text)
            os.utime(path, (1000, 1000))

    def test_the_list_may_be_newer_and_old_results_of_a_sanitizer_are_left_out(self):
        self.ran("release", {name: "run" for name in PASSED})
        self.ran("asan", {"Graph.F001_listed": "fail"}, time=500)
        os.utime(features.LIST, (5000, 5000))
        status, text = self.status()
        self.assertEqual(status, 0, text)
        self.assertIn("build/asan/tests.xml is left out: ", text)

    def test_a_failure_under_a_sanitizer_counts(self):
        self.ran("release", {name: "run" for name in PASSED})
        self.ran("asan", {"Graph.F001_listed": "fail"})
        status, text = self.status()
        self.assertEqual(status, 1)
        self.assertIn("Graph.F001_listed failed in build/asan", text)

    def test_a_list_that_disagrees_with_the_tests_fails(self):
        self.ran("release", {name: "run" for name in PASSED})
        self.write(features.LIST, LIST.replace("Saver.F003_F004_both", "Saver.F003_other"), 1000)
        status, text = self.status()
        self.assertEqual(status, 1)
        self.assertIn("whose row does not name it", text)


if __name__ == "__main__":
    unittest.main()
