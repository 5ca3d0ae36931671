#!/usr/bin/env python3
"""A system that runs becomes a board, over ssh: an `ssh` that runs the commands here, where a
made-up system answers them."""
import json
import os
import re
import signal
import subprocess

import enrolment
import program

# Keeps a list of what was run; asks for nothing. The last word is the command.
SSH = """#!/bin/sh
echo "$*" >>"{dir}/calls"
while [ $# -gt 2 ]; do shift; done
[ "$1" != pi@nowhere ] || {{ echo "ssh: no route" >&2; exit 255; }}
PATH="{dir}/there:$PATH" SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22"
export PATH SSH_CONNECTION
exec sh -c "$(printf '%s' "$2" | sed \
    's#/run/systemd#{dir}/system/run/systemd#; s#/etc/OpenCL#{dir}/system/etc/OpenCL#')"
"""

# What a board's system has. The service starts the agent as systemd would.
TOOLS = {
    "dpkg": 'echo "$ARCH"',
    "uname": """
case $1 in
-s) echo "${{OS:-Linux}}";;
-m) echo "${{MACHINE:-aarch64}}";;
-n) echo pi-kitchen;;
esac""",
    "ldconfig": """
for library in ${{LIBRARIES-libzmq.so.5 libclblast.so.1 libOpenCL.so.1 libsodium.so.23}}; do
    echo "    $library (libc6,AArch64) => /usr/lib/$library"
done""",
    "id": 'echo "${{ID:-1000}}"',
    "sudo": '[ "$1" != -n ] || shift; SUDO=yes "$@"',
    "apt-get": 'echo "apt-get $*" >>"{dir}/calls"; [ -z "$FAIL" ]',
    "sync": ":",
    "systemctl": """
case "$*" in
"is-active ringpipe-agent") echo "${{SERVICE:-inactive}}";;
*restart*) . "{dir}/system/etc/default/ringpipe-agent"
    RP_TEST_MARK=$RP_TEST_MARK setsid "{agent}" --keys "{dir}/board" --threads 1 $RINGPIPE_AGENT \
        >"{dir}/agent.out" 2>"{dir}/agent.log" </dev/null &
    echo $! >"{dir}/agent.pid";;
*) echo "systemctl $*" >>"{dir}/calls";;
esac""",
}


