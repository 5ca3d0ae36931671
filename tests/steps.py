"""The steps of the doors. Each is a function `step_NAME`; its docstring says what it runs."""

import hashlib
import os
import subprocess
from pathlib import Path

import night
import tidy
from checks import (
    BUILD,
    CORES,
    SOURCE,
    check,
    check_each,
    compiled,
    ctests,
    failed,
    report,
    say,
    tail,
)

ASAN = SOURCE / "build-asan"
FUZZ = SOURCE / "build-fuzz"
# Tests that start agents wait for them now and then: this many keep all cores busy.
PROCESSES_AT_ONCE = 2 * CORES + 1


# ---- what the commit decides ---------------------------------------------------------------


def git(*words):
    done = subprocess.run(
        ["git", "-C", SOURCE, *words], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    return git("rev-parse", "HEAD") or "0" * 40


def first_seed():
    """Seeds differ from commit to commit, and a commit has the same ones everywhere."""
    return 1 + int(commit()[:6], 16) * 100


# ---- steps ---------------------------------------------------------------------------------


def step_product(results):
    """both programs with gcc, warnings are errors"""
    compiled(results, BUILD, "ringpipe", "ringpipe-agent")


def step_build(results):
    """both programs and all tests with gcc, warnings are errors"""
    compiled(results, BUILD)


def step_tidy(results):
    """the rules that a compiler does not check; generated lists; shell scripts; canaries apply"""
    check(results, "tidy", "python3", "tests/tidy.py")
    if (BUILD / "bin/ringpipe").exists():
        check(
            results,
            "generated",
            "python3",
            "tests/generate.py",
            "--check",
            env={"RP_BUILD_DIR": str(BUILD)},
        )
    check(results, "shellcheck", "shellcheck", "bootstrap", ".ci/run", ".ci/oclgrind")
    check(results, "canaries/apply", "python3", "tests/canaries.py", "--check")


def touched_rooms(rooms):
    """Rooms that the last commit or the working tree changes, and those that use them."""
    names = git("diff", "--name-only", "HEAD~1").splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    folders = {name.split("/")[1] for name in names if name.count("/") > 1}
    found = {room for room in rooms if room in folders}
    while True:
        more = {room for room, (_, may) in rooms.items() if found & set(may)} - found
        if not more:
            return sorted(found)
        found |= more


def step_touched(results):
    """unit tests of the rooms that the last commit or the working tree changes, and of rooms
    that use them"""
    have = {path.parent.name for path in SOURCE.glob("tests/*/CMakeLists.txt")}
    rooms = [room for room in touched_rooms(tidy.Tree(SOURCE).rooms) if room in have - {"cli"}]
    if not rooms:
        say("no room is touched")
        return
    say("touched, or using what is: " + " ".join(rooms))
    programs = [f"tests_{room}" for room in rooms]
    if compiled(results, BUILD, *programs):
        ctests(
            results,
            "touched",
            BUILD,
            "-R",
            "^(" + "|".join(rooms) + ")/test_",
            "-LE",
            "process|long",
            "-FA",
            ".",
        )


def step_unit(results):
    """all tests of rooms with gcc, without an agent's process; scenarios; corpora of the fuzz
    targets"""
    ctests(results, "unit", BUILD, "-LE", "process")


def step_plain(results):
    """with gcc, what the gate does not run under the sanitizers: scenarios, a large ring, a device
    with small limits"""
    ctests(results, "plain", BUILD, "-R", f"^({PLAIN})$", "-LE", "process")


def step_process(results):
    """tests that start the programs, in their short form: the named methods, and others that the
    commit's hash draws (RP_DRAW)"""
    ctests(
        results,
        "process",
        BUILD,
        "-L",
        "process",
        env={"RP_SHORT": "1", "RP_DRAW": commit()},
        again=failed,
        at_once=PROCESSES_AT_ONCE,
    )


def step_whole(results):
    """tests that start the programs, all methods"""
    ctests(results, "whole", BUILD, "-L", "process", again=failed, at_once=PROCESSES_AT_ONCE)


def run_seeds(results, name, folder, count):
    if compiled(results, folder, "ringpipe"):
        check(
            results,
            name,
            "python3",
            "tests/sim/seeds.py",
            folder / "bin/ringpipe",
            count,
            first_seed(),
        )
        log = BUILD / f"check.{name.replace('/', '.')}.log"
        say(tail(log, 1))


def step_seeds(results):
    """920 simulated runs with faults; the commit's hash draws the seeds"""
    run_seeds(results, "seeds/gcc", BUILD, 920)


def step_seeds_night(results):
    """20,000 simulated runs with faults"""
    run_seeds(results, "seeds/night", BUILD, 20000)


def step_same(results):
    """simulated runs with faults, plans and real runs have the hashes of tests/sim/same.txt"""
    if compiled(results, BUILD, "ringpipe", "ringpipe-agent"):
        check(results, "same", "python3", "tests/sim/same.py", BUILD / "bin/ringpipe")
        say(tail(BUILD / "check.same.log", 1))


# Left out under the sanitizers: tests that look at texts, a large ring, and in the gate scenarios,
# because the seeds run the same code there.
NOT_SANITIZED = "^(tidy|generated|doors|sim/large_ring|scenarios/.*)$"
# These, and tests that are not built with the sanitizers. All other tests of rooms run in the gate
# only under the sanitizers, and at night with gcc as well.
PLAIN = "doors|sim/large_ring|scenarios/.*|device/small_.*"


def step_asan(results):
    """clang, address and undefined-behaviour sanitizers: the tests of rooms, and 92 seeds"""
    if compiled(results, ASAN):
        ctests(
            results,
            "asan",
            ASAN,
            "-LE",
            "process",
            "-E",
            NOT_SANITIZED,
            "--repeat",
            "after-timeout:2",
            env=sanitizer_options(),
            again=report.crashed,
        )
        with_options(results, lambda: run_seeds(results, "seeds/asan", ASAN, 92))


# Tests of processes that say nothing under sanitizers, because other tests there run the same
# code of ours, or because they are about sizes, processor time and folders, which the sanitizers
# change.
NOT_SANITIZED_PROCESS = (
    "transparency/test_(ring|golden|links)|cli/test_(repeat|shares|lost_boards|drift|lab_ends|"
    "torchvision|cold|cuts|memory|threads|docs|install)"
)


def step_asan_whole(results):
    """clang, address and undefined-behaviour sanitizers: also scenarios and tests that start the
    programs"""
    step_asan(results)
    ctests(results, "asan_whole", ASAN, "-R", "^scenarios/", env=sanitizer_options())
    ctests(
        results,
        "asan_whole",
        ASAN,
        "-L",
        "process",
        "-E",
        f"^({NOT_SANITIZED_PROCESS})$",
        "--repeat",
        "after-timeout:2",
        env=sanitizer_options(),
        at_once=PROCESSES_AT_ONCE,
        again=failed,
    )


def sanitizer_options():
    """The variables that .ci/sanitizers sets."""
    done = subprocess.run(
        ["sh", "-c", ". .ci/sanitizers && env"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if name.endswith("SAN_OPTIONS")}


def with_options(results, run):
    """Runs something under the sanitizers' variables."""
    before = dict(os.environ)
    os.environ.update(sanitizer_options())
    try:
        run()
    finally:
        os.environ.clear()
        os.environ.update(before)


def step_tsan(results):
    """the thread sanitizer: tests of transport, link, agent, data, and of the threads of device"""
    folder = SOURCE / "build-tsan"
    rooms = ("transport", "link", "agent", "data")
    if compiled(results, folder, *(f"tests_{room}" for room in (*rooms, "device"))):
        # clang 14's thread sanitizer does not start where the kernel spreads addresses widely.
        spread = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False)
        ctests(
            results,
            "tsan",
            folder,
            "-R",
            f"^({'|'.join(rooms)})/|^device/test_(builder|fence)$",
            "-LE",
            "process",
            env=sanitizer_options(),
            prefix=("setarch", "-R") if spread.returncode == 0 else (),
        )


FUZZ_SECONDS = 1800  # of all targets together, on every core


def step_fuzz(results):
    """the fuzz targets under the sanitizers, half an hour"""
    names = sorted(path.stem for path in SOURCE.glob("tests/fuzz/fuzz_*.c"))
    if not compiled(results, FUZZ, *names, "make_wire_corpus"):
        return
    ctests(results, "fuzz", FUZZ, "-R", "^fuzz/instrumented$")
    targets = [FUZZ / "bin" / name for name in names]
    seconds = FUZZ_SECONDS * CORES // len(targets)
    jobs = []
    for target in targets:
        noun = target.name.removeprefix("fuzz_")
        grown = FUZZ / "corpus" / noun  # the corpus that is committed stays as it is
        grown.mkdir(parents=True, exist_ok=True)
        jobs.append(
            (
                f"fuzz/{noun}",
                (
                    target,
                    f"-max_total_time={seconds}",
                    "-timeout=5",
                    "-rss_limit_mb=1024",
                    "-close_fd_mask=2",
                    f"-artifact_prefix={grown}/",
                    grown,
                    f"tests/fuzz/corpus/{noun}",
                ),
                {"env": sanitizer_options()},
            )
        )
    check_each(results, jobs)


KERNEL_FOLDERS = ("kernels", "firmware/device", "firmware/nn", "firmware/optim", "firmware/codec")


def kernels_digest():
    """One digest of all that oclgrind looks at, or an empty text where some of it is not
    committed."""
    if git("status", "--porcelain", "--", *KERNEL_FOLDERS):
        return ""
    trees = " ".join(git("rev-parse", f"HEAD:{folder}") for folder in KERNEL_FOLDERS)
    return hashlib.sha256(trees.encode()).hexdigest()[:16]


def step_oclgrind(results):
    """where kernels/ or the rooms that call them differ from the last night's: their tests under
    oclgrind (bounds, data races, API use), of long golden files the cases that the commit draws"""
    if kernels_digest() and kernels_digest() == night.kernels_seen(SOURCE):
        say("kernels, device, nn, optim and codec are those of the last night")
        return
    run_oclgrind(results, {"RP_SHORT": "1", "RP_DRAW": commit()})


# Tuning and the choice of the fastest device time large kernels of CLBlast's, and no others. A
# flush of oclgrind waits for events that test_spill and test_fence set later. test_flash needs no
# device.
NOT_OCLGRIND = {"test_tuning", "test_fastest", "test_spill", "test_fence", "test_flash"}


def step_oclgrind_all(results):
    """the kernels' tests under oclgrind: bounds, data races, API use; two wrong kernels ring"""
    seen = run_oclgrind(results, {})
    if seen:
        check(results, "oclgrind/every_kernel", "python3", ".ci/kernels.py", seen)


def run_oclgrind(results, short):
    """Returns a file with the kernels that the tests launched; None where nothing was built."""
    if not compiled(results, BUILD):
        return None
    check(
        results,
        "oclgrind/canary",
        "sh",
        "-c",
        "cc -DCL_TARGET_OPENCL_VERSION=120 .ci/canary.c -o build/canary -lOpenCL &&"
        ".ci/oclgrind build/canary none && ! .ci/oclgrind build/canary bounds &&"
        "! .ci/oclgrind build/canary race && ! python3 .ci/kernels.py /dev/null",
    )
    seen = BUILD / "oclgrind-kernels.txt"
    seen.write_text("")
    env = {
        "RP_SOURCE_DIR": str(SOURCE),
        "RP_BUILD_DIR": str(BUILD),
        "RP_KERNELS": str(seen),
        "RINGPIPE_TUNING": "/nonexistent",
        **short,
    }
    jobs = []
    for room in ("device", "nn", "optim", "codec"):
        program = BUILD / f"tests/tests_{room}"
        names = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
        for test in sorted(set(names.stdout.split()) - NOT_OCLGRIND):
            jobs.append(
                (
                    f"oclgrind/{test}",
                    (".ci/oclgrind", program, test),
                    {"env": env, "timeout": 600},
                )
            )
    jobs.sort(key=lambda job: "conv2d" not in job[0])  # the longest first
    check_each(results, jobs)
    return seen


def step_canaries(results):
    """two of the mistakes of tests/canaries.txt, drawn by the commit's hash: the gate catches
    each"""
    check(results, "canaries/drawn", "python3", "tests/canaries.py", "--draw", "2", timeout=900)


def step_canaries_all(results):
    """every mistake of tests/canaries.txt is caught by the door that it names"""
    check(results, "canaries/all", "python3", "tests/canaries.py", timeout=7200)


# Layers whose golden cases are computed on both machines. Those of a convolution would be compiled
# under emulation for longer than all others together.
GOLDEN = ("test_layer_dense", "test_layer_batchnorm", "test_layer_maxpool", "test_layer_gelu")


def step_cross(results):
    """the programs for arm64 under emulation: golden vectors to the bits of this machine, and a
    ring of both kinds of agents to its bytes"""
    if compiled(results, BUILD, "ringpipe", "ringpipe-agent", "tests_nn") and check(
        results, "cross/build", "./bootstrap", "cross", "arm64", "tests_nn"
    ):
        check(
            results,
            "cross/golden",
            "python3",
            "tests/cross/golden.py",
            "build-arm64",
            "build-sysroot/arm64",
            *GOLDEN,
        )
        check(
            results,
            "cross/ring",
            "python3",
            "tests/cross/ring.py",
            "build-arm64",
            "build-sysroot/arm64",
        )


def step_package(results):
    """the packages for amd64 and arm64: lintian, contents, the unit's exposure, and an
    installation by apt into a new system"""
    for arch in ("amd64", "arm64"):
        if check(results, f"package/build_{arch}", "./bootstrap", "package", arch):
            check(
                results,
                f"package/{arch}",
                "packaging/check",
                "build-package",
                arch,
                f"build-package/check-{arch}",
            )


def run_guests(results, name, *options):
    if compiled(results, BUILD, "ringpipe", "ringpipe-agent") and check(
        results, f"{name}/package", "./bootstrap", "package", "arm64"
    ):
        check(results, f"{name}/guests", "python3", "tests/boards/guests.py", "--table", *options)


def step_guest(results):
    """a guest of qemu boots an arm64 image made here, enrols, and trains in a ring with agents of
    this machine to the bytes of this machine alone"""
    run_guests(results, "guest", "--no-cut")


def step_image(results):
    """the same, also after a power cut; whole systems in two slots; boards found by mDNS"""
    run_guests(results, "image")
    check(results, "image/mdns", "python3", "tests/boards/mdns.py")
    check(results, "image/systems", "python3", "tests/boards/systems.py")


def step_flower(results):
    """rings as sites of Flower, which pip installs into build/flower; then without a network: the
    weights of `sites`, failures, late sites, privacy, the example"""
    if not compiled(results, BUILD, "ringpipe", "ringpipe-agent"):
        return
    folder = BUILD / "flower"
    pip = (folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check")
    if check(results, "flower/venv", "/usr/bin/python3", "-m", "venv", folder) and check(
        results, "flower/install", *pip, "packaging/flower", timeout=1800
    ):
        check(
            results,
            "flower/test",
            *("unshare", "--user", "--map-root-user", "--net", "sh", "-c"),
            "ip link set lo up && exec python3 tests/cli/test_flower.py",
            env={"RP_BUILD_DIR": str(BUILD), "RP_PYTHON": str(folder / "bin/python")},
            timeout=3600,
        )


# The benches that say within minutes how fast the programs are; their figures are in
# build/check.*.log.
BENCHES = (
    ("bench_train.py", "--steps", "10"),
    ("bench_sim.py",),
    ("bench_timed.py", "--steps", "20"),
    ("bench_copies.py", "build/bin", "2"),
    ("bench_faults.py", "build/bin/ringpipe", "--faults", "30"),
    ("bench_site_faults.py", "build/bin/ringpipe"),
)


def step_benches(results):
    """what benches measure in minutes; a time is never a reason to fail"""
    if compiled(results, BUILD):
        for bench, *words in BENCHES:
            check(
                results,
                f"benches/{Path(bench).stem}",
                f"tests/bench/{bench}",  # its first line names the Python that it needs
                *words,
                timeout=3600,
            )
