/* The slots of a whole system, on a card that is a folder: what a boot loader would start after
 * every cut. The loader here is written anew from systemd-boot's rules, and knows nothing of ours.
 */
#include "tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "update/system.h"

enum { STARTS = 3, ROOT_BYTES = 80000, PART_BYTES = 1 << 17 };

static char boot[256], parts[3][256], state[256], wishes[256];
static const char options[] = "quiet panic=10 console=ttyS0";

static rp_system_places places_of(rp_ab_slot own) {
    return (rp_system_places){.boot = boot, .partition = {NULL, parts[1], parts[2]}, .own = own};
}

static rp_system_service service_of(rp_ab_slot own) {
    return (rp_system_service){.places = places_of(own),
                               .state = state,
                               .wishes = wishes,
                               .keys = folder,
                               .board = "pocl-cpu",
                               .boot = "this-start"};
}

/* ---- a card ---------------------------------------------------------------------------------- */

/* The files of a system say which release they are of, in their first line and with each byte
 * behind it. */
static void put_bytes(const char *path, const char *kind, int release, size_t bytes) {
    static char text[PART_BYTES];
    assert_true(bytes <= sizeof text);
    memset(text, '0' + release, sizeof text);
    const int used = snprintf(text, sizeof text, "%s %d\n", kind, release);
    text[used] = (char)('0' + release);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* A bundle `name` with a system of a release. */
static void make_system(const char *name, int release) {
    static const char *const kinds[] = {"initrd", "root.squashfs", "vmlinuz"};
    char path[512];
    char out[512];
    (void)remove_tree(in_folder("tree"));
    put_file("tree/system/initrd", "", 0644);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/tree/system/%s", folder, kinds[i]);
        put_bytes(path, kinds[i], release, i == 1 ? ROOT_BYTES : 2000);
    }
    (void)snprintf(path, sizeof path, "%s/tree", folder);
    (void)snprintf(out, sizeof out, "%s/%s", folder, name);
    expect_ok(rp_bundle_write(out, path, "pocl-cpu", (uint64_t)release, "0.1.0", &pair));
    (void)remove_tree(in_folder("tree"));
}

static void put_entry(const char *file, char slot, int release) {
    char name[128];
    char text[512];
    (void)snprintf(name, sizeof name, "card/loader/entries/%s", file);
    (void)snprintf(text, sizeof text,
                   "title ringpipe %d (%c)\nsort-key ringpipe\nversion %d\n"
                   "options %s ringpipe.slot=%c\ninitrd /%c/initrd\nlinux /%c/vmlinuz\n",
                   release, slot, release, options, slot, slot, slot);
    put_file(name, text, 0644);
}

/* As a card is that has just been written: a has release 0, b has nothing. */
static void new_card(void) {
    char path[512];
    (void)remove_tree(in_folder("card"));
    (void)remove_tree(in_folder("run"));
    (void)remove_tree(in_folder("slots"));
    (void)mkdir(in_folder("slots"), 0755);
    put_file("card/a/initrd", "", 0644);
    (void)snprintf(path, sizeof path, "%s/a/initrd", boot);
    put_bytes(path, "initrd", 0, 100);
    (void)snprintf(path, sizeof path, "%s/a/vmlinuz", boot);
    put_bytes(path, "vmlinuz", 0, 100);
    put_entry("ringpipe-a.conf", 'a', 0);
    put_bytes(parts[RP_AB_A], "root.squashfs", 0, PART_BYTES);
    put_bytes(parts[RP_AB_B], "nothing", 9, PART_BYTES);
}

static int card_setup(void **unused) {
    const int failed = tree_setup(unused);
    (void)snprintf(boot, sizeof boot, "%s/card", folder);
    (void)snprintf(state, sizeof state, "%s/run", folder);
    (void)snprintf(wishes, sizeof wishes, "%s/slots", folder);
    (void)snprintf(parts[RP_AB_A], sizeof parts[0], "%s/part-a", folder);
    (void)snprintf(parts[RP_AB_B], sizeof parts[0], "%s/part-b", folder);
    if (failed == 0) {
        new_card();
        make_system("seven", 7);
        make_system("eight", 8);
    }
    return failed;
}

/* ---- a loader -------------------------------------------------------------------------------- */

typedef struct {
    char name[128], kernel[64], initrd[64], slot;
    int version, left, done; /* left -1: not counted */
} loaded;

