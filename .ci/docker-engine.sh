# shellcheck shell=bash disable=SC2034,SC2154  # variables shared with container-check
# Sourced by container-check where there is a Docker engine: nothing special.

engine=docker

engine_up() {
  quietly docker pull --quiet "$base"  # BuildKit keeps no image of it, whose size could be asked for
  say "building"
  quietly compose build
}

engine_down() { docker image rm --force "$project-onthedot" >/dev/null 2>&1; }
address() { compose port onthedot 8080; }
from_outside() { "$@"; }
