// The figures of receipts that are delivered to an endpoint, and of what Prometheus has counted of them.

export interface DeliveryFigures {
  /** Deliveries that the endpoint had accepted before, while workers were asked to shut down, and while they were killed. */
  readonly repeatedBySigterm?: number
  readonly repeatedBySigkill?: number
  /** Receipts that were retried less often or sooner than their policy requires. */
  readonly offPolicy?: number
  /** The longest time by which a retry exceeded its policy's longest backoff. */
  readonly retryLateMs?: number | undefined
  readonly cancelledDelivered?: number
  /** By how many tasks the totals that Prometheus has scraped differ from the ledger. */
  readonly enqueuedMiscounted?: number
  readonly completedMiscounted?: number
  /** By how much the mean of Prometheus's rates over the load differs from that of the ledger, for tasks enqueued and ended. */
  readonly rateInErrorPercent?: number
  readonly rateOutErrorPercent?: number
}
