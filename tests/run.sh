#!/bin/bash
# tests/run.sh test|ci|STEP... - run test steps one after the other, all of them whatever fails.
#
# A step is `make TARGET [VAR=VALUE...]` in one word ("check V=asan"), or a folder of executable
# files test_* (tests/e2e): exit 0 is a pass, 77 a skip whose last line gives the reason. They run
# from the top folder and find build/sluice, build/sluice-load and build/impair.
# Output goes to build/logs/; of a failure the end is shown. Last line: N passed, N failed[, N
# skipped]. Exit 1 when anything failed or nothing ran.
set -uo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
export PATH="/usr/bin:/bin:$PATH" # Debian's python3 has Debian's modules

jobs=$(nproc)
logs=${BUILD:-build}/logs
shown_lines=60
step_limit=${STEP_LIMIT:-25m}
test_limit=${TEST_LIMIT:-5m}
passed=0 failed=0 skipped=0
failures=()
mkdir -p "$logs"

fail() { # name, log, how many
	failed=$((failed + ${3:-1}))
	failures+=("$1")
	echo "FAILED $1; the end of $2:"
	grep -vE '^  (cc|gcc|clang[-0-9]*) ' "$2" | tail -n "$shown_lines" | sed 's/^/    /'
}

# Criterion prints one line of counts a program; sum one of its columns.
count_of() { # log, column
	local sum=0 n
	while read -r n; do sum=$((sum + n)); done < <(
		sed -nE "s/^\[====\] Synthesis: Tested:.*$2: ([0-9]+).*/\1/p" "$1"
	)
	echo $sum
}

run_make() { # "target VAR=VALUE"
	local log ok bad status=0
	log=$logs/$(tr -c 'a-zA-Z0-9\n' '-' <<<"$1").log
	# shellcheck disable=SC2086
	timeout -k 10 "$step_limit" make -k -Otarget -j"$jobs" $1 </dev/null >"$log" 2>&1 || status=$?
	ok=$(($(count_of "$log" Passing) + $(grep -c '^ok ' "$log")))
	bad=$(($(count_of "$log" Failing) + $(count_of "$log" Crashing) + $(grep -c '^FAILED ' "$log")))
	# A target without programs of its own to count is one check itself.
	[ $((ok + bad)) -gt 0 ] || [ $status != 0 ] || ok=1
	[ $status = 0 ] || [ $bad -gt 0 ] || bad=1
	passed=$((passed + ok))
	if [ $bad -gt 0 ]; then
		fail "make $1" "$log" "$bad"
	else
		echo "ok make $1: $ok (${SECONDS}s)"
	fi
}

run_folder() {
	local program log status
	for program in "$1"/test_*; do
		[ -f "$program" ] && [ -x "$program" ] || continue
		log=$logs/${program//\//-}.log
		SECONDS=0 status=0
		timeout -k 10 "$test_limit" "$program" </dev/null >"$log" 2>&1 || status=$?
		case $status in
		0)
			passed=$((passed + 1))
			echo "ok $program (${SECONDS}s)"
			;;
		77)
			skipped=$((skipped + 1))
			echo "skip $program: $(tail -n 1 "$log")"
			;;
		124) fail "$program (over $test_limit)" "$log" ;;
		*) fail "$program" "$log" ;;
		esac
	done
}

test_steps=(
	"check V=debug" "check V=asan" "check V=release"
	"stress V=tsan" fuzz
	e2e-programs # the release build again, for what follows
	tests/e2e tests/browser
)
case ${1-} in
test) set -- "${test_steps[@]}" ;;
# The fuzzers compile the debug code with clang; this is the rest of it.
ci) set -- layers lint "compile CC=clang-14 BUILD=build/clang" "${test_steps[@]}" ;;
esac

for step in "$@"; do
	SECONDS=0
	if [[ $step == tests/* ]]; then
		run_folder "$step"
	else
		run_make "$step"
	fi
done

[ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]}"
summary="$passed passed, $failed failed"
[ $skipped = 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ $failed = 0 ] && [ $passed -gt 0 ]
