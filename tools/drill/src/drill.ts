/**
 * A drill is a chaos test. It runs real workers under load, injects one kind of fault, and compares the figures from a ledger
 * outside the system with a target. The figures of plain BullMQ are reported as well.
 */

import type { System } from './environment/fleet.ts'
import { countingOrphans } from './environment/orphan-count.ts'
import type { Figures } from './figures/figures.ts'
import { type Baseline, type Report, reportOf, type Scale, type Target } from './report.ts'

export interface Drill {
  readonly name: string
  target(scale: Scale): Target
  /** The figures of plain BullMQ in the same scenario, measured earlier. Undefined if BullMQ has no such feature. */
  readonly known: Baseline | undefined
  /** Whether plain BullMQ can run the same scenario. */
  readonly comparable: boolean
  /** Runs the same load with other libraries, by name. */
  readonly others?: Readonly<Record<string, (scale: Scale) => Promise<Baseline>>>
  /** Runs the scenario and reads the ledger. */
  run(scale: Scale, seed: number, system: System): Promise<Figures>
}

export interface DrillOptions {
  readonly scale: Scale
  readonly seed: number
  /** Runs plain BullMQ and the drill's other libraries as well. BullMQ's locks last 30 s, so this takes minutes. */
  readonly peer: boolean
}

export async function runDrill(drill: Drill, { scale, seed, peer }: DrillOptions): Promise<Report> {
  const { result, orphans } = await countingOrphans(() => drill.run(scale, seed, 'bullpen'))
  const figures = { ...result, orphans }
  const baseline =
    peer && drill.comparable
      ? {
          ...measured(await drill.run(scale, seed, 'bullmq')),
          from: 'BullMQ 6.7 with its default settings, in this drill',
        }
      : knownOf(drill)
  const others: Record<string, Baseline> = {}
  for (const [name, measure] of Object.entries(peer ? (drill.others ?? {}) : {})) others[name] = await measure(scale)
  return reportOf({ drill: drill.name, scale, seed, target: drill.target(scale), baseline, others }, figures)
}

function knownOf({ known, comparable }: Drill): Baseline {
  if (known === undefined) {
    return { from: comparable ? 'not measured: --peer runs it' : 'not applicable: plain BullMQ has no such feature' }
  }
  return { ...known, from: 'BullMQ 6.7 with its default settings, measured earlier' }
}

function measured(figures: Figures): Baseline {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined))
}
