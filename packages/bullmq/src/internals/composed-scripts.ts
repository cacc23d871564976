// BullMQ's scripts with Bullpen's steps around them, each pair as one atomic script.
//
// The text of the pinned version runs as a Lua function, because it returns from many places. The commands that the status index
// watches are replaced in it by the index's functions. BullMQ writes each of them as `rcall("ZADD", …)`, which a test checks
// (watched-commands.test.ts); a `redis` of ours that looked at every command would cost 4 µs for each finished task. Bullpen's
// steps run before and after the call. They are only needed where Bullpen stores more than BullMQ does: STEPS lists them all.
// Every other script of BullMQ that writes is composed as well, with no steps of its own, so that the index follows every move
// that BullMQ makes.
//
// A task is added where ADD says. A task is fetched in three scripts (FETCHES), which take it out of `wait` with RPOPLPUSH or out
// of `prioritized` with ZPOPMIN, and in no other way. A step that decides whether and which task is fetched therefore belongs to
// these two commands: it is one function that is called in their place, as the index's functions are. It runs after the end of the
// attempt that the same script has committed, so that it sees what that end has released, and before the job's data is read. After
// an empty answer, BullMQ goes on as if the list or set were empty.
import { createRequire } from 'node:module'
import { END_RECORD } from '../scripts/includes/attempt-record.ts'
import { FENCE } from '../scripts/includes/fence.ts'
import { type ScriptKind, shebang } from '../scripts/script.ts'
import { CONFIRM_RESENT_END, confirmResentFields, confirmResentStacks } from './resent-commit.ts'
import { statusIndex, WATCHED } from './status-index.ts'

export interface BullmqScript {
  readonly name: string
  readonly keys: number
  readonly content: string
}

interface Steps {
  /** The names of the arguments that Bullpen adds to BullMQ's. Each is '' unless the caller sets it. */
  readonly extra: readonly string[]
  /**
   * How many arguments BullMQ's script has, if it always has the same number and reads each by its position. Bullpen's are then read
   * by their positions as well, which costs Redis 0.3 µs less than removing them.
   */
  readonly own?: number
  readonly before?: string
  /** Runs with BullMQ's answer in `answer`. */
  readonly after?: string
}

/** An answer of BullMQ's that is a negative number is an error: nothing was written. */
const SUCCEEDED = `type(answer) ~= 'number' or answer >= 0`

/**
 * The steps around all four of BullMQ's adds. `before` decides whether the task is added, and it is the only place that does: it may
 * answer without running BullMQ's script, in which case nothing has been written. The answer to a broker is a number, which takes
 * Redis 0.6 µs less than a list: 1 if the task has been created, 0 if it exists. A Queue's own `add` gives no `id`, and gets
 * BullMQ's answer, which is the id.
 */
const ADD: Steps = {
  /**
   * `id`: the id of a task that a broker enqueues. `expiresAt`: when the task expires unless it has started (ms since 1970).
   * `tags`: a JSON array.
   */
  extra: ['id', 'expiresAt', 'tags'],
  own: 3,
  before: `if id ~= '' and call('EXISTS', base .. id) == 1 then return 0 end`,
  after: `
if index.added then
  if expiresAt ~= '' then call('ZADD', base .. 'expiries', expiresAt, answer) end
  if tags ~= '' then call('HSET', base .. answer, 'tags', tags) end
end
if id ~= '' and (${SUCCEEDED}) then return 1 end`,
}

/**
 * Notes that the task `id` has returned from `active` to `wait`, if a cancel by filter may be looking for it: its pass through the
 * queue would otherwise miss a task that is fetched and returned at the wrong moments (../scripts/cancel/forget-rules.ts).
 */
const NOTE_RETURN = `if call('EXISTS', base .. 'cancel-rules') == 1 then call('SADD', base .. 'cancel-returned', id) end`

