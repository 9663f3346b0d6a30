#!/usr/bin/env bash
# Mutation tests: gremlins changes one operator of a package at a time, and a test of the package must fail for each change.
# Prints the mutants that live, and those that no test comes to; conditions of a `case` are always among these, since Go's coverage does
# not count them. Exit code 1: gremlins cannot be trusted here.
#
#   infra/tools/mutate.sh [package directory...]      by default all cores: services/*/internal/core/*
#
# Gremlins lies in two ways, so it runs on a copy and proves itself for each package:
# - It copies one module without the workspace. A module that is not found then fails to build, and every mutant looks killed.
#   So each module of the copy replaces the others by absolute paths, without a workspace.
# - Its time-out counts the compilation, so a slow build looks like a mutant that hangs. So the time-out is long.
# The proof: the unchanged code passes, and of two mutants of a planted function one lives and one is killed.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD gremlins=$PWD/bin/gremlins
[[ -x $gremlins ]] || { echo "no $gremlins: task mutate builds it" >&2; exit 1; }
packages=("$@")
((${#packages[@]})) || mapfile -t packages < <(git ls-files 'services/*/internal/core/*.go' | xargs -n1 dirname | sort -u)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
copy=$tmp/copy
mkdir "$copy" "$tmp/scratch"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [[ ! -f $f ]] || printf '%s\0' "$f"; done |
  tar --null -T - -cf - | tar -C "$copy" -xf -
rm "$copy"/go.work*
sed -n 's|^replace \(.*\) => \./*\(.*\)|replace \1 => '"$copy"'/\2|p' "$root/go.work" > "$tmp/replaces"
find "$copy" -name go.mod -not -path '*/tools/*' | while read -r mod; do cat "$tmp/replaces" >> "$mod"; done

# Few histories of the long models do for a mutant.
export GOWORK=off TMPDIR=$tmp/scratch YARD_HISTORIES=${YARD_HISTORIES:-300}

plant() { # DIRECTORY
  local name; name=$(sed -n 's/^package \([a-z0-9]*\)$/\1/p' "$1"/*.go | grep -v _test | head -1)
  printf 'package %s\n\nfunc planted(n int) bool { return n > 41 }\n' "$name" > "$1/planted_by_mutate.go"
  printf 'package %s\n\nimport "testing"\n\nfunc TestPlantedByMutate(t *testing.T) {\n\tif !planted(100) || planted(0) {\n\t\tt.Error("no")\n\t}\n}\n' \
    "$name" > "$1/planted_by_mutate_test.go"
}

weak=0
for package in "${packages[@]}"; do
  dir=$copy/${package%/} log=$tmp/log
  module=$dir; while [[ ! -f $module/go.mod ]]; do module=$(dirname "$module"); done
  plant "$dir"
  echo "$package"
  (cd "$dir" && go test -count=1 . > "$log" 2>&1) || { cat "$log"; echo "$package: the unchanged code does not pass in the copy" >&2; exit 1; }
  # Files below the directory are of packages of their own. INVERT_NEGATIVES makes the mutants of ARITHMETIC_BASE again.
  (cd "$module" && "$gremlins" unleash "./${dir#"$module"/}" --workers 2 --timeout-coefficient 500 --invert-negatives=false --exclude-files /) > "$log" 2>&1 ||
    { cat "$log"; exit 1; }
  for want in 'LIVED CONDITIONALS_BOUNDARY' 'KILLED CONDITIONALS_NEGATION'; do
    grep -q "$want at .*planted_by_mutate.go" "$log" || { cat "$log"; echo "$package: of what was planted there is no '$want'" >&2; exit 1; }
  done
  grep -E '^ *(LIVED|NOT COVERED|TIMED OUT) ' "$log" | grep -v planted_by_mutate | sed 's|^ *|  |' || true
  grep -E '^(Test efficacy|Mutator coverage|Killed|Timed out)' "$log" | sed 's|^|  |'
  ! grep -E '^ *(LIVED|NOT COVERED) ' "$log" | grep -qv planted_by_mutate || weak=$((weak + 1))
  rm "$dir"/planted_by_mutate*
done
echo "$weak of ${#packages[@]} packages have mutants that live: write a test, or say in the code why it may"
