// Ends the waiting tasks that match cancel rules, page by page, and deletes a rule once no task matches it.
//
// The leader does this until its lease has expired or a newer leader has worked on the queue. The leader starts when its survey
// of the queue finds a rule, continues its other duties in the meantime, and makes only one pass over a queue at a time
// (leader/housekeeping.ts). Each pass handles up to 50 rules, chosen at random if there are more, and first forgets which tasks
// returned from `active` during the previous pass. A pass visits the places in SCAN_ORDER, so that a task that moves during the
// pass is found later instead of being missed. In `active`, a page only counts the matching tasks, because workers stop their own
// running tasks. If a page of `active` has lost its position, it counts as a match for every rule, so that another pass follows.
// A rule is done when a whole pass that began after all consumers knew the rule has found no matching task, either in a place or
// among the returned tasks. The rule's progress then receives the field `doneAt` and is kept for a day. If a script of an earlier
// pass runs late, it deletes nothing.
import { randomUUID } from 'node:crypto'
import type { CancelRule } from '@bullpen/engine/internal'
import { endOf } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { type EndedTask, endedTasks } from '../scripts/ended-tasks.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { runUntilAnswered } from '../scripts/run-until-answered.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { beginPassScript, cancelPageScript, forgetRulesScript } from '../store/scripts.ts'
import { BULK_CANCELLER, KNOWN_TO_ALL_MS, parseRules } from './by-filter.ts'

/**
 * The order in which a scan for unfinished tasks visits the places. A task that can't be started moves in the same order (active
 * → delayed → prioritized → lanes → wait), so a task that moves during the scan is found later instead of being missed. A task that
 * was fetched from `wait` before the scan reached it is found in `active` at the end, or is noted in `cancel-returned`: while the queue has
 * rules, every script notes there a task that it returns from `active`, or moves back in this order or to an earlier due time
 * (store/lua/includes/cancel/note-moved.lua). The script that ends a fetched task counts it in its rule's progress.
 */
const SCAN_ORDER = ['active', 'delayed', 'prioritized', 'lanes', 'wait', 'active'] as const

/** The number of tasks that one script examines. */
const PAGE_SIZE = 200
/**
 * The maximum time between two passes over all places, in ms, while only running tasks seem to match the rules. A matching task
 * may be waiting again, because its attempt was requeued or is to be retried, or because a slow producer has added a task that
 * was enqueued before the rule.
 */
export const FULL_PASS_EVERY_MS = 30_000
/** How long a finished cancellation's progress is kept, in ms. */
const KEEP_PROGRESS_MS = 86_400_000
/**
 * The same for the rule of a group or run, in ms. No user can look the rule up. Until then, a rule that is delivered a second
 * time, after its reply was lost or its process has died, is not stored again. A rule that is stored again does no harm, and is
 * deleted by the next pass.
 */
const KEEP_GROUP_PROGRESS_MS = 10_000

const KEEP = { keepMs: KEEP_PROGRESS_MS, groupKeepMs: KEEP_GROUP_PROGRESS_MS }

export interface BulkCancellerOptions {
  readonly redis: Commander
  readonly keys: QueueKeys
  /** Distinguishes this process's bulk canceller from other processes' bulk cancellers for the queue. */
  readonly caller: string
  /** Called once for each task that this process ended, when Redis has confirmed the end. */
  readonly onEnded: (ended: EndedTask) => void
  /** The number of tasks that one script examines. Tests set this. */
  readonly pageSize?: number
  /** A monotonic clock in ms. Tests set this. */
  readonly clock?: () => number
}

/** A leader's fencing number, and whether the leader may still work. */
export interface Term {
  readonly fencing: number
  isOver(): boolean
}

/** Makes passes until one of them ends no task. Rejects if Redis does not respond. */
export type BulkCanceller = (term: Term) => Promise<void>

