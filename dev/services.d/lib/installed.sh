# A program that is installed and not started; tests start it. The service file sets `program`, or
# replaces `path` and `up` when it builds the program.
#   path            prints the path of the program
# shellcheck shell=bash disable=SC2034,SC2154

extras=(path)

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

path() {
  command -v "$program"
}

up() {
  path >/dev/null || install_packages "$program"
  say "$(path) (installed)"
}

down() {
  :
}

status() {
  if ! path >/dev/null; then
    say "not installed"
    return 1
  fi
  say "$(path) (installed)"
}
