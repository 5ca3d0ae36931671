# fish completion for ringpipe and ringpipe-agent; tests/cli/test_completion.py compares it with --help.

function __ringpipe_verb -d 'The verb of the command line, or nothing'
    set -l words (commandline -opc)
    test (count $words) -ge 2; and echo $words[2]
end

function __ringpipe_verb_is
    set -l verb (__ringpipe_verb)
    test -n "$verb"; and contains -- $verb $argv
end

function __ringpipe_no_verb
    test (count (commandline -opc)) -eq 1
end

function __ringpipe_before_is -d 'The word before the one at hand'
    set -l words (commandline -opc)
    test "$words[-1]" = $argv[1]
end

function __ringpipe_boards
    set -l program (command -s ringpipe)
    for folder in (dirname "$program")/../share/ringpipe/boards boards
        test -d $folder; and command ls $folder
    end
end

complete -c ringpipe -f
complete -c ringpipe -n __ringpipe_no_verb -l help -d 'Its verbs'
complete -c ringpipe -n __ringpipe_no_verb -l version -d 'Its version'
# generated: verbs
complete -c ringpipe -n __ringpipe_no_verb -a 'train resume eval predict plan profile sim lab ps log stop draw tune doctor boards image flash bundle push slots validate revert keys data inspect list'
# end
# generated: options
complete -c ringpipe -n '__ringpipe_verb_is train' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is train' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is train' -l resume -r
complete -c ringpipe -n '__ringpipe_verb_is train' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is train' -l dry-run
complete -c ringpipe -n '__ringpipe_verb_is train' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is train' -l plan -r
complete -c ringpipe -n '__ringpipe_verb_is train' -l profile -r
complete -c ringpipe -n '__ringpipe_verb_is train' -l lane
complete -c ringpipe -n '__ringpipe_verb_is train' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is train' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is train' -l help
complete -c ringpipe -n '__ringpipe_verb_is resume' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is resume' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is resume' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is resume' -l lane
complete -c ringpipe -n '__ringpipe_verb_is resume' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is resume' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is resume' -l help
complete -c ringpipe -n '__ringpipe_verb_is eval' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is eval' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is eval' -l weights -r
complete -c ringpipe -n '__ringpipe_verb_is eval' -l confusion
complete -c ringpipe -n '__ringpipe_verb_is eval' -l split -x -a 'test validation train'
complete -c ringpipe -n '__ringpipe_verb_is eval' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is eval' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is eval' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is eval' -l help
complete -c ringpipe -n '__ringpipe_verb_is predict' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is predict' -l top -r
complete -c ringpipe -n '__ringpipe_verb_is predict' -l weights -r
complete -c ringpipe -n '__ringpipe_verb_is predict' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is predict' -l threads -r
complete -c ringpipe -n '__ringpipe_verb_is predict' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is predict' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is predict' -l help
complete -c ringpipe -n '__ringpipe_verb_is plan' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is plan' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is plan' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is plan' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is plan' -l plan -r
complete -c ringpipe -n '__ringpipe_verb_is plan' -l profile -r
complete -c ringpipe -n '__ringpipe_verb_is plan' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is plan' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is plan' -l help
complete -c ringpipe -n '__ringpipe_verb_is profile' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is profile' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is profile' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is profile' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is profile' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is profile' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is profile' -l help
complete -c ringpipe -n '__ringpipe_verb_is sim' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l resume -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is sim' -l jobs -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l executor -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l plan -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l profile -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l seed -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l seeds -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l faults -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l trace
complete -c ringpipe -n '__ringpipe_verb_is sim' -l once -r
complete -c ringpipe -n '__ringpipe_verb_is sim' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is sim' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is sim' -l help
complete -c ringpipe -n '__ringpipe_verb_is lab' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is lab' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is lab' -l dry-run
complete -c ringpipe -n '__ringpipe_verb_is lab' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is lab' -l jobs -r
complete -c ringpipe -n '__ringpipe_verb_is lab' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is lab' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is lab' -l help
complete -c ringpipe -n '__ringpipe_verb_is ps' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is ps' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is ps' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is ps' -l help
complete -c ringpipe -n '__ringpipe_verb_is log' -l follow
complete -c ringpipe -n '__ringpipe_verb_is log' -l all
complete -c ringpipe -n '__ringpipe_verb_is log' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is log' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is log' -l help
complete -c ringpipe -n '__ringpipe_verb_is stop' -l wait -r
complete -c ringpipe -n '__ringpipe_verb_is stop' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is stop' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is stop' -l help
complete -c ringpipe -n '__ringpipe_verb_is draw' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is draw' -l stages -r
complete -c ringpipe -n '__ringpipe_verb_is draw' -l micro -r
complete -c ringpipe -n '__ringpipe_verb_is draw' -l chunks -r
complete -c ringpipe -n '__ringpipe_verb_is draw' -l whole
complete -c ringpipe -n '__ringpipe_verb_is draw' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is draw' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is draw' -l help
complete -c ringpipe -n '__ringpipe_verb_is tune' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is tune' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is tune' -l minutes -r
complete -c ringpipe -n '__ringpipe_verb_is tune' -l yes
complete -c ringpipe -n '__ringpipe_verb_is tune' -l system
complete -c ringpipe -n '__ringpipe_verb_is tune' -l threads -r
complete -c ringpipe -n '__ringpipe_verb_is tune' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is tune' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is tune' -l help
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l threads -r
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is doctor' -l help
complete -c ringpipe -n '__ringpipe_verb_is boards' -l set -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is boards' -l dry-run
complete -c ringpipe -n '__ringpipe_verb_is boards' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is boards' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is boards' -l yes
complete -c ringpipe -n '__ringpipe_verb_is boards' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l ask
complete -c ringpipe -n '__ringpipe_verb_is boards' -l group -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l hours -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l token
complete -c ringpipe -n '__ringpipe_verb_is boards' -l open
complete -c ringpipe -n '__ringpipe_verb_is boards' -l list -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l withdraw -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l no-wait
complete -c ringpipe -n '__ringpipe_verb_is boards' -l plan -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l wait -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l node -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l host -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l packages -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l dial -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l lines -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l follow
complete -c ringpipe -n '__ringpipe_verb_is boards' -l force
complete -c ringpipe -n '__ringpipe_verb_is boards' -l run -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l within -r
complete -c ringpipe -n '__ringpipe_verb_is boards' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is boards' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is boards' -l help
complete -c ringpipe -n '__ringpipe_verb_is image' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is image' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is image' -l yes
complete -c ringpipe -n '__ringpipe_verb_is image' -l hours -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l release -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l node -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l host -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l ssh-key -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l wifi -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l overlay
complete -c ringpipe -n '__ringpipe_verb_is image' -l system
complete -c ringpipe -n '__ringpipe_verb_is image' -l packages -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l cache -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l enrol -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l dial -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is image' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is image' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is image' -l help
complete -c ringpipe -n '__ringpipe_verb_is flash' -l yes
complete -c ringpipe -n '__ringpipe_verb_is flash' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is flash' -l runner -r
complete -c ringpipe -n '__ringpipe_verb_is flash' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is flash' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is flash' -l help
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l out -r
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l release -r
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l new-key
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is bundle' -l help
complete -c ringpipe -n '__ringpipe_verb_is push' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is push' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is push' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l mbit -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l at-once -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l no-wait
complete -c ringpipe -n '__ringpipe_verb_is push' -l wait -r
complete -c ringpipe -n '__ringpipe_verb_is push' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is push' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is push' -l help
complete -c ringpipe -n '__ringpipe_verb_is slots' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is slots' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is slots' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is slots' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is slots' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is slots' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is slots' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is slots' -l help
complete -c ringpipe -n '__ringpipe_verb_is validate' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is validate' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is validate' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is validate' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is validate' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is validate' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is validate' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is validate' -l help
complete -c ringpipe -n '__ringpipe_verb_is revert' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is revert' -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is revert' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is revert' -l where -r
complete -c ringpipe -n '__ringpipe_verb_is revert' -l listen -r
complete -c ringpipe -n '__ringpipe_verb_is revert' -l system
complete -c ringpipe -n '__ringpipe_verb_is revert' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is revert' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is revert' -l help
complete -c ringpipe -n '__ringpipe_verb_is keys' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is keys' -l dir -r
complete -c ringpipe -n '__ringpipe_verb_is keys' -l roster -r
complete -c ringpipe -n '__ringpipe_verb_is keys' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is keys' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is keys' -l help
complete -c ringpipe -n '__ringpipe_verb_is data' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is data' -l to -r
complete -c ringpipe -n '__ringpipe_verb_is data' -l from -r
complete -c ringpipe -n '__ringpipe_verb_is data' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is data' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is data' -l help
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l input -r
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l classes -r
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is inspect' -l help
complete -c ringpipe -n '__ringpipe_verb_is list' -l format -x -a 'text json svg'
complete -c ringpipe -n '__ringpipe_verb_is list' -l quiet
complete -c ringpipe -n '__ringpipe_verb_is list' -l verbose
complete -c ringpipe -n '__ringpipe_verb_is list' -l help
# end

