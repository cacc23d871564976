// Defines how entries of an outbox are delivered, by their kind.
import type { OutboxEntry } from './outbox-entry.ts'

/** An entry that this process has claimed. `id` is its id in the outbox's stream. */
export interface Claimed<Entry extends OutboxEntry = OutboxEntry> {
  readonly id: string
  readonly entry: Entry
}

/**
 * For each kind of entry, a function that delivers some of them, and calls `onDelivered` with the ids of those that may be deleted as soon
 * as it knows them. The others are delivered again later, by any process. A delivery must therefore be idempotent. It never rejects, and
 * resolves when it has tried each entry.
 */
export type Deliveries = {
  readonly [Kind in OutboxEntry['kind']]: (
    entries: readonly Claimed<Extract<OutboxEntry, { readonly kind: Kind }>>[],
    onDelivered: (ids: readonly string[]) => void,
  ) => Promise<void>
}

/** Delivers a page's entries. Cancels come first, so that a task of the same page is not enqueued. Resolves when each entry was tried. */
export async function deliverEach(
  deliveries: Deliveries,
  claimed: readonly Claimed[],
  onDelivered: (ids: readonly string[]) => void,
): Promise<void> {
  const deliverKind = async (kind: keyof Deliveries): Promise<void> => {
    const ofKind = claimed.filter(({ entry }) => entry.kind === kind)
    // The entries are of this kind.
    const deliver = deliveries[kind] as (entries: readonly Claimed[], onDelivered: unknown) => Promise<void>
    if (ofKind.length > 0) await deliver(ofKind, onDelivered)
  }
  const { groupCancel: _, ...others } = deliveries
  await deliverKind('groupCancel')
  await Promise.all((Object.keys(others) as (keyof typeof others)[]).map(deliverKind))
}
