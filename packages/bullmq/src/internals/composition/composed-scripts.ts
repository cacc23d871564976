// Composes each of BullMQ's scripts with Bullpen's steps into one atomic script.
//
// The text of BullMQ's script, in the pinned version, runs as a Lua function, because it returns from many places. In that text,
// the index's functions replace the commands that the status index watches. BullMQ writes each of these commands as
// `rcall("ZADD", …)`, which a test checks (watched-commands.test.ts); replacing `redis` with an object that looks at every
// command would cost 4 µs for each finished task. Bullpen's steps run before and after the call. They are needed only where
// Bullpen stores more than BullMQ does: STEPS lists them all. Every other BullMQ script that writes is composed as well, without
// any steps, so that the index follows every move that BullMQ makes, and so that Redis runs the script with the flags of its kind.
//
// A broker adds tasks with a script of its own (../../store/add.ts). Three scripts (FETCHES) fetch a task. They take tasks out of `wait`
// only with RPOPLPUSH, and out of `prioritized` only with ZPOPMIN. For a consumer that runs only some tasks, fetch-steps.ts takes one
// of these instead, after the same script has committed the previous attempt's end, and before it reads the job's data. If nothing is
// taken, BullMQ continues as if the list and the set were empty.
import { createRequire } from 'node:module'
import { RESERVED_IDS } from '../../keys.ts'
import { shebang } from '../../scripts/script.ts'
import { ATTEMPT_RECORDS, FENCE, LOSSES, REMOVE_ENDED, RETRY_BUDGET, TASK_EVENTS } from '../../store/scripts.ts'
import { COUNT_LOSS, POSTPONE, storeSurvival, withReturns } from '../quarantine-steps.ts'
import { OPEN_INDEX, WATCHED } from '../status/status-index.ts'
import { withLanes, withLaneTimes, withLeaves } from '../turns/turn-steps.ts'
import { createdIncludes } from './created-includes.ts'
import { withEndedCalls } from './ended-calls.ts'
import { withFetch } from './fetch-steps.ts'
import { withLazyFunctions } from './lazy-functions.ts'
import { withLiteralStrings } from './literal-arguments.ts'
import { CONFIRM_RESENT_END, confirmResentFields, confirmResentStacks } from './resent-commit.ts'
import { type Steps, SUCCEEDED } from './steps.ts'

export interface BullmqScript {
  readonly name: string
  readonly keys: number
  readonly content: string
}

/**
 * How many attempts end between two removals of old tasks. Each removal deletes up to twice as many tasks, so that the number of
 * old tasks falls. The leader removes the rest. Looking for old tasks at every end would cost Redis 1 µs more for each task.
 */
export const ENDS_PER_REMOVAL = 8

/**
 * Notes that the task `id` has returned from `active` to a place where it waits, if a cancel by filter may be looking for it.
 * Otherwise, a pass through the queue would miss a task that is fetched and returned at the wrong moments
 * (../../cancel/forget-rules.lua). A retry is noted, too, because a team's own Worker starts tasks that a rule matches.
 */
const NOTE_RETURN = `if call('EXISTS', base .. 'cancel-rules') == 1 then call('SADD', base .. 'cancel-returned', id) end`

const noteReturnOf = (id: string): string => `
if ${SUCCEEDED} then
  local id = ${id}
  ${NOTE_RETURN}
end`

/**
 * Returns the task `id`, which was released before its first start, to the index of queue timeouts. The task has left the index
 * if the leader examined the index while a worker had the task (../../leader/expire-tasks.lua).
 */
const EXPIRE_AGAIN = `local expires_at = call('HGET', ARGV[3], 'expiresAt')
    if expires_at then call('ZADD', base .. 'expiries', expires_at, id) end`

/**
 * Wakes a Worker if the job `id` has returned to the prioritized set or to its lane, for which BullMQ adds no marker. Without the marker,
 * an idle Worker would find the job only when its own wait ends.
 */
const MARK_PRIORITIZED = `if call('ZSCORE', base .. 'prioritized', id) or call('HEXISTS', base .. id, 'lane') == 1 then call('ZADD', base .. 'marker', 0, '0') end`

/**
 * Adds the events of an attempt whose verdict the script has carried out. `id` and `due` are Lua expressions: the task's id, and the time
 * that completes an event whose text ends before its time.
 */
const addEventsOf = (id: string, due = 'nil'): string => `
if events ~= '' and (${SUCCEEDED}) then${TASK_EVENTS}
  add_task_events(base, ${id}, events, ${due})
end`

