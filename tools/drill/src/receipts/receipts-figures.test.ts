// Tests each figure of the receipts drill with a handwritten ledger.
import type { TaskView } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import type { Delivery } from './receipt-endpoint.ts'
import { type Receipt, type ReceiptLedger, receiptFigures } from './receipts-figures.ts'

const POLICY: ReceiptLedger['policy'] = {
  maxAttempts: 3,
  backoff: { type: 'exponential', initialMs: 1_000, maxMs: 30_000, factor: 2, jitter: 0.2 },
}

const receipt = (orderId: string, more: Partial<Receipt> = {}): Receipt => ({
  id: `id-${orderId}`,
  orderId,
  way: 'term',
  failures: 0,
  cancelled: false,
  ...more,
})
const delivery = (orderId: string, as: Delivery['as'], at: number, more: Partial<Delivery> = {}): Delivery => ({
  orderId,
  key: `key-${orderId}`,
  by: 'w1',
  as,
  at,
  cutAt: undefined,
  answeredAt: at + 300,
  ...more,
})
const failed = { error: { code: 'delivery_failed' } }
/** As the API shows it; `failures` of its attempts are recorded. */
const view = (orderId: string, failures = 0, more: Partial<TaskView> = {}): TaskView =>
  ({
    id: `id-${orderId}`,
    status: 'completed',
    fencingToken: failures + 1,
    attemptsMade: failures + 1,
    attempts: Array.from({ length: failures }, () => failed),
    ...more,
  }) as TaskView

function figures(changes: Partial<Omit<ReceiptLedger, 'views'>> & { views?: readonly TaskView[] } = {}) {
  const { views = [view('a'), view('b', 1)], ...rest } = changes
  return receiptFigures({
    receipts: [receipt('a'), receipt('b', { failures: 1 })],
    deliveries: [delivery('a', 'accepted', 0), delivery('b', 'failed', 0), delivery('b', 'accepted', 1_300)],
    completions: new Map([
      ['id-a', 1],
      ['id-b', 1],
    ]),
    exits: [],
    policy: POLICY,
    ...rest,
    views: new Map(views.map((each) => [each.id, each])),
  })
}

describe('the figures of receipts', () => {
  it('are zero if each receipt was accepted once and each failure retried in time', () => {
    expect(figures()).toEqual({
      accepted: 2,
      lost: 0,
      duplicated: 0,
      eventsMissed: 0,
      failed: 0,
      effectsRepeated: 0,
      repeatedBySigterm: 0,
      repeatedBySigkill: 0,
      restarted: 0,
      attemptsUsed: 1,
      offPolicy: 0,
      retryLateMs: -200,
      cancelledDelivered: 0,
      interrupted: 0,
      recoveryP99Ms: undefined,
      exitSlowestMs: undefined,
      exitsNotZero: 0,
    })
  })

  it.each([
    ['was never accepted', [delivery('b', 'failed', 0), delivery('b', 'accepted', 1_300)], undefined],
    ['has no end', undefined, [view('a', 0, { status: 'active' }), view('b', 1)]],
    ['the API does not know', undefined, [view('b', 1)]],
  ] as const)('count as lost what %s', (_, deliveries, views) => {
    expect(figures({ ...(deliveries && { deliveries }), ...(views && { views }) })).toMatchObject({ lost: 1 })
  })

  it('count receipts that were accepted twice, or completed twice, as duplicated', () => {
    const twice = [delivery('a', 'accepted', 0), delivery('a', 'accepted', 10, { key: 'other' })]
    expect(figures({ deliveries: twice })).toMatchObject({ duplicated: 1 })
    expect(figures({ completions: new Map([['id-a', 2]]) })).toMatchObject({ duplicated: 1, eventsMissed: 1 })
  })

  it.each(['term', 'kill'] as const)('count repeated deliveries by the way of the restart: %s', (way) => {
    const receipts = [receipt('a', { way }), receipt('b', { failures: 1 })]
    const deliveries = [
      delivery('a', 'accepted', 0, { answeredAt: undefined, cutAt: 100 }),
      delivery('a', 'duplicate', 6_100),
      delivery('b', 'failed', 0),
      delivery('b', 'accepted', 1_300),
    ]
    const views = [view('a', 0, { fencingToken: 2 }), view('b', 1)]
    expect(figures({ receipts, deliveries, views })).toMatchObject({
      lost: 0,
      duplicated: 0,
      effectsRepeated: 1,
      repeatedBySigterm: way === 'term' ? 1 : 0,
      repeatedBySigkill: way === 'kill' ? 1 : 0,
      restarted: 1,
      interrupted: 1,
      recoveryP99Ms: 6_000,
    })
  })

  it('report an infinite recovery if an interrupted delivery was never repeated', () => {
    const deliveries = [delivery('a', 'accepted', 0, { answeredAt: undefined, cutAt: 100 })]
    expect(figures({ deliveries })).toMatchObject({ recoveryP99Ms: Number.POSITIVE_INFINITY })
  })

  it('count a retry that came too early as off policy, and report the latest one', () => {
    const retried = (at: number) => figures({ deliveries: [delivery('b', 'failed', 0), delivery('b', 'accepted', at)] })
    expect(retried(300 + 700)).toMatchObject({ offPolicy: 1 })
    expect(retried(300 + 800)).toMatchObject({ offPolicy: 0, retryLateMs: -400 })
    expect(retried(300 + 1_250)).toMatchObject({ offPolicy: 0, retryLateMs: 50 })
  })

  it.each([
    ['failed less often than it was made to', { failures: 2 }, view('b', 1)],
    ['used an attempt for no failure', { failures: 1 }, view('b', 1, { attemptsMade: 3, fencingToken: 3 })],
    ['lost the record of a failure', { failures: 1 }, view('b', 0)],
    ['had more attempts than there are', { failures: 1 }, view('b', 1, { attemptsMade: 4, fencingToken: 4 })],
  ])('are off policy where a delivery %s', (_, more, seen) => {
    const receipts = [receipt('a'), receipt('b', more)]
    expect(figures({ receipts, views: [view('a'), seen] })).toMatchObject({ offPolicy: 1 })
  })

  it('do not expect a record of a failure whose worker was killed', () => {
    expect(figures({ views: [view('a'), view('b', 0, { fencingToken: 2 })] })).toMatchObject({
      offPolicy: 0,
      restarted: 1,
    })
  })

  it('expect a cancelled receipt to be cancelled and not delivered', () => {
    const receipts = [receipt('a', { cancelled: true })]
    const cancelled = view('a', 0, { status: 'cancelled', fencingToken: 0, attemptsMade: 0 })
    expect(figures({ receipts, views: [cancelled], deliveries: [] })).toMatchObject({
      lost: 0,
      failed: 0,
      cancelledDelivered: 0,
    })
    expect(figures({ receipts, views: [view('a')] })).toMatchObject({ failed: 1, cancelledDelivered: 1 })
  })
})
