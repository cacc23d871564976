// Decides which members of a group a consumer tries to fetch next.
//
// A consumer that runs only one group cannot take the first task of its queue. It passes the ids of some unfinished members to the
// store, which returns one of them that waits. The consumer goes through the unfinished members in the order of their numbers, at most
// MAX_CANDIDATES at a time, and moves on when none of these waits. After the last one, it pauses and begins again with the first one,
// because members that did not wait may wait by then: they may have been delayed, or have run in a process that died.
import type { TaskId } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'
import type { Candidates } from '../ports/consumer.ts'

/** How many members one fetch may try. */
export const MAX_CANDIDATES = 50

/** The shortest pause after the last member, in ms. */
const PAUSE_MS = 250

/**
 * How much longer the pause is for each member that was tried without success, in ms. Trying a member takes Redis about 1 µs, and 3 µs
 * if it waits but may not start, so that a consumer of a large group whose members cannot start uses from a fiftieth to a sixteenth of
 * Redis's time.
 */
const PAUSE_PER_MEMBER_MS = 0.05

/** How many ids are remembered at least, so that each of them is not computed for every fetch. */
const MAX_REMEMBERED = 500

/** Returns the pause after a pass through the members in which none of the last `tried` members waited, in ms. */
export function pauseAfter(tried: number): number {
  return PAUSE_MS + tried * PAUSE_PER_MEMBER_MS
}

/** Returns the first members from `from` on that are free, at most `limit`. `members` is in ascending order. */
export function membersFrom(
  members: readonly number[],
  from: number,
  isFree: (member: number) => boolean,
  limit: number,
): readonly number[] {
  let low = 0
  for (let high = members.length; low < high; ) {
    const middle = (low + high) >>> 1
    if ((members[middle] ?? 0) < from) low = middle + 1
    else high = middle
  }
  const found: number[] = []
  for (let at = low; at < members.length && found.length < limit; at++) {
    const member = members[at] ?? 0
    if (isFree(member)) found.push(member)
  }
  return found
}

export interface GroupCandidatesOptions {
  /** Returns the numbers of the members in this queue that had not ended when they were last read, in ascending order. */
  readonly members: () => readonly number[]
  readonly idOf: (member: number) => TaskId
  /** Reads the members again, unless they were read at most `maxAgeMs` ago. Never rejects. */
  readonly refresh: (maxAgeMs: number) => Promise<void>
  readonly clock: Pick<Clock, 'after'>
}

/** How old the list of unfinished members may become while members are being fetched, in ms. */
const MAX_AGE_MS = 1_000

/** Creates the candidates of one consumer. */
export function groupCandidates({ members, idOf, refresh, clock }: GroupCandidatesOptions): Candidates {
  /** The tasks that this consumer has fetched and that have not ended their attempt. */
  const running = new Set<TaskId>()
  const remembered = new Map<number, TaskId>()
  let from = 0
  let sent: readonly number[] = []
  let tried = 0
  let isStopped = false
  let wake = (): void => {}

  const remember = (member: number): TaskId => {
    const known = remembered.get(member)
    if (known !== undefined) return known
    // The tasks that run are looked up in every fetch.
    if (remembered.size >= MAX_REMEMBERED + 2 * running.size) remembered.clear()
    const id = idOf(member)
    remembered.set(member, id)
    return id
  }
  const isFree = (member: number): boolean => !running.has(remember(member))
  const free = (limit: number): readonly number[] => membersFrom(members(), from, isFree, limit)

  const pause = async (ms: number): Promise<void> => {
    if (isStopped) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(ms, resolve)
    wake = resolve
    await promise
    cancel()
  }

  return {
    next() {
      void refresh(MAX_AGE_MS)
      sent = free(MAX_CANDIDATES)
      if (sent.length === 0) {
        from = 0
        sent = free(MAX_CANDIDATES)
      }
      return sent.map(remember)
    },
    fetched(id) {
      running.add(id)
      tried = 0
    },
    returned: (id) => void running.delete(id),
    async noneWaits() {
      tried += sent.length
      from = (sent.at(-1) ?? from) + 1
      if (free(1).length > 0) return !isStopped
      const ms = pauseAfter(tried)
      tried = 0
      from = 0
      do {
        await pause(ms)
        await refresh(PAUSE_MS / 2)
      } while (!isStopped && free(1).length === 0)
      return !isStopped
    },
    stop() {
      isStopped = true
      wake()
    },
  }
}
