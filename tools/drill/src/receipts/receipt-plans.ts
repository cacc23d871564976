// Defines the sizes of the receipts drill, by scale. They are the same for both signals.
import type { Scale } from '../report.ts'

export interface ReceiptPlan {
  /** The minimum number of receipts. More follow at the same rate until the last worker has been restarted. */
  readonly receipts: number
  readonly ratePerSecond: number
  /** How long the endpoint takes to respond, so that workers run tasks when they are restarted. */
  readonly answerMs: number
  /**
   * Every fifth receipt fails. The first of these fails once, the next one twice, and so on up to this number, after which the
   * sequence starts again at one.
   */
  readonly failures: number
  readonly workers: number
  readonly concurrency: number
  readonly restarts: number
}

/** The fleet must be able to handle the load with one fewer worker, because otherwise retries would also wait for the backlog. */
export const RECEIPT_PLANS: Readonly<Record<Scale, ReceiptPlan>> = {
  small: { receipts: 100, ratePerSecond: 15, answerMs: 1_000, failures: 2, workers: 2, concurrency: 20, restarts: 1 },
  full: { receipts: 1_000, ratePerSecond: 50, answerMs: 1_000, failures: 4, workers: 4, concurrency: 25, restarts: 5 },
}

const FAILING_EVERY = 5

/**
 * Returns how many deliveries of an order fail, derived from the number in the order's id. The cancelled order's id does not
 * contain a number.
 */
export function failuresOf(orderId: string, { receipts, failures }: ReceiptPlan): number {
  const n = Number(orderId.split('-')[1])
  return n < receipts && n % FAILING_EVERY === 0 ? 1 + ((n / FAILING_EVERY) % failures) : 0
}