/** Creates the bulk canceller for one queue. Do not call the canceller again before its promise has settled. */
export function createBulkCanceller(options: BulkCancellerOptions): BulkCanceller {
  const { redis, keys, clock = () => performance.now() } = options
  /** The rules and the time of the last pass over all places, if neither that pass nor any later one has ended a task. */
  let idle: { readonly rules: string; readonly since: number } | undefined

  const pass = async (term: Term): Promise<number> => {
    const id = randomUUID()
    const begun = await runScript(redis, beginPassScript, keys, { fencing: term.fencing, pass: id })
    if (begun === null) return 0
    const [now, texts] = begun
    const rules = parseRules(texts)
    const names = rules
      .map(({ id }) => id)
      .toSorted()
      .join()
    const since = clock()
    const mayStopEarly = idle?.rules === names && since - idle.since < FULL_PASS_EVERY_MS
    const result = await goThrough(options, { term, rules, mayStopEarly })
    if (result === undefined) return 0
    if (result.ended > 0) idle = undefined
    else if (!result.stoppedEarly) idle = { rules: names, since }
    const done = result.unmatched.filter(({ at }) => at + KNOWN_TO_ALL_MS <= now)
    await forget(options, term, { id, rules: done })
    return result.ended
  }

  return async (term) => {
    while (!term.isOver() && (await pass(term)) > 0);
  }
}

interface Pass {
  readonly term: Term
  readonly rules: readonly CancelRule[]
  /**
   * Whether the pass may skip waiting tasks if each rule matches a running task. It may if a recent full pass has ended no task.
   */
  readonly mayStopEarly: boolean
}

interface PassResult {
  /** Rules that matched no task. */
  readonly unmatched: readonly CancelRule[]
  /** How many tasks were ended. */
  readonly ended: number
  /** Whether the pass looked at running tasks only. */
  readonly stoppedEarly: boolean
}

/** Makes one pass. Returns undefined if the term is over. */
async function goThrough(
  { redis, keys, caller, onEnded, pageSize = PAGE_SIZE }: BulkCancellerOptions,
  { term, rules, mayStopEarly }: Pass,
): Promise<PassResult | undefined> {
  const matched = rules.map(() => 0)
  const { fencing } = term
  const args = { fencing, base: keys.base, progress: keys.cancelProgress(''), limit: pageSize }
  const rulesText = JSON.stringify(rules.map(forScript))
  const names = { ...keys, endReply: keys.endReply(`${caller}:cancel`) }
  let ended = 0
  for (const [scan, place] of SCAN_ORDER.entries()) {
    let [from, before] = ['', '']
    do {
      const sentAt = performance.now()
      const position = { place, from, before, request: randomUUID() }
      const page = await runUntilAnswered(redis, cancelPageScript, names, { ...args, rulesText, ...position })
      if (page === null) return undefined
      const tasks = endedTasks(page[3])
      for (const each of tasks) onEnded(each)
      ended += tasks.length
      page[2].forEach((count, i) => {
        matched[i] = (matched[i] ?? 0) + count
      })
      ;[from, before] = page
      if (term.isOver()) return undefined
      await pauseAfterPage(sentAt)
    } while (from !== '')
    // Every rule is kept because it matches a running task. Scanning all waiting tasks again would not end that task any sooner.
    if (scan === 0 && mayStopEarly && matched.every((count) => count > 0)) {
      return { unmatched: [], ended, stoppedEarly: true }
    }
  }
  return { unmatched: rules.filter((_, i) => matched[i] === 0), ended, stoppedEarly: false }
}

/** Deletes a pass's rules, except those that match a task that returned to the queue during the pass. */
async function forget(
  { redis, keys, pageSize = PAGE_SIZE }: BulkCancellerOptions,
  { fencing }: Term,
  { id, rules }: { readonly id: string; readonly rules: readonly CancelRule[] },
): Promise<void> {
  if (rules.length === 0) return
  const rulesText = JSON.stringify(rules.map(forScript))
  const args = { fencing, pass: id, base: keys.base, progress: keys.cancelProgress(''), rulesText }
  while ((await runScript(redis, forgetRulesScript, keys, { ...args, ...KEEP, limit: pageSize })) === 0);
}

/** Returns a rule in the form that the scripts read. */
function forScript({ id, task, tag, group, before, at, reason, by }: CancelRule): object {
  return { id, task, tag, group, before, at, ...endOf(reason, { process: BULK_CANCELLER, by }) }
}
