# The ports of this clone. Each clone on a machine has its own block of a thousand, so that two clones
# can run their servers at the same time. A service adds its offset: PostgreSQL is at port_base + 432.
# REDRIVE_PORT_BASE sets the block by hand.
# shellcheck shell=bash disable=SC2034

# Below 32768: above, the system may have given the port to an outgoing connection. The first block is
# the one that the examples use by default.
port_blocks=({25..31}000 {24..11}000)
# One port of each kind of server: a block where one of them is in use belongs to another program, or
# to a clone that was deleted while its servers ran.
port_samples=(222 324 379 432 435 700 701 900 910)

# Sets port_base. The clone keeps its block until it is deleted.
claim_port_block() {
  port_base=${REDRIVE_PORT_BASE:-}
  if [[ -n $port_base ]]; then
    check_port_base REDRIVE_PORT_BASE
    return
  fi
  mkdir -p .services
  check_folder
  if [[ ! -s .services/port-base ]]; then
    local claims=/var/cache/redrive/ports
    [[ $EUID -eq 0 ]] || claims=${XDG_CACHE_HOME:-$HOME/.cache}/redrive/ports
    mkdir -p "$claims"
    (flock 9 && choose_port_block "$claims") 9>"$claims.lock" || exit 1
  fi
  port_base=$(<.services/port-base)
  check_port_base .services/port-base
}

# check_port_base WHERE: other values would fail later, or use ports of the system.
check_port_base() {
  [[ $port_base =~ ^[1-9][0-9]{3,4}$ ]] && ((port_base <= 64000)) && return
  echo "dev/services: $1 is \"$port_base\". Expected the first port of a block of a thousand, from" \
    "1000 to 64000." >&2
  exit 2
}

# A copied or moved folder contains the ports and pids of the original. This clone would stop the
# servers of the original.
check_folder() {
  [[ -s .services/clone && $(<.services/clone) != "$(realpath .services)" ]] || return 0
  echo "dev/services: this folder was copied or moved from $(dirname "$(<.services/clone)"). Stop the servers" \
    "there, then delete .services here: it gets its own ports and data." >&2
  exit 2
}

# choose_port_block FOLDER: the folder has one file for each block in use, which names the clone.
choose_port_block() {
  # Another process of this clone may have been first.
  [[ ! -s .services/port-base ]] || return 0
  local block
  for block in "${port_blocks[@]}"; do
    if block_is_free "$block" "$1"; then
      pwd -P >"$1/$block"
      realpath .services >.services/clone
      echo "$block" >.services/port-base
      return
    fi
  done
  echo "dev/services: no free block of ports between 11000 and 31999. Run \`dev/services down\` in" \
    "other clones, or set REDRIVE_PORT_BASE." >&2
  return 1
}

# block_is_free BLOCK FOLDER
block_is_free() {
  local owner sample
  if [[ -s $2/$1 ]]; then
    owner=$(<"$2/$1")
    # A clone that was made again at the same path: servers of the old one may still run.
    [[ $owner != "$(pwd -P)" && -s $owner/.services/port-base && $(<"$owner/.services/port-base") == "$1" ]] && return 1
  fi
  for sample in "${port_samples[@]}"; do
    ! (: <>"/dev/tcp/127.0.0.1/$(($1 + sample))") 2>/dev/null || return 1
  done
}
