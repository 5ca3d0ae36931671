#!/usr/bin/env python3
"""What an image or an overlay has, and what is refused before a token is made. The disk itself is
made by other programs: here a script stands in for `make`; `./bootstrap test image` has it."""
import filecmp
import json
import os
import re
import shutil
import stat
import subprocess
import time

import enrolment
import program

# What was asked for, as one file.
MAKE = """#!/bin/sh
for word in "$@"; do eval "${word%%=*}=\\${word#*=}"; done
[ -z "$FAIL" ] || exit "$FAIL"
{
    echo "$arch $kernel $console $drivers"
    cd "$node"
    for file in *; do echo "== $file"; cat "$file"; done
} >"$out"
"""
WIFI = "ssid: workshop\npassphrase: correct horse\n"
SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEhlbGxv me@desk\n"


class Base(enrolment.Case):
    def setUp(self):
        super().setUp()
        scripts = self.dir / "scripts"
        scripts.mkdir()
        (scripts / "make").write_text(MAKE)
        (scripts / "make").chmod(0o755)
        shutil.copy(program.SOURCE / "packaging/image/first-boot", scripts)
        self.needs(1, 1)
        self.tools = self.dir / "tools"
        self.tools.mkdir()
        for tool in ("mmdebstrap", "sqfstar", "mke2fs", "mkfs.vfat", "mcopy", "sfdisk", "dpkg-deb",
                     "qemu-aarch64-static", "arch-test"):
            (self.tools / tool).symlink_to("/bin/true")
        (self.dir / "build-package").mkdir()
        for arch in ("amd64", "arm64"):
            (self.dir / f"build-package/ringpipe-agent_0.1.0_{arch}.deb").write_text(arch)

    def needs(self, image, system):
        (self.dir / "scripts/needs.yaml").write_text(f"image_mib: {image}\nsystem_mib: {system}\n")

    def words(self, *words, board="qemu-virt-arm64", node="left", out="left.img"):
        return ("image", "--board", board, "--node", node, "--host", "10.0.0.2", "--keys", "host",
                "-o", out, "--cache", "cache", *words)

    def options(self, path=None, **env):
        path = path or f"{self.tools}:{os.environ['PATH']}"
        return {"env": {"RINGPIPE_IMAGE": str(self.dir / "scripts"), "PATH": path, **env}}

    def image(self, *words, env=None, code=0, **options):
        words = self.words(*words, **options)
        return self.ringpipe(*words, code=code, **self.options(**(env or {})))

    def refuse(self, *words, path=None, **options):
        err = self.refused(*self.words(*words, **options), **self.options(path=path))
        self.assertFalse((self.dir / "host/tokens").exists(), "a token was made")
        self.assertFalse((self.dir / "left.img").exists())
        return err

    def open_names(self):
        tokens = self.dir / "host/tokens"
        return re.findall(r'name: "(.+?)"', tokens.read_text()) if tokens.exists() else []

    def tokens_of(self, name):
        out, _ = self.ringpipe("boards", "enrol", "--roster", "lab.yaml", "--keys", "host",
                               "--listen", self.door, "--token", name)
        return re.findall(r"--enrol (rpt1[0-9a-z]{83})@", out)


