// The ways in which the drill `stuck` makes a queue stuck, by what the diagnosis and the alerts should show of each.
import type { DiagnosisCheck, TaskId } from '@bullpen/contract'
import { enqueueOne } from '../ledger/load.ts'
import { openProvider } from '../outage/provider.ts'
import { call, hog, pill, work } from '../programs/catalogue.ts'
import type { Platform } from './platform.ts'

export interface Cause {
  readonly name: string
  /** The check that finds this cause and no other one. */
  readonly finding: DiagnosisCheck
  /** The alert whose condition holds. Undefined if no alert notices the cause within some seconds. */
  readonly alert?: `Bullpen${string}`
  /** Makes the queue stuck. */
  begin(platform: Platform): Promise<Stuck>
}

export interface Stuck {
  /** The tasks that complete when the cause is gone. */
  readonly accepted: readonly TaskId[]
  /** Does what the runbook says. If omitted, the queue recovers by itself. */
  mend?(): Promise<unknown>
  /** Closes what the cause has opened, when all tasks have ended. */
  close?(): Promise<void>
}

const QUEUE = ['--queue', work.queue] as const
const TASKS = 20
const BLOCK_MS = 2_000
/** In each direction. Longer delays let commands time out. */
const DELAY_MS = 25
/** They take about half a minute with the delay. */
const SLOWED_TASKS = 300
const CALLS = 60
const MOST_TASKS = 10
const FULL_MS = 3_000

export const CAUSES: readonly Cause[] = [
  {
    name: 'no workers',
    finding: 'unserved_queues',
    alert: 'BullpenQueueUnserved',
    async begin(platform) {
      return { accepted: await enqueueWork(platform), mend: platform.startWorker }
    },
  },
  {
    name: 'blocked event loop',
    finding: 'event_loops',
    alert: 'BullpenEventLoopStalled',
    async begin({ broker, startWorker }) {
      await startWorker()
      return { accepted: await many(TASKS, () => enqueueOne(broker, hog, { ms: BLOCK_MS })) }
    },
  },
  {
    name: 'provider down',
    finding: 'failing_tasks',
    alert: 'BullpenAttemptsFail',
    async begin({ broker, startWorker }) {
      const provider = await openProvider()
      await startWorker()
      const accepted = await many(CALLS, () => enqueueOne(broker, call, { url: provider.url }))
      return { accepted, mend: async () => provider.recover(), close: provider.close }
    },
  },
  {
    name: 'Redis slow',
    finding: 'redis_latency',
    alert: 'BullpenRedisSlow',
    async begin(platform) {
      await platform.startWorker()
      platform.proxy.delay(DELAY_MS)
      return { accepted: await enqueueWork(platform, SLOWED_TASKS), mend: async () => platform.proxy.delay(0) }
    },
  },
  {
    name: 'limit of starts reached',
    finding: 'limited_queues',
    async begin(platform) {
      await platform.startWorker()
      await platform.bullpen('limit', ...QUEUE, '--rate', '1/1h')
      return {
        accepted: await enqueueWork(platform),
        mend: () => platform.bullpen('limit', ...QUEUE, '--rate', 'none'),
      }
    },
  },
  {
    name: 'limit of tasks reached',
    finding: 'full_queues',
    alert: 'BullpenQueueNearlyFull',
    async begin({ broker, startWorker, bullpen }) {
      await startWorker()
      const accepted = await many(2 * TASKS, () => enqueueOne(broker, work, { ms: FULL_MS, listens: false }))
      await bullpen('limit', ...QUEUE, '--max-tasks', String(MOST_TASKS))
      return { accepted }
    },
  },
  {
    name: 'paused',
    finding: 'paused_queues',
    alert: 'BullpenQueuePaused',
    async begin(platform) {
      await platform.startWorker()
      await platform.bullpen('pause', ...QUEUE)
      return { accepted: await enqueueWork(platform), mend: () => platform.bullpen('resume', ...QUEUE) }
    },
  },
  {
    name: 'poison',
    finding: 'poison_tasks',
    alert: 'BullpenPoisonTask',
    async begin(platform) {
      const { broker, startWorker } = platform
      const worker = await startWorker()
      await enqueueOne(broker, pill, { how: 'kill' })
      // The platform replaces the worker, as Kubernetes would.
      await worker.exited
      await startWorker()
      return { accepted: await enqueueWork(platform) }
    },
  },
]

function enqueueWork({ broker }: Platform, tasks = TASKS): Promise<readonly TaskId[]> {
  return many(tasks, () => enqueueOne(broker, work, { ms: 10, listens: false }))
}

function many<T>(count: number, make: () => Promise<T>): Promise<readonly T[]> {
  return Promise.all(Array.from({ length: count }, make))
}
