// Searches a namespace for keys and entries that belong to nothing, and deletes them.
//
// The search visits every key with SCAN, and every entry of each structure that names tasks or other keys, in bounded pages with
// pauses in between (./examination.ts). Work goes on meanwhile. What seems to have no owner is therefore checked again later, by a
// script that sees a single moment and repeats the whole decision. Every script of Bullpen and BullMQ leaves the owners of its keys
// in order, so one such moment is enough; the delay covers work of other clients that takes several commands.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Orphan, OrphanReason, OrphanRef } from '@bullpen/contract'
import type { Orphans } from '@bullpen/engine/internal'
import { leaderKeys } from '../keys.ts'
import type { RedisAccess } from '../schema.ts'
import { readEntry } from './entry-page.ts'
import { type Circumstances, examinePage, type Findings, firstPosition } from './examination.ts'
import { findListed } from './list-walk.ts'
import { statesOf } from './ownership.ts'
import { decodePosition, encodePosition, type SearchPosition } from './search-position.ts'
import { entrySuspect, STRUCTURES, type Suspect, suspectOf } from './stored-key.ts'
import type { Subject, SubjectState } from './subject.ts'

export interface OrphanSearchOptions extends RedisAccess {
  /** How long one call examines keys before it checks what it has found, in ms. Defaults to 3,000. Tests set this. */
  readonly examineMs?: number
  /** How long the search waits before it checks again, in ms. Defaults to 1,000. Tests set this. */
  readonly recheckAfterMs?: number
  /**
   * How long the search waits for a leader before it reports what a leader would delete, in ms. Defaults to 10,000, which is enough
   * for another process to take over. Tests set this.
   */
  readonly leaderWithinMs?: number
}

const EXAMINE_MS = 3_000
const RECHECK_AFTER_MS = 1_000
const LEADER_WITHIN_MS = 10_000
/** How many suspects one call collects. Each takes about 1 kB of this process's memory. */
const MAX_SUSPECTS = 20_000

const REASONS: Readonly<Record<Exclude<SubjectState, 'owned'>, OrphanReason>> = {
  unknown: 'unknown_key',
  wrong_type: 'wrong_type',
  no_owner: 'no_owner',
  no_expiry: 'no_expiry',
}

export function createOrphanSearch(options: OrphanSearchOptions): Orphans {
  const { redis, call, namespace, examineMs = EXAMINE_MS } = options
  const { recheckAfterMs = RECHECK_AFTER_MS, leaderWithinMs = LEADER_WITHIN_MS } = options
  const leader = leaderKeys(namespace)

  const circumstances = async (): Promise<Circumstances> => {
    const [queues, leases] = await Promise.all([
      call(() => redis.hkeys(leader.registry)),
      call(() => redis.exists(leader.lease)),
    ])
    return { queues: queues.toSorted(), hasLeader: leases === 1 }
  }

  /** Drops the suspects that are in a list. */
  async function outsideLists(suspects: readonly Suspect[]): Promise<readonly Suspect[]> {
    const conditions = suspects.flatMap(({ subject }) =>
      subject.owned.filter(({ kind }) => kind === 'listed' || kind === 'laned'),
    )
    const found = await findListed(options, conditions)
    return suspects.filter(({ subject }) => !subject.owned.some((condition) => found.has(condition)))
  }

  /** Returns undefined if the signal has aborted. */
  async function checkAgain(
    { suspects, unknownQueues }: Findings,
    signal: AbortSignal | undefined,
  ): Promise<readonly Orphan[] | undefined> {
    const left = await outsideLists(suspects)
    if (left.length === 0 && unknownQueues.size === 0) return []
    // Suspects that are left to the leader have been collected only if there was none.
    const waitMs = left.some(isLeftToLeader) ? leaderWithinMs : recheckAfterMs
    // Rejects if the signal aborts.
    await sleep(waitMs, undefined, { ref: false, signal }).catch(() => {})
    if (signal?.aborted) return undefined
    const { queues, hasLeader } = await circumstances()
    const checked = left.filter((suspect) => !(hasLeader && isLeftToLeader(suspect)))
    const states = await statesOf(
      options,
      checked.map(({ subject }) => subject),
    )
    const orphans = checked.flatMap(({ subject, about }): Orphan[] => {
      const state = states.get(subject) ?? 'owned'
      if (state === 'owned') return []
      const { key, entry } = subject
      const named = { key, ...(entry !== undefined && { entry: entry.name }) }
      return [{ ...named, reason: REASONS[state], ...about, certain: state === 'no_owner' }]
    })
    const unknown = [...unknownQueues].flatMap(([queue, { key, keys }]): Orphan[] =>
      queues.includes(queue) ? [] : [{ key, reason: 'unknown_queue', queue, keys, certain: false }],
    )
    return [...orphans, ...unknown]
  }

  return {
    async search(cursor, signal) {
      const around = await circumstances()
      const found: Findings = { suspects: [], unknownQueues: new Map(), examined: 0 }
      const until = performance.now() + examineMs
      const start = cursor === undefined ? firstPosition(redis) : decodePosition(cursor)
      let position: SearchPosition | undefined = start
      while (position !== undefined && !signal?.aborted) {
        position = await examinePage(options, position, around, found)
        if (performance.now() >= until || found.suspects.length >= MAX_SUSPECTS) break
      }
      const orphans = signal?.aborted ? undefined : await checkAgain(found, signal)
      if (orphans === undefined) return { orphans: [], examined: 0, next: encodePosition(start) }
      return { orphans, examined: found.examined, next: position && encodePosition(position) }
    },

    async delete(refs) {
      const { queues, hasLeader } = await circumstances()
      const suspects = new Map<Subject, OrphanRef>()
      for (const ref of refs) {
        const { key, entry: name } = ref
        const suspect = suspectOf(namespace, key)
        const queue = suspect?.about.queue
        if (suspect === undefined || (queue !== undefined && !queues.includes(queue))) continue
        if (name === undefined) {
          suspects.set(suspect.subject, ref)
          continue
        }
        const structure = STRUCTURES.find(({ pattern }) => pattern === suspect.about.kind)
        if (queue === undefined || structure === undefined || (structure.entriesLeftToLeader && hasLeader)) continue
        const entry = await call(() => readEntry(redis, key, structure.type, name))
        if (entry !== undefined) suspects.set(entrySuspect(namespace, queue, structure, entry).subject, ref)
      }
      const states = await statesOf(options, [...suspects.keys()], { deletes: true })
      return [...suspects].flatMap(([subject, ref]) => (states.get(subject) === 'no_owner' ? [ref] : []))
    },
  }
}

/** Returns whether the suspect is an entry that the leader deletes in the course of its work. */
function isLeftToLeader({ subject, about }: Suspect): boolean {
  if (subject.entry === undefined) return false
  return STRUCTURES.some(({ pattern, entriesLeftToLeader }) => pattern === about.kind && entriesLeftToLeader === true)
}
