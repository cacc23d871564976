// Finds the tasks that a pipeline run awaits although they no longer exist, for example because Redis has lost data in a failover or
// because somebody has deleted a queue. Without this search, such a run would wait until its total timeout.
//
// A task passes three places: the outbox of its run, its queue, and the outbox of its queue, in which its end waits to be
// reported. A task is written to the next place before it is deleted from the previous one. A task is therefore missing if it
// is in none of these places when they are read in this order, and if the run still awaits it.
//
// The search reads no outbox entry by entry. It compares times instead: if the entry of a task was written before the time T,
// and the oldest entry of the outbox is younger than T, then the entry of the task is gone.
//
// A search looks at a sample of the tasks of a run, and at each of them three times:
//   1. The run awaits the task, so the entry in the run's outbox was written before this look.
//   2. That entry is gone, and the queue does not have the task. If the task has ended, the entry in the queue's outbox was written before
//      this look.
//   3. That entry is gone as well, and the run still awaits the task.
import type { RunId } from '@bullpen/contract'
import { type RunRef, type RunTemplates, runTaskId } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { queueKeys, runKeys } from '../keys.ts'
import { outboxSpan } from '../outbox/outbox-span.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { findMissingTasksScript, sampleRunTasksScript } from '../store/scripts.ts'

export interface MissingTasksOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The time in ms since 1970. */
  readonly now: () => number
  /** Resolves with undefined if there is no such run. */
  readonly templatesOf: (run: RunRef) => Promise<RunTemplates | undefined>
}

/** A task of a run that no longer exists. */
export interface MissingTask {
  readonly stage: number
  readonly position: number
  readonly task: string
  readonly queue: string
}

export interface MissingTasks {
  /** Looks at some tasks of a run, unless it has just done so, and resolves with those that are missing. */
  search(id: RunId): Promise<{ readonly run: RunRef; readonly missing: readonly MissingTask[] } | undefined>
  /** Forgets a run that has ended. */
  forget(id: RunId): void
}

/** What is known of a run's tasks, by their names. */
interface Search {
  readonly incarnation: string
  /** When to look again, by the clock of this process. */
  readonly nextAt: number
  /** Where the next sample begins. */
  readonly cursor: string
  /** The tasks that were looked at once, at `sampledAt` by the clock of the run's node. */
  readonly sample: readonly string[]
  readonly sampledAt: number
  /** The tasks that were looked at twice, each with the time of the second look by the clock of its queue's node. */
  readonly suspects: ReadonlyMap<string, number>
}

/** How often one run is looked at, in ms. If a run has up to about 100 tasks, a missing one is found within three times this long. */
const LOOK_EVERY_MS = 10_000
const SAMPLE_SIZE = 100
/** How many searches a process remembers. A leader that loses its lease does not learn of the ends of its runs. */
const MAX_SEARCHES = 10_000

const NOTHING = { cursor: '0', sample: [], sampledAt: 0, suspects: new Map() } as const satisfies Partial<Search>

export function missingTasks({ redis, namespace, now, templatesOf }: MissingTasksOptions): MissingTasks {
  const searches = new Map<RunId, Search>()

  /** Looks for these tasks in their queues. Returns those that are missing, and those that have to be looked at for a third time. */
  async function findIn({ run, templates }: Templated, names: readonly string[], before: Search['suspects']) {
    const tasks = names.map((name) => {
      const [stage = 0, position = 0] = name.split('.').map(Number)
      const { queue = '', task = '' } = templates[stage] ?? {}
      return { name, id: runTaskId({ run, stage, position }, queue, sha256), about: { stage, position, task, queue } }
    })
    const missing: MissingTask[] = []
    const suspects = new Map<string, number>()
    for (const [queue, ofQueue] of Map.groupBy(tasks, ({ about }) => about.queue)) {
      const { base, outbox } = queueKeys(namespace, queue)
      const ids = ofQueue.map(({ id }) => id)
      const [span, absent] = await runScript(redis, findMissingTasksScript, { outbox }, { base }, ids)
      const { oldestAt, now: readAt } = outboxSpan(span)
      for (const { name, id, about } of ofQueue) {
        if (!absent.includes(id)) continue
        const since = before.get(name)
        if (since !== undefined && oldestAt > since) missing.push(about)
        else suspects.set(name, since ?? readAt)
      }
    }
    return { missing, suspects }
  }

  function keep(id: RunId, search: Search): void {
    searches.delete(id)
    searches.set(id, search)
    const [oldest] = searches.keys()
    if (searches.size > MAX_SEARCHES && oldest !== undefined) searches.delete(oldest)
  }

  return {
    async search(id) {
      const found = searches.get(id)
      if (found !== undefined && now() < found.nextAt) return undefined
      const { cursor, sample, suspects } = found ?? NOTHING
      const names = [...new Set([...sample, ...suspects.keys()])]
      const current = await runScript(
        redis,
        sampleRunTasksScript,
        runKeys(namespace, id),
        { cursor, count: SAMPLE_SIZE },
        names,
      )
      if (current === null) return undefined
      const [incarnation, span, stillAwaited, nextSample, nextCursor] = current
      const outbox = outboxSpan(span)
      const run = { id, incarnation }
      const next = { incarnation: run.incarnation, nextAt: now() + LOOK_EVERY_MS }
      // What is known of an earlier run with this id says nothing about this one.
      const before = found?.incarnation === run.incarnation ? found : NOTHING
      const isDelivered = outbox.oldestAt > before.sampledAt
      const inQuestion = new Set([...before.suspects.keys(), ...(isDelivered ? before.sample : [])])
      const awaited = stillAwaited.filter((name) => inQuestion.has(name))
      const templates = awaited.length === 0 ? undefined : await templatesOf(run)
      const looked =
        templates === undefined
          ? { missing: [], suspects: new Map<string, number>() }
          : await findIn({ run, templates: templates.templates }, awaited, before.suspects)
      const sampled = isDelivered
        ? { cursor: nextCursor, sample: nextSample, sampledAt: outbox.now }
        : { cursor: before.cursor, sample: before.sample, sampledAt: before.sampledAt }
      keep(id, { ...next, ...sampled, suspects: looked.suspects })
      return { run, missing: looked.missing }
    },

    forget(id) {
      searches.delete(id)
    },
  }
}

interface Templated {
  readonly run: RunRef
  readonly templates: RunTemplates['templates']
}
