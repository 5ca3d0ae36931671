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
        echo train resume eval predict plan profile sim lab ps log stop draw tune doctor \
            boards image flash bundle push slots validate revert keys data inspect list
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
            executors transports outputs faults links boards models
        ;;
    # end
    esac
}

_ringpipe_options() {
    case $1 in
    # generated: options
    train) echo --set --out --resume --format --dry-run --keys --plan --profile --lane --quiet --verbose ;;
    resume) echo --set --format --keys --lane --quiet --verbose ;;
    eval) echo --set --format --weights --confusion --split --keys --quiet --verbose ;;
    predict) echo --format --top --weights --board --threads --quiet --verbose ;;
    plan) echo --set --out --format --keys --plan --profile --quiet --verbose ;;
    profile) echo --set --out --format --keys --quiet --verbose ;;
    sim) echo --set --out --resume --format --jobs --executor --plan --profile --seed --seeds --faults --trace --once --quiet --verbose ;;
    lab) echo --out --format --dry-run --keys --jobs --quiet --verbose ;;
    ps) echo --format --quiet --verbose ;;
    log) echo --follow --all --quiet --verbose ;;
    stop) echo --wait --quiet --verbose ;;
    draw) echo --format --stages --micro --chunks --whole --quiet --verbose ;;
    tune) echo --out --board --minutes --yes --system --threads --quiet --verbose ;;
    doctor) echo --format --keys --board --threads --roster --where --listen --quiet --verbose ;;
    boards) echo --set --format --dry-run --keys --board --yes --roster --where --ask --group --listen --hours --token --open --list --withdraw --no-wait --plan --wait --node --host --packages --dial --lines --follow --force --run --within --quiet --verbose ;;
    image) echo --out --keys --board --yes --hours --release --node --host --ssh-key --wifi --overlay --system --packages --cache --enrol --dial --listen --quiet --verbose ;;
    flash) echo --yes --listen --runner --quiet --verbose ;;
    bundle) echo --out --keys --board --release --new-key --quiet --verbose ;;
    push) echo --format --keys --roster --where --listen --mbit --at-once --no-wait --wait --quiet --verbose ;;
    slots) echo --format --keys --roster --where --listen --quiet --verbose ;;
    validate) echo --format --keys --roster --where --listen --quiet --verbose ;;
    revert) echo --format --keys --roster --where --listen --system --quiet --verbose ;;
    keys) echo --format --dir --roster --quiet --verbose ;;
    data) echo --format --to --from --quiet --verbose ;;
    inspect) echo --format --input --classes --quiet --verbose ;;
    list) echo --format --quiet --verbose ;;
    # end
    esac
}

# The value of an option, when the word before is one. Fails when it is not.
_ringpipe_value() {
    local verb=$1 option=$2 word=$3
    case $option in
    --format)
        if [[ $verb == draw ]]; then
            _ringpipe_words "text svg" "$word"
        elif [[ $verb == predict ]]; then
            _ringpipe_words "text csv json" "$word"
        else
            _ringpipe_words "text json" "$word"
        fi
        ;;
    --split) _ringpipe_words "test validation train" "$word" ;;
    --roster)
        if [[ $verb == keys ]]; then
            return 1
        fi
        _ringpipe_files yaml "$word"
        ;;
    --install) _ringpipe_files rpb "$word" ;;
    --warm) _ringpipe_files yaml "$word" ;;
    --weights) _ringpipe_files safetensors "$word" ;;
    --plan | --profile) _ringpipe_files json "$word" ;;
    --board) _ringpipe_words "$(_ringpipe_names boards "")" "$word" ;;
    --from) _ringpipe_words "https:// http:// file://" "$word" ;;
    --resume | --dir | --to | --keys | --slots | --packages | --cache) _ringpipe_dirs "$word" ;;
    --ssh-key) _ringpipe_files pub "$word" ;;
    --wifi) _ringpipe_files yaml "$word" ;;
    --reboot) _ringpipe_words "allow refuse" "$word" ;;
    --runner) _ringpipe_words "bmaptool dd qemu" "$word" ;;
    --out)
        case $verb in
        plan | profile | tune) _ringpipe_files json "$word" ;;
        image) _ringpipe_files img "$word" ;;
        *) _ringpipe_dirs "$word" ;;
        esac
        ;;
    --listen) _ringpipe_words "tcp://" "$word" ;;
    --set) _ringpipe_words "model= data. ring. train. loss= optimizer. schedule= cut=" "$word" ;;
    --stages | --micro | --chunks | --minutes | --threads | --jobs | --name | --host | --node | --dial | --hours | --top | --sample | --wait | --lines) COMPREPLY=() ;;
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
    if _ringpipe_value "$verb" "$before" "$word"; then
        return
    fi
    if [[ $word == -* ]]; then
        _ringpipe_words "$(_ringpipe_options "$verb") --help" "$word"
        return
    fi
    case $verb in
    train | eval | plan | profile | sim | lab) _ringpipe_files yaml "$word" ;;
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
    boards) _ringpipe_words "enrol adopt list show log reboot forget" "$word" ;;
    draw) _ringpipe_words "$(_ringpipe_names_of schedules) table" "$word" ;;
    keys) _ringpipe_words "new show list trust untrust" "$word" ;;
    inspect)
        mapfile -t COMPREPLY < <(compgen -f -X '!*.safetensors' -- "$word";
            compgen -f -X '!*.yaml' -- "$word"; compgen -d -S / -- "$word")
        compopt -o nospace 2>/dev/null
        ;;
    list) _ringpipe_words "$(_ringpipe_names_of lists)" "$word" ;;
    data)
        if [[ $before == fetch ]]; then
            _ringpipe_words "$(_ringpipe_names_of fetch)" "$word"
        else
            _ringpipe_words fetch "$word"
        fi
        ;;
    esac
}

_ringpipe_agent() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ! _ringpipe_value agent "$before" "$word"; then
        _ringpipe_words "--listen --host --board --keys --enrol --roster --threads --name --warm --sample --slots --install --revert --last-words --reboot --once --quiet --verbose
            --help --version" "$word"
    fi
}

complete -F _ringpipe ringpipe
complete -F _ringpipe_agent ringpipe-agent