class Adopt(enrolment.Case):
    def setUp(self):
        super().setUp()
        here, there = self.dir / "here", self.dir / "there"
        self.port = enrolment.free_port()
        for folder, tools in ((here, {"ssh": None}), (there, TOOLS)):
            folder.mkdir()
            for name, text in tools.items():
                text = SSH if text is None else "#!/bin/sh\n" + text + "\n"
                (folder / name).write_text(text.format(dir=self.dir, agent=program.AGENT))
                (folder / name).chmod(0o755)
        (self.dir / "system/run/systemd/system").mkdir(parents=True)
        scripts = self.dir / "scripts"
        scripts.mkdir()
        script = (program.SOURCE / "packaging/image/first-boot").read_text()
        for path in ("/etc/", "/root/", "/var/", "/run/", "/usr/"):
            script = re.sub(rf"(?<=[\s('\"]){path}", f"{self.dir}/system{path}", script)
        # Many boards on one machine: each has a port of its own.
        own = f"agent=$(echo \"$agent\" | sed s/0.0.0.0:7000/127.0.0.1:{self.port}/)\n"
        script = script.replace("printf 'RINGPIPE_AGENT", own + "printf 'RINGPIPE_AGENT")
        (scripts / "first-boot").write_text(script)
        (self.dir / "build-package").mkdir()
        for arch in ("amd64", "arm64"):
            (self.dir / f"build-package/ringpipe-agent_0.1.0_{arch}.deb").write_text(arch)
        (self.dir / "tmp").mkdir()
        self.addCleanup(self.end_agent)

    def end_agent(self):
        path = self.dir / "agent.pid"
        if path.exists():
            try:
                os.kill(int(path.read_text()), signal.SIGTERM)
            except ProcessLookupError:
                pass

    def adopt(self, *words, to="pi@kitchen", env=None, **options):
        there = {"ARCH": "arm64", "PATH": f"{self.dir}/here:{os.environ['PATH']}",
                 "RINGPIPE_IMAGE": str(self.dir / "scripts"), "TMPDIR": str(self.dir / "tmp")}
        # A profile that says nothing of drivers would take those of this machine.
        return self.ringpipe("boards", "adopt", "--roster", "lab.yaml", "--keys", "host",
                             "--listen", self.door, *words, to, env={**there, **(env or {})},
                             **options)

    def calls(self):
        path = self.dir / "calls"
        return path.read_text() if path.exists() else ""

    def test_a_system_becomes_a_board(self):
        out, err = self.adopt("--board", "raspberry-pi-5")
        self.assertIn("pi-kitchen is enrolled: fingerprint", out)
        self.assertIn("packages for arm64", err)
        calls = self.calls()
        self.assertRegex(calls, r"apt-get install -y --no-install-recommends "
                                r"\S+/ringpipe-agent_0\.1\.0_arm64\.deb pocl-opencl-icd")
        self.assertIn("systemctl --no-reload enable ringpipe-agent", calls)
        self.assertNotRegex(calls, r"rpt1")  # no command has the token
        scratch = re.search(r"/tmp/ringpipe-adopt-[0-9a-f]{16}", calls)[0]
        self.assertFalse(os.path.exists(scratch))
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])  # nor is one left here
        roster = (self.dir / "lab.yaml").read_text()
        self.assertIn("pi-kitchen", roster)
        self.assertIn(f"127.0.0.1:{self.port}", roster)
        out, _ = self.ringpipe("boards", "show", "pi-kitchen", "--roster", "lab.yaml", "--keys",
                               "host", "--format", "json")
        self.assertEqual(json.loads(out)["state"], "hello")
        self.assertIn("has a board 'pi-kitchen' already",
                      self.adopt("--board", "raspberry-pi-5", code=2)[1])

    def test_every_command_is_shown(self):
        """What --dry-run prints is what runs, but for the folder's name and sudo."""
        out, err = self.adopt("--dry-run", "--node", "left")
        self.assertEqual(self.calls(), "")
        self.assertFalse((self.dir / "host/tokens").exists())
        shown = [line for line in out.splitlines() if line[0] != "#"]
        self.assertEqual(len(shown), 4)
        self.assertIn("first-boot", shown[2])
        self.adopt("--node", "left", "--token")
        ran = [line for line in self.calls().splitlines() if line.startswith("-o")]
        plain = lambda text: re.sub(r"adopt-[0-9a-f]{16}|'|\\| <ringpipe.tar", "", text)
        self.assertEqual([plain(line).removeprefix("ssh ") for line in shown],
                         [plain(line) for line in ran])

    def make_package(self, agent):
        """A package as it is, with another agent in it."""
        tree = self.dir / "package"
        for path, text in (("usr/bin/ringpipe-agent", agent),
                           ("usr/lib/ringpipe-agent/after-end", "#!/bin/sh\n"),
                           ("lib/systemd/system/ringpipe-agent.service", "[Service]\n"),
                           ("etc/avahi/services/ringpipe-agent.service", "<service/>\n"),
                           ("DEBIAN/control", "Package: ringpipe-agent\nVersion: 0.1.0\n"
                                              "Architecture: arm64\nMaintainer: nobody\n"
                                              "Description: an agent\n")):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
            (tree / path).chmod(0o755 if text.startswith("#!") else 0o644)
        package = self.dir / "build-package/ringpipe-agent_0.1.0_arm64.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, package], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)

    def test_a_system_without_dpkg(self):
        """It gets the package's files, where what they need is there."""
        bare = {"ARCH": ""}
        vendors = self.dir / "system/etc/OpenCL/vendors"
        for env, missing in (
                ({"LIBRARIES": "libzmq.so.5 libsodium.so.23"},
                 "libclblast.so.1 libOpenCL.so.1 and an OpenCL driver"),
                ({}, "missing: an OpenCL driver (a file in /etc/OpenCL/vendors); install them")):
            with self.subTest(missing):
                _, err = self.adopt("--node", "left", env={**bare, **env}, code=2)
                self.assertIn("has no dpkg, so the agent's files are copied as they are", err)
                self.assertIn(missing, err)
        vendors.mkdir(parents=True)
        (vendors / "mali.icd").write_text("libmali.so\n")
        _, err = self.adopt("--node", "left", env={**bare, "LIBRARIES": "libzmq.so.5 libOpenCL.so.1"
                                                           " libsodium.so.23"}, code=2)
        self.assertIn("are missing: libclblast.so.1; install", err)
        self.assertFalse((self.dir / "host/tokens").exists())
        # One that does not start there: nothing is changed, and nothing with a token is left.
        self.make_package("#!/bin/sh\necho 'GLIBC_2.34 not found' >&2\nexit 1\n")
        _, err = self.adopt("--node", "left", env=bare, code=3)
        self.assertIn("GLIBC_2.34 not found\nfirst-boot: the agent does not start", err)
        self.assertFalse((self.dir / "system/usr").exists())
        scratch = re.findall(r"/tmp/ringpipe-adopt-[0-9a-f]{16}", self.calls())[-1]
        self.assertFalse(os.path.exists(scratch))
        self.make_package("#!/bin/sh\necho ringpipe-agent\n")
        (self.dir / "system/etc/avahi/services").mkdir(parents=True)
        out, err = self.adopt("--node", "left", "--yes", env=bare)
        self.assertIn("no dpkg: files of the package for arm64", err)
        self.assertIn("left is enrolled: fingerprint", out)
        self.assertNotIn("apt-get", self.calls())
        system = self.dir / "system"
        for path, mode in (("usr/bin/ringpipe-agent", 0o755),
                           ("usr/lib/ringpipe-agent/after-end", 0o755),
                           ("etc/systemd/system/ringpipe-agent.service", 0o644),
                           ("etc/avahi/services/ringpipe-agent.service", 0o644)):
            with self.subTest(path):
                self.assertEqual((system / path).stat().st_mode & 0o777, mode)
        self.assertIn("RINGPIPE_AGENT=", (system / "etc/default/ringpipe-agent").read_text())
        self.assertIn("systemctl --no-reload enable ringpipe-agent", self.calls())
        self.assertIn("systemctl daemon-reload", self.calls())

    def test_root_needs_no_sudo(self):
        self.adopt("--node", "left", "--token", env={"ID": "0"}, to="root@kitchen")
        self.assertIn("left", (self.dir / "host/tokens").read_text())
        self.assertNotIn("sudo sh", self.calls())
        self.assertIn("sh /tmp/ringpipe-adopt-", self.calls())

    def test_what_is_refused(self):
        for env, said, code in (
                ({"ARCH": "armhf"}, "armhf packages, expected amd64 or arm64", 2),
                ({"ARCH": "", "MACHINE": "riscv64"}, "no Debian packages", 2),
                ({"OS": "Darwin"}, "its system is Darwin, expected Linux", 2),
                ({"SERVICE": "active"}, "an agent runs there already; --yes", 2)):
            with self.subTest(said):
                _, err = self.adopt("--node", "left", env=env, code=code)
                self.assertIn(said, err)
        _, err = self.adopt("--node", "left", to="pi@nowhere", code=2)
        self.assertIn("ssh to pi@nowhere failed", err)
        for word in ("kitchen", "-oProxyCommand=sh@x", "pi@-x", "pi@a b", "@x", "pi@", "a;b@c"):
            with self.subTest(word):
                _, err = self.adopt("--", to=word, code=2)
                self.assertIn("expected USER@ADDRESS", err)
        _, err = self.adopt("--dial", "HOST:7100", code=2)
        self.assertIn("--dial: 'HOST:7100' is the manual's example", err)
        self.assertIn("--node 'left_1'", self.adopt("--node", "left_1", code=2)[1])
        self.assertFalse((self.dir / "host/tokens").exists())  # no token was made for any of these
        _, err = self.adopt("--node", "left", env={"FAIL": "1"}, code=3)
        self.assertIn("first-boot ended with", err)
        scratch = re.findall(r"/tmp/ringpipe-adopt-[0-9a-f]{16}", self.calls())[-1]
        self.assertFalse(os.path.exists(scratch))  # what has a token is gone
        self.assertFalse((self.dir / "host/tokens").exists())  # and it opens nothing here
        self.assertFalse((self.dir / "lab.yaml").exists())


if __name__ == "__main__":
    program.main()