/** Adds the event of a lost attempt of the task `id`. COUNT_LOSS has read the fields. */
const ADD_LOST = `if events then
    add_task_event(base, id, events, event_start('requeued', name, tags, group)
      .. string.format(',"attempt":%d,"fencingToken":%s,"outcome":"panicked",'
      .. '"error":{"code":"process_lost","message":"the worker was lost"}}', tonumber(attempts or '0') + 1, starts or '0'))
  end`

/** What BullMQ adds to the event of a job's end: the output, or the reason of the failure. */
const RESULT_IN_EVENT = 'ARGV[3], ARGV[4], "prev", "active"'

/**
 * Returns the text of `moveToFinished`, so that the event of a task of a pipeline run does not contain the output, which has
 * been passed on. BullMQ's stream would otherwise keep the outputs of 10,000 tasks. BullMQ parses the result as JSON.
 */
function withoutPassedOn(text: string): string {
  return text.replace(
    RESULT_IN_EVENT,
    `ARGV[3], ARGV[5] == 'completed' and index.unkept == ARGV[1] and 'null' or ARGV[4], "prev", "active"`,
  )
}

/** Refuses a job that a team's own Queue adds under a reserved id. */
const REFUSE_RESERVED = `
local own_id = cmsgpack.unpack(ARGV[1])[2]
if own_id ~= '' and string.find('${RESERVED_IDS}', ' ' .. own_id .. ' ', 1, true) then
  return redis.error_reply("ERR the job id '" .. own_id .. "' is the name of one of the queue's keys; use another id")
end`

