// Forwards the entries of outboxes: claims them, delivers each to its target, and deletes those that were delivered.
//
// The protocol, for each page of entries:
//   1. One script claims the entries, so that one process at a time delivers them (claim-entries.lua).
//   2. Each entry is delivered by one script on its target's shard, which also stores that it was
//      (../store/lua/includes/add/forwarded.lua).
//   3. One script deletes the delivered entries (delete-entries.lua).
//
// A process that dies after step 1 or 2 leaves claimed entries, and one that dies before step 1 leaves fresh ones. The leader looks
// for both in each of its rounds, and claims an entry again if its claim is five seconds old. Step 2 may then run twice, and finds
// its record. Each script may also be sent twice because its reply was lost: a claim that is lost is claimed again after five
// seconds, and an entry that was deleted already is skipped. Nothing is fenced, because two forwarders do no harm.
//
// The same five seconds are the backoff of a target that cannot be reached: its entries stay claimed, and those of other targets
// are delivered meanwhile. A page is left behind after a short time, so that a target which does not respond holds up no other one. What
// is delivered later is deleted later. An entry that cannot be read, because a newer version of Bullpen has written it, stays as well.
//
// The process that has ended a task calls `wake` at once. Many ends share one page: while a loop is running for an outbox, further
// calls only make it look once more. If more outboxes are busy than there are loops, they take turns, one page at a time.
import { settlesWithin } from '@bullpen/engine/node'
import { DELAYED_SCORE_STEP } from '../internals/status/places.ts'
import type { QueueKeys } from '../keys.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { claimEntriesScript, deleteEntriesScript } from '../store/scripts.ts'
import { type Claimed, type Deliveries, deliverEach } from './deliveries.ts'
import { CLOSED_BY_OUTBOX, MAX_OUTBOX_BYTES, MAX_OUTBOX_ENTRIES } from './outbox-bounds.ts'
import { parseEntry } from './outbox-entry.ts'

/** The maximum number of fresh entries in a page, and of entries that were left. */
export const PAGE_SIZE = 100
/** After this time, in ms, a claim counts as left by a process that has died, or as due for another try. */
const CLAIM_MS = 5_000
/** The maximum number of outboxes that a process forwards at once, because each page is kept in memory. */
const MAX_LOOPS = 4
/** How long the next page waits for the entries of a page, in ms. */
const PAGE_MS = 20
/** The maximum number of entries that pages have left behind. The next page waits for them. */
const MAX_SLOW = 1_000

const BEGINNING = '0-0'

/** Up to which size of its outbox a queue is open. */
const OPEN = {
  mark: CLOSED_BY_OUTBOX,
  maxEntries: MAX_OUTBOX_ENTRIES,
  maxBytes: MAX_OUTBOX_BYTES,
  scoreStep: DELAYED_SCORE_STEP,
}

interface ClaimedPage {
  /** How many of the entries no process had claimed before. */
  readonly fresh: number
  /** Where to look next for entries that another process has left, or '0-0' if there are no more. */
  readonly cursor: string
  /** The entries' ids in the stream and their texts. */
  readonly entries: readonly (readonly [id: string, text: string])[]
}

/** An outbox, as its forwarder sees it. */
export interface Outbox {
  /** Distinguishes the outbox from others. */
  readonly name: string
  claim(options: { readonly leftForMs: number | undefined; readonly cursor: string }): Promise<ClaimedPage>
  remove(ids: readonly string[]): Promise<void>
}

/** Returns the outbox of a queue. */
export function queueOutbox(redis: Commander, keys: QueueKeys): Outbox {
  return {
    name: keys.outbox,
    async claim({ leftForMs = '', cursor: from }) {
      const args = { limit: PAGE_SIZE, idleMs: leftForMs, cursor: from }
      const [fresh, cursor, entries] = await runScript(redis, claimEntriesScript, keys, args)
      return { fresh, cursor, entries }
    },
    remove: (ids) => runScript(redis, deleteEntriesScript, keys, OPEN, ids),
  }
}

export interface ForwarderOptions {
  readonly deliveries: Deliveries
  /** Called with the number of entries in a page that this version cannot read. */
  readonly onUnreadable: (entries: number) => void
}

