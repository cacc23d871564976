// Computes the figures of the receipts drill from the endpoint's record of deliveries and the API's responses.

import { isFinal, type RetryPolicy, type TaskView } from '@bullpen/contract'
import { backoffMs } from '@bullpen/engine/internal'
import type { Figures } from '../figures/figures.ts'
import type { Exit } from '../ledger/ledger.ts'
import { p99 } from '../ledger/ranks.ts'
import type { Delivery } from './receipt-endpoint.ts'

/** How workers were restarted while these receipts were delivered. */
export type Way = 'term' | 'kill'

type Policy = Pick<RetryPolicy, 'maxAttempts' | 'backoff'>

/** A receipt that the API accepted. */
export interface Receipt {
  readonly id: string
  readonly orderId: string
  readonly way: Way
  /** How many of the receipt's deliveries the endpoint was to fail. */
  readonly failures: number
  readonly cancelled: boolean
}

export interface ReceiptLedger {
  readonly receipts: readonly Receipt[]
  /** The tasks as the API returned them at the end. */
  readonly views: ReadonlyMap<string, TaskView>
  readonly deliveries: readonly Delivery[]
  readonly completions: ReadonlyMap<string, number>
  readonly exits: readonly Exit[]
  readonly policy: Policy
}

export function receiptFigures(ledger: ReceiptLedger): Figures {
  const { receipts, completions, exits, policy } = ledger
  const stories = receipts.map((receipt) => storyOf(receipt, ledger))
  const sent = stories.filter(({ receipt }) => !receipt.cancelled)
  const count = (are: (story: Story) => boolean): number => stories.filter(are).length
  const sum = (of: (story: Story) => number): number => stories.reduce((total, story) => total + of(story), 0)
  const repeated = (way: Way): number => sum((story) => (story.receipt.way === way ? story.duplicates : 0))
  return {
    accepted: receipts.length,
    lost: sent.filter(({ view, accepted }) => accepted === 0 || view === undefined || !isFinal(view.status)).length,
    duplicated: count(({ receipt, accepted }) => accepted > 1 || (completions.get(receipt.id) ?? 0) > 1),
    eventsMissed: count(({ view }) => view?.status === 'completed' && !completions.has(view.id)),
    failed: count(({ view, receipt }) => isFinal(view?.status ?? 'waiting') && view?.status !== wanted(receipt)),
    effectsRepeated: sum(({ duplicates }) => duplicates),
    repeatedBySigterm: repeated('term'),
    repeatedBySigkill: repeated('kill'),
    restarted: sum(({ view }) => (view === undefined ? 0 : view.fencingToken - view.attemptsMade)),
    attemptsUsed: sum(({ view }) => Math.max(0, (view?.attemptsMade ?? 0) - 1)),
    offPolicy: count((story) => !followsPolicy(policy, story)),
    retryLateMs: mostOf(sent.flatMap((story) => lateness(policy, story))),
    cancelledDelivered: count(({ receipt, deliveries }) => receipt.cancelled && deliveries.length > 0),
    interrupted: sum(({ deliveries }) => deliveries.filter(({ cutAt }) => cutAt !== undefined).length),
    recoveryP99Ms: p99(stories.flatMap(({ deliveries }) => recoveries(deliveries))),
    exitSlowestMs: mostOf(exits.map(({ tookMs }) => tookMs)),
    exitsNotZero: exits.filter(({ code }) => code !== 0).length,
  }
}

interface Story {
  readonly receipt: Receipt
  readonly view: TaskView | undefined
  readonly deliveries: readonly Delivery[]
  /** How often the endpoint accepted the delivery as a new receipt. */
  readonly accepted: number
  /** How often the receipt was delivered again after it had been accepted. */
  readonly duplicates: number
}

function storyOf(receipt: Receipt, { views, deliveries: all }: ReceiptLedger): Story {
  const deliveries = all.filter(({ orderId }) => orderId === receipt.orderId)
  const times = (as: Delivery['as']): number => deliveries.filter((each) => each.as === as).length
  return {
    receipt,
    view: views.get(receipt.id),
    deliveries,
    accepted: times('accepted'),
    duplicates: times('duplicate'),
  }
}

const wanted = ({ cancelled }: Receipt): TaskView['status'] => (cancelled ? 'cancelled' : 'completed')

/**
 * Returns whether an attempt died with its worker. Such an attempt has a fencing token, but does not count and is not retried as
 * a failure.
 */
function wasKilled({ view }: Story): boolean {
  return view !== undefined && view.fencingToken > view.attemptsMade
}

/**
 * Returns whether each failure used one attempt and was retried as often as the policy allows, but not before the backoff was
 * over.
 */
function followsPolicy(policy: Policy, story: Story): boolean {
  const { receipt, view, deliveries } = story
  if (receipt.cancelled) return true
  if (view === undefined || view.attemptsMade > policy.maxAttempts) return false
  const failed = view.attempts.filter(({ error }) => error?.code === 'delivery_failed').length
  const made = deliveries.filter(({ as }) => as === 'failed').length
  if (made !== receipt.failures || view.attemptsMade !== failed + 1 || failed > made) return false
  if (wasKilled(story)) return true
  return failed === made && waits(deliveries).every((waitMs, i) => waitMs >= backoff(policy, i, -1) - CLOCKS_MS)
}

/**
 * Returns how much later than the longest backoff each retry came. Receipts of killed workers are excluded, because they also wait
 * for recovery.
 */
function lateness(policy: Policy, story: Story): readonly number[] {
  return wasKilled(story) ? [] : waits(story.deliveries).map((waitMs, i) => waitMs - backoff(policy, i, 1))
}

/** A backoff starts at the time in the attempt record, which is written by another process. */
const CLOCKS_MS = 5

/** Returns the time from each failed response to the next delivery. */
function waits(deliveries: readonly Delivery[]): readonly number[] {
  return deliveries.flatMap(({ as, answeredAt }, i) => {
    const next = deliveries[i + 1]
    return as === 'failed' && answeredAt !== undefined && next !== undefined ? [next.at - answeredAt] : []
  })
}

/** Returns the backoff after the given number of failures: the shortest one with jitter for -1, and the longest one for 1. */
function backoff({ backoff }: Policy, failures: number, bound: -1 | 1): number {
  return backoffMs(failures + 1, backoff, () => (bound + 1) / 2)
}

/** Returns the time from each interrupted delivery to the next one, or infinity if there was none. */
function recoveries(deliveries: readonly Delivery[]): readonly number[] {
  return deliveries.flatMap(({ cutAt }, i) =>
    cutAt === undefined ? [] : [(deliveries[i + 1]?.at ?? Number.POSITIVE_INFINITY) - cutAt],
  )
}

function mostOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.round(Math.max(...values))
}