/** Bullpen's steps, by the name of BullMQ's script. */
const STEPS: Readonly<Record<string, Steps>> = {
  addStandardJob: { extra: [], before: REFUSE_RESERVED },
  addDelayedJob: { extra: [], before: REFUSE_RESERVED },
  addPrioritizedJob: { extra: [], before: REFUSE_RESERVED },
  addParentJob: { extra: [], before: REFUSE_RESERVED },

  moveToActive: {
    /** `candidates`: see ./fetch-steps.ts. */
    extra: ['candidates'],
    adapt: withFetch,
  },

  moveToFinished: {
    /** See ./ended-calls.ts. */
    last: 'calls',
    /**
     * `part`: cancelled or expired; '' if the task is completed or dead. `keptSince`, `keptCount`: which tasks are kept among
     * those with this task's new status. Tasks that ended before `keptSince` (ms since 1970) are removed, as are all but the
     * newest `keptCount`. Both are '' unless this end also removes old tasks (see {@link ENDS_PER_REMOVAL}). `attempt`: the
     * fencing token of the attempt. `rule`: the id of the cancel rule because of which the task ends. `budget`: see
     * ../../store/lua/includes/retry-budget.lua. `fingerprint`: the kind of error that made the task dead
     * (../status/stored-kind.ts); '' unless the task is dead. `events`: see ../../store/lua/includes/task-events.lua.
     * `followUps`: the lines of the follow-ups that the handler has added (../../store/lua/includes/outbox.lua). `candidates`: see
     * ./fetch-steps.ts.
     */
    extra: [
      ...['part', 'keptSince', 'keptCount', 'attempt', 'rule', 'budget', 'fingerprint', 'events', 'followUps'],
      'candidates',
    ],
    adapt: (text) => withoutPassedOn(withFetch(text)),
    before: `if part ~= '' then index.into.failed = part end
if fingerprint ~= '' then index.fingerprint = fingerprint end
index.ending = ARGV
if followUps ~= '' then index.follow_ups = followUps end`,
    after: `${CONFIRM_RESENT_END}
if rule ~= '' and part == 'cancelled' and (${SUCCEEDED}) then call('HINCRBY', base .. 'cancel-progress:' .. rule, 'ended', 1) end
if (keptSince ~= '' or keptCount ~= '') and (${SUCCEEDED}) then
  ${REMOVE_ENDED}
  local status = ARGV[5] == 'completed' and 'completed' or part ~= '' and part or 'dead'
  remove_ended(base, status, keptSince, keptCount, ${2 * ENDS_PER_REMOVAL})
end
if budget ~= '' and (${SUCCEEDED}) then${RETRY_BUDGET}
  end_retry(budget, tonumber(ARGV[2]), ARGV[5] == 'completed')
end
${addEventsOf('ARGV[1]')}
if index.unkept == ARGV[1] then${REMOVE_ENDED}
  remove_ended_task(base, ARGV[5] == 'completed' and 'completed' or part, ARGV[1])
  if attempt ~= '' then remember_removal(base, ARGV[1] .. ' e' .. attempt) end
end`,
  },

  moveToDelayed: {
    last: 'calls',
    /**
     * `budget`: see ../../store/lua/includes/retry-budget.lua. `survival`: see ../quarantine-steps.ts. `returns`: '1' if the task was
     * not started because it has no place in quarantine. `events`: see ../../store/lua/includes/task-events.lua. `candidates`: see
     * ./fetch-steps.ts.
     */
    extra: ['budget', 'survival', 'returns', 'events', 'candidates'],
    adapt: withFetch,
    // If the task's lock does not have the token, BullMQ refuses the move, so the budget stays as it is.
    // BullMQ's argument is "0" if the move counts an attempt. A task that has no place in quarantine keeps its kind of status.
    before: `
local is_retry = ARGV[6] == '0' or returns == '1' and (tonumber(call('HGET', KEYS[5], 'atm')) or 0) > 0
index.into.delayed = is_retry and 'retrying' or 'scheduled'
if budget ~= '' and call('GET', KEYS[5] .. ':lock') == ARGV[4] then${RETRY_BUDGET}
  local now = tonumber(ARGV[2])
  ARGV[5] = string.format('%.0f', admit_retry(budget, now, ARGV[3], now + ARGV[5]) - now)
end`,
    after: `${confirmResentFields('KEYS[5]', 'ARGV[7]')}${noteReturnOf('ARGV[3]')}
if ${SUCCEEDED} then
  ${storeSurvival('KEYS[5]')}
  ${POSTPONE}
end
${addEventsOf('ARGV[3]', 'ARGV[2] + ARGV[5]')}`,
  },

  retryJob: {
    last: 'calls',
    /** `survival`: see ../quarantine-steps.ts. `events`: see ../../store/lua/includes/task-events.lua. */
    extra: ['survival', 'events'],
    after: `${confirmResentFields('KEYS[4]', 'ARGV[6]')}${noteReturnOf('ARGV[4]')}
if ${SUCCEEDED} then
  ${storeSurvival('KEYS[4]')}
end
${addEventsOf('ARGV[4]')}`,
  },

  moveJobFromActiveToWait: {
    /**
     * `stacks`: the attempt records to store. `uncount`: '1' if the handler was never started, so that the start is uncounted.
     * `survival`: see ../quarantine-steps.ts. `events`: see ../../store/lua/includes/task-events.lua.
     */
    extra: ['stacks', 'uncount', 'survival', 'events'],
    // If the job is not active, BullMQ does not move it, but replies as if it had. The composed script then returns -3, as
    // BullMQ's other transitions do.
    before: `local active = call('LLEN', KEYS[1])`,
    after: `${confirmResentStacks('ARGV[3]')}
if ${SUCCEEDED} then
  if call('LLEN', KEYS[1]) == active then return -3 end
  if stacks ~= '' then call('HSET', ARGV[3], 'stacktrace', stacks) end
  local id = ARGV[1]
  if uncount == '1' and call('HINCRBY', ARGV[3], 'ats', -1) == 0 then
    ${EXPIRE_AGAIN}
  end
  ${NOTE_RETURN}
  ${MARK_PRIORITIZED}
  ${storeSurvival('ARGV[3]')}
end
${addEventsOf('ARGV[1]')}`,
  },

  moveStalledJobsToWait: {
    /** `at`: when the lost attempts were found (ms since 1970). `fencing`: the leader's number, unless a Worker runs the script. */
    extra: ['at', 'fencing'],
    // BullMQ prevents two simultaneous checks with a key that lasts for one check interval. The leader does not need that key.
    before: `
if fencing ~= '' then
  if is_deposed(base .. 'leader', fencing) then return {} end
  call('DEL', KEYS[4])
end`,
    after: `
if #answer > 0 then call('HINCRBY', base .. 'totals', 'recovered', #answer) end
for _, id in ipairs(answer) do
  record_lost_attempt(base .. id, at)
  ${COUNT_LOSS}
  ${NOTE_RETURN}
  ${ADD_LOST}
end`,
  },
}

/** BullMQ's scripts that fetch a job: on its own, or after the end or the delay of another one. */
export const FETCHES: readonly string[] = ['moveToActive', 'moveToFinished', 'moveToDelayed']

