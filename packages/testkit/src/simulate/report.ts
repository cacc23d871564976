// Describes the result of a simulation.
import type { TaskName } from '@bullpen/contract'
import { type SimulationFault, timesText } from './faults.ts'
import { type InterruptionKind, kindsText } from './interruption.ts'
import { SimulationError } from './simulation-error.ts'

/** The result of `simulate`. */
export interface Simulation {
  readonly task: TaskName
  /** How many times the task was run from its enqueue to its end, including two runs without an interruption. */
  readonly runs: number
  /** At how many points the attempts of an uninterrupted run can be interrupted. */
  readonly points: number
  /** The effects of an uninterrupted run, and how often each of them happens. */
  readonly effects: readonly { readonly effect: string; readonly times: number }[]
  readonly faults: readonly SimulationFault[]
  /** The faults as text, for people. */
  readonly summary: string
  /** @throws SimulationError `not_idempotent` with the summary as message if there are any faults. */
  assertIdempotent(): void
}

export function simulation(result: Omit<Simulation, 'summary' | 'assertIdempotent'>): Simulation {
  const summary = summaryOf(result)
  return {
    ...result,
    summary,
    assertIdempotent() {
      const { faults } = result
      if (faults.length > 0) throw new SimulationError('not_idempotent', summary, { faults })
    },
  }
}

/** How many places are listed of each fault. */
const LISTED_PLACES = 10

function summaryOf({ task, runs, points, faults }: Omit<Simulation, 'summary' | 'assertIdempotent'>): string {
  if (faults.length === 0) return `${task} is idempotent: no fault in ${runs} runs, with ${points} interruption points`
  const title = `${task} is not idempotent: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'} in ${runs} runs`
  return [title, ...faults.map(faultText)].join('\n\n')
}

function faultText(fault: SimulationFault): string {
  const lines = causesOf(fault).map((cause) => `  ${cause}`)
  const more = lines.length - LISTED_PLACES
  return [
    `${headline(fault)} when the attempt was interrupted`,
    ...lines.slice(0, LISTED_PLACES),
    ...(more > 0 ? [`  and in ${more} more ways`] : []),
  ].join('\n')
}

function headline({ kind, effect, expected, runs }: SimulationFault): string {
  if (kind === 'not_completed') return 'the task did not complete'
  const times = runs.map((run) => run.times)
  const most = Math.max(...times)
  const happened = `${times.every((each) => each === most) ? '' : 'up to '}${timesText(most)}`
  return `${effect} should ${expected === 0 ? 'not happen' : `happen ${timesText(expected)}`}, but ${most === 0 ? 'did not happen' : `happened ${happened}`}`
}

/** Returns a line for each place at which an interruption caused the fault, with the kinds of interruption that did. */
function causesOf({ kind, runs }: SimulationFault): readonly string[] {
  const kindsByPlace = new Map<string, readonly InterruptionKind[]>()
  for (const { interruptions, summary } of runs) {
    const [last, ...earlier] = interruptions.toReversed()
    if (last === undefined) continue
    const first = earlier.map((each) => `${each.place} by ${kindsText([each.kind])}, and then `).join('')
    const place = `${first}${last.place}${kind === 'not_completed' ? ` (${summary})` : ''}`
    kindsByPlace.set(place, [...(kindsByPlace.get(place) ?? []), last.kind])
  }
  return Array.from(kindsByPlace, ([place, kinds]) => `${place} by ${kindsText(kinds)}`)
}