static void parse_entry(const char *name, loaded *out) {
    char path[512];
    char line[512];
    const char *plus = strchr(name, '+');
    *out = (loaded){.left = -1, .version = -1};
    (void)snprintf(out->name, sizeof out->name, "%.100s", name);
    if (plus) {
        out->done = 0;
        assert_true(sscanf(plus, "+%d-%d", &out->left, &out->done) >= 1);
    }
    (void)snprintf(path, sizeof path, "%s/loader/entries/%s", boot, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *slot = strstr(line, "ringpipe.slot=");
        (void)sscanf(line, "version %d", &out->version);
        (void)sscanf(line, "linux %60s", out->kernel);
        (void)sscanf(line, "initrd %60s", out->initrd);
        out->slot = slot ? slot[strlen("ringpipe.slot=")] : out->slot;
    }
    (void)fclose(file);
}

static bool is_there(const char *below) {
    char path[512];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s%s", boot, below);
    return below[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Does `a` come before `b`? Those without a start are last; then the newer one. */
static bool is_before(const loaded *a, const loaded *b) {
    if ((a->left == 0) != (b->left == 0)) {
        return b->left == 0;
    }
    return a->version != b->version ? a->version > b->version : strcmp(a->name, b->name) > 0;
}

/* The release that a file says to its end; -1: it is not one file of one release. */
static int release_of(const char *path, const char *kind, size_t bytes) {
    static char text[PART_BYTES + 1];
    char word[32];
    int release = -1;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t got = fread(text, 1, bytes, file);
    (void)fclose(file);
    text[got] = '\0';
    if (sscanf(text, "%31s %d", word, &release) != 2 || strcmp(word, kind) != 0) {
        return -1;
    }
    for (const char *at = strchr(text, '\n'); at && *++at;) {
        if (*at != '0' + release) {
            return -1;
        }
    }
    return got >= 100 ? release : -1;
}

/* Kernel, first file system and the rest are of one system. */
static int release_in(char slot) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%c/vmlinuz", boot, slot);
    const int kernel = release_of(path, "vmlinuz", 1 << 16);
    (void)snprintf(path, sizeof path, "%s/%c/initrd", boot, slot);
    const int first = release_of(path, "initrd", 1 << 16);
    const int root =
        release_of(parts[slot == 'a' ? RP_AB_A : RP_AB_B], "root.squashfs", ROOT_BYTES);
    return kernel == first && first == root ? kernel : -1;
}

/* What the loader starts: the slot in *slot, its release; it counts. */
static int start(rp_ab_slot *slot) {
    char from[512];
    char to[512];
    loaded best = {.name = ""};
    (void)snprintf(from, sizeof from, "%s/loader/entries", boot);
    DIR *dir = opendir(from);
    assert_non_null(dir);
    for (const struct dirent *at; (at = readdir(dir));) {
        loaded one;
        const size_t length = strlen(at->d_name);
        if (length < 5 || strcmp(at->d_name + length - 5, ".conf") != 0) {
            continue;
        }
        parse_entry(at->d_name, &one);
        if (is_there(one.kernel) && (!best.name[0] || is_before(&one, &best))) {
            best = one;
        }
    }
    (void)closedir(dir);
    assert_true(best.name[0] != '\0');
    if (best.left > 0) {
        (void)snprintf(from, sizeof from, "%s/loader/entries/%s", boot, best.name);
        (void)snprintf(to, sizeof to, "%s/loader/entries/ringpipe-%c+%d-%d.conf", boot, best.slot,
                       best.left - 1, best.done + 1);
        assert_int_equal(rename(from, to), 0);
    }
    *slot = best.slot == 'a' ? RP_AB_A : best.slot == 'b' ? RP_AB_B : RP_AB_NONE;
    assert_true(is_there(best.initrd));
    return best.slot ? release_in(best.slot) : -1;
}

static int start_any(void) {
    rp_ab_slot slot;
    return start(&slot);
}

/* ---- one after the other --------------------------------------------------------------------- */

static rp_err install(rp_ab_slot own, const char *bundle) {
    const rp_system_places places = places_of(own);
    FILE *file = fopen(in_folder(bundle), "r");
    assert_non_null(file);
    const rp_err err = rp_system_install(&places, file, bundle, pair.public, "pocl-cpu");
    (void)fclose(file);
    return err;
}

static rp_err validate(rp_ab_slot own) {
    const rp_system_places places = places_of(own);
    return rp_system_validate(&places);
}

static rp_err revert(rp_ab_slot own) {
    const rp_system_places places = places_of(own);
    return rp_system_revert(&places);
}

static rp_system look(rp_ab_slot own) {
    const rp_system_places places = places_of(own);
    rp_system system;
    expect_ok(rp_system_look(&places, &system));
    return system;
}

static void expect_slot(rp_ab_slot own, rp_ab_slot slot, rp_system_state wanted, uint64_t release,
                        uint32_t starts) {
    const rp_system system = look(own);
    assert_int_equal(system.slot[slot].state, wanted);
    assert_int_equal(system.slot[slot].release, release);
    assert_int_equal(system.slot[slot].starts, starts);
}

static void a_system_becomes_good(void **unused) {
    (void)unused;
    rp_ab_slot slot;
    assert_int_equal(start(&slot), 0);
    assert_int_equal(slot, RP_AB_A);
    expect_slot(RP_AB_A, RP_AB_A, RP_SYSTEM_GOOD, 0, 0);
    expect_slot(RP_AB_A, RP_AB_B, RP_SYSTEM_EMPTY, 0, 0);
    expect_ok(install(RP_AB_A, "seven"));
    expect_slot(RP_AB_A, RP_AB_B, RP_SYSTEM_TRIAL, 7, STARTS);
    assert_int_equal(start(&slot), 7);
    assert_int_equal(slot, RP_AB_B);
    expect_slot(RP_AB_B, RP_AB_B, RP_SYSTEM_TRIAL, 7, STARTS - 1);
    expect_ok(validate(RP_AB_B));
    expect_slot(RP_AB_B, RP_AB_B, RP_SYSTEM_GOOD, 7, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(start_any(), 7);
    }
    /* The next one goes into a, and keeps what the kernel is told. */
    expect_ok(install(RP_AB_B, "eight"));
    assert_int_equal(start(&slot), 8);
    assert_int_equal(slot, RP_AB_A);
    expect_ok(validate(RP_AB_A));
    assert_int_equal(start_any(), 8);
    assert_non_null(strstr(slurp("card/loader/entries/ringpipe-a.conf", NULL),
                           "options quiet panic=10 console=ttyS0 ringpipe.slot=a\n"));
    /* And back, once. */
    expect_ok(revert(RP_AB_A));
    assert_int_equal(start(&slot), 7);
    assert_int_equal(slot, RP_AB_B);
    expect_slot(RP_AB_B, RP_AB_A, RP_SYSTEM_FAILED, 8, 0);
    expect_said(revert(RP_AB_B), RP_ERR_USAGE, "no good system to return to");
    assert_int_equal(start_any(), 7);
}

static void a_system_that_does_not_come_up_is_left(void **unused) {
    (void)unused;
    rp_ab_slot slot;
    expect_ok(install(RP_AB_A, "seven"));
    for (int i = 0; i < STARTS; i++) {
        assert_int_equal(start(&slot), 7);
        assert_int_equal(slot, RP_AB_B);
    }
    expect_slot(RP_AB_B, RP_AB_B, RP_SYSTEM_TRIAL, 7, 0); /* its last start */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(start(&slot), 0);
        assert_int_equal(slot, RP_AB_A);
    }
    expect_slot(RP_AB_A, RP_AB_B, RP_SYSTEM_FAILED, 7, 0);
    expect_ok(install(RP_AB_A, "seven")); /* somebody has mended what was in its way */
    assert_int_equal(start_any(), 7);
    assert_int_equal(start_any(), 7);
    assert_int_equal(start_any(), 7);
    expect_ok(validate(RP_AB_B)); /* the last start is early enough */
    assert_int_equal(start_any(), 7);
}