/**
 * BullMQ's scripts that read, and those of another product in the same package. They run unchanged. The scripts that renew and
 * release locks do not move jobs either, but are composed because a full Redis would refuse to renew a lock without `allow-oom`.
 */
const NOT_COMPOSED: readonly RegExp[] = [/^get/, /^is/, /^relay/, /^paginate$/]

/** BullMQ's scripts that never run, because Bullpen's own scripts take their place (../../store/backend.ts). */
export const REPLACED: readonly string[] = [
  'reprocessJob',
  'removeJob',
  'removeUnprocessedChildren',
  'promote',
  'changeDelay',
  'changePriority',
  'updateData',
  'cleanJobsInSet',
  'moveJobsToWait',
  'drain',
  'obliterate',
  'removeOrphanedJobs',
]

export interface ComposedScript {
  readonly name: string
  readonly numberOfKeys: number
  readonly lua: string
  readonly extra: readonly string[]
}

/** Composes one script. It has one more argument, `base`, which follows the extra ones. */
export function compose(script: BullmqScript): ComposedScript {
  const { name, keys } = script
  const steps: Steps = STEPS[name] ?? { extra: [] }
  const { extra, last, before = '', after = '' } = steps
  const text = textWith(steps, script)
  const lua = `${shebang(name.startsWith('add') ? 'adds' : 'frees')}
${last === undefined ? '' : removeLast(last)}${removeArguments([...extra, 'base'])}
local call = redis.call
${OPEN_INDEX}
${name === 'moveStalledJobsToWait' ? `${FENCE}${ATTEMPT_RECORDS}${LOSSES}${TASK_EVENTS}` : ''}
${FETCHES.includes(name) ? 'local may_be_uncounted, is_last_start, features_at_end' : ''}
${createdIncludes(`${text}${before}`)}
local function bullmq()
${text}
end
${before}
local answer = bullmq()
${after}
return answer
`
  return { name: `bullpen:${name}`, numberOfKeys: keys, lua, extra }
}

/** Returns the text of BullMQ's script with everything that Bullpen changes in it. */
export function textWith({ last, adapt = unchanged }: Steps, script: BullmqScript): string {
  const withCalls = last === undefined ? unchanged : withEndedCalls
  const content = withLiteralStrings(withLaneTimes(withLeaves(withCalls(withLanes(withReturns(script.content))))))
  return adapt(withWatched(withLazyFunctions({ name: script.name, content })))
}

const unchanged = (text: string): string => text

/** Returns the text with the index's functions in place of the commands that the index watches. */
function withWatched(content: string): string {
  return WATCHED.reduce((lua, command) => lua.replaceAll(callOf(command), `watch('${command}',`), content)
}

/** Removes the argument that is sent only if it is needed. The one before it, `base`, is no JSON array. */
const removeLast = (
  name: string,
): string => `local ${name} = string.sub(ARGV[#ARGV], 1, 1) == '[' and table.remove(ARGV) or ''
`

/** Removes Bullpen's arguments, because some of BullMQ's scripts look at the number of arguments. */
function removeArguments(names: readonly string[]): string {
  const taken = names.map((_, i) => `ARGV[n - ${names.length - 1 - i}]`).join(', ')
  return `local n = #ARGV
local ${names.join(', ')} = ${taken}
${taken} = nil`
}

/**
 * Returns a pattern that matches the beginning of a call to this command in a BullMQ script, unless the call concerns the marker.
 * Nearly every script writes the marker, which is in no divided set.
 */
export function callOf(command: string): RegExp {
  return new RegExp(`\\brcall\\(\\s*(["'])${command}\\1\\s*,(?!\\s*markerKey\\b)`, 'gi')
}

/** Returns BullMQ's scripts. BullMQ exports them only from this file, which it loads itself. */
export function bullmqScripts(): readonly BullmqScript[] {
  const scripts: unknown = createRequire(import.meta.url)('bullmq/dist/cjs/scripts/index.js')
  return Object.values(scripts as Readonly<Record<string, BullmqScript>>)
}

/** The composed scripts, by the name of BullMQ's. */
export const COMPOSED: ReadonlyMap<string, ComposedScript> = new Map(
  bullmqScripts()
    .filter(({ name }) => !NOT_COMPOSED.some((pattern) => pattern.test(name)) && !REPLACED.includes(name))
    .map((script) => [script.name, compose(script)]),
)
