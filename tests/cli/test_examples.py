#!/usr/bin/env python3
"""packaging/examples: agents under Slurm, k3s and systemd, as far as one machine can tell."""
import base64
import os
import re
import shutil
import subprocess
import unittest

import program

EXAMPLES = program.SOURCE / "packaging/examples"

try:
    import yaml
except ImportError:
    yaml = None

# What Slurm's srun does: the command once for each task, ended together.
SRUN = """\
#!/bin/sh
tasks=
trap 'kill $tasks 2>/dev/null' TERM
for number in $(seq 0 $((SLURM_NTASKS - 1))); do
    SLURM_PROCID=$number SLURM_LOCALID=$number "$@" &
    tasks="$tasks $!"
done
wait
wait
"""


def base_port():
    """Of a block that is this test's."""
    return program.ports().find(63)


class Slurm(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/srun").write_text(SRUN)
        (self.dir / "bin/srun").chmod(0o755)
        self.port = base_port()
        (self.dir / "run.yaml").write_text(
            program.RUN.replace("ring: {boards: 2}\n", "").replace(
                "epochs: 1", "epochs: 2, checkpoint_steps: 2"))

    def job(self, out, **options):
        """The script as a copy elsewhere, which is what Slurm starts."""
        shutil.copy(EXAMPLES / "slurm/ring.sbatch", self.dir / "slurm_script")
        path = f"{self.dir / 'bin'}:{program.BUILD / 'bin'}:{os.environ['PATH']}"
        env = {"PATH": path, "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_CPUS_PER_TASK": "1",
               "SLURM_SUBMIT_DIR": str(EXAMPLES / "slurm"), "RINGPIPE_HOST": "127.0.0.1",
               "RINGPIPE_PORT": str(self.port), "TMPDIR": str(self.dir)}
        return self.start("slurm_script", "run.yaml", out, program="/bin/bash", env=env, **options)

    def leaves_nothing(self):
        self.assertEqual(list(self.dir.glob("tmp.*")), [])
        self.assertEqual(self.agents(), [])

    def test_job(self):
        self.finish(self.job("out"))
        self.leaves_nothing()
        whole = (self.dir / "out/weights.safetensors").read_bytes()
        # On this machine alone it is the same run.
        self.ringpipe("train", "run.yaml", "--set", "ring={boards: 2}", "--out", "alone")
        self.assertEqual((self.dir / "alone/weights.safetensors").read_bytes(), whole)

    def test_out_of_time(self):
        """Slurm's signal ends the run behind a checkpoint, and the same line goes on with it."""
        text = (self.dir / "run.yaml").read_text()
        (self.dir / "run.yaml").write_text(text.replace("epochs: 2", "epochs: 300"))
        job = self.job("out")
        log = self.dir / "out/log.jsonl"
        self.wait_for("steps", lambda: len(program.steps_of(log)) > 3, process=job)
        job.send_signal(10)  # SIGUSR1, to the script alone
        self.finish(job, code=130)
        self.leaves_nothing()
        done = len(program.steps_of(log))
        job = self.job("out")
        self.wait_for("more steps", lambda: len(program.steps_of(log)) > done + 3, process=job)
        job.send_signal(10)
        self.finish(job, code=130)
        self.assertIn("resume", log.read_text())
        self.leaves_nothing()

    def test_its_words(self):
        for path in EXAMPLES.glob("*/*.s*"):
            if path.suffix in (".sh", ".sbatch"):
                subprocess.run(["bash", "-n", path], check=True)
        text = (EXAMPLES / "slurm/ring.sbatch").read_text()
        options = re.findall(r"(?m)^#SBATCH --([a-z-]+)", text)
        self.assertEqual(options, ["job-name", "nodes", "ntasks-per-node", "cpus-per-task", "time",
                                   "requeue", "signal"])


@unittest.skipUnless(yaml, "no python3-yaml")
class K3s(program.Case):
    def setUp(self):
        super().setUp()
        with open(EXAMPLES / "k3s/ring.yaml", encoding="utf-8") as file:
            self.parts = {(part["kind"], part["metadata"]["name"]): part
                          for part in yaml.safe_load_all(file)}

    def pod(self, kind, name):
        return self.parts[kind, name]["spec"]["template"]

    def secrets(self, count=2):
        path = f"{program.BUILD / 'bin'}:{os.environ['PATH']}"
        out, _ = self.ringpipe("sh", EXAMPLES / "k3s/secrets.sh", count, program="/usr/bin/env",
                               env={"PATH": path, "TMPDIR": str(self.dir)})
        found = {part["metadata"]["name"]: part for part in yaml.safe_load_all(out) if part}
        self.assertEqual(list(self.dir.glob("tmp.*")), [])
        return {name: {key: base64.b64decode(value) for key, value in part["data"].items()}
                for name, part in found.items()}

    def test_fields(self):
        """What one part names another one is."""
        versions = {"Namespace": "v1", "ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1",
                    "PersistentVolumeClaim": "v1", "Job": "batch/v1",
                    "NetworkPolicy": "networking.k8s.io/v1"}
        for (kind, _), part in self.parts.items():
            self.assertEqual(part["apiVersion"], versions[kind])
            if kind != "Namespace":
                self.assertEqual(part["metadata"]["namespace"], "ringpipe")
        agents = self.parts["StatefulSet", "agent"]["spec"]
        self.assertEqual(agents["serviceName"], "agent")
        # Without an address of its own, so that each pod has a name.
        self.assertEqual(self.parts["Service", "agent"]["spec"]["clusterIP"], "None")
        for kind, name, service in (("StatefulSet", "agent", "agent"), ("Job", "host", "host")):
            labels = self.pod(kind, name)["metadata"]["labels"]
            self.assertEqual(self.parts["Service", service]["spec"]["selector"], labels)
            pod = self.pod(kind, name)["spec"]
            container, = pod["containers"]
            volumes = {volume["name"] for volume in pod["volumes"]}
            volumes |= {claim["metadata"]["name"] for claim in
                        self.parts[kind, name]["spec"].get("volumeClaimTemplates", [])}
            self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)
            ports = {port["containerPort"] for port in container["ports"]}
            self.assertEqual({port["port"] for port in
                              self.parts["Service", service]["spec"]["ports"]}, ports)
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertFalse(pod["automountServiceAccountToken"])
        self.assertEqual(agents["selector"]["matchLabels"],
                         self.pod("StatefulSet", "agent")["metadata"]["labels"])
        # The name under which the roster finds a board is the pod's.
        roster = yaml.safe_load(self.parts["ConfigMap", "ringpipe"]["data"]["roster.yaml"])
        self.assertEqual(roster["groups"]["k3s"]["address"],
                         "tcp://{name}.agent.ringpipe.svc.cluster.local:7000")
        named = [volume["secret"]["secretName"] for kind, name in (("StatefulSet", "agent"),
                                                                    ("Job", "host"))
                 for volume in self.pod(kind, name)["spec"]["volumes"] if "secret" in volume]
        self.assertEqual(sorted(named), sorted(self.secrets()))

    def test_it_enrols(self):
        """The commands of the pods, with folders and ports of this machine."""
        found = self.secrets()
        tokens = found["ringpipe-tokens"]
        self.assertEqual(sorted(tokens), ["agent-0", "agent-1"])
        config = self.parts["ConfigMap", "ringpipe"]["data"]
        for folder, files in (("secret", found["ringpipe-host"]), ("tokens", tokens),
                              ("config", {key: text.encode() for key, text in config.items()})):
            (self.dir / folder).mkdir()
            for name, data in files.items():
                (self.dir / folder / name).write_bytes(data)
        door = program.ports().find(60)
        command, = self.pod("StatefulSet", "agent")["spec"]["containers"][0]["args"]
        path = f"{program.BUILD / 'bin'}:{os.environ['PATH']}"
        # As in the pods, but for ports, which are one machine's here.
        here = {":7900": f":{door}", ":7000": ":{port}"}
        (self.dir / "state").mkdir()
        script = config["host.sh"].replace("--wait 900",
                                           f"--wait 60 --listen tcp://127.0.0.1:{door}")
        host = self.start("-c", script.replace("exec ringpipe", "exec echo would"),
                          program="/bin/sh",
                          env={"PATH": path, **{key: str(self.dir / key.lower())
                                                for key in ("STATE", "SECRET", "CONFIG")}})
        agents = []
        for number in range(2):
            text = command
            for old, new in here.items():
                text = text.replace(old, new.format(port=door + 20 * (number + 1)))
            (self.dir / f"state-{number}").mkdir()
            agents.append(self.start(
                "-c", text + " --threads 1", program="/bin/sh",
                env={"PATH": path, "POD": f"agent-{number}", "HOST": "127.0.0.1",
                     "STATE": str(self.dir / f"state-{number}"),
                     "TOKENS": str(self.dir / "tokens")}))
        out, _ = self.finish(host)
        self.assertIn("would train run.yaml --keys keys --out out", out)
        roster = yaml.safe_load((self.dir / "state/roster.yaml").read_text())
        self.assertEqual({(board["name"], board["group"], board.get("address"))
                          for board in roster["boards"]},
                         {("agent-0", "k3s", None), ("agent-1", "k3s", None)})
        for agent in agents:
            self.end(agent)
        # What it would train is a run, by the roster's names.
        out, _ = self.ringpipe("train", "state/run.yaml", "--dry-run", "--keys", "state/keys")
        self.assertIn("2 stages", out)
        found, _ = self.ringpipe("boards", "list", "--roster", "state/roster.yaml")
        self.assertIn("tcp://agent-0.agent.ringpipe.svc.cluster.local:7000", found)


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
class Systemd(program.Case):
    def verify(self, *names):
        return subprocess.run(["systemd-analyze", "verify", "--man=no", *names], cwd=self.dir,
                              capture_output=True, text=True, check=False)

    def test_units(self):
        """By systemd's own reader, with the program where the build has it, as instance 0."""
        names = []
        for path in (EXAMPLES / "systemd").iterdir():
            names.append(path.name.replace("@", "@0"))
            text = path.read_text().replace("/usr/bin/ringpipe-agent", str(program.AGENT))
            (self.dir / names[-1]).write_text(text.replace("User=ringpipe", "User=root"))
        self.assertEqual(len(names), 3)
        done = self.verify(*names)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        agent = self.dir / "ringpipe-agent@0.service"
        agent.write_text(agent.read_text().replace("Restart=on-failure", "Restart=sometimes"))
        self.assertIn("sometimes", self.verify(agent.name).stderr)  # it looks at what it is given


if __name__ == "__main__":
    program.main()
