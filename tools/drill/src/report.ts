// A drill's verdict: its figures beside its target, as one JSON object a line for programs and a few lines for people.
import type { Figures } from './ledger/figures.ts'

export type Scale = 'small' | 'full'

export interface Target {
  /** As a reader sees it. */
  readonly text: string
  /** The most that each figure may be. One that could not be measured has missed its limit. */
  readonly atMost: Partial<Readonly<Record<keyof Figures, number>>>
}

/** What plain BullMQ does in the same scenario, and where that is from. */
export type Baseline = Readonly<Record<string, number | string>>

export interface Report extends Figures {
  readonly drill: string
  readonly scale: Scale
  readonly seed: number
  readonly ok: boolean
  /** What is above its limit, or was not measured. */
  readonly missed: readonly string[]
  readonly target: string
  readonly baseline: Baseline
}

export interface Run {
  readonly drill: string
  readonly scale: Scale
  readonly seed: number
  readonly target: Target
  readonly baseline: Baseline
}

/** Of every drill, whatever its target says besides. */
const ALWAYS: Target['atMost'] = { lost: 0, duplicated: 0, unseen: 0, failed: 0 }

export function reportOf({ drill, scale, seed, target, baseline }: Run, figures: Figures): Report {
  const missed = Object.entries({ ...ALWAYS, ...target.atMost })
    .filter(([name, limit]) => !((figures[name as keyof Figures] ?? Number.NaN) <= limit))
    .map(([name, limit]) => `${name} ${figures[name as keyof Figures] ?? 'not measured'}, limit ${limit}`)
  if (figures.accepted === 0) missed.unshift('nothing was accepted')
  return { drill, scale, seed, ...figures, ok: missed.length === 0, missed, target: target.text, baseline }
}

export function asJson(report: Report): string {
  return JSON.stringify(report)
}

export function asText({ drill, scale, seed, ok, missed, target, baseline, ...figures }: Report): string {
  const list = (values: object): string =>
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  return [
    `${drill} (${scale}, seed ${seed}): ${ok ? 'ok' : `MISSED: ${missed.join('; ')}`}`,
    `  ${list(figures)}`,
    `  target: ${target}`,
    `  plain BullMQ: ${list(baseline)}`,
  ].join('\n')
}
