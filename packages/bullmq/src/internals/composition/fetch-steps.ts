// What Bullpen changes in the scripts that fetch a task. Where BullMQ takes the first waiting task,
//
// - a task is taken from the lane whose turn it is (../turns/turn-steps.ts), or else the first task of `wait`. A task with a
//   lane that another tool has put there returns to its lane.
// - a consumer that runs only some tasks takes one of these (./candidate-steps.ts).
//
// A task that was not taken from its lane is counted, and the last start that is possible wakes no other worker.
import { countOther } from '../turns/key-concurrency.ts'
import { MAX_LANES, RETURN_STRAY, TAKE_TURN } from '../turns/turn-steps.ts'
import { TAKE_CANDIDATE } from './candidate-steps.ts'

const TAKE_FIRST = 'local jobId = rcall("RPOPLPUSH", waitKey, activeKey)'
const TAKE_PRIORITIZED = 'local prioritizedJob = rcall("ZPOPMIN", priorityKey)'

/** How BullMQ adds the marker whenever a task starts, so that another worker looks for the next one. */
const WAKE_NEXT = 'addBaseMarkerIfNeeded(markerKey, false)'

const PRIORITIZED_TAKEN = 'rcall("LPUSH", activeKey, prioritizedJob[1])'

/** Returns the text of a script that fetches a task with the steps above. */
export function withFetch(text: string): string {
  return text
    .replace(
      TAKE_FIRST,
      () => `local jobId
if candidates == '' then
  local lane
  for _ = 1, ${MAX_LANES} do${TAKE_TURN}
    if jobId then break end
    jobId = rcall("RPOPLPUSH", waitKey, activeKey)
    lane = may_be_uncounted and jobId and call('HGET', base .. jobId, 'lane')
    if jobId then may_be_uncounted = false end
    if not lane then break end${RETURN_STRAY}
  end
  if lane and not jobId then call('ZADD', base .. 'marker', 0, '0') end
else${TAKE_CANDIDATE}
end${countOther('jobId')}`,
    )
    .replace(WAKE_NEXT, () => `if is_last_start then rcall("ZREM", markerKey, "0") else ${WAKE_NEXT} end`)
    .replace(PRIORITIZED_TAKEN, (line) => `${line}${countOther('prioritizedJob[1]')}`)
    .replace(TAKE_PRIORITIZED, `if candidates ~= '' then return end\n  ${TAKE_PRIORITIZED}`)
}
