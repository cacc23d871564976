// What Bullpen changes in the scripts that fetch a task. Where BullMQ takes the first waiting task,
//
// - a queue whose lanes take turns, or that limits something, starts its next task (../../store/lua/includes/turns.lua).
// - a consumer that runs only some tasks starts one of these (../../store/lua/includes/candidates.lua).
//
// If BullMQ then takes a task out of `prioritized`, that start is counted. A start after which no further task may start wakes no other
// worker.

const TAKE_FIRST = 'local jobId = rcall("RPOPLPUSH", waitKey, activeKey)'
const TAKE_PRIORITIZED = 'local prioritizedJob = rcall("ZPOPMIN", priorityKey)'

/** How BullMQ adds the marker whenever a task starts, so that another worker looks for the next one. */
const WAKE_NEXT = 'addBaseMarkerIfNeeded(markerKey, false)'

const PRIORITIZED_TAKEN = 'rcall("LPUSH", activeKey, prioritizedJob[1])'

/**
 * Encodes the candidates of a consumer as an argument of the scripts. It begins with a blank, so that a consumer that has no candidate at
 * the moment takes nothing. For a consumer that runs all tasks, the argument is '', and the scripts take the first task.
 */
export function candidatesArgument(ids: readonly string[]): string {
  return ` ${ids.join(' ')}`
}

/**
 * Returns the text of a script that fetches a task with the steps above. Without lanes and limits, one command finds that out, and the
 * script pays for nothing else. Lanes that took turns when the last task ended still do. The text needs three local variables: what the end of the last task
 * has found (`features_at_end`), whether no further task may start (`is_last_start`), and whether a start may have to be counted
 * (`may_be_uncounted`).
 */
export function withFetch(text: string): string {
  return text
    .replace(
      TAKE_FIRST,
      () => `local jobId
if candidates == '' then
  local takes_turns = features_at_end and features_at_end % 2 == 1
    or call('EXISTS', base .. 'turn-state', base .. 'key-limits', base .. 'capacities') > 0
  if takes_turns then
    jobId, is_last_start, may_be_uncounted = include('turns').start_next(features_at_end, ARGV[2])
  else
    jobId = rcall("RPOPLPUSH", waitKey, activeKey)
  end
else
  jobId = include('candidates').start_candidate(candidates, ARGV[2])
end`,
    )
    .replace(WAKE_NEXT, () => `if is_last_start then rcall("ZREM", markerKey, "0") else ${WAKE_NEXT} end`)
    .replace(
      PRIORITIZED_TAKEN,
      (line) => `${line}
  if may_be_uncounted then include('turns').limited().hold_places(prioritizedJob[1]) end`,
    )
    .replace(TAKE_PRIORITIZED, `if candidates ~= '' then return end\n  ${TAKE_PRIORITIZED}`)
}
