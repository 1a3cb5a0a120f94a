# Sourced by run_tests and check: runs named steps to the end, then says which of them failed and
# what the test runners counted.

# Several tests share the processors: threads that spin for more work take them from each other.
export OMP_WAIT_POLICY=passive

# Programs that tests start keep what they print in buffers, as most users' programs do.
unset PYTHONUNBUFFERED

failed_steps=()
counts=()

# step NAME COMMAND...: a failing step does not stop the ones after it.
step() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  "$@" || failed_steps+=("$name")
}

# Runs one test runner; shows what it prints except lines that match HIDE, and keeps its count.
# run_and_count HIDE COUNT COMMAND...
run_and_count() {
  local hide=$1 count=$2 log status=0 line
  shift 2
  log=$(mktemp)
  "$@" </dev/null 2>&1 | tee "$log" | grep --line-buffered -vE "$hide" || status=$?
  while IFS= read -r line; do counts+=("$line"); done < <(grep -E "$count" "$log")
  rm -f "$log"
  return "$status"
}

# run_ctest PRESET [argument ...]: passing tests stay silent, failing ones print their output.
run_ctest() {
  local preset=$1
  shift
  run_and_count '^( *Start +[0-9]+:|.* Passed +[0-9.]+ sec$|Internal ctest changing)' 'tests passed, ' \
    ctest --test-dir "build/$preset" -j "${JOBS:-$(nproc)}" --output-on-failure --no-tests=error "$@"
}

# run_lit PRESET [argument ...]: the text-in, text-out tests.
run_lit() {
  local preset=$1
  shift
  run_and_count '^PASS: ' '^ *(Passed|Failed|Unresolved|Timed Out) *:' \
    build/venv/bin/lit -j "${JOBS:-$(nproc)}" -v --param "preset=$preset" "$@" tests
}

# run_pytest PRESET [argument ...]
run_pytest() {
  local preset=$1
  shift
  PYTHONPATH="build/$preset/python" run_and_count '^$' '^=.* in [0-9.]+s' \
    build/venv/bin/python -m pytest --no-header "$@"
}

# The last words; the status is that of all steps together.
finish() {
  printf '\n== result\n'
  [ ${#failed_steps[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed_steps[@]}"
  [ ${#counts[@]} -eq 0 ] || printf '%s\n' "${counts[@]}"
  [ ${#failed_steps[@]} -eq 0 ]
}
