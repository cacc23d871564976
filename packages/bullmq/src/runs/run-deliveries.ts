// Reports the ends of a pipeline run's tasks to the run, and enqueues what follows.
//
// A report is one script on the run's node. The script returns the entries that follow from the report: tasks to enqueue and
// queues in which the run's tasks are to be cancelled. It has already stored these entries in the run's outbox, claimed for
// this process. If the process dies before it has delivered them, the leader finds them within seconds (./run-visits.ts), so a
// report is done as soon as the script has replied.
import type { RunId } from '@bullpen/contract'
import { type StoredSuccess, successSchema } from '@bullpen/contract/internal'
import {
  type RunRef,
  type RunTemplates,
  runOfToken,
  runRuleId,
  runTask,
  runTemplates,
  runToken,
  textOfResult,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { parseJson } from '../codec.ts'
import { END_LETTERS } from '../groups/end-letters.ts'
import { cancelMembers } from '../groups/group-deliveries.ts'
import { runChannels, runKeys } from '../keys.ts'
import type { VisitRegistry } from '../leader/visit-registry.ts'
import type { Deliveries } from '../outbox/deliveries.ts'
import { parseRunEntry, type RunTaskEndEntry, type RunTaskEntry } from '../outbox/outbox-entry.ts'
import type { TargetQueues } from '../outbox/target-queues.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { deleteRunEntriesScript, endRunTasksScript } from '../store/scripts.ts'
import { type RunChange, runChange } from './run-change.ts'

export interface RunDeliveryOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly registry: Pick<VisitRegistry<RunId>, 'reschedule'>
  readonly targets: TargetQueues
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** Called if an entry could not be delivered. The entry stays in its outbox. */
  readonly onRefused: (refused: { readonly queue: string; readonly error: unknown }) => void
  /** Called if a call of this process has counted items or has ended a run. */
  readonly onChanged: (changed: RunChanged) => void
}

/** What a call of this process has changed about a run. */
export interface RunChanged {
  /** The name of the pipeline's definition. */
  readonly pipeline: string
  readonly items: RunChange['items']
  readonly ended: RunChange['ended']
}

export interface RunDeliveries {
  readonly runTaskEnd: Deliveries['runTaskEnd']
  /** Delivers what a script has returned. Never rejects: what cannot be delivered stays in the run's outbox. */
  deliver(id: RunId, change: RunChange): Promise<void>
  /** Reports tasks that no longer exist as removed. Those that the run does not await change nothing. */
  reportRemoved(run: RunRef, tasks: readonly Pick<Ended, 'stage' | 'position'>[]): Promise<void>
  /** Resolves with what this process needs of a run, or with undefined if there is no such run. */
  templatesOf(run: RunRef): Promise<RunTemplates | undefined>
}

type Ended = Omit<RunTaskEndEntry, 'kind' | 'run'>

/** How many bytes of results one report contains at most, unless a single result is larger. Redis copies each of them twice. */
const MAX_REPORTED_BYTES = 1_048_576
/** How many runs a process knows. */
const MAX_KNOWN_RUNS = 1_000

