#!/usr/bin/env python3
"""An installed tree trains by itself: it needs neither the source nor the build folder."""
import json
import os
import shutil
import subprocess

import program


class Install(program.Case):
    def setUp(self):
        super().setUp()
        stage = self.dir / "stage"
        subprocess.run(["cmake", "--install", program.BUILD, "--prefix", "/opt/ringpipe"],
                       check=True, stdout=subprocess.DEVNULL, timeout=120,
                       env={**os.environ, "DESTDIR": str(stage)})
        self.tree = self.dir / "moved"
        (stage / "opt" / "ringpipe").rename(self.tree)
        self.program = self.tree / "bin" / "ringpipe"
        program.AGENT = self.tree / "bin" / "ringpipe-agent"  # what expect_no_agents looks for

    def environment(self, **changes):
        given = super().environment(**changes)
        return {k: v for k, v in given.items()
                if k in changes or not k.startswith(("RINGPIPE_", "RP_SOURCE", "RP_BUILD"))}

    def test_what_is_there(self):
        share = self.tree / "share"
        for page in (program.SOURCE / "host/cli/man").iterdir():
            self.assertTrue((share / f"man/man{page.name[-1]}" / page.name).is_file(), page.name)
        for path in ("bash-completion/completions/ringpipe",
                     "bash-completion/completions/ringpipe-agent",
                     "zsh/site-functions/_ringpipe", "fish/vendor_completions.d/ringpipe.fish",
                     "fish/vendor_completions.d/ringpipe-agent.fish", "ringpipe/models/mlp.yaml",
                     "ringpipe/boards/pocl-cpu/board.yaml", "ringpipe/boards/pocl-cpu/tuning.json",
                     "doc/ringpipe/demo.yaml", "doc/ringpipe/README.md", "doc/ringpipe/BOARDS.md",
                     "doc/ringpipe/LICENSE"):
            self.assertTrue((share / path).is_file(), path)
        for folder in ("models", "links"):
            for file in (program.SOURCE / "host" / folder).iterdir():
                self.assertTrue((share / "ringpipe" / folder / file.name).is_file(), file.name)
        helpers = self.tree / "libexec"
        self.assertEqual([str(p.relative_to(helpers)) for p in helpers.rglob("*") if p.is_file()],
                         ["ringpipe/ringpipe-system"])
        strangers = {p.name for p in self.tree.iterdir()} - {"bin", "share", "libexec"}
        self.assertFalse(strangers, "libraries and headers are not for others")

    def test_its_own_models_and_boards(self):
        """A model and a board that only the installed tree has."""
        models, boards = (self.tree / "share" / "ringpipe" / n for n in ("models", "boards"))
        (models / "mlp.yaml").rename(models / "only-here.yaml")
        shutil.copytree(boards / "pocl-cpu", boards / "only-here")
        run = self.run_file(program.RUN.replace("model: mlp", "model: only-here").replace(
            "{boards: 2}", "{boards: 2, board: only-here}"))
        self.ringpipe("train", run, "--out", "out", "--set", "train.steps=2",
                      program=self.program, seconds=120)
        summary = json.loads((self.dir / "out" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["steps"]), ("finished", 2))
        self.assertIn(str(models), self.refused("train", self.run_file(), program=self.program))
        self.assertIn(str(boards), self.refused("doctor", "--board", "none", program=self.program))

    def test_the_user_comes_first(self):
        err = self.refused("train", self.run_file(), program=self.program,
                           env={"RINGPIPE_MODELS": str(self.dir / "mine")})
        self.assertIn(str(self.dir / "mine"), err)

    def test_programs_alone(self):
        """Without the data beside them they are as good as built, not installed."""
        shutil.rmtree(self.tree / "share")
        out, _ = self.ringpipe("train", self.run_file(), "--dry-run", program=self.program)
        self.assertIn("mlp", out)


if __name__ == "__main__":
    program.main()