static void a_trial_is_ended_by_hand(void **unused) {
    (void)unused;
    expect_ok(install(RP_AB_A, "seven"));
    assert_int_equal(start_any(), 7);
    expect_ok(revert(RP_AB_B));
    assert_int_equal(start_any(), 0);
}

static void what_does_not_fit_is_refused(void **unused) {
    (void)unused;
    static char whole[1 << 19];
    size_t bytes;
    expect_ok(install(RP_AB_A, "seven"));
    assert_int_equal(start_any(), 7);
    expect_said(install(RP_AB_B, "eight"), RP_ERR_REFUSED, "on trial itself");
    expect_ok(validate(RP_AB_B));
    expect_said(install(RP_AB_B, "seven"), RP_ERR_REFUSED, "expected a newer one");
    make_bundle("agent", "pocl-cpu", 9);
    expect_said(install(RP_AB_B, "agent"), RP_ERR_REFUSED, "not a bundle of a whole system");
    const rp_system_places places = places_of(RP_AB_B);
    FILE *file = fopen(in_folder("eight"), "r");
    assert_non_null(file);
    expect_said(rp_system_install(&places, file, "eight", pair.public, "rk3588"), RP_ERR_REFUSED,
                "profile pocl-cpu, and this is a rk3588");
    (void)fclose(file);
    memcpy(whole, slurp("eight", &bytes), sizeof whole);
    append("short", whole, bytes - 1);
    expect_said(install(RP_AB_B, "short"), RP_ERR_FORMAT, "cut off");
    append("long", whole, bytes);
    append("long", "x", 1);
    expect_said(install(RP_AB_B, "long"), RP_ERR_FORMAT, "bytes after its last file");
    whole[bytes - 5]++;
    append("changed", whole, bytes);
    expect_said(install(RP_AB_B, "changed"), RP_ERR_REFUSED, "differs from what was signed");
    whole[90]++;
    append("forged", whole, bytes);
    expect_said(install(RP_AB_B, "forged"), RP_ERR_REFUSED, "is not signed by the key");
    assert_int_equal(start_any(), 7);
    assert_int_equal(truncate(parts[RP_AB_A], 1000), 0);
    expect_said(install(RP_AB_B, "eight"), RP_ERR_LIMIT, "this board's slots have 0");
    assert_int_equal(start_any(), 7);
}

