// Defines how entries of an outbox are delivered, by their kind.
import type { OutboxEntry } from './outbox-entry.ts'

/** An entry that this process has claimed. `id` is its id in the outbox's stream. */
export interface Claimed<Entry extends OutboxEntry = OutboxEntry> {
  readonly id: string
  readonly entry: Entry
}

/**
 * For each kind of entry, a function that delivers some of them, in order, and resolves with the ids of those that may be deleted.
 * The others are delivered again later, by any process. A delivery must therefore be idempotent. It never rejects.
 */
export type Deliveries = {
  readonly [Kind in OutboxEntry['kind']]: (
    entries: readonly Claimed<Extract<OutboxEntry, { readonly kind: Kind }>>[],
  ) => Promise<readonly string[]>
}

/** Delivers a page's entries kind by kind. Resolves with the ids of the entries that may be deleted. */
export async function deliverEach(deliveries: Deliveries, claimed: readonly Claimed[]): Promise<readonly string[]> {
  const delivered: string[] = []
  for (const kind of Object.keys(deliveries) as (keyof Deliveries)[]) {
    const ofKind = claimed.filter(({ entry }) => entry.kind === kind)
    // The entries are of this kind.
    const deliver = deliveries[kind] as (entries: readonly Claimed[]) => Promise<readonly string[]>
    if (ofKind.length > 0) delivered.push(...(await deliver(ofKind)))
  }
  return delivered
}
