// Computes from the ledger and from BullMQ's own keys what has become of the jobs of a plain BullMQ queue that was cut over.
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { countBy, openAttempts } from '../ledger/attempts.ts'
import type { Effect } from '../ledger/effects.ts'
import type { Interruption } from '../ledger/ledger.ts'
import type { JobEnd, PlainJob } from './plain-jobs.ts'

type Planned = Pick<PlainJob, 'outcome' | 'fails'>

export interface CutoverLedger {
  /** The jobs by their ids. */
  readonly jobs: ReadonlyMap<string, Planned>
  /** Where they are according to Redis. */
  readonly found: ReadonlyMap<string, JobEnd>
  readonly effects: readonly Effect[]
  readonly completions: ReadonlyMap<string, number>
  readonly deaths: readonly Death[]
  readonly interruptions: readonly Interruption[]
}

export interface Death {
  readonly worker: string
  /** When the worker was killed, as unix time in ms. */
  readonly at: number
  /** The jobs that it had started and whose end Redis did not know after its death, even if it had sent the end. */
  readonly unended: readonly string[]
}

export function cutoverFigures(ledger: CutoverLedger): Figures {
  const { jobs, found, effects, completions, deaths, interruptions } = ledger
  const ids = [...jobs.keys()]
  const affected = new Set(
    deaths.flatMap(({ worker, unended }) => [...openAttempts(effects, worker).map(({ id }) => id), ...unended]),
  )
  const started = countBy(effects.filter(({ what }) => what === 'start'))
  const failures = countBy(effects.filter(({ what }) => what === 'failure'))
  const ended = new Set(effects.flatMap(({ what, id }) => (what === 'end' || what === 'failure' ? [id] : [])))
  /** A job that should fail completes instead if a killed worker had fetched it and did not get as far, or could not report the failure. */
  const isRight = (id: string, { outcome, fails }: Planned): boolean => {
    const is = found.get(id)?.outcome
    return is === outcome || (is === 'completed' && fails && (affected.has(id) || !failures.has(id)))
  }
  const isDone = (id: string): boolean => found.get(id)?.outcome !== 'unfinished' && ended.has(id)
  const completed = (id: string): boolean =>
    found.get(id)?.outcome === 'completed' || (found.get(id)?.outcome === 'removed' && completions.has(id))
  const ends = ids.filter(isDone).map((id) => {
    const { attemptsMade = 1 } = found.get(id) ?? {}
    return [id, { status: completed(id) ? 'completed' : 'dead', attemptsMade }] as const
  })
  return {
    ...figuresOf({ accepted: ids, ends: new Map(ends), completions, effects, interruptions, exits: [] }),
    failed: [...jobs].filter(([id, job]) => isDone(id) && !isRight(id, job)).length,
    restartedUnaffected: ids
      .filter((id) => !affected.has(id))
      .reduce((sum, id) => sum + Math.max(0, (started.get(id) ?? 0) - 1 - requested(id)), 0),
  }

  /** A job fails in its first attempt alone, and is retried if that was not its last one. */
  function requested(id: string): number {
    return jobs.get(id)?.outcome === 'completed' ? (failures.get(id) ?? 0) : 0
  }
}
