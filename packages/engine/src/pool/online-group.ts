// Follows a group for a worker that runs only this group: knows which members have not ended, and when the group has ended.
import { BullpenError, type GroupId } from '@bullpen/contract'
import { groupNotFound } from '../groups/group-errors.ts'
import { memberId } from '../groups/member-task.ts'
import type { Group, Groups, UnfinishedMembers } from '../ports/broker/groups.ts'
import type { Clock } from '../ports/clock.ts'
import type { Candidates } from '../ports/consumer.ts'
import type { Sha256 } from '../task/digest.ts'
import { settlesWithin } from '../time/with-timeout.ts'
import { groupCandidates } from './group-candidates.ts'
import type { OnlineWork } from './online-set.ts'

export interface OnlineGroupOptions {
  readonly id: GroupId
  readonly groups: Pick<Groups, 'unfinished' | 'waitUntilEnded'>
  /** The queues for which the worker has a pool. */
  readonly queues: readonly string[]
  readonly clock: Clock
  readonly sha256: Sha256
}

export interface OnlineGroup extends OnlineWork {
  /**
   * Reads the group, and waits until the store is available. Resolves without having read it if the signal aborts.
   *
   * @throws BullpenError `group_not_found`, or `queue_not_found` if the worker has no pool for a queue of the group.
   */
  open(signal: AbortSignal): Promise<void>
  /** Returns the group as it was last read, or undefined before it was read. */
  group(): Group | undefined
  /** Returns candidates for one consumer of this queue. */
  candidates(queue: string): Candidates
  /**
   * Resolves when this worker cannot run the group to its end: the group no longer exists, or members were added in a queue for which
   * the worker has no pool.
   */
  readonly failed: Promise<BullpenError>
}

/** The delay between two reads when the store does not respond, in ms. */
const RETRY_MS = 1_000
/**
 * How long the worker waits for the message about the end before it reads the group, in ms. A message may be lost with a node
 * of a cluster.
 */
const RECHECK_MS = 10_000

export function createOnlineGroup({ id, groups, queues, clock, sha256 }: OnlineGroupOptions): OnlineGroup {
  let latest: UnfinishedMembers | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  const failed = Promise.withResolvers<BullpenError>()
  let failure: BullpenError | undefined
  /** Ends the present wait for the end, so that the group is read. */
  let stopWaiting = (): void => {}

  const fail = (error: BullpenError): void => {
    failure ??= error
    failed.resolve(error)
  }

  const isDone = (): boolean => latest?.group.state === 'ended'

  const read = async (): Promise<void> => {
    const found = await groups.unfinished(id)
    readAt = clock.monotonic()
    if (found === undefined) {
      fail(groupNotFound(id))
      return
    }
    latest = found
    if (isDone()) stopWaiting()
    const missing = found.group.queues.find((queue) => !queues.includes(queue))
    if (missing !== undefined && found.group.state !== 'ended') fail(noPool(id, missing, queues))
  }

  const refresh = async (maxAgeMs: number): Promise<void> => {
    if (reading === undefined && clock.monotonic() - readAt <= maxAgeMs) return
    reading ??= read().finally(() => {
      reading = undefined
    })
    // The members that were read before are tried again until the store responds.
    await reading.catch(() => {})
  }

  /** Waits until the group has ended, for a limited time. Rejects if the store does not respond. */
  const waitForEnd = async (signal: AbortSignal): Promise<void> => {
    const waiting = new AbortController()
    const stop = (): void => waiting.abort()
    stopWaiting = stop
    const cancelRecheck = clock.after(RECHECK_MS, stop)
    // AbortSignal.any is not used, because `signal` lives as long as the worker and would keep a reference to every wait.
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    try {
      const group = await groups.waitUntilEnded(id, waiting.signal)
      if (group === undefined) fail(groupNotFound(id))
      else if (latest !== undefined) latest = { ...latest, group }
    } finally {
      cancelRecheck()
      signal.removeEventListener('abort', stop)
    }
  }

  return {
    async open(signal) {
      while (!signal.aborted) {
        try {
          await read()
          if (failure !== undefined) throw failure
          return
        } catch (error) {
          if (!(error instanceof BullpenError) || error.code !== 'redis_unavailable') throw error
          await settlesWithin(clock, new Promise(() => {}), RETRY_MS, signal)
        }
      }
    },
    group: () => latest?.group,
    candidates: (queue) =>
      groupCandidates({
        members: () => latest?.byQueue.get(queue) ?? [],
        idOf: (member) => memberId(id, member, queue, sha256),
        refresh,
        clock,
      }),
    failed: failed.promise,
    isDone,
    async ended(signal) {
      while (!signal.aborted && !isDone()) {
        try {
          await waitForEnd(signal)
          if (failure !== undefined) await aborted(signal)
        } catch {
          await settlesWithin(clock, new Promise(() => {}), RETRY_MS, signal)
        }
      }
    },
    async recheck() {
      await read().catch(() => {})
    },
  }
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}

function noPool(id: GroupId, queue: string, queues: readonly string[]): BullpenError {
  return new BullpenError(
    'queue_not_found',
    `group ${id} has members in queue '${queue}', for which this worker has no pool; it has pools for ${queues.join(', ')}`,
  )
}
