// Repairs a queue's status index and totals after a BullMQ Queue or Worker without Bullpen's backend has used the queue.
//
// A pass compares each divided set with its parts, page by page, in both directions. It finds each entry of the set that is in no
// part, in several parts, or in a part with another score, and each entry of a part that is not in the set. The task's own fields
// then determine the right part, as they do on every broker. A move by BullMQ changes the score, because scores contain the time.
// A task that is in exactly one part with the right score is therefore in the right part, and its fields do not have to be read.
//
// Each page is read by one script and repaired by another, which skips an entry whose score has changed in the meantime. If two
// processes find the same entry, it is counted only once.
//
// The totals are corrected without counting individual tasks, because the number of tasks in each status is the size of a
// structure. One script compares the sum of these sizes with the counters.
import { statusOfDelayed, statusOfEnded } from '@bullpen/engine/internal'
import { decodeStack, parseJson } from '../../codec.ts'
import type { QueueKeys } from '../../keys.ts'
import { pauseAfterPage } from '../../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { findDriftScript, repairEntriesScript, repairTotalsScript } from '../../store/scripts.ts'
import { recountBytes } from './bytes-recount.ts'
import { repairFingerprints } from './fingerprint-repair.ts'
import { PARTS, type Part } from './status-index.ts'

type DividedSet = keyof typeof PARTS

/** What a pass compares: each divided set with its parts, and each part with its set. */
const COMPARISONS: readonly { readonly set: DividedSet; readonly place: DividedSet | Part }[] = (
  ['delayed', 'failed'] as const
).flatMap((set) => [set, ...PARTS[set]].map((place) => ({ set, place })))

/** Where a pass continues. */
export interface RepairPosition {
  /** The index among the comparisons. */
  readonly comparison: number
  /** Redis's cursor within the place. */
  readonly cursor: string
}

export const FIRST_PAGE: RepairPosition = { comparison: 0, cursor: '0' }

export interface RepairedPage {
  /** The number of entries that were repaired, plus the number of tasks by which the totals were corrected. */
  readonly repaired: number
  /** Where the pass continues, or undefined at its end. */
  readonly next: RepairPosition | undefined
}

/** The approximate number of entries that one script examines. 100 entries take Redis about 0.2 ms. */
const PAGE_SIZE = 100

/** Repairs one page. The last page of a pass also corrects the totals. Takes one round trip, or two if any entry is wrong. */
export async function repairPage(redis: Commander, keys: QueueKeys, at: RepairPosition): Promise<RepairedPage> {
  const comparison = COMPARISONS[at.comparison]
  if (comparison === undefined)
    return { repaired: await runScript(redis, repairTotalsScript, keys, {}), next: undefined }
  const { set, place } = comparison
  const names = { place: keys[place], divided: keys[set], totals: keys.totals }
  const args = { base: keys.base, parts: PARTS[set].join(' ') }
  const page = { ...args, cursor: at.cursor, count: PAGE_SIZE }
  const [cursor, ...found] = await runScript(redis, findDriftScript, names, page)
  const entries = entriesOf(set, found)
  const repaired = entries.length === 0 ? 0 : await runScript(redis, repairEntriesScript, names, args, entries)
  const isLast = cursor === '0'
  return { repaired, next: isLast ? { comparison: at.comparison + 1, cursor } : { ...at, cursor } }
}

/**
 * Repairs a queue's whole index, its totals and its index of fingerprints (./fingerprint-repair.ts), pausing after each page. Stops
 * after the current page if `isOver` returns true; by default, the repair always runs to the end. Returns the number of repaired
 * entries plus the number of tasks by which the totals were corrected, plus 1 if their bytes were wrong, and adds this number to
 * `drift` in the queue's totals. Takes two round trips for every 100 delayed or failed tasks, one for every 1,000 unfinished tasks,
 * and about ten more. If the bytes or the number of an API key's tasks were wrong, it takes three round trips for every 1,000
 * unfinished tasks.
 */
export async function repairIndex(
  redis: Commander,
  keys: QueueKeys,
  isOver: () => boolean = () => false,
): Promise<number> {
  // The last page stores that the pass is complete.
  let repaired = await recountBytes(redis, keys, isOver)
  for (let at = FIRST_PAGE; ; ) {
    const sentAt = performance.now()
    const page = await repairPage(redis, keys, at)
    repaired += page.repaired
    if (page.next === undefined) await repairFingerprints(redis, keys, isOver)
    if (page.next === undefined || isOver()) return repaired
    at = page.next
    await pauseAfterPage(sentAt)
  }
}

/** Builds the arguments of repair-entries.lua from the reply of find-drift.lua. */
function entriesOf(set: DividedSet, found: readonly string[]): string[] {
  const entries: string[] = []
  for (let i = 0; i < found.length; i += 4) {
    const [id = '', score = '', attemptsMade = '', stacktrace = ''] = found.slice(i, i + 4)
    entries.push(id, score, score === '' ? '' : partOf(set, Number(attemptsMade), stacktrace))
  }
  return entries
}

/** Decides from a task's own fields to which part of a divided set it belongs. */
export function partOf(set: DividedSet, attemptsMade: number, stacktrace: string): Part {
  const stacks = parseJson(stacktrace)
  const last = decodeStack(Array.isArray(stacks) ? stacks.at(-1) : undefined)
  return set === 'delayed' ? statusOfDelayed(attemptsMade, last) : statusOfEnded(last)
}