export interface Forwarder {
  /** Forwards the fresh entries of an outbox soon. Never throws: what cannot be forwarded is left for the leader. */
  wake(outbox: Outbox): void
  /**
   * Forwards all entries, also those that another process has left, and resolves when each was tried. Stops after a page if `isOver`
   * returns true.
   */
  forwardLeft(outbox: Outbox, isOver: () => boolean): Promise<void>
  /** Resolves when everything that `wake` was called for has been tried. Never rejects. */
  settled(): Promise<void>
}

/** Pages that were left behind, with the number of their entries. */
type SlowPages = Map<Promise<void>, number>

interface Loop {
  /** Whether there may be entries that the loop has not seen. */
  isWoken: boolean
  done: Promise<void>
}

export function createForwarder({ deliveries, onUnreadable }: ForwarderOptions): Forwarder {
  /** The outboxes that are being forwarded, by name. */
  const running = new Map<string, Loop>()
  /** The outboxes that wait for a loop. */
  const waiting = new Map<string, Outbox>()
  /** The pages that the loops have left behind. */
  const leftByLoops: SlowPages = new Map()

  async function deliverPage(outbox: Outbox, { entries }: ClaimedPage, slow: SlowPages): Promise<void> {
    const claimed = entries.flatMap(([id, text]): Claimed[] => {
      const entry = parseEntry(text)
      return entry === undefined ? [] : [{ id, entry }]
    })
    if (claimed.length < entries.length) onUnreadable(entries.length - claimed.length)
    let delivered: string[] = []
    const remove = async (): Promise<void> => {
      const ids = delivered
      delivered = []
      if (ids.length > 0) await outbox.remove(ids)
    }
    const trying = deliverEach(deliveries, claimed, (ids) => void delivered.push(...ids))
    if (!(await settlesWithin(trying, PAGE_MS))) {
      // What was delivered and not deleted is delivered once more.
      const page: Promise<void> = trying
        .then(remove)
        .catch(() => {})
        .finally(() => slow.delete(page))
      slow.set(page, claimed.length - delivered.length)
    }
    await remove()
    while (entriesIn(slow) >= MAX_SLOW) await Promise.race(slow.keys())
  }

  async function forwardFresh(outbox: Outbox, loop: Loop): Promise<void> {
    do {
      loop.isWoken = false
      const page = await outbox.claim({ leftForMs: undefined, cursor: BEGINNING })
      await deliverPage(outbox, page, leftByLoops)
      if (page.fresh === PAGE_SIZE) loop.isWoken = true
    } while (loop.isWoken && waiting.size === 0)
  }

  function start(outbox: Outbox): void {
    const loop: Loop = { isWoken: false, done: Promise.resolve() }
    running.set(outbox.name, loop)
    loop.done = forwardFresh(outbox, loop)
      .catch(() => {})
      .finally(() => {
        running.delete(outbox.name)
        // Others have waited, or the loop was woken after it had looked for the last time.
        if (loop.isWoken) waiting.set(outbox.name, outbox)
        const [next] = waiting.values()
        if (next === undefined) return
        waiting.delete(next.name)
        start(next)
      })
  }

  return {
    wake(outbox) {
      const found = running.get(outbox.name)
      if (found !== undefined) found.isWoken = true
      else if (running.size < MAX_LOOPS) start(outbox)
      else waiting.set(outbox.name, outbox)
    },

    async forwardLeft(outbox, isOver) {
      // The delivery of another page may have called this function, so it waits for no pages but its own.
      const slow: SlowPages = new Map()
      for (let cursor = BEGINNING; ; ) {
        const sentAt = performance.now()
        const page = await outbox.claim({ leftForMs: CLAIM_MS, cursor })
        await deliverPage(outbox, page, slow)
        cursor = page.cursor
        if ((page.fresh < PAGE_SIZE && cursor === BEGINNING) || isOver()) break
        await pauseAfterPage(sentAt)
      }
      await Promise.all(slow.keys())
    },

    async settled() {
      while (running.size > 0 || leftByLoops.size > 0) {
        await Promise.all([...[...running.values()].map(({ done }) => done), ...leftByLoops.keys()])
      }
    },
  }
}

function entriesIn(pages: ReadonlyMap<unknown, number>): number {
  return [...pages.values()].reduce((sum, entries) => sum + entries, 0)
}
