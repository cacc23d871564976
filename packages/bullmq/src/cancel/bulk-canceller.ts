// Ends the waiting tasks in Redis that cancel rules match, page by page, and deletes a rule when it no longer matches any task.
//
// Only one process per queue works at a time. It holds a lease in Redis, which it renews with each page. A pass goes through the
// places in SCAN_ORDER, so that a task that moves during the pass is found later instead of being missed. A rule is done when a
// whole pass that began after all consumers knew the rule has found no matching task.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, TaskId } from '@bullpen/contract'
import { type CancelRule, endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import { describeEnd } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { Commander } from '../scripts/script.ts'
import { BEGIN_PASS, END_PAGE, FORGET_RULES, LEASE_MS } from './bulk-cancel-scripts.ts'
import { BULK_CANCELLER, KNOWN_TO_ALL_MS, parseRules } from './by-filter.ts'

/**
 * The order in which a scan for unfinished tasks visits the places. It is the order in which a task that can't be started moves
 * (active → delayed → prioritized → wait), so that a task that moves during the scan is found later instead of being missed.
 */
const SCAN_ORDER = ['active', 'delayed', 'prioritized', 'wait'] as const

/** How many tasks one script looks at. */
const PAGE_SIZE = 200
/** How long to wait after a pass that ended no task, in ms. */
const IDLE_MS = 2_000
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
  /** Rejects while the namespace must not be used. */
  readonly checkSchema: () => Promise<void> | undefined
  readonly log: Log
}

export interface BulkCanceller {
  /** Starts a pass now, because there is a new rule. */
  start(): void
  close(): void
}

/**
 * Starts a pass every two seconds. While passes end tasks, the next one follows immediately. Its timer does not keep the process
 * alive.
 */
export function createBulkCanceller(options: BulkCancellerOptions): BulkCanceller {
  const { redis, keys, checkSchema, log } = options
  const logFailure = throttledLog((err: unknown, suppressed) =>
    log.debug({ err, suppressed }, 'cancelling tasks by filter failed'),
  )
  const holder = randomUUID()
  let timer: NodeJS.Timeout | undefined
  let isWorking = false
  let isAskedAgain = false
  let isClosed = false
  /** Whether the last pass ended no task, in which case the rules that remain are waiting for running tasks only. */
  let endedNone = false

  const pass = async (): Promise<number> => {
    await checkSchema()
    const begun = await redis.eval(BEGIN_PASS, 2, keys.bulkCanceller, keys.cancelRules, holder, LEASE_MS)
    if (begun === null) return 0
    const [startedAt, texts] = begun as BegunPass
    const rules = parseRules(texts)
    const result = await goThrough(options, { holder, rules, endedNone, isClosed: () => isClosed })
    if (result === undefined) return 0
    endedNone = result.ended === 0
    const done = result.unmatched.filter(({ at }) => at + KNOWN_TO_ALL_MS <= startedAt).map(({ id }) => id)
    if (done.length > 0) {
      await redis.eval(FORGET_RULES, 1, keys.cancelRules, keys.cancelProgress(''), KEEP_PROGRESS_MS, ...done)
    }
    return result.ended
  }

  const work = (): void => {
    if (isWorking) return
    clearTimeout(timer)
    isWorking = true
    isAskedAgain = false
    pass()
      .catch((err: unknown) => {
        if (!isClosed) logFailure(err)
        return 0
      })
      .then((ended) => {
        isWorking = false
        if (isClosed) return
        timer = setTimeout(work, ended > 0 || isAskedAgain ? 0 : IDLE_MS)
        timer.unref()
      })
  }
  timer = setTimeout(work, IDLE_MS)
  timer.unref()

  return {
    start() {
      isAskedAgain = true
      endedNone = false
      work()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

type BegunPass = readonly [now: number, rules: readonly string[]]
type EndedPage = readonly [from: string, before: string, matched: readonly number[], ended: readonly string[]] | null

interface Pass {
  readonly holder: string
  readonly rules: readonly CancelRule[]
  readonly endedNone: boolean
  readonly isClosed: () => boolean
}

interface PassResult {
  /** Rules that matched no task. */
  readonly unmatched: readonly CancelRule[]
  /** How many tasks were ended. */
  readonly ended: number
}

/** Returns undefined if the canceller was closed or if another process has the lease. */
async function goThrough(
  { redis, keys, onEnded }: BulkCancellerOptions,
  { holder, rules, endedNone, isClosed }: Pass,
): Promise<PassResult | undefined> {
  const matched = rules.map(() => 0)
  const { bulkCanceller, active, delayed, prioritized, wait, failed, events, expiries } = keys
  const names = [bulkCanceller, active, delayed, prioritized, wait, failed, events, expiries]
  const rulesText = JSON.stringify(rules.map(forScript))
  const common = [holder, LEASE_MS, keys.job(''), keys.cancelProgress(''), rulesText]
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
      if (isClosed()) return undefined
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
