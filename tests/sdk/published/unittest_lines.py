"""Runs the tests of some modules of the package in the working directory, and prints a line of each: what came of it,
and its name. A line that begins with `hangs` is of a test that has only begun."""

import os
import sys
import unittest


class Lines(unittest.TestResult):
    """Keeps the last word of each test; what a test prints itself goes elsewhere."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def startTest(self, test):
        super().startTest(test)
        self.word = "passed"
        print("hangs", test.id(), file=self.out, flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        print(self.word, test.id(), file=self.out, flush=True)

    def fails(self, test, error):
        self.word = "failed"
        print(self._exc_info_to_string(error, test), file=sys.stderr)

    def addError(self, test, error):
        self.fails(test, error)

    def addFailure(self, test, error):
        self.fails(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.fails(subtest, error)

    def addSkip(self, test, reason):
        self.word = "skipped"


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # The package's own code, and not one that is installed.
    sys.path.insert(0, os.getcwd())
    unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(Lines(out))


main()
