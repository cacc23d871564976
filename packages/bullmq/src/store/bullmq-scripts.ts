// Which of BullMQ's scripts run, and how. None of those that add, move or delete a job do: scripts of our own take their place
// (./backend.ts). Those that only read run as they are.
import { createRequire } from 'node:module'
import { type ScriptKind, shebang } from '../scripts/script.ts'

interface BullmqScript {
  readonly name: string
  readonly keys: number
  readonly content: string
}

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
 * BullMQ's scripts that never run, because Bullpen's own take their place (./backend.ts), or because BullMQ never sends them (releaseLock,
 * saveStacktrace).
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
  'addJobScheduler',
  'updateJobScheduler',
  'removeJobScheduler',
  'releaseLock',
  'saveStacktrace',
]

interface SentScript {
  readonly name: string
  readonly numberOfKeys: number
  readonly lua: string
}

/** Returns BullMQ's scripts. BullMQ exports them only from this file, which it loads itself. */
export function bullmqScripts(): readonly BullmqScript[] {
  const scripts: unknown = createRequire(import.meta.url)('bullmq/dist/cjs/scripts/index.js')
  return Object.values(scripts as Readonly<Record<string, BullmqScript>>)
}

/** BullMQ's scripts that run with a first line of ours, by their names. */
export const FLAGGED: ReadonlyMap<string, SentScript> = new Map(
  bullmqScripts().flatMap(({ name, keys: numberOfKeys, content }) => {
    const kind = UNCHANGED[name]
    const lua = kind && `${shebang(kind)}\n${content}`
    return lua === undefined ? [] : [[name, { name: `bullpen:${name}`, numberOfKeys, lua }]]
  }),
)
