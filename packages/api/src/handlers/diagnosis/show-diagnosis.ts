// GET /v1/diagnosis examines the platform, and returns what is wrong with it.
import { type Diagnosis, VERSION } from '@bullpen/contract'
import {
  catalogueDigests,
  diagnose,
  type FingerprintCount,
  type QueueFacts,
  troublesOf,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { ApiContext } from '../../http/context.ts'

/** How many active tasks of each queue are compared with the workers' slots, those that started first. */
const ACTIVE_EXAMINED = 200

/** The codes of tasks whose process died too often. */
const POISON_CODES = ['poison', 'process_lost']

export function showDiagnosis({ catalogue, broker, fleet, platform }: ApiContext) {
  const { queues, definitions } = catalogue
  const digests = catalogueDigests(catalogue, queues, sha256)

  return async (): Promise<Diagnosis> => {
    const [{ now, workers }, servers, leadership, schedules, ...queueFacts] = await Promise.all([
      fleet.workers(),
      platform.servers(),
      platform.leadership(),
      broker.schedules.list(),
      ...queues.map(factsOf),
    ])
    return diagnose({
      now,
      api: {
        version: VERSION,
        isDevelopment: platform.isDevelopment,
        clockSkewMs: platform.clockSkewMs(),
        memoryWatermark: platform.memoryWatermark,
        queues,
        tasks: definitions.map(({ name }) => name),
        catalogue: digests,
      },
      servers,
      leadership,
      workers,
      queues: queueFacts,
      schedules: schedules.map((state) => {
        const { name, queue } = state.record
        return { name, queue, troubles: troublesOf(state) }
      }),
    })
  }

  async function factsOf(queue: string): Promise<QueueFacts> {
    const budgeted = definitions.filter((each) => each.queue === queue && each.retry.budget !== undefined)
    const [settings, tasks, totals, kinds, readyAt, active, held] = await Promise.all([
      fleet.queueSettings(queue),
      broker.counts(queue),
      broker.totals(queue),
      broker.countDead(queue),
      platform.readyAt(queue),
      broker.list({ queue, status: 'active', limit: ACTIVE_EXAMINED, cursor: undefined }),
      broker.heldRetries(
        queue,
        budgeted.map(({ name }) => name),
      ),
    ])
    const poison = kinds.filter(({ code }) => POISON_CODES.includes(code))
    const limits = catalogue.queue(queue).limits
    return {
      queue,
      tasks,
      settings,
      // A limit that a command has set replaces the definition's.
      maxTasks: settings.maxTasks ?? limits?.maxTasks,
      maxBytes: settings.maxBytes ?? limits?.maxBytes,
      bytes: totals.bytes,
      outbox: totals.outbox,
      readyAt,
      active: active.tasks.map(({ id, startedAt }) => ({ id, startedAt })),
      poison: poison.length === 0 ? undefined : { tasks: countOf(poison), newestAt: newestOf(poison) },
      heldRetries: held.reduce((sum, count) => sum + count, 0),
      unknownTasks: countOf(kinds.filter(({ code }) => code === 'unknown_task')),
    }
  }
}

const countOf = (kinds: readonly FingerprintCount[]): number => kinds.reduce((sum, { count }) => sum + count, 0)
const newestOf = (kinds: readonly FingerprintCount[]): number => Math.max(...kinds.map(({ newestAt }) => newestAt))