export function runDeliveries(options: RunDeliveryOptions): RunDeliveries {
  const { redis, namespace, registry, targets, now, onRefused, onChanged } = options
  const channels = runChannels(namespace)
  /** What this process keeps of runs, which never changes, by the run's token. */
  const known = new Map<string, Promise<RunTemplates | undefined>>()

  /** Resolves with undefined if there is no such run. */
  function knownRun(run: RunRef): Promise<RunTemplates | undefined> {
    const token = runToken(run, false)
    const found = known.get(token)
    if (found !== undefined) return found
    const reading = redis.get(runKeys(namespace, run.id).definition).then((stored) => {
      const templates = stored === null ? undefined : runTemplates(stored)
      return templates?.incarnation === run.incarnation ? templates : undefined
    })
    reading.then(
      (templates) => templates ?? known.delete(token),
      () => known.delete(token),
    )
    known.set(token, reading)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN_RUNS && oldest !== undefined) known.delete(oldest)
    return reading
  }

  async function report({ id, incarnation }: RunRef, ends: readonly Ended[]): Promise<void> {
    const more = ends.flatMap(({ stage, position, letter, result }) => [stage, position, letter, passedOn(result)])
    const args = { id, channels, incarnation }
    const change = await runScript(redis, endRunTasksScript, runKeys(namespace, id), args, more)
    // A run that no longer exists has ended long ago.
    if (change !== null) await deliver(id, runChange(change))
  }

  /** Enqueues a task. Resolves with false if the run's tasks are cancelled, so that it was not enqueued. */
  async function add({ run, stage, position, value }: RunTaskEntry): Promise<boolean> {
    const definition = await knownRun(run)
    // A run that no longer exists has ended, and so has each of its tasks.
    if (definition === undefined) return true
    const template = definition.templates[stage]
    if (template === undefined) throw new Error(`run ${run.id} has no stage ${stage}`)
    // Every item has a value.
    const isReduction = stage > 0 && value === ''
    const { task, data, lines } = runTask({ run, stage, position }, value, template, isReduction, now(), sha256)
    const group = `${runToken(run, isReduction)} ${stage}.${position}`
    return (await targets.of(task.queue)(task, { data, followUps: lines, group })) !== 'group cancelled'
  }

  /** Delivers an entry. Resolves with `refused` if it is a task of a stage whose tasks are cancelled. */
  async function deliverEntry(entry: ReturnType<typeof parseRunEntry>): Promise<'delivered' | 'refused' | 'left'> {
    try {
      if (entry === undefined) return 'left'
      if (entry.kind === 'runTask') return (await add(entry)) ? 'delivered' : 'refused'
      await cancelMembers(redis, namespace, entry, runRuleId(entry.group, entry.queue, sha256))
      return 'delivered'
    } catch (error) {
      onRefused({ queue: entry?.kind === 'groupCancel' ? entry.queue : 'run', error })
      return 'left'
    }
  }

  async function observe(id: RunId, { incarnation, ended, items }: RunChange): Promise<void> {
    if (ended === undefined && items.length === 0) return
    // Without its definition, the run cannot be attributed to a pipeline.
    const definition = await knownRun({ id, incarnation }).catch(() => undefined)
    if (definition !== undefined) onChanged({ pipeline: definition.pipeline, items, ended })
  }

  async function deliver(id: RunId, change: RunChange): Promise<void> {
    await observe(id, change)
    await deliverEntries(id, change)
    // The leader then forgets the run in its next round. If this call fails, the leader does so within seconds.
    if (change.ended !== undefined) await registry.reschedule(id, now()).catch(() => {})
  }

  async function deliverEntries(id: RunId, { entries }: RunChange): Promise<void> {
    if (entries.length === 0) return
    const parsed = entries.map(([at, text]) => ({ at, entry: parseRunEntry(text) }))
    // Cancels come first, so that a task of the same page is not enqueued any more.
    const cancels = parsed.filter(({ entry }) => entry?.kind === 'groupCancel')
    const others = parsed.filter(({ entry }) => entry?.kind !== 'groupCancel')
    const done: string[] = []
    const refused: RunTaskEntry[] = []
    for (const page of [cancels, others]) {
      const results = await Promise.all(page.map(({ entry }) => deliverEntry(entry)))
      for (const [i, { at, entry }] of page.entries()) {
        if (results[i] !== 'left') done.push(at)
        if (results[i] === 'refused' && entry?.kind === 'runTask') refused.push(entry)
      }
    }
    try {
      // The outbox may have entries of an earlier run with this id.
      for (const [run, ofRun] of byRun(refused, (entry) => entry.run)) {
        const ends = ofRun.map(({ stage, position }) => ({
          stage,
          position,
          letter: END_LETTERS.cancelled,
          result: '',
        }))
        await report(run, ends)
      }
      if (done.length > 0) await runScript(redis, deleteRunEntriesScript, runKeys(namespace, id), {}, done)
    } catch (error) {
      onRefused({ queue: 'run', error })
    }
  }

  return {
    deliver,

    templatesOf: knownRun,

    async reportRemoved(run, tasks) {
      const ends = tasks.map(({ stage, position }) => ({ stage, position, letter: END_LETTERS.removed, result: '' }))
      await report(run, ends)
    },

    async runTaskEnd(claimed, onDelivered) {
      const reporting = byRun(claimed, ({ entry }) => entry.run).map(async ([run, ofRun]) => {
        try {
          for (const page of inPages(ofRun)) {
            await report(
              run,
              page.map(({ entry }) => entry),
            )
            onDelivered(page.map(({ id }) => id))
          }
        } catch (error) {
          onRefused({ queue: 'run', error })
        }
      })
      await Promise.all(reporting)
    },
  }
}

/** Returns what a stored result passes on to the next stage. A result that Bullpen has not written passes on nothing. */
function passedOn(result: string): string {
  if (result === '') return ''
  const stored = successSchema.safeParse(parseJson(result))
  return stored.success ? textOfResult(stored.data as StoredSuccess) : ''
}

function byRun<Each>(
  all: readonly Each[],
  runOf: (each: Each) => RunRef,
): readonly (readonly [run: RunRef, ofRun: readonly Each[]])[] {
  const groups = Map.groupBy(all, (each) => runToken(runOf(each), false))
  return [...groups].map(([token, ofRun]) => [runOfToken(token), ofRun])
}

/** Divides claimed ends, in order, into pages of limited size. */
function inPages<Each extends { readonly entry: RunTaskEndEntry }>(claimed: readonly Each[]): readonly Each[][] {
  const pages: Each[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const each of claimed) {
    const { length } = each.entry.result
    if (bytes + length > MAX_REPORTED_BYTES) {
      pages.push([])
      bytes = 0
    }
    pages.at(-1)?.push(each)
    bytes += length
  }
  return pages
}
