# A cluster of three nodes. The service file defines `use_node N`, which sets the variables of a node,
# and `node_answers`.
# shellcheck shell=bash

require_node() {
  [[ ${1:-} == [123] ]] || fail "the node must be 1, 2 or 3, but is \"${1:-}\""
}

# each_node COMMAND…: runs it with the variables of each node in turn, until it fails.
each_node() {
  local n
  for n in 1 2 3; do
    use_node "$n"
    "$@" || return
  done
}

count_alive() {
  local n count=0
  for n in 1 2 3; do
    if is_alive "$data/$n/node.pid"; then count=$((count + 1)); fi
  done
  echo "$count"
}

# cluster_status ADDRESSES: prints the addresses if all nodes respond; otherwise fails.
cluster_status() {
  local n running=()
  for n in 1 2 3; do
    use_node "$n"
    if node_answers; then running+=("$n"); fi
  done
  case ${#running[@]} in
  0) say "not running" && return 1 ;;
  3) say "$1 (running)" ;;
  *) say "only node ${running[*]} of 1 2 3 answers" && return 1 ;;
  esac
}
