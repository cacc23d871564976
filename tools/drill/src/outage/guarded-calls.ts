// Runs tasks behind a circuit breaker through an outage of their provider, together with other tasks of the same queue.
import type { TaskId } from '@bullpen/contract'
import type { DrillSetup, Records } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { holdsWithin } from '../holds-within.ts'
import { enqueueOne } from '../ledger/load.ts'
import { besideCalls, GUARD, guardedCall } from '../programs/catalogue.ts'
import { mostWithin } from './call-times.ts'
import { openProvider } from './provider.ts'

export interface GuardedPlan {
  readonly tasks: number
  readonly downMs: number
  readonly processes: number
  readonly concurrency: number
}

/** Two probes are further apart than this, because the breaker stays open for a second after the first one has ended. */
const APART_MS = 990

/** By how much the outage is extended at most, until the other tasks of the queue have ended. */
const OTHERS_WITHIN_MS = 60_000

/** Returns the most calls that do not probe the provider: those that open the breaker, and those that run at that moment. */
export function mostFirstCalls({ processes, concurrency }: Pick<GuardedPlan, 'processes' | 'concurrency'>): number {
  return GUARD.minimumCalls + processes * concurrency
}

export type GuardedFigures = Pick<
  Figures,
  | 'guardedCalls'
  | 'guardedCallsWhileDown'
  | 'probesBeyondOne'
  | 'mostProbesPerSecond'
  | 'attemptsBeyondCalls'
  | 'othersHeldUp'
>

export async function openGuardedCalls({ broker }: Pick<DrillSetup, 'broker'>, plan: GuardedPlan) {
  const { tasks } = plan
  const provider = await openProvider()
  const ids: string[] = []
  let others: readonly string[] = []
  let othersHeldUp = 0
  let downFrom = 0
  let downForMs = 0
  return {
    queue: guardedCall.queue,
    /** Enqueues the tasks, and then the others. Returns the ids of all. */
    async enqueue(): Promise<readonly string[]> {
      const { url } = provider
      downFrom = performance.now()
      ids.push(...(await Promise.all(Array.from({ length: tasks }, () => enqueueOne(broker, guardedCall, { url })))))
      others = await Promise.all(Array.from({ length: tasks }, () => enqueueOne(broker, besideCalls, {})))
      return [...ids, ...others]
    },
    /** Ends the outage when the others have ended, however slow the machine is. */
    async recover(): Promise<void> {
      await holdsWithin(OTHERS_WITHIN_MS, async () => {
        const records = await Promise.all(others.map((id) => broker.find(id as TaskId)))
        othersHeldUp = records.filter((record) => record?.status !== 'completed').length
        return othersHeldUp === 0
      })
      provider.recover()
      downForMs = performance.now() - downFrom
    },
    figures({ ends }: Pick<Records, 'ends'>): GuardedFigures {
      const whileDown = provider.calls.filter((call) => call.whileDown).map(({ at }) => at)
      const attempts = ids.reduce((sum, id) => sum + (ends.get(id)?.attemptsMade ?? 0), 0)
      return {
        guardedCalls: provider.calls.length,
        guardedCallsWhileDown: whileDown.length,
        probesBeyondOne: Math.max(0, whileDown.length - mostFirstCalls(plan) - Math.ceil(downForMs / 1_000) - 1),
        mostProbesPerSecond: mostWithin(whileDown.slice(mostFirstCalls(plan)), APART_MS),
        attemptsBeyondCalls: attempts - provider.calls.length,
        othersHeldUp,
      }
    },
    close: provider.close,
  }
}