/** Bullpen's steps, by the name of BullMQ's script. */
const STEPS: Readonly<Record<string, Steps>> = {
  addStandardJob: ADD,
  addDelayedJob: ADD,
  addPrioritizedJob: ADD,
  addParentJob: ADD,

  moveToFinished: {
    /**
     * `part`: cancelled or expired; '' if the task is dead. `keptSince`: completed tasks that ended before are removed (ms since 1970). `attempt`:
     * the fencing token of the attempt that ends.
     */
    extra: ['part', 'keptSince', 'attempt'],
    before: `if part ~= '' then index.into.failed = part end`,
    // Each end removes at most two old tasks, so that they become fewer. The leader removes the rest.
    after: `${CONFIRM_RESENT_END}
if keptSince ~= '' and (${SUCCEEDED}) then
  for _, id in ipairs(call('ZRANGEBYSCORE', base .. 'completed', '-inf', '(' .. keptSince, 'LIMIT', 0, 2)) do
    local job = base .. id
    index.watched.DEL(job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful')
    call('ZREM', base .. 'completed', id)
  end
end`,
  },

  moveToDelayed: {
    extra: [],
    // BullMQ's argument is "0" if the move counts an attempt.
    before: `index.into.delayed = ARGV[6] == '0' and 'retrying' or 'scheduled'`,
    after: confirmResentFields('KEYS[5]', 'ARGV[7]'),
  },

  retryJob: {
    extra: [],
    after: confirmResentFields('KEYS[4]', 'ARGV[6]'),
  },

  moveJobFromActiveToWait: {
    /** `stacks`: the attempt records to store. `uncount`: '1' if the handler was never started, so that the start is uncounted. */
    extra: ['stacks', 'uncount'],
    after: `${confirmResentStacks('ARGV[3]')}
if ${SUCCEEDED} then
  if stacks ~= '' then call('HSET', ARGV[3], 'stacktrace', stacks) end
  if uncount == '1' then call('HINCRBY', ARGV[3], 'ats', -1) end
  local id = ARGV[1]
  ${NOTE_RETURN}
end`,
  },

  removeOrphanedJobs: {
    extra: [],
    // BullMQ takes every key of the queue that it doesn't know for a job in no place, and would delete Bullpen's.
    before: `
for i = #ARGV, ARGV[1] + ARGV[ARGV[1] + 2] + 3, -1 do
  local kind = call('TYPE', base .. ARGV[i]).ok
  if kind ~= 'none' and (kind ~= 'hash' or call('HEXISTS', base .. ARGV[i], 'name') == 0) then table.remove(ARGV, i) end
end`,
  },

  moveStalledJobsToWait: {
    /** `at`: when the lost attempts were found (ms since 1970). `fencing`: the leader's number, unless a Worker runs the script. */
    extra: ['at', 'fencing'],
    // BullMQ's key that prevents two checks at once lasts for an interval. The leader needs no such key.
    before: `
if fencing ~= '' then
  if is_deposed(base .. 'leader', fencing) then return {} end
  call('DEL', KEYS[4])
end`,
    after: `
for _, id in ipairs(answer) do
  end_record(base .. id, at)
  ${NOTE_RETURN}
end`,
  },
}

/** BullMQ's scripts that fetch a job: on its own, or after the end or the delay of another one. */
export const FETCHES: readonly string[] = ['moveToActive', 'moveToFinished', 'moveToDelayed']

/** BullMQ's scripts that write nothing to a job or to one of its sets. They run as they are. */
const NOT_COMPOSED: readonly RegExp[] = [/^get/, /^is/, /^relay/, /^paginate$/, /^extendLocks?$/, /^releaseLock$/]

export interface ComposedScript {
  readonly name: string
  readonly numberOfKeys: number
  readonly lua: string
  readonly extra: readonly string[]
}

/** `base` is the last argument of every composed script, after the extra ones. */
export function compose({ name, keys, content }: BullmqScript): ComposedScript {
  const { extra, own, before = '', after = '' } = STEPS[name] ?? { extra: [] }
  const watched = WATCHED.filter((command) => callOf(command).test(content) || after.includes(`watched.${command}(`))
  const text = watched.reduce((lua, command) => lua.replaceAll(callOf(command), `watched.${command}(`), content)
  const kind: ScriptKind = name.startsWith('add') ? 'adds' : 'frees'
  const lua = `${shebang(kind)}
${own === undefined ? removeArguments([...extra, 'base']) : readArguments([...extra, 'base'], own)}
local call = redis.call
${statusIndex(watched)}
${name === 'moveStalledJobsToWait' ? `${FENCE}${END_RECORD}` : ''}
local index = status_index(base)
local watched = index.watched
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

/** BullMQ's scripts must not find arguments that are not theirs: some look at the number of arguments. */
function removeArguments(names: readonly string[]): string {
  return names
    .toReversed()
    .map((name) => `local ${name} = table.remove(ARGV)`)
    .join('\n')
}

function readArguments(names: readonly string[], after: number): string {
  return `local ${names.join(', ')} = ${names.map((_, i) => `ARGV[${after + 1 + i}]`).join(', ')}`
}

/** Matches the beginning of a call of this command in a script of BullMQ. */
export function callOf(command: string): RegExp {
  return new RegExp(`\\brcall\\(\\s*(["'])${command}\\1\\s*,`, 'gi')
}

/** BullMQ exports its scripts only from this file, which is the one that it loads itself. */
export function bullmqScripts(): readonly BullmqScript[] {
  const scripts: unknown = createRequire(import.meta.url)('bullmq/dist/cjs/scripts/index.js')
  return Object.values(scripts as Readonly<Record<string, BullmqScript>>)
}

/** The composed scripts, by the name of BullMQ's. */
export const COMPOSED: ReadonlyMap<string, ComposedScript> = new Map(
  bullmqScripts()
    .filter(({ name }) => !NOT_COMPOSED.some((pattern) => pattern.test(name)))
    .map((script) => [script.name, compose(script)]),
)
