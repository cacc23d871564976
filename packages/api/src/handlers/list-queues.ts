// GET /v1/queues returns each queue's tasks by status, most frequent kinds of error, oldest waiting task, rates, limits and slots.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Catalogue, QueuePage, QueueStats } from '@bullpen/contract'
import { type queuesQuerySchema, timeText } from '@bullpen/contract/internal'
import type { QueueTotals } from '@bullpen/engine'
import { isAlive, type WorkerStatus } from '@bullpen/engine/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { knownQueues } from '../http/known-names.ts'
import type { Call } from '../http/routes/route.ts'
import { fingerprintView } from '../views/dead-task-view.ts'
import { queueView } from '../views/fleet-view.ts'
import { type QueueRates, type QueueReading, ratesOf, withReading } from '../views/queue-rates.ts'

/** How long the rates of a queue are measured if no earlier request has read its counters, in ms. */
const MEASURED_MS = 1_000

/** How many kinds of error are returned for each queue. */
const KINDS_SHOWN = 5

function outboxView({ entries, oldestAt }: QueueTotals['outbox']): Pick<QueueStats, 'outbox'> {
  return oldestAt === undefined ? {} : { outbox: { entries, oldestAt: timeText(oldestAt) } }
}

function slosView({ definitions }: Pick<Catalogue, 'definitions'>, queue: string): Pick<QueueStats, 'slos'> {
  const slos = definitions.flatMap(({ name, slo, ...definition }) =>
    definition.queue === queue && slo !== undefined ? [{ task: name, ...slo }] : [],
  )
  return slos.length === 0 ? {} : { slos }
}

export function listQueues({ catalogue, broker, fleet, platform }: ApiContext) {
  const readings = new Map<string, readonly QueueReading[]>()

  const read = async (queue: string) => {
    const [tasks, totals] = await Promise.all([broker.counts(queue), broker.totals(queue)])
    const reading = { at: performance.now(), accepted: totals.accepted, ended: totals.ended }
    const all = withReading(readings.get(queue) ?? [], reading)
    readings.set(queue, all)
    return { tasks, totals, rates: ratesOf(all) }
  }

  /** Resolves with the rates, and reads the counters again if there is only one reading. */
  const measured = async (queue: string, rates: QueueRates | undefined): Promise<QueueRates> => {
    if (rates !== undefined) return rates
    await sleep(MEASURED_MS)
    return (await read(queue)).rates ?? { in: 0, out: 0, overMs: MEASURED_MS }
  }

  const stats = async (queue: string, live: readonly WorkerStatus[]): Promise<QueueStats> => {
    const [settings, { tasks, totals, rates }, kinds, { oldest, blockedTasks }] = await Promise.all([
      fleet.queueSettings(queue),
      read(queue),
      broker.countDead(queue, KINDS_SHOWN),
      platform.head(queue),
    ])
    const { maxTasks, maxBytes, maxAgeMs } = catalogue.queue(queue).limits ?? {}
    return {
      ...queueView(queue, settings, live),
      // A limit that a command has set replaces the definition's.
      maxTasks: settings.maxTasks ?? maxTasks,
      maxBytes: settings.maxBytes ?? maxBytes,
      maxAgeMs: settings.maxAgeMs ?? maxAgeMs,
      ...slosView(catalogue, queue),
      tasks,
      deadByFingerprint: kinds.map(fingerprintView),
      bytes: totals.bytes,
      ...outboxView(totals.outbox),
      ...(oldest !== undefined && {
        oldestWaiting: { ...oldest, enqueuedAt: timeText(oldest.enqueuedAt), readyAt: timeText(oldest.readyAt) },
      }),
      blockedTasks,
      rates: await measured(queue, rates),
    }
  }

  return async ({ query }: Call<unknown, z.output<typeof queuesQuerySchema>>): Promise<QueuePage> => {
    const queues = knownQueues(catalogue, query.queue)
    const { now, workers } = await fleet.workers()
    const live = workers.filter((worker) => isAlive(worker, now))
    return { now: timeText(now), queues: await Promise.all(queues.map((each) => stats(each, live))) }
  }
}
