# For scripts to read in: programs that Debian has.

say() { printf '[%4ss] %s\n' "$SECONDS" "$*"; }

# need NAME PACKAGE...: have NAME, which is missing, installed as root on Debian; elsewhere end the script with what was
# to be run skipped, but not in CI (CI=true).
need() {
  local name=$1 log
  shift
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    log=$(mktemp)
    say "installing $name"
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=120 install -qq -y --no-install-recommends "$@"; } >"$log" 2>&1; then
      tail -n 40 "$log" >&2
      exit 1
    fi
  elif [ "${CI:-}" = true ]; then
    say "FAILED: there is no $name, and only root on Debian can install one" >&2
    exit 1
  else
    say "SKIPPED: there is no $name here"
    exit 0
  fi
}
