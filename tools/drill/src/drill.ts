// What a drill is, and how it is run: its figures judged by its target, beside those of plain BullMQ.
import type { Figures } from './ledger/figures.ts'
import type { Side } from './programs/fleet.ts'
import { type Baseline, type Report, reportOf, type Scale, type Target } from './report.ts'

export interface Drill {
  readonly name: string
  target(scale: Scale): Target
  /** What plain BullMQ did in the same scenario, as it was measured before. Undefined: it can't do the like. */
  readonly known: Baseline | undefined
  /** Whether plain BullMQ can be put through the same. */
  readonly comparable: boolean
  /** Does it, and reads the ledger. */
  run(scale: Scale, seed: number, side: Side): Promise<Figures>
}

export interface Order {
  readonly scale: Scale
  readonly seed: number
  /** Run plain BullMQ as well, in the same drill: it waits for locks of 30 s, so this takes minutes. */
  readonly peer: boolean
}

export async function perform(drill: Drill, { scale, seed, peer }: Order): Promise<Report> {
  const figures = await drill.run(scale, seed, 'bullpen')
  const baseline =
    peer && drill.comparable
      ? { ...measured(await drill.run(scale, seed, 'bullmq')), from: 'BullMQ 6.7 at its defaults, in this drill' }
      : knownOf(drill)
  return reportOf({ drill: drill.name, scale, seed, target: drill.target(scale), baseline }, figures)
}

function knownOf({ known }: Drill): Baseline {
  if (known === undefined) return { from: 'nothing to measure: it can not do the like' }
  return { ...known, from: 'BullMQ 6.7 at its defaults, measured before' }
}

function measured(figures: Figures): Baseline {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined))
}