complete -c ringpipe -n '__ringpipe_verb_is train eval plan profile sim lab' -k -a '(__fish_complete_suffix .yaml)'
complete -c ringpipe -n '__ringpipe_verb_is resume ps log stop' -a '(__fish_complete_directories)'
complete -c ringpipe -n '__ringpipe_verb_is predict' -F
complete -c ringpipe -n '__ringpipe_verb_is inspect' -k -a '(__fish_complete_suffix .safetensors)'
complete -c ringpipe -n '__ringpipe_verb_is inspect' -k -a '(__fish_complete_suffix .yaml)'
complete -c ringpipe -n '__ringpipe_verb_is boards' -a 'enrol adopt list show log reboot forget'
complete -c ringpipe -n '__ringpipe_verb_is keys' -a 'new show list trust untrust'
complete -c ringpipe -n '__ringpipe_verb_is data; and not __ringpipe_before_is fetch' -a fetch
# generated: names
complete -c ringpipe -n '__ringpipe_verb_is draw' -a 'gpipe umpipe 1f1b interleaved-1f1b zb-h1 async pipedream pipedream-2bw spectrain pipeoptim xpipe ea-pipe avgpipe pipefb'
complete -c ringpipe -n '__ringpipe_verb_is list' -a 'verbs layers losses optimizers lr-schedules schedules weights data fetch executors transports outputs faults links boards models'
complete -c ringpipe -n '__ringpipe_verb_is data; and __ringpipe_before_is fetch' -a 'mnist fashion-mnist cifar10 cifar100'
# end
complete -c ringpipe -n '__ringpipe_verb_is draw' -a table

for name in listen host board keys enrol roster threads name warm sample slots install last-words reboot
    complete -c ringpipe-agent -f -l $name -x
end
complete -c ringpipe-agent -f -l once -d 'End after one run'
complete -c ringpipe-agent -f -l revert -d 'Back from what is on trial, and end'
complete -c ringpipe-agent -f -l quiet -d 'Errors only in the journal'
complete -c ringpipe-agent -f -l verbose -d 'All that is known in the journal'
complete -c ringpipe-agent -f -l help
complete -c ringpipe-agent -f -l version
complete -c ringpipe-agent -l reboot -x -a 'allow refuse'
complete -c ringpipe-agent -l board -x -a '(__ringpipe_boards)'
complete -c ringpipe-agent -l keys -x -a '(__fish_complete_directories)'
complete -c ringpipe-agent -l slots -x -a '(__fish_complete_directories)'
complete -c ringpipe-agent -l install -x -k -a '(__fish_complete_suffix .rpb)'
complete -c ringpipe-agent -l warm -x -k -a '(__fish_complete_suffix .yaml)'
complete -c ringpipe-agent -l roster -x -k -a '(__fish_complete_suffix .yaml)'
