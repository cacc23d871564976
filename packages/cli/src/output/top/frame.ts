// Renders the screen of bullpen top from a snapshot of the fleet, as lines that fit into the terminal.
import type { Snapshot } from '../../commands/top/snapshot.ts'
import type { Paint } from '../colors.ts'
import { count, formatLength, plain } from '../format.ts'
import { errorSection } from './error-section.ts'
import type { TableFrame } from './fitted-table.ts'
import { queueSection, rateText } from './queue-section.ts'
import type { Section } from './section.ts'
import { taskSection } from './task-section.ts'
import { percentText, slotsOf, workerSection } from './worker-section.ts'

/** What is known of the fleet. */
export interface Shown {
  /** The newest snapshot, or undefined if none has succeeded. */
  readonly snapshot?: Snapshot | undefined
  /** How long ago the snapshot was taken, in ms. */
  readonly ageMs?: number
  /** Why no newer snapshot could be taken. */
  readonly failure?: string | undefined
}

interface FrameSize {
  readonly columns: number
  /** The number of lines. */
  readonly rows: number
  readonly paint: Paint
}

/** A section shows at least this many rows, or all of its rows if it has fewer. */
const MIN_ROWS = 2

export function frameLines(shown: Shown, size: FrameSize): readonly string[] {
  const { snapshot } = shown
  const notices = noticeLines(shown, size)
  if (snapshot === undefined) return [...cut(['bullpen top'], size), ...notices].slice(0, size.rows)
  const start = [...cut([titleText(snapshot), totalsText(snapshot)], size), ...notices]
  return [...start, ...sectionLines(snapshot, { ...size, rows: size.rows - start.length })].slice(0, size.rows)
}

function cut(lines: readonly string[], { columns }: TableFrame): readonly string[] {
  return lines.map((line) => plain(line, columns))
}

/** Says that there is no data, or that the data is old. */
function noticeLines({ snapshot, ageMs = 0, failure }: Shown, { columns, paint }: FrameSize): readonly string[] {
  if (failure === undefined) return snapshot === undefined ? [plain('reading the fleet…', columns)] : []
  const state = snapshot === undefined ? 'NO DATA YET' : `OLD DATA, from ${formatLength(ageMs)} ago`
  return [paint('red', plain(`${state}; trying again: ${failure}`, columns))]
}

/** The time is that of Redis. */
function titleText({ now, queues, workers }: Snapshot): string {
  const lost = workers.filter(({ alive }) => !alive).length
  const fleet = `${count(queues.length, 'queue')}, ${count(workers.length - lost, 'worker')}`
  return `bullpen top  ${now.slice(0, 19).replace('T', ' ')} UTC  ${fleet}${lost === 0 ? '' : ` and ${lost} LOST`}`
}

function totalsText({ queues, workers }: Snapshot): string {
  const slots = workers.map(slotsOf)
  const sum = <T>(all: readonly T[], of: (each: T) => number): number =>
    all.reduce((total, each) => total + of(each), 0)
  const busy = sum(slots, (each) => each.busy)
  const size = sum(slots, (each) => each.slots)
  return [
    `slots ${busy}/${size} busy (${percentText(busy, size)})`,
    `waiting ${sum(queues, ({ tasks }) => tasks.waiting)}`,
    `active ${sum(queues, ({ tasks }) => tasks.active)}`,
    `dead ${sum(queues, ({ tasks }) => tasks.dead)}`,
    `in ${rateText(sum(queues, ({ rates }) => rates.in))}/s`,
    `out ${rateText(sum(queues, ({ rates }) => rates.out))}/s`,
  ].join(', ')
}

/** Each section begins with an empty line. If there is no room for all sections, the last ones are left out. */
function sectionLines(snapshot: Snapshot, size: FrameSize): readonly string[] {
  const sections = [queueSection(snapshot), workerSection(snapshot), taskSection(snapshot), errorSection(snapshot)]
  const rows = rowsOf(sections, size.rows)
  return rows.flatMap((each, i) => ['', ...(sections[i]?.lines(each, size) ?? [])])
}

/** Returns how many rows each of the first sections gets, so that those that need more share the rest equally. */
function rowsOf(sections: readonly Section[], available: number): readonly number[] {
  const rows: number[] = []
  let left = available
  for (const { size } of sections) {
    const least = Math.min(size, MIN_ROWS)
    // An empty line, and the heading or the line that says that there is nothing.
    const needed = 2 + least
    if (needed > left) break
    rows.push(least)
    left -= needed
  }
  const wanted = sections.slice(0, rows.length).map(({ size }) => size)
  // Without a limit, everything is shown.
  if (left >= wanted.reduce((sum, each) => sum + each, 0)) return wanted
  while (left > 0) {
    const growing = wanted.flatMap((want, i) => ((rows[i] ?? want) < want ? [i] : [])).slice(0, left)
    if (growing.length === 0) break
    for (const i of growing) rows[i] = (rows[i] ?? 0) + 1
    left -= growing.length
  }
  return rows
}
