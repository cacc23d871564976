// Composes each of BullMQ's scripts with Bullpen's steps into one atomic script.
//
// The text of BullMQ's script, in the pinned version, runs as a Lua function, because it returns from many places. In that text,
// the index's functions replace the commands that the status index watches. BullMQ writes each of these commands as
// `rcall("ZADD", …)`, which a test checks (watched-commands.test.ts). Bullpen's steps run before and after the call. They are needed only
// where Bullpen stores more than BullMQ does: STEPS lists them all. Every other BullMQ script that writes is composed as well, without any
// steps, so that the index follows every move that BullMQ makes, and so that Redis runs the script with the flags of its kind.
//
// Most of what tasks go through runs scripts of our own (../../store).
import { createRequire } from 'node:module'
import { RESERVED_IDS } from '../../keys.ts'
import { shebang } from '../../scripts/script.ts'
import { ATTEMPT_RECORDS, FENCE, LOSSES, TASK_EVENTS } from '../../store/scripts.ts'
import { COUNT_LOSS } from '../quarantine-steps.ts'
import { OPEN_INDEX, WATCHED } from '../status/status-index.ts'
import { withLanes, withLaneTimes, withLeaves } from '../turns/turn-steps.ts'
import { createdIncludes } from './created-includes.ts'

export interface BullmqScript {
  readonly name: string
  readonly keys: number
  readonly content: string
}

/**
 * Notes that the task `id` has returned from `active` to a place where it waits, if a cancel by filter may be looking for it.
 * Otherwise, a pass through the queue would miss a task that is fetched and returned at the wrong moments
 * (../../cancel/forget-rules.lua). A retry is noted, too, because a team's own Worker starts tasks that a rule matches.
 */
const NOTE_RETURN = `if call('EXISTS', base .. 'cancel-rules') == 1 then call('SADD', base .. 'cancel-returned', id) end`

/** Adds the event of a lost attempt of the task `id`. COUNT_LOSS has read the fields. */
const ADD_LOST = `if events then
    add_task_event(base, id, events, event_start('requeued', name, tags, group)
      .. string.format(',"attempt":%d,"fencingToken":%s,"outcome":"panicked",'
      .. '"error":{"code":"process_lost","message":"the worker was lost"}}', tonumber(attempts or '0') + 1, starts or '0'))
  end`

/** Refuses a job that a team's own Queue adds under a reserved id. */
const REFUSE_RESERVED = `
local own_id = cmsgpack.unpack(ARGV[1])[2]
if own_id ~= '' and string.find('${RESERVED_IDS}', ' ' .. own_id .. ' ', 1, true) then
  return redis.error_reply("ERR the job id '" .. own_id .. "' is the name of one of the queue's keys; use another id")
end`

/** What Bullpen adds to one of BullMQ's scripts. */
interface Steps {
  /** The names of the arguments that Bullpen adds to BullMQ's. Each is '' unless the caller sets it. */
  readonly extra: readonly string[]
  readonly before?: string
  /** Runs after BullMQ's script, whose return value is in `answer`. */
  readonly after?: string
}

/** Bullpen's steps, by the name of BullMQ's script. */
const STEPS: Readonly<Record<string, Steps>> = {
  addStandardJob: { extra: [], before: REFUSE_RESERVED },
  addDelayedJob: { extra: [], before: REFUSE_RESERVED },
  addPrioritizedJob: { extra: [], before: REFUSE_RESERVED },
  addParentJob: { extra: [], before: REFUSE_RESERVED },

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

/**
 * BullMQ's scripts that read, and those of another product in the same package. They run unchanged. The scripts that renew and
 * release locks do not move jobs either, but are composed because a full Redis would refuse to renew a lock without `allow-oom`.
 */
const NOT_COMPOSED: readonly RegExp[] = [/^get/, /^is/, /^relay/, /^paginate$/]

/** BullMQ's scripts that never run, because Bullpen's own take their place (../../store/backend.ts, ../../store/moves.ts). */
export const REPLACED: readonly string[] = [
  'moveToActive',
  'moveToFinished',
  'moveToDelayed',
  'retryJob',
  'moveJobFromActiveToWait',
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
  const { extra, before = '', after = '' } = steps
  const text = textWith(script)
  const lua = `${shebang(name.startsWith('add') ? 'adds' : 'frees')}
${removeArguments([...extra, 'base'])}
local call = redis.call
${OPEN_INDEX}
${name === 'moveStalledJobsToWait' ? `${FENCE}${ATTEMPT_RECORDS}${LOSSES}${TASK_EVENTS}` : ''}
${createdIncludes(text)}
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
export function textWith({ content }: BullmqScript): string {
  return withWatched(withLaneTimes(withLeaves(withLanes(content))))
}

/** Returns the text with the index's functions in place of the commands that the index watches. */
function withWatched(content: string): string {
  return WATCHED.reduce((lua, command) => lua.replaceAll(callOf(command), `watch('${command}',`), content)
}

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
