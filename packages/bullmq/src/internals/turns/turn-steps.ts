// Changes the texts of BullMQ's scripts, so that the tasks of a queue wait in lanes and take turns.
//
// - Where a text adds a task to `wait` or `prioritized`, a task with a lane goes to its lane instead (withLanes).
// - Where a text looks for the next delayed job, it also looks for the next time at which a lane may start a task (withLaneTimes).
//
// The texts call the functions of includes (../composition/created-includes.ts).

// A replacement is a function, because `$'` in a string would have a meaning of its own.

/** How BullMQ's scripts add a job to `wait` or to `prioritized`. */
const PUSH = 'rcall(pushCmd, targetKey, jobId)'
const PRIORITIZE = 'rcall("ZADD", prioritizedKey, score, jobId)'

/**
 * Lua: the priority, and whether the task is the first one of its priority, in the score that BullMQ has given to it.
 */
const PRIORITY = 'math.floor(score / 0x100000000)'
const IS_FIRST = 'score % 0x100000000 == 0'

/**
 * Returns a script's text, so that a task with a lane returns to its lane. A task is looked up by one command, whether or not it has a
 * lane.
 */
export function withLanes(text: string): string {
  return text
    .replaceAll(
      PUSH,
      () => `local lane = targetKey == base .. 'wait' and call('HGET', base .. jobId, 'lane')
  if lane then include('lanes').enter_lane(lane, jobId, 0, pushCmd == 'RPUSH')
  else ${PUSH} end`,
    )
    .replaceAll(
      PRIORITIZE,
      () => `local lane = prioritizedKey == base .. 'prioritized' and call('HGET', base .. jobId, 'lane')
  if lane then include('lanes').enter_lane(lane, jobId, ${PRIORITY}, ${IS_FIRST})
  else ${PRIORITIZE} end`,
    )
}

/** How BullMQ reads the first delayed job. */
const FIRST_DELAYED = 'local result = rcall("ZRANGE", delayedKey, 0, 0, "WITHSCORES")'

/**
 * Returns the text of a script, so that a lane that may start before the next delayed job is due determines how long a
 * worker waits.
 */
export function withLaneTimes(text: string): string {
  return text.replaceAll(
    FIRST_DELAYED,
    `${FIRST_DELAYED}
  local times = delayedKey == base .. 'delayed' and call('ZRANGE', base .. 'lane-times', '0', '0', 'WITHSCORES')
  local first = times and tonumber(times[2])
  if first and first * 0x1000 < tonumber(result[2] or math.huge) then return first end`,
  )
}
