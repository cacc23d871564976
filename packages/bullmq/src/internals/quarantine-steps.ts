// The steps in BullMQ's scripts that quarantine tasks whose process has died.
//
// These fields of a job belong to the quarantine. A job whose process was never lost has none of them:
//
// - `deaths`: how many processes have died because of the task, as far as is known. BullMQ's own counter, `stc`, is never reset,
//   and also counts deaths that another task has caused.
// - `alone`: the fencing token of an attempt that runs alone in its worker's process. Any other attempt of a quarantined task runs
//   in a child process, or waits in a worker. If the worker dies in the meantime, the task has not caused that death.
// - `diedIn`, `lostIn` and `livedIn`: the fencing tokens of three attempts: of the last one whose loss was counted as a death, of the last
//   one whose loss was counted in `stc`, and of the last one that has lost its lock although its process lives. The process notes this
//   itself (worker/note-survival.lua).
// - `waits`: set while the task is in the delayed set because a worker had no place for it. When it is due, it returns to the head
//   of the queue, so that it keeps its turn.
import { DELAYED_SCORE_STEP } from './status/places.ts'

/**
 * Counts a death for the lost task `id`, unless its process lives, or the task was in quarantine and did not run in the worker's process.
 * If its process lives, takes back the loss that BullMQ has just counted. The same command reads what the attempt's event needs.
 */
export const COUNT_LOSS = `local starts, deaths, alone, lived, attempts, events, name, tags, group =
    unpack(call('HMGET', base .. id, 'ats', 'deaths', 'alone', 'livedIn', 'atm', 'events', 'name', 'tags', 'group'))
  if starts and lived == starts then uncount_loss(base .. id)
  elseif starts then
    call('HSET', base .. id, 'lostIn', starts)
    if not deaths or alone == starts then
      call('HINCRBY', base .. id, 'deaths', 1)
      call('HSET', base .. id, 'diedIn', starts)
    end
  end`

/** Stores `survival`: 'lived' ends the quarantine, and 'died' is one more death. `job` is the key of the job. */
export const storeSurvival = (job: string): string =>
  `if survival == 'lived' then call('HDEL', ${job}, 'deaths', 'alone', 'diedIn') elseif survival == 'died' then call('HINCRBY', ${job}, 'deaths', 1) end`

/** How long the set `postponed` is kept after the last task was added, in ms. A task waits in the delayed set for at most 5 s. */
const KEEP_POSTPONED_MS = 60_000

/**
 * Uncounts the start of a task that a worker has no place for, and marks the task, so that it returns to the head of the queue. Also
 * adds the task to the set `postponed`, from which a light drain learns that it must wait for the task
 * (../queries/count-remaining.lua). Tasks that were due before are removed from this set.
 */
export const POSTPONE = `if returns == '1' then
    call('HINCRBY', KEYS[5], 'ats', -1)
    call('HSET', KEYS[5], 'waits', 1)
    call('ZREMRANGEBYSCORE', base .. 'postponed', '-inf', ARGV[2] * ${DELAYED_SCORE_STEP})
    call('ZADD', base .. 'postponed', call('ZSCORE', KEYS[4], ARGV[3]), ARGV[3])
    call('PEXPIRE', base .. 'postponed', ${KEEP_POSTPONED_MS})
  end`

/** How BullMQ promotes a due job to the end of the queue, or behind the jobs of its priority. */
const PROMOTION =
  /local priority =\s*tonumber\(rcall\("HGET", jobKey, "priority"\)\) or 0(\s*if priority == 0 then\s*(?:--.*\s*)?)rcall\("LPUSH", targetKey, jobId\)(\s*else\s*local score = )getPriorityScore\(priority, priorityCounterKey\)/g

/**
 * Returns the text with each promotion changed, so that a job with the field `waits` returns to the head of the queue, or before
 * the jobs of its priority, and so that a job with the field `lane` goes to its lane (turns/turn-steps.ts). One command reads all fields,
 * so a promotion takes Redis no longer than before.
 */
export function withReturns(text: string): string {
  return text.replaceAll(
    PROMOTION,
    (_, when: string, otherwise: string) => `local fields = rcall("HMGET", jobKey, "priority", "waits", "lane")
            local priority, returns, lane = tonumber(fields[1]) or 0, fields[2], fields[3]
            if returns then rcall("HDEL", jobKey, "waits") end${when}if lane then include('lanes').enter_lane(lane, jobId, 0, returns)
                else rcall(returns and "RPUSH" or "LPUSH", targetKey, jobId) end${otherwise}returns and priority * 0x100000000 or getPriorityScore(priority, priorityCounterKey)`,
  )
}
