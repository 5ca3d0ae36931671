#!/usr/bin/env python3
"""One training before the other tests: their time limits do not count the building of kernels."""
import program


class Warm(program.Case):
    def test_train(self):
        self.ringpipe("train", self.run_file(), "--out", "out", seconds=500)


if __name__ == "__main__":
    program.main()
