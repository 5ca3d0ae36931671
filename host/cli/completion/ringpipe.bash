# bash completion for ringpipe and ringpipe-agent; tests/cli/test_docs.py compares it with --help.

# Names of the folders or the files without their ending, in a folder of the installed or source tree.
_ringpipe_names() {
    local folder name program
    program=$(type -P ringpipe)
    for folder in "${program%/*}/../share/ringpipe/$1" "$1" "host/$1"; do
        for name in "$folder"/*"$2"; do
            if [[ -e $name ]]; then
                basename "$name" "$2"
            fi
        done
    done
}

_ringpipe_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_ringpipe_files() {
    mapfile -t COMPREPLY < <(compgen -f -X "!*.$1" -- "$2" && compgen -d -S / -- "$2")
    compopt -o nospace 2>/dev/null
}

_ringpipe_dirs() {
    mapfile -t COMPREPLY < <(compgen -d -S / -- "$1")
    compopt -o nospace 2>/dev/null
}

_ringpipe_names_of() {
    case $1 in
    # generated: names
    verbs)
        echo train resume eval predict plan profile sim round lab ps log stop view draw tune \
            doctor boards image flash bundle push slots validate revert keys data import export \
            inspect list
        ;;
    schedules)
        echo gpipe umpipe 1f1b interleaved-1f1b zb-h1 async pipedream pipedream-2bw spectrain \
            pipeoptim xpipe ea-pipe avgpipe pipefb
        ;;
    fetch)
        echo mnist fashion-mnist cifar10 cifar100
        ;;
    lists)
        echo verbs layers losses optimizers lr-schedules schedules weights data fetch \
            executors transports outputs events facts faults links boards models
        ;;
    boards)
        echo enrol adopt list show log reboot warm forget
        ;;
    keys)
        echo new show list trust untrust
        ;;
    data)
        echo fetch bpe split
        ;;
    # end
    esac
}

_ringpipe_options() {
    case $1 in
    # generated: options
    "train") echo --set --out --resume --format --dry-run --keys --plan --profile --lane --quiet --verbose --help ;;
    "resume") echo --set --format --keys --lane --quiet --verbose --help ;;
    "eval") echo --set --format --weights --confusion --bleu --beam --split --keys --quiet --verbose --help ;;
    "predict") echo --format --top --weights --text --tokens --temperature --beam --seed --board --threads --quiet --verbose --help ;;
    "plan") echo --set --out --format --keys --plan --profile --quiet --verbose --help ;;
    "profile") echo --set --out --format --keys --quiet --verbose --help ;;
    "sim") echo --set --out --resume --format --jobs --executor --plan --profile --seed --seeds --faults --trace --once --quiet --verbose --help ;;
    "round") echo --in --out --round --steps --epochs --within --anchor --drift --keep --optimizer --clip --delta --state --set --format --keys --quiet --verbose --help ;;
    "lab") echo --out --format --dry-run --keys --jobs --quiet --verbose --help ;;
    "ps") echo --format --quiet --verbose --help ;;
    "log") echo --follow --all --quiet --verbose --help ;;
    "stop") echo --wait --quiet --verbose --help ;;
    "view") echo --listen --text --token-file --text-file --quiet --verbose --help ;;
    "draw") echo --format --stages --micro --chunks --whole --quiet --verbose --help ;;
    "tune") echo --out --board --minutes --yes --system --threads --quiet --verbose --help ;;
    "doctor") echo --format --keys --board --threads --roster --where --listen --quiet --verbose --help ;;
    "boards enrol") echo --roster --group --host --listen --keys --hours --token --open --list --withdraw --wait --run --within --yes --format --quiet --verbose --help ;;
    "boards adopt") echo --roster --group --node --host --board --dial --packages --listen --keys --hours --token --wait --yes --dry-run --format --quiet --verbose --help ;;
    "boards list") echo --roster --where --ask --wait --listen --keys --format --quiet --verbose --help ;;
    "boards show") echo --roster --where --listen --keys --format --quiet --verbose --help ;;
    "boards log") echo --roster --where --listen --keys --lines --follow --format --quiet --verbose --help ;;
    "boards reboot") echo --roster --where --listen --keys --force --no-wait --wait --quiet --verbose --help ;;
    "boards warm") echo --roster --where --set --plan --within --wait --force --keys --format --quiet --verbose --help ;;
    "boards forget") echo --roster --where --yes --quiet --verbose --help ;;
    "image") echo --board --node --host --out --overlay --system --ssh-key --wifi --listen --dial --enrol --hours --packages --cache --release --keys --yes --quiet --verbose --help ;;
    "flash") echo --runner --listen --yes --quiet --verbose --help ;;
    "bundle") echo --board --release --keys --out --new-key --quiet --verbose --help ;;
    "push") echo --roster --where --listen --keys --mbit --at-once --no-wait --wait --format --quiet --verbose --help ;;
    "slots") echo --roster --where --listen --keys --format --quiet --verbose --help ;;
    "validate") echo --roster --where --listen --keys --format --quiet --verbose --help ;;
    "revert") echo --roster --where --listen --keys --system --format --quiet --verbose --help ;;
    "keys new") echo --dir --format --quiet --verbose --help ;;
    "keys show") echo --dir --roster --format --quiet --verbose --help ;;
    "keys list") echo --dir --format --quiet --verbose --help ;;
    "keys trust") echo --dir --quiet --verbose --help ;;
    "keys untrust") echo --dir --quiet --verbose --help ;;
    "data fetch") echo --to --from --format --quiet --verbose --help ;;
    "data bpe") echo --vocab --out --yes --format --quiet --verbose --help ;;
    "data split") echo --sites --by --seed --least --validation --out --set --yes --format --quiet --verbose --help ;;
    "import") echo --out --weights --shape --names --freeze --untie --tied --accept-folded --no-fuse --check --yes --format --quiet --verbose --help ;;
    "export") echo --out --weights --opset --train --merge --input --classes --tokens --yes --format --quiet --verbose --help ;;
    "inspect") echo --format --input --classes --shape --quiet --verbose --help ;;
    "list") echo --format --quiet --verbose --help ;;
    "ringpipe-agent") echo --listen --host --board --keys --enrol --roster --threads --name --slots --install --revert --last-words --reboot --once --warm --sample --quiet --verbose --help --version ;;
    # end
    esac
}

# The value of an option, when the word before is one. Fails when it is not.
_ringpipe_value() {
    case "$1 $2" in
    # generated: values
    *" --anchor") : ;;
    *" --at-once") : ;;
    *" --beam") : ;;
    *" --board") _ringpipe_words "$(_ringpipe_names boards "")" "$3" ;;
    *" --by") : ;;
    *" --cache") _ringpipe_dirs "$3" ;;
    *" --check") _ringpipe_files "npz" "$3" ;;
    *" --chunks") : ;;
    *" --classes") : ;;
    *" --clip") : ;;
    *" --delta") _ringpipe_words "int8" "$3" ;;
    *" --dial") : ;;
    *" --dir") _ringpipe_dirs "$3" ;;
    *" --enrol") : ;;
    *" --epochs") : ;;
    *" --executor") _ringpipe_words "digest timed" "$3" ;;
    *" --faults") _ringpipe_words "none all" "$3" ;;
    "predict --format") _ringpipe_words "text csv json" "$3" ;;
    "draw --format") _ringpipe_words "text svg" "$3" ;;
    *" --format") _ringpipe_words "text json" "$3" ;;
    *" --freeze") : ;;
    *" --from") _ringpipe_words "https:// http:// file://" "$3" ;;
    *" --group") : ;;
    *" --host") : ;;
    *" --hours") : ;;
    *" --in") _ringpipe_files "safetensors" "$3" ;;
    *" --input") : ;;
    *" --install") _ringpipe_files "rpb" "$3" ;;
    *" --jobs") : ;;
    *" --keep") : ;;
    *" --keys") _ringpipe_dirs "$3" ;;
    *" --last-words") _ringpipe_files "*" "$3" ;;
    *" --least") : ;;
    *" --lines") : ;;
    "view --listen") : ;;
    *" --listen") _ringpipe_words "tcp://" "$3" ;;
    *" --mbit") : ;;
    *" --micro") : ;;
    *" --minutes") : ;;
    *" --name") : ;;
    *" --names") _ringpipe_files "safetensors" "$3" ;;
    *" --node") : ;;
    *" --opset") : ;;
    *" --optimizer") _ringpipe_words "fresh keep" "$3" ;;
    "image --out") _ringpipe_files "img" "$3" ;;
    "bundle --out") _ringpipe_files "rpb" "$3" ;;
    "import --out") _ringpipe_files "yaml" "$3" ;;
    "export --out") _ringpipe_files "safetensors" "$3" ;;
    "train --out" | "sim --out" | "round --out" | "lab --out") _ringpipe_dirs "$3" ;;
    *" --out") _ringpipe_files "json" "$3" ;;
    *" --packages") _ringpipe_dirs "$3" ;;
    *" --plan") _ringpipe_files "json" "$3" ;;
    *" --profile") _ringpipe_files "json" "$3" ;;
    *" --reboot") _ringpipe_words "allow refuse" "$3" ;;
    *" --release") : ;;
    *" --resume") _ringpipe_dirs "$3" ;;
    "keys show --roster") return 1 ;;
    *" --roster") _ringpipe_files "yaml" "$3" ;;
    *" --round") : ;;
    *" --run") _ringpipe_files "yaml" "$3" ;;
    *" --runner") _ringpipe_words "bmaptool dd qemu" "$3" ;;
    *" --sample") : ;;
    *" --seed") : ;;
    *" --seeds") : ;;
    *" --set") _ringpipe_words "model= data. ring. train. loss= optimizer. schedule= cut=" "$3" ;;
    *" --shape") : ;;
    *" --sites") : ;;
    *" --slots") _ringpipe_dirs "$3" ;;
    *" --split") _ringpipe_words "test validation train" "$3" ;;
    *" --ssh-key") _ringpipe_files "pub" "$3" ;;
    *" --stages") : ;;
    *" --state") _ringpipe_dirs "$3" ;;
    *" --steps") : ;;
    *" --temperature") : ;;
    "predict --text") : ;;
    *" --text") return 1 ;;
    *" --text-file") _ringpipe_dirs "$3" ;;
    *" --threads") : ;;
    *" --tied") _ringpipe_words "refuse accept" "$3" ;;
    *" --to") _ringpipe_dirs "$3" ;;
    *" --token-file") _ringpipe_files "*" "$3" ;;
    *" --tokens") : ;;
    *" --top") : ;;
    *" --validation") : ;;
    *" --vocab") : ;;
    *" --wait") : ;;
    *" --warm") _ringpipe_files "yaml" "$3" ;;
    *" --weights") _ringpipe_files "safetensors" "$3" ;;
    *" --where") : ;;
    *" --wifi") _ringpipe_files "yaml" "$3" ;;
    *" --within") : ;;
    # end
    *) return 1 ;;
    esac
}

_ringpipe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _ringpipe_words "$(_ringpipe_names_of verbs) --help --version" "$word"
        return
    fi
    if [[ -n $(_ringpipe_names_of "$verb") ]]; then
        if ((COMP_CWORD == 2)); then
            _ringpipe_words "$(_ringpipe_names_of "$verb") --help" "$word"
            return
        fi
        verb+=" ${COMP_WORDS[2]}"
    fi
    if _ringpipe_value "$verb" "$before" "$word"; then
        return
    fi
    if [[ $word == -* ]]; then
        _ringpipe_words "$(_ringpipe_options "$verb")" "$word"
        return
    fi
    case $verb in
    train | eval | plan | profile | sim | lab | "boards warm") _ringpipe_files yaml "$word" ;;
    resume | ps | log | stop) _ringpipe_dirs "$word" ;;
    predict)
        if ((COMP_CWORD == 2)); then
            _ringpipe_dirs "$word"
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
        ;;
    flash)
        if [[ $word == /dev/* ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        else
            _ringpipe_files img "$word"
        fi
        ;;
    draw) _ringpipe_words "$(_ringpipe_names_of schedules) table" "$word" ;;
    inspect)
        mapfile -t COMPREPLY < <(compgen -f -X '!*.safetensors' -- "$word";
            compgen -f -X '!*.yaml' -- "$word"; compgen -f -X '!*.onnx' -- "$word";
            compgen -d -S / -- "$word")
        compopt -o nospace 2>/dev/null
        ;;
    import) _ringpipe_files onnx "$word" ;;
    list) _ringpipe_words "$(_ringpipe_names_of lists)" "$word" ;;
    "data fetch") _ringpipe_words "$(_ringpipe_names_of fetch)" "$word" ;;
    esac
}

_ringpipe_agent() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ! _ringpipe_value ringpipe-agent "$before" "$word"; then
        _ringpipe_words "$(_ringpipe_options ringpipe-agent)" "$word"
    fi
}

complete -F _ringpipe ringpipe
complete -F _ringpipe_agent ringpipe-agent
