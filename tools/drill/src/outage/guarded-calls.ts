// Runs tasks behind a circuit breaker through an outage of their provider, and other tasks of the same queue beside them.
import type { DrillSetup, Records } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { enqueueOne } from '../ledger/load.ts'
import { besideCalls, GUARD, guardedCall } from '../programs/catalogue.ts'
import { mostWithin, sinceFirstPause } from './call-times.ts'
import { openProvider } from './provider.ts'

export interface GuardedPlan {
  readonly tasks: number
  readonly downMs: number
  readonly processes: number
  readonly concurrency: number
}

/** Two probes are further apart than this, because the breaker stays open for a second after the first one has ended. */
const APART_MS = 990

/**
 * Returns the most calls that a provider gets while it is down: those that open the breaker, those that run at that moment, and one probe
 * a second.
 */
export function mostGuardedCalls({ downMs, processes, concurrency }: GuardedPlan): number {
  return GUARD.minimumCalls + processes * concurrency + Math.ceil(downMs / 1_000) + 1
}

export type GuardedFigures = Pick<
  Figures,
  'guardedCalls' | 'guardedCallsWhileDown' | 'mostProbesPerSecond' | 'attemptsBeyondCalls' | 'othersHeldUp'
>

export async function openGuardedCalls({ broker }: Pick<DrillSetup, 'broker'>, { tasks }: GuardedPlan) {
  const provider = await openProvider()
  const ids: string[] = []
  let others: readonly string[] = []
  let othersHeldUp = 0
  return {
    queue: guardedCall.queue,
    /** Enqueues the tasks, and then the others. Returns the ids of all. */
    async enqueue(): Promise<readonly string[]> {
      const { url } = provider
      ids.push(...(await Promise.all(Array.from({ length: tasks }, () => enqueueOne(broker, guardedCall, { url })))))
      others = await Promise.all(Array.from({ length: tasks }, () => enqueueOne(broker, besideCalls, {})))
      return [...ids, ...others]
    },
    async recover(): Promise<void> {
      const records = await Promise.all(others.map((id) => broker.find(id as never)))
      othersHeldUp = records.filter((record) => record?.status !== 'completed').length
      provider.recover()
    },
    figures({ ends }: Pick<Records, 'ends'>): GuardedFigures {
      const whileDown = provider.calls.filter((call) => call.whileDown).map(({ at }) => at)
      const attempts = ids.reduce((sum, id) => sum + (ends.get(id)?.attemptsMade ?? 0), 0)
      return {
        guardedCalls: provider.calls.length,
        guardedCallsWhileDown: whileDown.length,
        mostProbesPerSecond: mostWithin(sinceFirstPause(whileDown, APART_MS), APART_MS),
        attemptsBeyondCalls: attempts - provider.calls.length,
        othersHeldUp,
      }
    },
    close: provider.close,
  }
}
