// Defines the port that finds and deletes what is stored without an owner.
import type { Orphan, OrphanRef } from '@bullpen/contract'

export interface FoundOrphans {
  readonly orphans: readonly Orphan[]
  /** How many keys and entries this call has examined. */
  readonly examined: number
  /** The cursor with which the search continues. Undefined at its end. */
  readonly next: string | undefined
}

/** Finds keys, and entries of keys, that belong to nothing, such as the lock of a task that does not exist. */
export interface Orphans {
  /**
   * Examines a part of what is stored, for about 3 s, and leaves at least half of the store's time to others. What seems to have no
   * owner is examined again, in an atomic step, after at least a second, so nothing is listed only because it was changing. Follow
   * `next` until it is undefined; a key may be listed twice. If the signal aborts, the call soon resolves without any orphans, and
   * `next` is where the call began. Changes nothing.
   *
   * @throws BullpenError `invalid_cursor` if the cursor is not one of a search, or if a node of the cluster has been replaced since.
   */
  search(cursor?: string, signal?: AbortSignal): Promise<FoundOrphans>
  /**
   * Deletes those of these keys and entries that have no owner, and returns them. Whether each has an owner is decided in the
   * atomic step that deletes it.
   */
  delete(orphans: readonly OrphanRef[]): Promise<readonly OrphanRef[]>
}