class Image(Base):
    def test_a_board(self):
        (self.dir / "me.pub").write_text(SSH)
        (self.dir / "wifi.yaml").write_text(WIFI + "country: DE\n")
        (self.dir / "host/update.key").write_text("pinned\n")
        self.image("--ssh-key", "me.pub", "--wifi", "wifi.yaml")
        text = (self.dir / "left.img").read_text()
        self.assertEqual(text.splitlines()[0],
                         "arm64 linux-image-cloud-arm64 ttyAMA0 pocl-opencl-icd")
        self.assertRegex(text, r'(?m)^node="left"$')
        self.assertRegex(text, r'(?m)^agent="--listen tcp://0\.0\.0\.0:7000 --name left --board '
                               r'qemu-virt-arm64 --enrol rpt1[0-9a-z]{83}@10\.0\.0\.2:7900"$')
        self.assertIn("== authorized_keys\n" + SSH, text)
        self.assertIn("== update.key\npinned", text)
        self.assertIn('country=DE\nnetwork={\n    ssid="workshop"\n    scan_ssid=1\n'
                      '    psk="correct horse"\n}', text)
        self.assertEqual(self.open_names(), ["left"])
        # Nothing of the secrets is left lying about.
        self.assertEqual([], [p for p in self.dir.glob("ringpipe-image-*")])

    def test_several_boards(self):
        self.image("--listen", "tcp://0.0.0.0:7100", node="one,two,three", out="cards")
        for name in ("one", "two", "three"):
            text = (self.dir / f"cards/{name}.img").read_text()
            self.assertIn(f"--listen tcp://0.0.0.0:7100 --name {name} ", text)
        self.assertEqual(self.open_names(), ["one", "two", "three"])

    def test_a_board_that_dials(self):
        self.image("--dial", "desk@10.0.0.2:7100")
        self.assertIn('agent="--host desk@10.0.0.2:7100 --name left ',
                      (self.dir / "left.img").read_text())

    def test_the_same_token_gives_the_same_image(self):
        token, = self.tokens_of("left")
        self.image("--enrol", token)
        first = (self.dir / "left.img").read_bytes()
        file = self.dir / "token"
        file.write_text(token + "\n")
        file.chmod(0o600)
        self.image("--enrol", "@token", "--yes")
        self.assertEqual((self.dir / "left.img").read_bytes(), first)
        self.image("--yes")
        self.assertNotEqual((self.dir / "left.img").read_bytes(), first)

    def test_keys_are_made_where_there_are_none(self):
        shutil.rmtree(self.dir / "host")
        _, err = self.image()
        self.assertIn("made keys of this host", err)
        secret = self.dir / "host/secret.key"
        self.assertEqual(stat.S_IMODE(secret.stat().st_mode), 0o600)

    def test_from_an_image_to_a_roster(self):
        """What stands in node.conf lets an agent in; `--open` waits for whoever has a token."""
        port = self.door.rsplit(":", 1)[1]
        self.ringpipe(*self.words("--host", f"127.0.0.1:{port}"), **self.options())
        conf = (self.dir / "left.img").read_text()
        words = re.search(r'agent="(.*)"', conf).group(1).split()
        words[words.index("--listen") + 1] = f"tcp://127.0.0.1:{enrolment.free_port()}"
        words[words.index("--board") + 1] = "pocl-cpu"
        waiting = self.start("boards", "enrol", "--open", "--roster", "lab.yaml", "--keys", "host",
                             "--listen", self.door)
        board = self.start("--keys", "a", *words, program=program.AGENT)
        self.line(board, "enrolled as left by ")
        self.finish(waiting)
        self.assertIn('name: "left"', (self.dir / "lab.yaml").read_text())
        self.end(board)
        err = self.refused("boards", "enrol", "--open", "--roster", "lab.yaml", "--keys", "host",
                           "--listen", self.door)
        self.assertIn("no token is open", err)

    def test_overlay(self):
        (self.dir / "me.pub").write_text(SSH)
        (self.dir / "wifi.yaml").write_text(WIFI)
        self.image("--overlay", "--ssh-key", "me.pub", "--wifi", "wifi.yaml",
                   board="raspberry-pi-5", out="pi")
        pi = self.dir / "pi"
        found = sorted(str(p.relative_to(pi)) for p in pi.rglob("*") if p.is_file())
        self.assertEqual(found, [
            "README.txt", "meta-data", "network-config", "ringpipe/authorized_keys",
            "ringpipe/first-boot", "ringpipe/node.conf", "ringpipe/packages/drivers",
            "ringpipe/packages/ringpipe-agent_0.1.0_arm64.deb", "ringpipe/wifi.conf", "user-data"])
        self.assertEqual((pi / "ringpipe/packages/drivers").read_text(), "pocl-opencl-icd\n")
        self.assertEqual(stat.S_IMODE((pi / "ringpipe/node.conf").stat().st_mode), 0o600)
        user = (pi / "user-data").read_text()
        self.assertTrue(user.startswith("#cloud-config\n"))
        self.assertIn('hostname: "left"\n', user)
        self.assertIn('access-points: {"workshop": {password: "correct horse"}}',
                      (pi / "network-config").read_text())
        # It does not take the place of anything.
        self.assertIn("pi exists already", self.refused(
            *self.words("--overlay", board="raspberry-pi-5", out="pi"), **self.options()))

    def test_wifi_names_beyond_ascii(self):
        name = 'Café ☕ "5\\G" Zürich'
        text = f"ssid: {json.dumps(name, ensure_ascii=False)}\npassphrase: correct horse\n"
        (self.dir / "wifi.yaml").write_text(text)
        self.image("--overlay", "--wifi", "wifi.yaml", board="raspberry-pi-5", out="pi")
        self.assertIn(f"\n    ssid={name.encode().hex()}\n    scan_ssid=1\n",
                      (self.dir / "pi/ringpipe/wifi.conf").read_text())
        self.assertIn("access-points: {" + json.dumps(name, ensure_ascii=False) + ": {password: ",
                      (self.dir / "pi/network-config").read_text())

    def test_first_boot_of_an_overlay(self):
        """The script itself, in a made-up system: what it calls are stand-ins that keep a list."""
        self.image("--overlay", board="raspberry-pi-5", out="pi")
        system = self.dir / "system"
        for tool in ("apt-get", "systemctl", "sync"):
            path = self.tools / tool
            path.write_text(f'#!/bin/sh\necho "{tool} $*" >>"{self.dir}/calls"\n')
            path.chmod(0o755)
        (self.tools / "dpkg").write_text("#!/bin/sh\necho arm64\n")
        (self.tools / "dpkg").chmod(0o755)
        folder = self.dir / "pi/ringpipe"
        script = (folder / "first-boot").read_text()
        for path in ("/etc/", "/root/", "/var/", "/run/"):
            script = re.sub(rf"(?<=[\s('\"]){path}", f"{system}{path}", script)
        (folder / "first-boot").write_text(script)
        subprocess.run(["sh", "first-boot", "."], cwd=folder, check=True, timeout=30,
                       env={"PATH": f"{self.tools}:{os.environ['PATH']}"})
        calls = (self.dir / "calls").read_text()
        self.assertRegex(calls, r"apt-get install -y --no-install-recommends "
                                r"\S+/ringpipe-agent_0\.1\.0_arm64\.deb pocl-opencl-icd")
        self.assertIn("systemctl --no-reload enable ringpipe-agent", calls)
        options = system / "etc/default/ringpipe-agent"
        self.assertRegex(options.read_text(), r'\ARINGPIPE_AGENT="--listen .* --enrol rpt1.*"\n\Z')
        self.assertEqual(stat.S_IMODE(options.stat().st_mode), 0o600)
        self.assertFalse((folder / "node.conf").exists())  # the secret is the system's alone

    def test_bad_words(self):
        for words, said in (
            ((), "expected: image --board"),
            (("--node", "left", "-o", "x.img"), "--board NAME is missing"),
            (("--node", "left", "-o", "x.img", "--board", "pdp-11"), "no board 'pdp-11'"),
            (("--node", "left", "-o", "x.img", "--board", "rk3588"), "with --overlay"),
            (("--node", "left", "-o", "x", "--overlay", "--board", "android-termux"),
             "has no system on which packages can be installed"),
            (("--node", "left", "-o", "x.img", "--board", "generic-x86-64"), "--host ADDRESS"),
        ):
            self.assertIn(said, self.refused("image", *words, **self.options()))
        for words, said in (
            (("--host", "here:there"), "--host: expected ADDRESS[:PORT]"),
            (("--listen", "here"), "--listen: expected tcp://HOST:PORT"),
            (("--listen", "tcp://0.0.0.0:7000", "--dial", "x:1"), "exclude each other"),
            (("--dial", "x:1\" --slots /"), "--dial: expected [NAME@]ADDRESS:PORT"),
            (("--dial", "desk@ADDRESS:7100"), "--dial: 'ADDRESS:7100' is the manual's example"),
            (("--node", "a b"), "--node 'a b': expected 1 to 63 letters"),
            (("--node", "a,b,a"), "--node: 'a' is listed twice"),
            (("--node", "a,b", "--enrol", "x"), "a token is for one board"),
            (("--packages", "nowhere"), "nowhere: ringpipe-agent_*_arm64.deb is missing"),
        ):
            self.assertIn(said, self.refuse(*words))
        err = self.refused(*self.words("--enrol", "rpt1qqq"), **self.options())
        self.assertIn("the token is too short", err)

    def test_bad_files(self):
        (self.dir / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
        self.assertIn("key:1: this is a secret key", self.refuse("--ssh-key", "key"))
        (self.dir / "key").write_text(SSH + "hello\n")
        self.assertIn("key:2: expected a public key", self.refuse("--ssh-key", "key"))
        (self.dir / "key").write_text("\n")
        self.assertIn("expected at least one public key", self.refuse("--ssh-key", "key"))
        self.assertIn("absent.pub", self.refuse("--ssh-key", "absent.pub"))
        for text, said in (("ssid: x\npassphrase: short\n",
                            "wifi.yaml:2: passphrase: expected 8 to 63"),
                           ("passphrase: long enough\n", "ssid"),
                           ("ssid: x\npsk: y\n", "wifi.yaml:2"),
                           ('ssid: "a\\tb"\n', "wifi.yaml:1: ssid: expected 1 to 32"),
                           (f"ssid: {'ü' * 17}\n", "printable UTF-8, found 34 bytes"),
                           ("ssid: x\ncountry: de\n", "two capital letters")):
            (self.dir / "wifi.yaml").write_text(text)
            err = self.refuse("--wifi", "wifi.yaml")
            self.assertIn(said, err)
            self.assertNotIn("short", err)

    def test_what_is_missing(self):
        (self.tools / "mcopy").unlink()
        (self.tools / "sqfstar").unlink()
        path = str(self.tools)
        err = self.refuse(path=path)
        if not os.path.exists("/usr/sbin/mcopy"):
            self.assertIn("missing programs: sqfstar, mcopy; on Debian install them with "
                          "`apt-get install squashfs-tools mtools`", err)

    def test_no_space(self):
        self.needs(1, 4000000000)
        self.assertRegex(self.refuse(), r"cache: not enough space for the system .*: \d+ MiB are "
                         "free, 4000000000 MiB are needed")
        self.needs(4000000000, 1)
        self.assertIn("not enough space for the image", self.refuse())

    def test_it_replaces_nothing(self):
        (self.dir / "left.img").write_text("mine")
        err = self.refused(*self.words(), **self.options())
        self.assertIn("left.img exists already; replace it with --yes", err)
        self.assertEqual((self.dir / "left.img").read_text(), "mine")

    def test_what_fails_leaves_no_token(self):
        """Neither a new one, nor in the place of one that there was."""
        self.image("--overlay", out="left")
        before = (self.dir / "host/tokens").read_text()
        err = self.refused(*self.words("--overlay", out="left"), **self.options())
        self.assertIn("left exists already", err)
        self.image(env={"FAIL": "3"}, code=3)
        self.image(env={"FAIL": "3"}, code=3, node="right", out="right.img")
        self.assertEqual((self.dir / "host/tokens").read_text(), before)

    def test_scripts_that_fail(self):
        _, err = self.image(env={"FAIL": "3"}, code=3)
        self.assertIn("left.img: the image was not made", err)


# In place of Debian: a system of two files, and what boots it.
MMDEBSTRAP = """#!/bin/sh
echo "$@" >>"$CALLS"
for word in "$@"; do
    case $word in
    *'download /ringpipe-boot.tar '*)
        boot=$(echo "$word" | sed "s/.*'\\(.*\\)'.*/\\1/")
        ;;
    */root.tar) root=$word ;;
    esac
done
work=$(mktemp -d)
echo kernel >"$work/vmlinuz"; echo first >"$work/initrd"
for name in x64 aa64; do echo "$name" >"$work/systemd-boot$name.efi"; done
tar c -C "$work" . >"$boot"
tar c --mtime=@1 -C "$work" vmlinuz >"$root"
rm -r "$work"
"""


class Disk(Base):
    """The real `make`, with a stand-in for Debian: partitions, boot partition, bytes."""

    def setUp(self):
        super().setUp()
        for tool in ("mke2fs", "mkfs.vfat", "mcopy", "sfdisk", "dpkg-deb"):
            (self.tools / tool).unlink()
            if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
                self.skipTest(f"no {tool}")
        (self.tools / "mmdebstrap").unlink()
        (self.tools / "sqfstar").unlink()
        (self.tools / "mmdebstrap").write_text(MMDEBSTRAP)
        (self.tools / "sqfstar").write_text('#!/bin/sh\nfor out; do :; done\ncat >"$out"\n')
        for tool in ("mmdebstrap", "sqfstar"):
            (self.tools / tool).chmod(0o755)
        for arch in ("amd64", "arm64"):
            self.package(arch)

    def package(self, arch):
        tree = self.dir / f"tree-{arch}"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text("Package: ringpipe-agent\nVersion: 0.1.0\n"
                                             f"Architecture: {arch}\nMaintainer: x <x@y.z>\n"
                                             "Description: x\n")
        (tree / "usr/bin").mkdir(parents=True)
        (tree / "usr/bin/ringpipe-agent").write_text("")
        os.utime(tree / "usr/bin/ringpipe-agent", (1795000000, 1795000000))
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree,
                        self.dir / f"build-package/ringpipe-agent_0.1.0_{arch}.deb"],
                       check=True, capture_output=True)

    def options(self, path=None, **env):
        options = super().options(path, CALLS=str(self.dir / "calls"), **env)
        options["env"]["RINGPIPE_IMAGE"] = str(program.SOURCE / "packaging/image")
        return options

    def partitions(self, image):
        out = subprocess.run(["sfdisk", "--json", image], check=True, capture_output=True,
                             env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}).stdout
        return json.loads(out)["partitiontable"]["partitions"]

    def in_boot(self, image, name):
        return subprocess.run(["mtype", "-i", f"{image}@@1M", f"::/{name}"], check=True,
                              capture_output=True, text=True).stdout

    def test_a_disk(self):
        for board, efi, root in (("qemu-virt-arm64", "AA64", "B921B045"),
                                 ("generic-x86-64", "X64", "4F68BCE3")):
            self.image("--yes", board=board)
            image = self.dir / "left.img"
            parts = self.partitions(image)
            self.assertEqual([part["name"] for part in parts],
                             ["ringpipe-boot", "ringpipe-root-a", "ringpipe-root-b",
                              "ringpipe-data"])
            for slot in parts[1:3]:
                self.assertTrue(slot["type"].startswith(root), slot)
            self.assertEqual(parts[1]["size"], parts[2]["size"])
            for one, behind in zip(parts, parts[1:]):
                self.assertEqual(one["start"] + one["size"], behind["start"])
            self.assertEqual(len({part["uuid"] for part in parts}), 4)
            self.assertIn(efi.lower(), self.in_boot(image, f"EFI/BOOT/BOOT{efi}.EFI"))
            self.assertEqual(self.in_boot(image, "a/vmlinuz"), "kernel\n")
            self.assertEqual(self.in_boot(image, "a/initrd"), "first\n")
            console = "console=ttyAMA0" if efi == "AA64" else "console=tty0 console=ttyS0"
            self.assertEqual(self.in_boot(image, "loader/entries/ringpipe-a.conf"),
                             "title ringpipe 0 (a)\nsort-key ringpipe\nversion 0\noptions quiet "
                             f"net.ifnames=0 panic=10 {console} ringpipe.slot=a\n"
                             "initrd /a/initrd\nlinux /a/vmlinuz\n")
            # Nothing but the order of releases says what starts.
            self.assertNotIn("default", self.in_boot(image, "loader/loader.conf"))
            self.assertIn('node="left"', self.in_boot(image, "ringpipe/node.conf"))
            with open(image, "rb") as disk:
                disk.seek(parts[3]["start"] * 512 + 1024 + 56)
                self.assertEqual(disk.read(2), b"\x53\xef")  # ext4
                disk.seek(parts[1]["start"] * 512 + 257)
                self.assertEqual(disk.read(5), b"ustar")  # the stand-in's
                disk.seek(parts[2]["start"] * 512)
                self.assertEqual(disk.read(1 << 20).strip(b"\0"), b"")
            self.assertEqual(image.stat().st_size % (1 << 20), 0)

    def test_the_same_bytes(self):
        """Also from a system that was made anew, a second later, elsewhere."""
        token, = self.tokens_of("left")
        self.image("--enrol", token)
        (self.dir / "left.img").rename(self.dir / "first.img")
        time.sleep(1.1)
        self.image("--enrol", token, "--cache", "other")
        self.assertTrue(filecmp.cmp(self.dir / "left.img", self.dir / "first.img", shallow=False))
        self.assertEqual(len((self.dir / "calls").read_text().splitlines()), 2)

    def test_a_system_alone(self):
        """What a card has in its slot, as a bundle; the card is not made anew for it."""
        words = ("image", "--system", "--board", "generic-x86-64", "--cache", "cache", "-o", "tree")
        self.ringpipe(*words, **self.options())
        self.image(board="generic-x86-64")
        self.assertEqual(len((self.dir / "calls").read_text().splitlines()), 1)
        image = self.dir / "left.img"
        tree = self.dir / "tree/system"
        self.assertEqual(sorted(path.name for path in tree.iterdir()),
                         ["initrd", "root.squashfs", "vmlinuz"])
        root = (tree / "root.squashfs").read_bytes()
        with open(image, "rb") as disk:
            disk.seek(self.partitions(image)[1]["start"] * 512)
            self.assertEqual(disk.read(len(root)), root)
        for name in ("vmlinuz", "initrd"):
            self.assertEqual((tree / name).read_text(), self.in_boot(image, f"a/{name}"))
        self.ringpipe("bundle", "--new-key", "--keys", "host")
        for out in ("one", "two"):
            self.ringpipe("bundle", "tree", "--board", "generic-x86-64", "--release", 2, "--keys",
                          "host", "-o", out)
        self.assertTrue(filecmp.cmp(self.dir / "one", self.dir / "two", shallow=False))
        self.assertIn("tree exists already", self.refused(*words, **self.options()))
        self.assertIn("is not for a single board",
                      self.refused(*words, "--node", "left", **self.options()))
        (tree / "initrd").unlink()
        self.assertIn("expected root.squashfs, vmlinuz and initrd", self.refused(
            "bundle", "tree", "--board", "generic-x86-64", "--release", 2, "--keys", "host"))

    def test_a_release(self):
        self.image("--release", "7")
        self.assertIn("version 7\n",
                      self.in_boot(self.dir / "left.img", "loader/entries/ringpipe-a.conf"))

    def test_a_system_is_made_once(self):
        self.image(node="one,two", out="cards")
        self.image(node="three", out="three.img")
        self.assertEqual(len((self.dir / "calls").read_text().splitlines()), 1)
        one, two = (self.partitions(self.dir / f"cards/{name}.img") for name in ("one", "two"))
        self.assertNotEqual(one[0]["uuid"], two[0]["uuid"])

    def test_debian_fails(self):
        (self.tools / "mmdebstrap").write_text("#!/bin/sh\necho 'E: no mirror'\nexit 1\n")
        _, err = self.image(code=3)
        self.assertIn("E: no mirror", err)
        self.assertIn("mmdebstrap could not make the system", err)
        self.assertFalse((self.dir / "left.img").exists())


if __name__ == "__main__":
    program.main()
