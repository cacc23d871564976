// Ends the waiting tasks in Redis that cancel rules match, page by page, and deletes a rule when it no longer matches any task.
//
// The leader does this, for as long as no newer leader has worked on the queue. A pass goes through the places in SCAN_ORDER, so
// that a task that moves during the pass is found later instead of being missed. A rule is done when a whole pass that began after
// all consumers knew the rule has found no matching task.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import { type CancelRule, endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import { describeEnd } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { BEGIN_PASS, END_PAGE, FORGET_RULES } from './bulk-cancel-scripts.ts'
import { BULK_CANCELLER, KNOWN_TO_ALL_MS, parseRules } from './by-filter.ts'

/**
 * The order in which a scan for unfinished tasks visits the places. It is the order in which a task that can't be started moves
 * (active → delayed → prioritized → wait), so that a task that moves during the scan is found later instead of being missed.
 */
const SCAN_ORDER = ['active', 'delayed', 'prioritized', 'wait'] as const

/** How many tasks one script looks at. */
const PAGE_SIZE = 200
/** How long the progress of a finished cancel is kept, in ms. */
const KEEP_PROGRESS_MS = 86_400_000

export interface EndedTask {
  readonly id: TaskId
  readonly task: string
}

export interface BulkCancellerOptions {
  readonly redis: Commander
  readonly keys: QueueKeys
  /** Called for each task that this process has ended. */
  readonly onEnded: (ended: EndedTask) => void
}

/** A leader's number, and whether the leader may still work. */
export interface Term {
  readonly fencing: number
  isOver(): boolean
}

/** Makes passes for as long as each ends at least one task. Rejects if Redis does not answer. */
export type BulkCanceller = (term: Term) => Promise<void>

/** Creates the canceller of one queue, which must not be called again before it has ended. */
export function createBulkCanceller(options: BulkCancellerOptions): BulkCanceller {
  const { redis, keys } = options
  /** The rules of the last pass if it ended no task, in which case those that are left are waiting for running tasks only. */
  let idleRules = ''

  const pass = async (term: Term): Promise<number> => {
    const begun = await redis.eval(BEGIN_PASS, 2, keys.leader, keys.cancelRules, term.fencing)
    if (begun === null) return 0
    const [startedAt, texts] = begun as BegunPass
    const rules = parseRules(texts)
    const names = rules.map(({ id }) => id).join()
    const result = await goThrough(options, { term, rules, endedNone: names === idleRules })
    if (result === undefined) return 0
    idleRules = result.ended === 0 ? names : ''
    const done = result.unmatched.filter(({ at }) => at + KNOWN_TO_ALL_MS <= startedAt).map(({ id }) => id)
    if (done.length > 0) {
      await redis.eval(FORGET_RULES, 1, keys.cancelRules, keys.cancelProgress(''), KEEP_PROGRESS_MS, ...done)
    }
    return result.ended
  }

  return async (term) => {
    while (!term.isOver() && (await pass(term)) > 0);
  }
}

type BegunPass = readonly [now: number, rules: readonly string[]]
type EndedPage = readonly [from: string, before: string, matched: readonly number[], ended: readonly string[]] | null

interface Pass {
  readonly term: Term
  readonly rules: readonly CancelRule[]
  /** Whether the last pass had the same rules and ended no task. */
  readonly endedNone: boolean
}

interface PassResult {
  /** Rules that matched no task. */
  readonly unmatched: readonly CancelRule[]
  /** How many tasks were ended. */
  readonly ended: number
}

/** Returns undefined if the term is over. */
async function goThrough(
  { redis, keys, onEnded }: BulkCancellerOptions,
  { term, rules, endedNone }: Pass,
): Promise<PassResult | undefined> {
  const matched = rules.map(() => 0)
  const { leader, active, delayed, prioritized, wait, failed, events, expiries } = keys
  const names = [leader, active, delayed, prioritized, wait, failed, events, expiries]
  const rulesText = JSON.stringify(rules.map(forScript))
  const common = [term.fencing, keys.job(''), keys.cancelProgress(''), rulesText]
  let ended = 0
  for (const place of SCAN_ORDER) {
    let [from, before] = ['', '']
    do {
      const sentAt = performance.now()
      const args = [...common, place, from, before, PAGE_SIZE, MAX_ATTEMPT_RECORDS]
      const page = (await redis.eval(END_PAGE, names.length, ...names, ...args)) as EndedPage
      if (page === null) return undefined
      const tasks = page[3]
      for (let i = 0; i < tasks.length; i += 2) onEnded({ id: tasks[i] as TaskId, task: tasks[i + 1] ?? '' })
      ended += tasks.length / 2
      page[2].forEach((count, i) => {
        matched[i] = (matched[i] ?? 0) + count
      })
      ;[from, before] = page
      if (term.isOver()) return undefined
      // Wait as long as the page took, so that at least half of Redis's time is left for other clients.
      await sleep(performance.now() - sentAt)
    } while (from !== '')
    // Only running tasks still match the rules. Scanning all waiting tasks again would not end the running ones any sooner.
    if (place === 'active' && endedNone && matched.every((count) => count > 0)) break
  }
  return { unmatched: rules.filter((_, i) => matched[i] === 0), ended }
}

/** A rule as END_PAGE reads it. */
function forScript({ id, task, tag, before, at, reason, by }: CancelRule): object {
  const record = endWithoutStart(reason, { attempt: 1, process: BULK_CANCELLER, now: at, by })
  const { attempt: _, startedAt: _started, endedAt: _ended, ...stored } = record
  return { id, task, tag, before, at, reason: describeEnd(record), record: JSON.stringify(stored).slice(1, -1) }
}
