// Computes whether the backlog of a noisy concurrency key has made the tasks of other keys wait: in Redis's order of events, and in time.
import { waitFigures, waitsOf } from '../autoscale/waits.ts'
import type { Move } from '../environment/queue-events.ts'
import type { Figures } from '../figures/figures.ts'
import type { Effect } from '../ledger/effects.ts'
import type { End } from '../ledger/ledger.ts'

/** The tasks that arrive while the noisy key has a backlog. */
export interface Arrival {
  /** The tasks of the noisy key, including those that are enqueued before. */
  readonly noisy: readonly string[]
  /** The tasks of all other keys. */
  readonly others: readonly string[]
}

export interface FairnessLedger {
  /** The arrival at a tenth of the backlog, and the one at the whole backlog. */
  readonly tenth: Arrival
  readonly whole: Arrival
  /** The adds and the starts of all tasks, in Redis's order. */
  readonly moves: readonly Move[]
  readonly ends: ReadonlyMap<string, End>
  readonly effects: readonly Effect[]
}

type FairnessFigures = Pick<
  Figures,
  'noisyStartsMost' | 'unopposed' | 'waitP50Ms' | 'waitP99Ms' | 'waitP99TenthMs' | 'waitGrowthMs'
>

export function fairnessFigures({ tenth, whole, moves, ends, effects }: FairnessLedger): FairnessFigures {
  const waitOf = ({ others }: Arrival) => {
    const ids = new Set(others)
    return waitFigures(waitsOf(new Map([...ends].filter(([id]) => ids.has(id))), effects))
  }
  const [turnsBefore, turns] = [turnFigures(moves, tenth), turnFigures(moves, whole)]
  const [before, wait] = [waitOf(tenth).waitP99Ms, waitOf(whole)]
  return {
    noisyStartsMost: ifBoth(turnsBefore?.noisyStartsMost, turns?.noisyStartsMost, Math.max),
    unopposed: turns?.unopposed,
    ...wait,
    waitP99TenthMs: before,
    waitGrowthMs: ifBoth(before, wait.waitP99Ms, (a, b) => Math.max(0, b - a)),
  }
}

/**
 * Returns undefined if the event stream has lost an add or a start. The order of the events does not depend on any clock: the script that
 * moves a task also adds the event.
 */
function turnFigures(
  moves: readonly Move[],
  { noisy, others }: Arrival,
): { readonly noisyStartsMost: number; readonly unopposed: number } | undefined {
  const [isNoisy, isOther] = [new Set(noisy), new Set(others)]
  /** How many tasks of the noisy key had started when each of the other tasks was added. */
  const startsBefore = new Map<string, number>()
  let [adds, starts, measured, noisyStartsMost, unopposed] = [0, 0, 0, 0, 0]
  for (const { what, id } of moves) {
    if (isNoisy.has(id)) {
      if (what === 'added') adds++
      else starts++
    } else if (what === 'added') {
      if (isOther.has(id)) startsBefore.set(id, starts)
    } else {
      const before = startsBefore.get(id)
      if (before === undefined) continue
      // If the task starts again, only its first start is measured.
      startsBefore.delete(id)
      measured++
      noisyStartsMost = Math.max(noisyStartsMost, starts - before)
      if (adds === starts) unopposed++
    }
  }
  return adds === isNoisy.size && measured === isOther.size ? { noisyStartsMost, unopposed } : undefined
}

function ifBoth(
  a: number | undefined,
  b: number | undefined,
  combine: (a: number, b: number) => number,
): number | undefined {
  return a === undefined || b === undefined ? undefined : combine(a, b)
}