/* ---- power cuts ------------------------------------------------------------------------------ */

enum { DIRTY_MAX = 16 };
static char dirty[DIRTY_MAX][512]; /* files that were written and not synced since */
static uint32_t dirty_count;

static void note_call(pid_t child, const struct __ptrace_syscall_info *call) {
    char link[64];
    char path[512];
    const uint64_t nr = call->entry.nr;
    const bool writes = nr == SYS_write || nr == SYS_pwrite64;
    if (!writes && nr != SYS_fsync && nr != SYS_fdatasync) {
        return;
    }
    (void)snprintf(link, sizeof link, "/proc/%d/fd/%llu", (int)child,
                   (unsigned long long)call->entry.args[0]);
    const ssize_t bytes = readlink(link, path, sizeof path - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    if (strncmp(path, folder, strlen(folder)) != 0) {
        return; /* the journal */
    }
    uint32_t i = 0;
    while (i < dirty_count && strcmp(dirty[i], path) != 0) {
        i++;
    }
    if (writes && i == dirty_count) {
        assert_true(dirty_count < DIRTY_MAX);
        (void)snprintf(dirty[dirty_count++], sizeof dirty[0], "%s", path);
    } else if (!writes && i < dirty_count) {
        (void)memmove(dirty[i], dirty[--dirty_count], sizeof dirty[0]);
    }
}

/* What a disk may have of a file that was not synced: nothing, a half, or something else. */
static void spoil(const char *path, uint32_t how) {
    struct stat st;
    const bool is_part = strcmp(path, parts[1]) == 0 || strcmp(path, parts[2]) == 0;
    if (stat(path, &st) != 0) {
        return; /* it has another name by now, or none */
    }
    if (how % 3 == 2 || is_part) {
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        const off_t at = is_part ? 70000 : st.st_size / 2;
        assert_true(fd >= 0 && pwrite(fd, "\xff\xff\xff\xff", 4, at) == 4);
        (void)close(fd);
    } else {
        assert_int_equal(truncate(path, how % 3 == 0 ? 0 : st.st_size / 2), 0);
    }
}

/* Runs `change` in a process that is killed behind its n-th system call, and spoils what that has
 * not synced; false: it had come to its end before. */
static bool run_until(void (*change)(void), uint32_t n) {
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        change();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD), 0);
    dirty_count = 0;
    for (uint32_t stops = 0; WIFSTOPPED(status) && stops < 2 * n; stops++) { /* entry and exit */
        struct __ptrace_syscall_info call;
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFSTOPPED(status) &&
            ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof call, &call) > 0 &&
            call.op == PTRACE_SYSCALL_INFO_ENTRY) {
            note_call(child, &call);
        }
    }
    const bool cut = WIFSTOPPED(status);
    if (cut) {
        (void)kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        for (uint32_t i = 0; i < dirty_count; i++) {
            spoil(dirty[i], n);
        }
    }
    return cut;
}

static void install_eight(void) {
    (void)!install(RP_AB_B, "eight");
}

