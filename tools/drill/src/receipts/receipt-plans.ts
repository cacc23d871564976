// The amounts of the receipts drill, by scale: the same for both signals.
import type { Scale } from '../report.ts'

export interface ReceiptPlan {
  /** More follow at the same rate until the last worker has been restarted. */
  readonly receipts: number
  readonly ratePerSecond: number
  /** How long the endpoint takes to respond, so that workers run tasks when they are restarted. */
  readonly answerMs: number
  /** Every fifth receipt fails: the first one once, the next one twice, up to this number, then from one again. */
  readonly failures: number
  readonly workers: number
  readonly concurrency: number
  readonly restarts: number
}

/** One worker less must still be enough: otherwise a retry would also wait for the backlog. */
export const RECEIPT_PLANS: Readonly<Record<Scale, ReceiptPlan>> = {
  small: { receipts: 100, ratePerSecond: 60, answerMs: 300, failures: 2, workers: 2, concurrency: 20, restarts: 1 },
  full: { receipts: 1_000, ratePerSecond: 50, answerMs: 1_000, failures: 4, workers: 4, concurrency: 25, restarts: 5 },
}

const FAILING_EVERY = 5

/** By the number in the order's id; the cancelled order has none. */
export function failuresOf(orderId: string, { receipts, failures }: ReceiptPlan): number {
  const n = Number(orderId.split('-')[1])
  return n < receipts && n % FAILING_EVERY === 0 ? 1 + ((n / FAILING_EVERY) % failures) : 0
}
