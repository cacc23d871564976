// Repairs the status index and the totals of a queue after a Queue or Worker of BullMQ that is not wrapped has used it.
//
// A pass compares each divided set with its parts, page by page, in both directions: an entry of the set that is in no part, in
// several, or has another score there, and an entry of a part that is not in the set. The part of a task is then decided from its
// own fields, as on every broker. A move that BullMQ makes changes the score, because scores contain the time, so that a task in
// one part with the right score is in the right part, and its fields need not be read.
//
// Each page is read by one script and repaired by another, which skips an entry whose score has changed since. An entry that two
// processes find is counted once.
//
// The totals need no recount of single tasks, because every status is the size of a structure: one script compares the sum of the
// sizes with the counters.
import { statusOfDelayed, statusOfEnded } from '@bullpen/engine/internal'
import { decodeStack, parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { findDrift } from '../scripts/status/find-drift.ts'
import { repairEntries } from '../scripts/status/repair-entries.ts'
import { repairTotals } from '../scripts/status/repair-totals.ts'
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
  /** How many entries were repaired, and by how many tasks the totals were corrected. */
  readonly repaired: number
  /** undefined at the end of the pass. */
  readonly next: RepairPosition | undefined
}

/** About how many entries one script looks at. 100 entries take Redis some 0.2 ms. */
const PAGE_SIZE = 100

/** Repairs one page. The last page of a pass also corrects the totals. Takes one round trip, or two if an entry is wrong. */
export async function repairPage(redis: Commander, keys: QueueKeys, at: RepairPosition): Promise<RepairedPage> {
  const comparison = COMPARISONS[at.comparison]
  if (comparison === undefined) return { repaired: await runScript(redis, repairTotals, keys, {}), next: undefined }
  const { set, place } = comparison
  const { base, totals } = keys
  const page = { base, set, cursor: at.cursor, count: PAGE_SIZE }
  const { cursor, found } = await runScript(redis, findDrift, { place: keys[place] }, page)
  const entries = entriesOf(set, found)
  const repaired =
    entries.length === 0 ? 0 : await runScript(redis, repairEntries, { divided: keys[set], totals }, { base }, entries)
  const isLast = cursor === '0'
  return { repaired, next: isLast ? { comparison: at.comparison + 1, cursor } : { ...at, cursor } }
}

/**
 * Repairs the whole index and the totals of a queue, and returns how many entries were repaired plus by how many tasks the totals
 * were corrected. The sum is also added to `drift` in the queue's totals. Takes one round trip for every 100 delayed or failed
 * tasks, twice, and some ten more.
 */
export async function repairIndex(redis: Commander, keys: QueueKeys): Promise<number> {
  let repaired = 0
  for (let at: RepairPosition | undefined = FIRST_PAGE; at !== undefined; ) {
    const page: RepairedPage = await repairPage(redis, keys, at)
    repaired += page.repaired
    at = page.next
  }
  return repaired
}

/** The arguments of `repairEntries` for what `findDrift` has found. */
function entriesOf(set: DividedSet, found: readonly string[]): string[] {
  const entries: string[] = []
  for (let i = 0; i < found.length; i += 4) {
    const [id = '', score = '', attemptsMade = '', stacktrace = ''] = found.slice(i, i + 4)
    entries.push(id, score, score === '' ? '' : partOf(set, Number(attemptsMade), stacktrace))
  }
  return entries
}

/** The part to which a task of a divided set belongs, by its own fields. */
export function partOf(set: DividedSet, attemptsMade: number, stacktrace: string): Part {
  const stacks = parseJson(stacktrace)
  const last = decodeStack(Array.isArray(stacks) ? stacks.at(-1) : undefined)
  return set === 'delayed' ? statusOfDelayed(attemptsMade, last) : statusOfEnded(last)
}
