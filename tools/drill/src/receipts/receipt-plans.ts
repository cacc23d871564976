// How much a receipts drill does, by its scale: the same for each way in which processes are ended.
import type { Scale } from '../report.ts'

export interface ReceiptPlan {
  /** More, at the same rate, when the last process has not been ended by then. */
  readonly receipts: number
  readonly ratePerSecond: number
  /** How long the endpoint takes to answer, so that there is work in hand when a process is ended. */
  readonly answerMs: number
  /** Every fifth receipt is made to fail: the first of them once, and so on up to so often, again and again. */
  readonly failures: number
  readonly workers: number
  readonly concurrency: number
  readonly restarts: number
}

/** One process less must still be enough: how late a retry is would otherwise be how long the queue is. */
export const RECEIPT_PLANS: Readonly<Record<Scale, ReceiptPlan>> = {
  small: { receipts: 100, ratePerSecond: 60, answerMs: 300, failures: 2, workers: 2, concurrency: 20, restarts: 1 },
  full: { receipts: 1_000, ratePerSecond: 50, answerMs: 1_000, failures: 4, workers: 4, concurrency: 25, restarts: 5 },
}

const MADE_TO_FAIL = 5

/** By the number in the order's id; the cancelled one has none. */
export function failuresOf(orderId: string, { receipts, failures }: ReceiptPlan): number {
  const n = Number(orderId.split('-')[1])
  return n < receipts && n % MADE_TO_FAIL === 0 ? 1 + ((n / MADE_TO_FAIL) % failures) : 0
}
