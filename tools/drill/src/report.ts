// Reports a drill's figures together with its target, as one line of JSON for programs or as text for people.
import type { FigureName, Figures } from './figures/figures.ts'

export type Scale = 'small' | 'full'

export interface Target {
  /** A description of the target for readers. */
  readonly text: string
  /** The upper limit of each figure. A figure that could not be measured misses its limit. */
  readonly atMost: Partial<Readonly<Record<FigureName, number>>>
}

/** The figures of plain BullMQ or another library in the same scenario, and where they come from. */
export type Baseline = Readonly<Record<string, number | string | undefined>>

export interface Report extends Figures {
  readonly drill: string
  readonly scale: Scale
  readonly seed: number
  readonly ok: boolean
  /** The figures that are above their limit, or were not measured. */
  readonly missed: readonly string[]
  readonly target: string
  readonly baseline: Baseline
  readonly others: Readonly<Record<string, Baseline>>
}

export interface Run {
  readonly drill: string
  readonly scale: Scale
  readonly seed: number
  readonly target: Target
  readonly baseline: Baseline
  /** The figures of other libraries with the same load, by name. */
  readonly others?: Readonly<Record<string, Baseline>>
}

/** Limits that apply to every drill in addition to its own target. */
const ALWAYS: Target['atMost'] = { lost: 0, duplicated: 0, eventsMissed: 0, failed: 0, orphans: 0 }

/**
 * Limits that apply to every drill that has measured the figure. A drill that must measure it says so in its own target.
 */
const IF_MEASURED: Target['atMost'] = { miscounted: 0, exitsNotZero: 0, unaccounted: 0, faultsWithoutEffect: 0 }

export function reportOf({ drill, scale, seed, target, baseline, others = {} }: Run, figures: Figures): Report {
  const measured = Object.entries(IF_MEASURED).filter(([name]) => figures[name as FigureName] !== undefined)
  const missed = Object.entries({ ...ALWAYS, ...Object.fromEntries(measured), ...target.atMost })
    .filter(([name, limit]) => !((figures[name as FigureName] ?? Number.NaN) <= limit))
    .map(([name, limit]) => `${name} ${figures[name as FigureName] ?? 'not measured'}, limit ${limit}`)
  if (figures.accepted === 0) missed.unshift('no task was accepted')
  return { drill, scale, seed, ...figures, ok: missed.length === 0, missed, target: target.text, baseline, others }
}

export function asJson(report: Report): string {
  return JSON.stringify(report)
}

export function asText({ drill, scale, seed, ok, missed, target, baseline, others, ...figures }: Report): string {
  const list = (values: object): string =>
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : value}`)
      .join(', ')
  return [
    `${drill} (${scale}, seed ${seed}): ${ok ? 'ok' : `MISSED: ${missed.join('; ')}`}`,
    `  ${list(figures)}`,
    `  target: ${target}`,
    `  plain BullMQ: ${list(baseline)}`,
    ...Object.entries(others).map(([name, values]) => `  ${name}: ${list(values)}`),
  ].join('\n')
}
