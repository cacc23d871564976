// GET /v1/diagnosis checks the installation, and returns what is wrong with it.
import { BullpenError, type Diagnosis, type TaskId, VERSION } from '@bullpen/contract'
import {
  capacitiesOf,
  catalogueDigests,
  type DiagnosisFacts,
  diagnose,
  diagnoseWithoutStore,
  type FingerprintCount,
  needsOf,
  type QueueFacts,
  type QueueHead,
  RECENT_ENDS_MS,
  troublesOf,
  type UnreachableNode,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { ApiContext } from '../../http/context.ts'

/** How many active tasks of each queue are compared with the workers' slots, those that started first. */
const ACTIVE_EXAMINED = 200

/** How many tasks of each queue that wait for a retry are read, to find out what they have in common. */
const RETRYING_EXAMINED = 50

/** How many kinds of errors are counted among the tasks that died lately, those with the most dead tasks. */
const RECENT_KINDS_EXAMINED = 50

/** The codes of tasks whose process died too often. */
const POISON_CODES = ['poison', 'process_lost']

export function showDiagnosis({ catalogue, broker, fleet, platform, now: estimatedNow }: ApiContext) {
  const { queues, definitions } = catalogue
  const digests = catalogueDigests(catalogue, queues, sha256)

  return async (): Promise<Diagnosis> => {
    const unreachable = await platform.unreachableNodes()
    try {
      return diagnose(await readFacts(unreachable))
    } catch (error) {
      // What keeps Redis from being used is the finding.
      if (!(error instanceof BullpenError) || error.code !== 'redis_unavailable') throw error
      return diagnoseWithoutStore(error.message, estimatedNow(), unreachable)
    }
  }

  async function readFacts(unreachable: readonly UnreachableNode[]): Promise<DiagnosisFacts> {
    const away = new Set(unreachable.flatMap((node) => node.queues))
    // Both read every queue.
    const hasSchedules = away.size === 0
    const [, { now, workers }, servers, leadership, schedules, scheduleChanges, ...queueFacts] = await Promise.all([
      // A Redis that refuses writes may still reply to everything else.
      broker.ping(),
      fleet.workers(),
      platform.servers(),
      platform.leadership(),
      hasSchedules ? broker.schedules.list() : undefined,
      hasSchedules ? broker.schedules.sync(catalogue.schedules, { by: 'doctor', dryRun: true }) : undefined,
      ...queues.filter((queue) => !away.has(queue)).map(factsOf),
    ])
    return {
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
      unreachable,
      leadership,
      workers,
      queues: queueFacts,
      scheduleChanges,
      schedules: schedules?.map((state) => {
        const { name, queue } = state.record
        return { name, queue, troubles: troublesOf(state) }
      }),
    }
  }

  /**
   * Adds what a blocked task waits for, which takes two round trips. Returns undefined if the task has started or was
   * deleted meanwhile.
   */
  async function withWait(blocked: QueueHead['oldestBlocked']): Promise<QueueFacts['oldestBlocked']> {
    if (blocked === undefined) return undefined
    const record = await broker.find(blocked.id as TaskId)
    if (record?.status !== 'waiting') return undefined
    const { concurrencyKey, waitsFor } = record
    return { ...blocked, concurrencyKey, ...(waitsFor !== undefined && { waitsFor }) }
  }

  /** Reads the kinds of all dead tasks, and how many died lately. Takes two round trips. */
  async function deathsOf(
    queue: string,
  ): Promise<Pick<QueueFacts, 'recentEnds'> & { kinds: readonly FingerprintCount[] }> {
    const kinds = await broker.countDead(queue)
    const since = estimatedNow() - RECENT_ENDS_MS
    const recent = kinds.filter(({ newestAt }) => newestAt > since).slice(0, RECENT_KINDS_EXAMINED)
    const fingerprints = recent.map(({ fingerprint }) => fingerprint)
    const { dead, completed, ofFingerprints } = await platform.recentEnds(queue, since, fingerprints)
    const counted = recent.map(({ fingerprint, code, message }, i) => {
      return { fingerprint, code, message, count: ofFingerprints[i] ?? 0 }
    })
    return { kinds, recentEnds: { dead, completed, kinds: counted } }
  }

  async function factsOf(queue: string): Promise<QueueFacts> {
    const budgeted = definitions.filter((each) => each.queue === queue && each.retry.budget !== undefined)
    const [
      settings,
      tasks,
      totals,
      { kinds, recentEnds },
      { nextReadyAt, blockedTasks, oldestBlocked, unattached },
      active,
      retrying,
      held,
      lost,
    ] = await Promise.all([
      fleet.queueSettings(queue),
      broker.counts(queue),
      broker.totals(queue),
      deathsOf(queue),
      platform.head(queue),
      broker.list({ queue, status: 'active', limit: ACTIVE_EXAMINED, cursor: undefined }),
      broker.list({ queue, status: 'retrying', limit: RETRYING_EXAMINED, cursor: undefined }),
      broker.heldRetries(
        queue,
        budgeted.map(({ name }) => name),
      ),
      platform.lostTasks(queue),
    ])
    const poison = kinds.filter(({ code }) => POISON_CODES.includes(code))
    const [newest] = poison.toSorted((a, b) => b.newestAt - a.newestAt)
    const { limits, perConcurrencyKey, breakers = {} } = catalogue.queue(queue)
    return {
      queue,
      tasks,
      settings,
      needs: definitions.flatMap((definition) => {
        const needs = definition.queue === queue ? needsOf(definition, catalogue.queue(queue)) : undefined
        return needs === undefined ? [] : [{ task: definition.name, needs }]
      }),
      catalogueLimits: {
        perConcurrencyKey,
        limiters: Object.keys(capacitiesOf(catalogue, queue)),
        services: Object.keys(breakers),
      },
      // A limit that a command has set replaces the definition's.
      maxTasks: settings.maxTasks ?? limits?.maxTasks,
      maxBytes: settings.maxBytes ?? limits?.maxBytes,
      bytes: totals.bytes,
      outbox: totals.outbox,
      nextReadyAt,
      blockedTasks,
      oldestBlocked: await withWait(oldestBlocked),
      active: active.tasks.map(({ id, startedAt }) => ({ id, startedAt })),
      retrying: retrying.tasks.map(({ task, attempts }) => {
        const last = attempts.at(-1)
        return { task, error: last?.code ?? last?.reason }
      }),
      poison: newest && {
        tasks: countOf(poison),
        newestAt: newest.newestAt,
        newestId: newest.newestId,
        newestTask: (await broker.find(newest.newestId))?.task,
      },
      recentEnds,
      unattached,
      lost,
      heldRetries: held.reduce((sum, count) => sum + count, 0),
      unknownTasks: countOf(kinds.filter(({ code }) => code === 'unknown_task')),
    }
  }
}

const countOf = (kinds: readonly FingerprintCount[]): number => kinds.reduce((sum, { count }) => sum + count, 0)
