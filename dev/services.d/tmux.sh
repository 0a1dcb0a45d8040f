# tmux, for proofs that need a real terminal.
# shellcheck shell=bash disable=SC2034

program=tmux

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh
