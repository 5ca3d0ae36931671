/* The table of options and the table of verbs. Command lines are parsed by them; --help, parts of
 * the manual and the completions are generated from them. */
#include <string.h>

#include "cli/cli.h"
#include "data/partition.h"
#include "data/vocab.h"
#include "export/export.h"
#include "lab/lab.h"
#include "onnx/model.h"
#include "predict/beam.h"
#include "push/several.h"

#define AT(member) offsetof(rp_cli_args, member)
#define FLAG(name, letter, member, about)                                                          \
    { name, letter, RP_OPTION_FLAG, NULL, AT(member), about, 0, NULL, false, 0 }
#define VALUE(kind, name, letter, value, member, most, about, variant)                             \
    { name, letter, RP_OPTION_##kind, value, AT(member), about, most, variant, false, 0 }
#define TEXT(name, value, member, about) VALUE(TEXT, name, 0, value, member, 0, about, NULL)
#define CHOICE(name, value, member, about, variant)                                                \
    VALUE(CHOICE, name, 0, value, member, 0, about, variant)
#define NUMBER(name, value, member, most, about)                                                   \
    VALUE(NUMBER, name, 0, value, member, most, about, NULL)

#define WHERE_MAX 16
#define SHAPES_MAX 16

const rp_option rp_cli_options[] = {
    VALUE(LIST, "set", 0, "KEY.PATH=VALUE", set, RP_OPTION_ITEMS_MAX,
          "Set a key of the run file; may be repeated", NULL),
    VALUE(TEXT, "out", 'o', "DIR", out, 0, "The folder to write (default: see the manual)", NULL),
    VALUE(TEXT, "out", 'o', "FILE.json", out, 0, "The file to write", "json"),
    VALUE(TEXT, "out", 'o', "FILE.img", out, 0,
          "The image; a folder for several boards, with --overlay or --system", "img"),
    VALUE(TEXT, "out", 'o', "FILE.rpb", out, 0, "The bundle (default: BOARD-RELEASE.rpb)", "rpb"),
    VALUE(TEXT, "out", 'o', "FILE.yaml", out, 0, "The model file to write", "yaml"),
    VALUE(TEXT, "out", 'o', "FILE.onnx|FILE.safetensors", out, 0,
          "The file to write, whose ending says as what", "net"),
    CHOICE("format", "text|json", format, "json: one object on standard output at the end", NULL),
    CHOICE("format", "text|svg", format, "How to draw", "svg"),
    CHOICE("format", "text|csv|json", format, "How to write the answers (default: text)", "csv"),
    FLAG("dry-run", 'n', dry_run, "Check everything and start nothing"),
    TEXT("keys", "DIR", keys, "This host's keys, for a roster (default: ~/.config/ringpipe/keys)"),
    TEXT("board", "BOARD", board, "Board profile, or auto (default)"),
    NUMBER("threads", "N", threads, 1024, "CPU threads on a CPU device; 0: all (default)"),
    VALUE(NUMBER, "jobs", 'j', "N", jobs, RP_LAB_JOBS_MAX, "Concurrent runs (default: 1)", NULL),
    FLAG("yes", 'y', yes, "Replace what exists without asking"),
    TEXT("roster", "FILE.yaml", roster, "The boards of a ring"),
    VALUE(LIST, "where", 0, "KEY=VALUE[,VALUE...]", where, WHERE_MAX,
          "Boards with this name, group, board or label; may be repeated", NULL),
    TEXT("listen", "tcp://HOST:PORT", listen, "Where boards find this host"),
    NUMBER("wait", "SECONDS", wait_s, 1000000, "How long to wait (default: see the manual)"),

    TEXT("resume", "DIR", run.resume, "Continue in a run folder, from its newest checkpoint"),
    TEXT("plan", "PLAN.json", run.plan, "Use this plan (default: a new one is made)"),
    TEXT("profile", "PROFILE.json", run.profile,
         "Times of layers on each board (default: measure)"),
    FLAG("lane", 0, run.lane, "Internal: a run with lanes starts its lanes with this option"),

    TEXT("weights", "FILE.safetensors", model.weights, "Weights of the whole model"),
    VALUE(TEXT, "weights", 0, "FILE.safetensors", onnx.weights, 0, "The weights file to write",
          "to"),
    VALUE(LIST, "shape", 0, "INPUT=N,SIZE,...", onnx.shapes, SHAPES_MAX,
          "Shape of an input of an ONNX model, with N for the batch; may be repeated", NULL),
    FLAG("no-fuse", 0, onnx.no_fuse, "Make each operator a layer of its own, if it has a kind"),
    TEXT("names", "STATE.safetensors", onnx.names,
         "A state_dict of the net: its tensors are parameters wherever they stand"),
    VALUE(LIST, "freeze", 0, "PATTERN", onnx.freeze, RP_OPTION_ITEMS_MAX,
          "Layers that are not trained, as in 'bn*'; may be repeated", NULL),
    FLAG("untie", 0, onnx.untie, "Give each layer a tensor of its own where layers share one"),
    CHOICE("tied", "refuse|accept", onnx.tied,
           "Layers of other kinds than an embedding and the output layer that share a tensor "
           "(default: refuse)",
           NULL),
    FLAG("accept-folded", 0, onnx.accept_folded,
         "Train what is left where the exporter folded parameters"),
    TEXT("check", "FILE.npz", onnx.check,
         "Compare the result with PyTorch's outputs for the inputs in the file"),
    NUMBER("opset", "N", export.opset, RP_ONNX_OPSET_LAST,
           "Version of ONNX's operators, 13 to 23 (default: 17)"),
    FLAG("train", 0, export.train, "Write dropout and batch statistics as in training"),
    FLAG("merge", 0, export.merge, "Add the corrections of lora to their weights"),
    CHOICE("split", "test|validation|train", model.split, "Which samples (default: test)", NULL),
    FLAG("confusion", 0, model.confusion, "Print scores by class and the confusion table"),
    FLAG("bleu", 0, model.bleu, "Translate the part, and print the BLEU of the translations"),
    NUMBER("beam", "N", model.beam, RP_BEAM_MAX,
           "Translations that are followed at once (default: 1, the likeliest token each time)"),
    TEXT("text", "TEXT", model.text, "Predict for this text instead of files"),
    NUMBER("tokens", "N", model.tokens, 65536,
           "Number of tokens that continue the text (default: 100)"),
    VALUE(NUMBER, "tokens", 0, "N", model.tokens, 1 << 30,
          "Number of token ids, for a model file that reads ids", "ids"),
    TEXT("temperature", "X", model.temperature,
         "0: the likeliest token (default); larger: tokens are drawn, less likely ones more often"),
    NUMBER("top", "N", model.top, 65536, "Number of likeliest classes to print (default: 1)"),
    TEXT("input", "SHAPE", model.input, "Shape of a sample of a model file, as in 3,32,32"),
    NUMBER("classes", "N", model.classes, 65536, "Number of classes, for a model file"),

    CHOICE("executor", "digest|timed", sim.executor, "Executor of the boards (default: digest)",
           NULL),
    VALUE(RANGE, "seed", 0, "N", sim.seeds, 0, "Seed of what is drawn (default: 1)", NULL),
    VALUE(RANGE, "seeds", 0, "A..B", sim.seeds, 0, "Many runs, one for each seed", NULL),
    TEXT("faults", "none|all|FILE", sim.faults,
         "Faults to simulate; all: drawn from the seed (default: none)"),
    FLAG("trace", 0, sim.trace, "Print every event of the run"),
    FLAG("once", 0, sim.once, "Do not resume a run that stops; exit like its controller"),

    NUMBER("stages", "D", draw.stages, 1024, "Stages of the pipeline (default: 4)"),
    NUMBER("micro", "M", draw.micro, 65536, "Microbatches of a step (default: 8)"),
    NUMBER("chunks", "N", draw.chunks, 1024, "Stages of a board, if interleaved (default: 2)"),
    FLAG("whole", 0, draw.whole, "Draw the whole run of a schedule without a flush"),

    VALUE(REAL, "minutes", 0, "N", minutes, 1440, "Time to spend (default: 5)", NULL),
    FLAG("system", 0, system, "Write for all users, to /etc/ringpipe/tuning"),
    {"system", 0, RP_OPTION_FLAG, NULL, AT(system),
     "The whole system instead of one board's image or its software", 0, "whole", false, 0},

    FLAG("follow", 'f', log.follow, "Continue with new lines"),
    FLAG("all", 0, log.all, "Print every step (default: about 40 of them)"),
    NUMBER("lines", "N", log.lines, 128, "Number of last lines (default: 30)"),

    VALUE(TEXT, "listen", 0, "ADDRESS:PORT", view.listen, 0,
          "Where the page is served (default: 127.0.0.1:7180)", "page"),
    TEXT("token-file", "FILE", view.token_file, "A secret that readers need; see the manual"),
    {"text", 0, RP_OPTION_FLAG, NULL, AT(view.text), "Print the state instead of serving it", 0,
     "terminal", false, 0},
    TEXT("text-file", "DIR", view.text_folder,
         "Also write the metrics to ringpipe.prom in this folder"),

    TEXT("group", "NAME", enrol.group, "Group of the roster that these boards join"),
    NUMBER("hours", "N", enrol.hours, 8760, "Lifetime of a token (default: 24)"),
    FLAG("token", 0, enrol.token, "Make the tokens and do not wait for the boards"),
    FLAG("open", 0, enrol.open, "Make no tokens; wait for boards that have one already"),
    FLAG("list", 0, enrol.list, "Only list the tokens"),
    FLAG("withdraw", 0, enrol.withdraw, "Only withdraw the tokens with these names or ids"),
    TEXT("run", "RUN.yaml", enrol.run, "Then warm the boards for this run"),
    TEXT("node", "NAME", enrol.node, "The board's name; image: several names, separated by commas"),
    TEXT("host", "ADDRESS[:PORT]", enrol.host, "Where the board reaches this host (port: 7900)"),
    TEXT("dial", "ADDRESS:PORT", enrol.dial,
         "The board dials this host; for one that has no reachable address"),

    TEXT("ssh-key", "FILE.pub", image.ssh_key,
         "Public key that may log in as root (default: no login)"),
    TEXT("wifi", "FILE.yaml", image.wifi, "ssid, passphrase and country of a wireless network"),
    FLAG("overlay", 0, image.overlay, "A folder for a vendor's system instead of an image"),
    TEXT("packages", "DIR", image.packages, "The agent's package (default: build-package)"),
    TEXT("cache", "DIR", image.cache, "Cache of systems (default: ~/.cache/ringpipe/images)"),
    TEXT("enrol", "TOKEN|@FILE", image.enrol, "Take this token (default: a new one is made)"),
    VALUE(TEXT, "listen", 0, "tcp://HOST:PORT", image.listen, 0,
          "Where the board listens (default: tcp://0.0.0.0:7000)", "board"),
    CHOICE("runner", "bmaptool|dd|qemu", image.runner,
           "Program that writes the image or starts it (default: dd)", NULL),
    NUMBER("release", "N", image.release, UINT32_MAX,
           "Number of the bundle; boards accept only a larger one than theirs"),
    FLAG("new-key", 0, image.new_key, "Make the pair of keys that signs bundles"),

    NUMBER("mbit", "N", fleet.mbit, 1000000, "Rate limit in Mbit/s (default: none)"),
    NUMBER("at-once", "N", fleet.at_once, RP_PUSH_AT_ONCE_MAX,
           "Boards at the same time (default: 1)"),
    FLAG("no-wait", 0, fleet.no_wait,
         "Do not wait for the board's return, or for the end of its trial"),
    FLAG("force", 0, fleet.force, "Do it even if the board has a run"),
    FLAG("ask", 0, fleet.ask, "Print which boards answer; --wait: timeout for each"),
    NUMBER("within", "SECONDS", fleet.within_s, 86400, "Time for warming (default: 1800)"),

    TEXT("dir", "DIR", keys, "Folder of the keys (default: ~/.config/ringpipe/keys)"),
    {"roster", 0, RP_OPTION_FLAG, NULL, AT(as_line), "Print a line for a roster", 0, "line", false,
     0},
    TEXT("to", "DIR", to, "Folder to put the files in"),
    TEXT("from", "ADDRESS", from, "Address of a mirror: https, http or file"),
    TEXT("in", "FILE.safetensors", round.in, "Weights to start from"),
    NUMBER("round", "N", round.number, UINT32_MAX, "Number of the round"),
    NUMBER("steps", "N", round.steps, 1000000000, "Steps of the round"),
    NUMBER("epochs", "N", round.epochs, 1000000, "Epochs of the round (default: 1)"),
    VALUE(NUMBER, "within", 0, "SECONDS", round.within_s, 10000000,
          "End the round after this time, with the steps that are done", "time"),
    TEXT("state", "DIR", round.state, "Folder of what the site keeps from one round to the next"),
    VALUE(REAL, "anchor", 0, "MU", round.anchor, 1000000,
          "Pull towards the given weights, as FedProx; 0: none (default)", NULL),
    FLAG("drift", 0, round.drift, "Correct the site's drift, as SCAFFOLD; needs --state"),
    VALUE(LIST, "keep", 0, "PATTERN", round.keep, RP_OPTION_ITEMS_MAX,
          "Tensors that never leave the site, as in 'bn*'; may be repeated; needs --state", NULL),
    CHOICE("optimizer", "fresh|keep", round.optimizer,
           "Whether its state goes on in the next round (default: fresh); keep needs --state",
           NULL),
    VALUE(REAL, "clip", 0, "LENGTH", round.clip, 1000000000,
          "Longest difference from the given weights; 0: not limited (default)", NULL),
    TEXT("delta", "int8|topk:SHARE", round.delta,
         "Write coded differences instead of weights; needs --state"),
    NUMBER("sites", "N", split.sites, RP_SITES_MAX,
           "Number of sites; with column:FILE the number of its names"),
    TEXT("by", "RULE", split.by,
         "iid (default), dirichlet:ALPHA, classes:N, shards:N, quantity:linear|square|exp, "
         "column:FILE"),
    NUMBER("least", "N", split.least, 1000000,
           "Smallest number of samples of a site, for Dirichlet shares (default: 10)"),
    VALUE(REAL, "validation", 0, "SHARE", split.validation, 1,
          "Share of each site's samples that is its validation part (default: 0)", NULL),
    NUMBER("vocab", "N", vocab, RP_TOKENS_MAX, "Number of tokens, at least 260"),

    FLAG("quiet", 'q', quiet, "Print errors and the result, nothing else"),
    FLAG("verbose", 'v', verbose, "Print debug messages, with time and source"),
    {"help", 'h', RP_OPTION_END, NULL, AT(help), "Print this list", 0, NULL, false, 0},
    {NULL, 0, RP_OPTION_FLAG, NULL, 0, NULL, 0, NULL, false, 0},
};

#define ASKING "roster! where listen keys"

const rp_cli_verb rp_cli_verbs[] = {
    {"train", "RUN.yaml", 1, 1, "set out|resume format dry-run keys plan profile lane",
     "Train a model over a ring of boards", NULL, rp_verb_train},
    {"resume", "DIR", 1, 1, "set format keys lane", "Continue a run from its folder",
     "DIR is the folder of a run that was interrupted or shall train further. It contains "
     "everything but the data.",
     rp_verb_resume},
    {"eval", "RUN.yaml|DIR", 1, 1, "set format weights confusion bleu beam split keys",
     "Evaluate a weights file, or a run from its folder", NULL, rp_verb_eval},
    {"predict", "DIR [FILE...]", 1, UINT32_MAX,
     "format:csv top weights text tokens temperature beam seed board threads",
     "Predict classes or values for files with a trained net, or continue a text",
     "DIR is a run folder, which contains everything that is needed. FILE is a picture, a CSV file "
     "or an array; - is standard input. A net of texts takes --text instead of files: a classifier "
     "prints the class, a language model continues the text. The net runs on this machine's "
     "device.",
     rp_verb_predict},
    {"plan", "RUN.yaml", 1, 1, "set out:json format keys plan profile",
     "Profile the ring and choose the cut", NULL, rp_verb_plan},
    {"profile", "RUN.yaml", 1, 1, "set out:json format keys", "Measure the cost of every layer",
     NULL, rp_verb_profile},
    {"sim", "RUN.yaml", 1, 1,
     "set out|resume format jobs executor plan profile seed|seeds faults trace once",
     "Simulate a run on a virtual clock, with faults",
     "With --seeds, every seed is one run with its own faults; exit code 0 only if no run hangs "
     "and "
     "all end with the weights that the method defines.",
     rp_verb_sim},
    {"round", "SITE.yaml", 1, 1,
     "in! out! round! steps|epochs within:time anchor drift keep optimizer clip delta state set "
     "format "
     "keys",
     "Train one round of a site from given weights",
     "For federated training: the order of samples follows from the run file's seed, the site and "
     "the round, so the round has the same result wherever it is done. DIR/round.json says that "
     "the round is done; the same command then prints the same answer, and goes on with a round "
     "that was interrupted.",
     rp_verb_round},
    {"lab", "COMPARE.yaml", 1, 1, "out format dry-run keys jobs",
     "Compare methods over seeds and models, with a report",
     "Repeat the same command to continue: finished runs are kept, interrupted ones resume.",
     rp_verb_lab},
    {"ps", "[DIR...]", 0, UINT32_MAX, "format", "List active runs, or the runs in folders",
     "Without a DIR it lists the active runs of this account on this machine. DIR is the folder of "
     "a "
     "run, active or not, or a folder that contains such folders.",
     rp_verb_ps},
    {"log", "DIR", 1, 1, "follow all", "Print the events of a run, and follow them",
     "DIR is the folder of a run, active or not.", rp_verb_log},
    {"stop", "DIR...", 1, UINT32_MAX, "wait", "Stop a run as Ctrl-C does, and wait for its end",
     "The run ends after a checkpoint, exit 130, and `ringpipe resume DIR` continues it. Exit 0 "
     "when it has ended, 3 when it is still active after the time of --wait.",
     rp_verb_stop},
    {"view", "[DIR...]", 0, UINT32_MAX, "listen:page|text:terminal token-file text-file",
     "Show runs in a browser, on a terminal, and as metrics",
     "It only reads. Without a DIR it shows the active runs of this account on this machine. DIR "
     "is "
     "the folder of a run, active or not, or a folder that contains such folders.",
     rp_verb_view},
    {"draw", "SCHEDULE", 1, 1, "format:svg stages micro chunks whole",
     "Draw a schedule, measured by replay",
     "SCHEDULE is a name as in a run file, e.g. 1f1b, or a plan.json; `table` compares all "
     "schedules.",
     rp_verb_draw},
    {"tune", "", 0, 0, "out:json board minutes yes system threads",
     "Find the fastest kernel parameters of this device",
     "An existing file is replaced only by faster parameters, and only after confirmation.",
     rp_verb_tune},
    {"doctor", "", 0, 0, "format keys board threads roster where listen",
     "Check driver, device, arithmetic and disk, or a ring's boards",
     "With --roster it checks the identity of every board and lets neighbours try their links in "
     "both directions; boards with a run are skipped. Exit code 3: a run could not use the boards "
     "as they are; 5: keys do not match.",
     rp_verb_doctor},
    {"boards", "enrol|list|show|...", 0, 0, "", "Add, remove, inspect and reboot boards", NULL,
     NULL},
    {"boards enrol", "NAME...", 0, UINT32_MAX,
     "roster group host listen keys hours token|open list|withdraw wait run within yes format",
     "Add boards to a roster with tokens",
     "It makes a token for each board, prints the command to run on the board, waits, and adds "
     "each "
     "board that enrols to the roster.",
     rp_verb_boards_enrol},
    {"boards adopt", "USER@ADDRESS", 1, 1,
     "roster! group node host board dial packages listen keys hours token wait yes dry-run format",
     "Turn a running system into a board, over ssh", NULL, rp_verb_boards_adopt},
    {"boards list", "", 0, 0, "roster! where ask wait listen keys format",
     "List the boards of a roster, and which of them answer", NULL, rp_verb_boards_list},
    {"boards show", "[BOARD...]", 0, UINT32_MAX, ASKING " format", "Print the condition of boards",
     NULL, rp_verb_boards_show},
    {"boards log", "[BOARD]", 0, 1, ASKING " lines follow format",
     "Print the last lines of a board's journal", NULL, rp_verb_boards_log},
    {"boards reboot", "[BOARD...]", 0, UINT32_MAX, ASKING " force no-wait|wait",
     "Reboot boards, in the given order", NULL, rp_verb_boards_reboot},
    {"boards warm", "RUN.yaml", 1, 1, "roster where set plan within wait force keys format",
     "Build the kernels of a run on its boards before it starts", NULL, rp_verb_boards_warm},
    {"boards forget", "[NAME...]", 0, UINT32_MAX, "roster! where yes",
     "Remove boards from a roster", NULL, rp_verb_boards_forget},
    {"image", "", 0, 0,
     "board node host out:img overlay|system:whole ssh-key wifi listen:board|dial enrol hours "
     "packages cache release keys yes",
     "Make a card image for a board, or files for a vendor's system",
     "The image contains a token that admits the board to a roster while `ringpipe boards enrol` "
     "waits. Several names, separated by commas, make one image each, in the folder --out. "
     "--system makes a folder for `ringpipe bundle`: a new system for boards that run already.",
     rp_verb_image},
    {"flash", "[IMAGE... DEVICE]", 0, UINT32_MAX, "runner listen:board yes",
     "Write an image to a card, and read it back",
     "Without arguments it lists the disks that may be written: removable ones that are not in "
     "use. With several images it asks for a card for each.",
     rp_verb_flash},
    {"bundle", "[FOLDER]", 0, 1, "board release keys out:rpb new-key", "Sign software for boards",
     "FOLDER contains the software for boards, with bin/ringpipe-agent, or a whole system made by "
     "`ringpipe image --system`. Boards verify bundles with the public key update.key, next to "
     "their own keys.",
     rp_verb_bundle},
    {"push", "BUNDLE [BOARD...]", 1, UINT32_MAX, ASKING " mbit at-once no-wait|wait format",
     "Install signed software on boards",
     "Without BOARD or --where it takes all boards of the roster, in turn or --at-once N "
     "concurrently. Each board receives the bundle, starts it, and has to report that it works "
     "before the next board gets it. Boards with a run are skipped.",
     rp_verb_push},
    {"slots", "[BOARD...]", 0, UINT32_MAX, ASKING " format", "Print which software boards have",
     NULL, rp_verb_slots},
    {"validate", "[BOARD...]", 0, UINT32_MAX, ASKING " format",
     "Accept the software that is on trial on boards", NULL, rp_verb_validate},
    {"revert", "[BOARD...]", 0, UINT32_MAX, ASKING " system:whole format",
     "Return boards to their previous software", NULL, rp_verb_revert},
    {"keys", "new|show|list|...", 0, 0, "", "Make keys, and manage trusted hosts and boards", NULL,
     NULL},
    {"keys new", "", 0, 0, "dir format", "Make this account's pair of keys", NULL,
     rp_verb_keys_new},
    {"keys show", "[NAME [ADDRESS]]", 0, 2, "dir roster:line format",
     "Print the public key, or a line for a roster",
     "With --roster it prints the line for a roster: of a board (with its ADDRESS) or of a host.",
     rp_verb_keys_show},
    {"keys list", "", 0, 0, "dir format", "List this account's key and all trusted keys", NULL,
     rp_verb_keys_list},
    {"keys trust", "NAME KEY", 2, 2, "dir", "Trust a key, or replace the key of a name", NULL,
     rp_verb_keys_trust},
    {"keys untrust", "NAME", 1, 1, "dir", "Remove a name from the trusted keys", NULL,
     rp_verb_keys_untrust},
    {"data", "fetch|bpe|split", 0, 0, "", "Fetch and divide data sets, and learn tokenisers", NULL,
     NULL},
    {"data fetch", "SET", 1, 1, "to! from format",
     "Fetch a data set's official files and verify their checksums", NULL, rp_verb_data_fetch},
    {"data bpe", "FILE...", 1, UINT32_MAX, "vocab! out:json! yes format",
     "Learn a byte-level BPE from texts, as tokenizer.json",
     "The files are texts in UTF-8. A run file takes the result as `tokens` of its data, and "
     "Hugging Face's tokenizers can load it.",
     rp_verb_data_bpe},
    {"data split", "RUN.yaml", 1, 1, "sites by seed least validation out:json! set yes format",
     "Divide the training samples of a run's data set among sites",
     "The file lists the samples of each site. A run file takes one site's samples with `site: "
     "{split: FILE.json, name: site-0}` in its data. The table shows the samples of each class at "
     "each site, and how even their classes are: 1 if all are equally frequent, 0 if there is only "
     "one.",
     rp_verb_data_split},
    {"import", "MODEL.onnx", 1, 1,
     "out:yaml! weights:to! shape names freeze untie tied accept-folded no-fuse check yes format",
     "Make a model file and weights of an ONNX model",
     "The layers and tensors keep the names of the framework that wrote the model. If any operator "
     "cannot be trained here, all of them are listed and nothing is written.",
     rp_verb_import},
    {"export", "DIR|MODEL.yaml", 1, 1,
     "out:net! weights opset train merge input classes tokens:ids yes format",
     "Write a trained net as an ONNX model, or its weights for PyTorch",
     "DIR is a run folder. A model file, or a name of the zoo, needs --weights, and with --input, "
     "--classes and --tokens what it leaves to the data. If a layer has no standard operators, all "
     "reasons are listed and nothing is written.",
     rp_verb_export},
    {"inspect", "FILE.safetensors|MODEL.yaml|MODEL.onnx", 1, 1, "format input classes shape",
     "List the tensors of a file, or the layers of a model",
     "Tensors are listed with their ranges; layers with shapes, parameters, operations and memory "
     "for one sample. The model may be a name of the zoo (ringpipe list models). --input and "
     "--classes set what the model file leaves to the data; else common values are assumed. "
     "Of an ONNX model it prints inputs, outputs, operators, and what `import` would say.",
     rp_verb_inspect},
    {"list", "[LIST]", 0, 1, "format", "List layers, schedules and all other names",
     "LIST is the name of one list; without it the names in all lists are printed.", rp_verb_list},
    {NULL, NULL, 0, 0, NULL, NULL, NULL, NULL},
};

/* ---- a verb's options ------------------------------------------------------------------------ */

/* Finds the row of "NAME" or "NAME:VARIANT". */
static const rp_option *find_row(const char *text, size_t length) {
    const size_t name = strcspn(text, ":") < length ? strcspn(text, ":") : length;
    const size_t variant = length > name ? length - name - 1 : 0;
    const rp_option *at = rp_cli_options;
    while (at->name && (strlen(at->name) != name || strncmp(at->name, text, name) != 0 ||
                        strlen(at->variant ? at->variant : "") != variant ||
                        strncmp(at->variant ? at->variant : "", text + name + 1, variant) != 0)) {
        at++;
    }
    RP_ASSERT(at->name);
    return at;
}

static uint32_t add_rows(const char *text, uint32_t count, uint8_t *groups,
                         rp_option out[RP_OPTIONS_MAX]) {
    bool in_group = false;
    while (*text) {
        const size_t length = strcspn(text, " !|");
        if (length > 0) {
            const bool continues = text[length] == '|';
            RP_ASSERT(count + 1 < RP_OPTIONS_MAX);
            *groups = (uint8_t)(*groups + (continues && !in_group));
            in_group = in_group || continues;
            out[count] = *find_row(text, length);
            out[count].required = text[length] == '!';
            out[count++].group = in_group ? *groups : 0;
            in_group = continues;
        }
        text += length + (text[length] != '\0');
    }
    return count;
}

void rp_cli_options_of(const rp_cli_verb *verb, rp_option out[RP_OPTIONS_MAX]) {
    uint8_t groups = 0;
    uint32_t count = add_rows(verb->options, 0, &groups, out);
    count = add_rows("quiet|verbose help", count, &groups, out);
    out[count] = (rp_option){0};
}

rp_err rp_cli_parse(rp_arena *arena, const rp_cli_verb *verb, int argc, char *const *argv,
                    rp_cli_args *out) {
    rp_option table[RP_OPTIONS_MAX];
    rp_err err;
    rp_cli_options_of(verb, table);
    *out = (rp_cli_args){
        .words = {.about = verb->words, .least = verb->words_min, .most = verb->words_max},
        .format = "text",
        .board = "auto",
        .wait_s = RP_CLI_WAIT_UNSAID,
        .jobs = 1,
        .minutes = 5,
        .model = {.split = "test"},
        .split = {.by = "iid", .least = 10},
        .sim = {.executor = "digest", .faults = "none", .seeds = {1, 1}},
        .view = {.listen = "127.0.0.1:7180"},
        .draw = {.stages = 4, .micro = 8},
        .image = {.runner = "dd"},
        .onnx = {.tied = "refuse"},
        .export = {.opset = RP_EXPORT_OPSET},
    };
    RP_TRY(RP_ARENA_NEW(arena, (size_t)argc + 1, &out->words.item));
    RP_TRY(rp_options_parse(table, verb->name, argc, argv, out, &out->words));
fail:
    return err;
}