static void validate_a(void) {
    (void)!validate(RP_AB_A);
}

static void revert_b(void) {
    (void)!revert(RP_AB_B);
}

static void revert_a(void) {
    (void)!revert(RP_AB_A);
}

static void serve_b(void) {
    const rp_system_service service = service_of(RP_AB_B);
    (void)!rp_system_serve(&service);
}

static void put_wish(const char *text) {
    put_file("slots/" RP_SYSTEM_WISH, text, 0644);
}

/* Seven is good in b, zero in a. */
static void prepare(void) {
    new_card();
    expect_ok(install(RP_AB_A, "seven"));
    assert_int_equal(start_any(), 7);
    expect_ok(validate(RP_AB_B));
    assert_int_equal(start_any(), 7);
}

static void prepare_bundle(void) {
    size_t bytes;
    prepare();
    const char *whole = slurp("eight", &bytes);
    append("slots/" RP_SYSTEM_BUNDLE, whole, bytes);
}

static void prepare_failed(void) {
    prepare();
    expect_ok(install(RP_AB_B, "eight"));
    for (int i = 0; i < STARTS; i++) {
        assert_int_equal(start_any(), 8);
    }
    assert_int_equal(start_any(), 7);
}

static void prepare_trial(void) {
    prepare();
    expect_ok(install(RP_AB_B, "eight"));
    assert_int_equal(start_any(), 8);
}

/* Whatever was cut off: the loader starts a system that is whole, the old or the new; and eight can
 * be installed and become good. Gives the number of cuts. */
static uint32_t cut_everywhere(void (*prepare_it)(void), void (*change)(void), bool serves) {
    uint32_t cuts = 0;
    for (bool cut = true; cut; cuts += cut) {
        rp_ab_slot slot;
        prepare_it();
        cut = run_until(change, cuts + 1);
        if (serves && access(in_folder("slots/" RP_SYSTEM_BUNDLE), F_OK) != 0) {
            rp_system told; /* by now: who asks for the outcome looks here then */
            char path[512];
            (void)snprintf(path, sizeof path, "%s/state", state);
            expect_ok(rp_system_read(path, &told));
            assert_true(told.due);
            assert_int_equal(told.slot[RP_AB_A].state, RP_SYSTEM_TRIAL);
        }
        int release = start(&slot);
        if (release != 7 && release != 8) {
            fail_msg("cut %u: %d is started in slot %s", cuts, release, rp_ab_slot_name(slot));
        }
        if (serves && slot == RP_AB_B) {
            serve_b(); /* the bundle is still there */
            release = start(&slot);
            assert_int_equal(release, 8);
        }
        if (slot == RP_AB_B) {
            expect_ok(install(RP_AB_B, "eight"));
            release = start(&slot);
        }
        assert_int_equal(release, 8);
        assert_int_equal(slot, RP_AB_A);
        expect_ok(validate(RP_AB_A));
        for (int i = 0; i < STARTS + 1; i++) {
            assert_int_equal(start_any(), 8);
        }
        expect_slot(RP_AB_A, RP_AB_A, RP_SYSTEM_GOOD, 8, 0);
    }
    return cuts;
}

static void a_power_cut_leaves_the_old_or_the_new(void **unused) {
    (void)unused;
    uint32_t cuts = 0;
    cuts += cut_everywhere(prepare, install_eight, false);
    cuts += cut_everywhere(prepare_failed, install_eight, false);
    cuts += cut_everywhere(prepare_bundle, serve_b, true);
    cuts += cut_everywhere(prepare_trial, validate_a, false);
    cuts += cut_everywhere(prepare_trial, revert_a, false);
    cuts += cut_everywhere(prepare_trial, revert_b, false); /* an agent that speaks too late */
    printf("%u cuts\n", cuts);
    assert_true(cuts >= 200);
}

