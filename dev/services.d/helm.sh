# Helm, for tests of the chart. Needs Go 1.26, which builds it in some minutes, or an installed helm.
#   path            prints the path of the program
# shellcheck shell=bash disable=SC2034,SC2154

version=v3.22.0

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh

path() {
  command -v helm || { [[ -x $data/bin/helm ]] && echo "$data/bin/helm"; }
}

up() {
  if ! path >/dev/null; then
    command -v go >/dev/null || fail "not installed: install helm, or Go 1.26 to build it"
    say "building helm $version" >&2
    GOBIN=$data/bin go install "helm.sh/helm/v3/cmd/helm@$version" >"$data/install.log" 2>&1 ||
      fail "could not build helm: see $data/install.log"
  fi
  say "$(path) (installed)"
}
