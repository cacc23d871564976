// Composes each of BullMQ's scripts that still runs with the status index into one atomic script.
//
// In the text of BullMQ's script, in the pinned version, the index's functions replace the commands that the status index watches. BullMQ
// writes each of these commands as `rcall("ZADD", …)`, which a test checks (watched-commands.test.ts). All of BullMQ's scripts that add,
// move or delete a job and still run are composed, so that the index follows every move that BullMQ makes.
//
// Most of what tasks go through runs scripts of our own (../../store).
import { createRequire } from 'node:module'
import { type ScriptKind, shebang } from '../../scripts/script.ts'
import { OPEN_INDEX, WATCHED } from '../status/status-index.ts'
import { withLanes, withLaneTimes } from '../turns/turn-steps.ts'
import { createdIncludes } from './created-includes.ts'

export interface BullmqScript {
  readonly name: string
  readonly keys: number
  readonly content: string
}

/** BullMQ's scripts that read, and those of another product in the same package. They run as they are. */
const NOT_COMPOSED: readonly RegExp[] = [/^get/, /^is/, /^relay/, /^paginate$/]

/**
 * BullMQ's scripts that neither add, move nor delete a job, and change nothing that Bullpen divides or counts. Only the first line of their
 * texts is ours: it tells Redis their kind.
 */
const UNCHANGED: Readonly<Record<string, ScriptKind>> = {
  addLog: 'adds',
  updateProgress: 'frees',
  removeDeduplicationKey: 'frees',
}

/**
 * BullMQ's scripts that never run, because Bullpen's own take their place (../../store/backend.ts, ../../store/moves.ts), or because BullMQ
 * never sends them (releaseLock, saveStacktrace).
 */
export const REPLACED: readonly string[] = [
  'addStandardJob',
  'addDelayedJob',
  'addPrioritizedJob',
  'addParentJob',
  'releaseParentIfNoPendingDependencies',
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
  'moveStalledJobsToWait',
  'extendLock',
  'extendLocks',
  'moveToWaitingChildren',
  'removeChildDependency',
  'pause',
  'releaseLock',
  'saveStacktrace',
]

export interface SentScript {
  readonly name: string
  readonly numberOfKeys: number
  readonly lua: string
}

/** Composes one script. Its last argument, `base`, is not BullMQ's. Some of BullMQ's scripts look at the number of arguments. */
function compose({ name, keys, content }: BullmqScript): SentScript {
  const text = withWatched(withLaneTimes(withLanes(content)))
  const lua = `${shebang(name.startsWith('add') ? 'adds' : 'frees')}
local base = table.remove(ARGV)
local call = redis.call
${OPEN_INDEX}
${createdIncludes(text)}
${text}
`
  return { name: `bullpen:${name}`, numberOfKeys: keys, lua }
}

/** Returns the text with the index's functions in place of the commands that the index watches. */
function withWatched(content: string): string {
  return WATCHED.reduce((lua, command) => lua.replaceAll(callOf(command), `watch('${command}',`), content)
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
export const COMPOSED: ReadonlyMap<string, SentScript> = new Map(
  bullmqScripts()
    .filter(({ name }) => !NOT_COMPOSED.some((pattern) => pattern.test(name)) && !REPLACED.includes(name))
    .filter(({ name }) => UNCHANGED[name] === undefined)
    .map((script) => [script.name, compose(script)]),
)

/** BullMQ's scripts that run with a first line of ours, by their names. */
export const FLAGGED: ReadonlyMap<string, SentScript> = new Map(
  bullmqScripts().flatMap(({ name, keys: numberOfKeys, content }) => {
    const kind = UNCHANGED[name]
    const lua = kind && `${shebang(kind)}\n${content}`
    return lua === undefined ? [] : [[name, { name: `bullpen:${name}`, numberOfKeys, lua }]]
  }),
)
