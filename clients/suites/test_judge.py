"""What judge.py must notice. Run by clients/suites/run before anything else: python3 test_judge.py"""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import judge


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.suite, self.outcomes = Path(folder.name, "suite"), Path(folder.name, "outcomes")
        self.suite.mkdir()
        self.outcomes.mkdir()
        (self.outcomes / "version").write_text("1.2.3\n")

    def verdict(self, expected, *arguments, **configurations):
        """The lines that judge.py prints for these expectations and outcomes."""
        (self.suite / "expected-failures.txt").write_text(expected)
        for name, outcomes in configurations.items():
            text = "".join(f"{outcome}\tfile\t{test}\n" for test, outcome in outcomes.items())
            (self.outcomes / f"{name}.outcomes").write_text(text)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = judge.main([str(self.suite), str(self.outcomes), *arguments])
        printed = output.getvalue().splitlines()
        self.assertEqual(status == 0, printed[-1].endswith(" 0 failed"))
        return printed

    def settled(self, expected, **configurations):
        """As `verdict`, after an update with the same."""
        self.verdict(expected, "--update", **configurations)
        return self.verdict(expected, **configurations)

    def test_listed_failures_and_skipped_tests_are_fine(self):
        printed = self.settled("acl  b*\n", resp3={"a": "passed", "b[x]": "failed", "c": "skipped"})
        self.assertEqual(printed[-1], "1 passed, 0 failed")

    def test_a_failure_that_is_not_listed_is_unexpected(self):
        printed = self.settled("", resp3={"a": "failed", "b": "passed"})
        self.assertIn("fails, and is not listed: a", printed[0])
        self.assertEqual(printed[-1], "1 passed, 1 failed")

    def test_a_listed_test_that_passes_is_unexpected(self):
        printed = self.settled("acl  *\n", resp3={"a": "failed", "b": "passed"})
        self.assertIn("passes, but", printed[0])
        self.assertEqual(printed[-1], "0 passed, 1 failed")

    def test_a_line_that_matches_no_test_is_unexpected(self):
        printed = self.settled("acl  gone\n", resp3={"a": "passed"})
        self.assertIn("matches no test: gone", printed[0])

    def test_a_line_may_belong_to_one_configuration(self):
        printed = self.settled("acl  a  only resp2\n", resp2={"a": "failed"}, resp3={"a": "passed"})
        self.assertEqual(printed[-1], "1 passed, 0 failed")
        printed = self.settled("acl  a  only resp2\n", resp2={"a": "failed"}, resp3={"a": "failed"})
        self.assertEqual(printed[-1], "0 passed, 1 failed")

    def test_a_line_without_parameters_means_a_test_with_any(self):
        printed = self.settled("acl  a\n", resp3={"a[x]": "failed", "a[y]": "failed", "ab": "passed"})
        self.assertEqual(printed[-1], "1 passed, 0 failed")

    def test_brackets_are_not_special_in_a_pattern(self):
        printed = self.settled("acl  a[x]\n", resp3={"a[x]": "failed", "ax": "passed"})
        self.assertEqual(printed[-1], "1 passed, 0 failed")

    def test_counts_that_differ_from_the_results_are_unexpected_unless_they_are_of_skipped_tests(self):
        self.verdict("", "--update", resp3={"a": "passed", "b": "passed"})
        printed = self.verdict("", resp3={"a": "passed"})
        self.assertIn("is not what this run counted", printed[0])
        printed = self.verdict("", resp3={"a": "passed", "b": "passed", "c": "skipped"})
        self.assertEqual(printed[-1], "2 passed, 0 failed")

    def test_the_results_tell_configurations_files_and_reasons(self):
        self.verdict("acl  b\n", "--update", resp3={"a": "passed", "b": "failed", "c": "skipped"})
        self.assertEqual(
            json.loads((self.suite / "results.json").read_text()),
            {
                "suite": "suite",
                "version": "1.2.3",
                "configurations": [
                    {
                        "name": "resp3",
                        "files": {"file": {"passed": 1, "expected": 1, "skipped": 1}},
                        "reasons": {"acl": 1},
                    }
                ],
            },
        )

    def test_unlisted_failures_can_be_asked_for(self):
        printed = self.verdict("acl  b\n", resp3={"a": "passed", "b": "failed", "c": "failed"})
        self.assertIn("fails, and is not listed: c", printed[0])
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(judge.main([str(self.suite), str(self.outcomes), "--unlisted", "resp3"]), 0)
        self.assertEqual(output.getvalue(), "c\n")

    def test_malformed_files_are_refused(self):
        for expected in ("acl\n", "no-such-reason  a\n"):
            with self.assertRaises(judge.Malformed):
                self.verdict(expected, resp3={"a": "passed"})
        with self.assertRaises(judge.Malformed):
            self.verdict("", resp3={"a": "broke off"})
        with self.assertRaises(judge.Malformed):
            self.verdict("", resp3={})


if __name__ == "__main__":
    unittest.main()