/* The entry itself, cut at every byte: it is passed over, or starts what is whole. */
static void an_entry_that_is_cut_off_starts_nothing_else(void **unused) {
    (void)unused;
    static char whole[512];
    size_t bytes;
    prepare();
    expect_ok(install(RP_AB_B, "eight"));
    memcpy(whole, slurp("card/loader/entries/ringpipe-a+3.conf", &bytes), sizeof whole);
    for (size_t n = 0; n <= bytes; n++) {
        rp_ab_slot slot;
        (void)unlink(in_folder("card/loader/entries/ringpipe-a+2-1.conf"));
        (void)unlink(in_folder("card/loader/entries/ringpipe-a+3.conf"));
        append("card/loader/entries/ringpipe-a+3.conf", whole, n);
        const int release = start(&slot);
        /* Without the last newline it says all that it has to. */
        assert_int_equal(release, n + 1 < bytes ? 7 : 8);
        expect_slot(slot, RP_AB_A, release == 8 ? RP_SYSTEM_TRIAL : RP_SYSTEM_EMPTY,
                    release == 8 ? 8 : 0, release == 8 ? 2 : 0);
    }
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static rp_system serve(rp_ab_slot own) {
    const rp_system_service service = service_of(own);
    rp_system told;
    char path[512];
    expect_ok(rp_system_serve(&service));
    (void)snprintf(path, sizeof path, "%s/state", state);
    expect_ok(rp_system_read(path, &told));
    assert_int_equal(access(in_folder("slots/" RP_SYSTEM_WISH), F_OK), -1);
    assert_int_equal(access(in_folder("slots/" RP_SYSTEM_BUNDLE), F_OK), -1);
    return told;
}

static void wishes_are_fulfilled(void **unused) {
    (void)unused;
    prepare_bundle();
    rp_system told = serve(RP_AB_B);
    assert_true(told.due);
    assert_string_equal(told.error, "");
    assert_int_equal(told.slot[RP_AB_A].state, RP_SYSTEM_TRIAL);
    assert_int_equal(told.slot[RP_AB_A].release, 8);
    told = serve(RP_AB_B);
    assert_true(told.due); /* as long as the board has not started again */
    assert_int_equal(start_any(), 8);
    (void)remove_tree(in_folder("run")); /* which is in memory */
    put_wish("validate another-start\n");
    told = serve(RP_AB_A);
    assert_false(told.due);
    assert_int_equal(told.slot[RP_AB_A].state, RP_SYSTEM_TRIAL);
    put_wish("validate this-start\n");
    assert_int_equal(serve(RP_AB_A).slot[RP_AB_A].state, RP_SYSTEM_GOOD);
    put_wish("explode this-start\n");
    assert_false(serve(RP_AB_A).due);
    put_wish("revert this-start\n");
    assert_true(serve(RP_AB_A).due);
    /* What runs is as one that has used its last start, until the board reboots. */
    put_wish("validate this-start\n");
    told = serve(RP_AB_A);
    assert_true(told.due);
    assert_int_equal(told.slot[RP_AB_A].state, RP_SYSTEM_TRIAL);
    assert_int_equal(start_any(), 7);
}

static void what_an_agent_may_not_is_not_done(void **unused) {
    (void)unused;
    size_t bytes;
    prepare();
    append("slots/" RP_SYSTEM_BUNDLE, "RPBUNDLE1\nnonsense", 18);
    rp_system told = serve(RP_AB_B);
    assert_false(told.due);
    assert_non_null(strstr(told.error, "cut off"));
    /* A way out of the folder leads nowhere. */
    char eight[512];
    (void)snprintf(eight, sizeof eight, "%s", in_folder("eight"));
    assert_int_equal(symlink(eight, in_folder("slots/" RP_SYSTEM_BUNDLE)), 0);
    told = serve(RP_AB_B);
    assert_false(told.due);
    assert_int_equal(access(in_folder("eight"), F_OK), 0);
    assert_int_equal(told.slot[RP_AB_A].state, RP_SYSTEM_GOOD);
    /* Nobody's key: nothing is taken. */
    const char *whole = slurp("eight", &bytes);
    append("slots/" RP_SYSTEM_BUNDLE, whole, bytes);
    assert_int_equal(unlink(in_folder("update.key")), 0);
    told = serve(RP_AB_B);
    assert_false(told.due);
    assert_non_null(strstr(told.error, "update.key"));
    assert_int_equal(start_any(), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_system_becomes_good, card_setup, teardown),
        cmocka_unit_test_setup_teardown(a_system_that_does_not_come_up_is_left, card_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_trial_is_ended_by_hand, card_setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, card_setup, teardown),
        cmocka_unit_test_setup_teardown(a_power_cut_leaves_the_old_or_the_new, card_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_entry_that_is_cut_off_starts_nothing_else, card_setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(wishes_are_fulfilled, card_setup, teardown),
        cmocka_unit_test_setup_teardown(what_an_agent_may_not_is_not_done, card_setup, teardown),
    };
    return cmocka_run_group_tests_name("system", tests, NULL, NULL);
}
