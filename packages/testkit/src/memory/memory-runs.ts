// Stores the runs of pipelines in memory, and enqueues and cancels their tasks.
import type { MemberEnd, RunId } from '@bullpen/contract'
import type { Envelope } from '@bullpen/contract/internal'
import type { NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type CancelRule,
  type Clock,
  decodeValue,
  emitItems,
  encodeValue,
  endRunTasks,
  FORCED_RUN_END_MS,
  type ForwardedTask,
  freeOf,
  type Run,
  type RunEffect,
  type RunError,
  type RunModel,
  type RunRef,
  type RunStep,
  type Runs,
  type RunTemplates,
  runNotEnded,
  runNotFound,
  runOfToken,
  runRuleId,
  runTask,
  runTaskName,
  runTemplates,
  runToken,
  startedRun,
  startRun,
  stopRun,
  storedRunDefinition,
  visitRun,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { guarded } from './outage.ts'
import { Timers } from './store/timers.ts'
import { Waiters } from './waiters.ts'

export interface MemoryRunsOptions {
  readonly clock: Clock
  /** Throws if the store is unreachable. */
  readonly check: () => void
  /** Resolves when the store is reachable. */
  readonly reachable: () => Promise<void>
  readonly enqueue: (task: ForwardedTask) => void
  readonly cancel: (rule: CancelRule) => void
  readonly codec: PayloadCodec | undefined
  /** Checks whether the tasks' queues have room for them. Throws the error with which an enqueue would be refused. */
  readonly admit: (tasks: readonly NewTask[]) => void
}

export interface MemoryRuns {
  readonly runs: Runs
  /** Reports the end of a task to its run. `value` is what the task passes on, or ''. */
  ended(place: NonNullable<Envelope['run']>, end: MemberEnd, value: string): void
  /** Returns the input that the run keeps for a task, or undefined if there is none. */
  inputOf(place: NonNullable<Envelope['run']>): string | undefined
  close(): void
}

interface StoredRun {
  model: RunModel
  readonly templates: RunTemplates['templates']
  results: string[]
  readonly errors: RunError[]
}

export function memoryRuns({ clock, check, reachable, enqueue, cancel, codec, admit }: MemoryRunsOptions): MemoryRuns {
  const stored = new Map<RunId, StoredRun>()
  const waiters = new Waiters<StoredRun>()
  const timers = new Timers(clock)

  const known = (id: RunId): StoredRun => {
    const run = stored.get(id)
    if (run === undefined) throw runNotFound(id)
    return run
  }

  /** Returns the run, unless it no longer exists or another one has its id now. */
  const current = ({ id, incarnation }: RunRef): StoredRun | undefined => {
    const run = stored.get(id)
    return run?.model.run.settings.incarnation === incarnation ? run : undefined
  }

  /** Does something a little later, as the forwarder on Redis does. */
  const later = (act: () => void): void => {
    void reachable().then(act)
  }

  const end = (of: RunRef, stage: number, position: number, how: MemberEnd, value: string): void => {
    const run = current(of)
    if (run === undefined) return
    carryOut(run, endRunTasks(run.model, [{ stage, position, end: how, value: value || undefined }], clock.now()))
  }

  const start = (run: StoredRun, { stage, position, value }: Extract<RunEffect, { kind: 'start' }>): void => {
    const { settings, stopped } = run.model.run
    const isReduction = stage > settings.stages.length
    const template = run.templates[stage]
    if (template === undefined || (stopped !== undefined && !isReduction))
      end(settings, stage, position, 'cancelled', '')
    else enqueue(runTask({ run: settings, stage, position }, value, template, isReduction, clock.now(), sha256))
  }

  const carryOut = (run: StoredRun, { model, effects }: RunStep): Run => {
    run.model = model
    for (const effect of effects) carryOutOne(run, effect)
    return model.run
  }

  const carryOutOne = (run: StoredRun, effect: RunEffect): void => {
    const { settings } = run.model.run
    const { keepMs, reduce } = settings
    switch (effect.kind) {
      case 'start':
        later(() => start(run, effect))
        return
      case 'result':
        run.results.push(effect.value)
        return
      case 'error':
        run.errors.push(effect.error)
        return
      case 'cancel': {
        timers.after(FORCED_RUN_END_MS, () => visit(settings))
        const { by, at } = effect.stop
        const stop = (group: string, queue: string): void => {
          const rule = { id: runRuleId(group, queue, sha256), queue, group, before: Number.POSITIVE_INFINITY, by, at }
          later(() => cancel({ ...rule, reason: 'cancelled' }))
        }
        for (const queue of effect.queues) stop(runToken(settings, false), queue)
        if (effect.reduce && reduce !== undefined) stop(runToken(settings, true), reduce.queue)
        return
      }
      case 'credits':
      case 'ended':
        if (effect.kind === 'ended') {
          run.results = []
          timers.after(keepMs, () => {
            if (current(settings) !== undefined) stored.delete(settings.id)
          })
        }
        waiters.wake(run)
        return
    }
  }

  const visit = (of: RunRef): void => {
    later(() => {
      const run = current(of)
      if (run !== undefined) carryOut(run, visitRun(run.model, clock.now()))
    })
  }

  const unfinished = (): readonly Run[] =>
    [...stored.values()].flatMap(({ model }) => (model.run.state === 'ended' ? [] : [model.run]))

  const methods: Omit<Runs, 'encode' | 'decode'> = {
    async start(run) {
      const { settings } = run
      const found = stored.get(settings.id)
      if (found !== undefined) return startedRun(found.model.run, found.templates[0], run, codec)
      admit(run.tasks)
      const step = startRun(settings, clock.now())
      const { templates } = runTemplates(storedRunDefinition(run, codec))
      const created: StoredRun = { model: step.model, templates, results: [], errors: [] }
      stored.set(settings.id, created)
      timers.after(settings.totalMs, () => visit(settings))
      return { run: carryOut(created, step), isNew: true }
    },

    async cancel(id, by) {
      const run = known(id)
      return carryOut(run, stopRun(run.model, { at: clock.now(), reason: 'cancelled', by }))
    },

    async delete(id) {
      const { state } = known(id).model.run
      if (state !== 'ended') throw runNotEnded(id, state)
      stored.delete(id)
    },

    find: async (id) => stored.get(id)?.model.run,

    async waitUntilEnded(id, signal) {
      const find = (): Run | undefined => {
        check()
        return stored.get(id)?.model.run
      }
      const run = stored.get(id)
      return run && waiters.wait(run, find, ({ state }) => state === 'ended', signal)
    },

    output: async (id) => decodeValue(known(id).model.run.output, codec),

    errors: async (id, from, limit) => known(id).errors.slice(from, from + limit),

    async emit(of, emission) {
      const run = current(of)
      if (run === undefined) return 'stopped'
      const step = emitItems(run.model, emission, clock.now())
      if (typeof step === 'string') return step
      const changed = carryOut(run, step)
      const { emitted, digest, cursor } = changed.source
      const batch = changed.settings.stages[0]?.batch ?? 0
      return { emitted, batch, free: freeOf(changed), digest, cursor }
    },

    async untilCredits(of, signal) {
      const run = current(of)
      const isOver = ({ model }: StoredRun): boolean => !model.run.source.isWaiting
      if (run !== undefined) await waiters.wait(run, () => current(of), isOver, signal)
    },

    list: async (limit) =>
      unfinished()
        .toSorted((one, other) => (one.settings.id < other.settings.id ? -1 : 1))
        .slice(0, limit),

    count: async () => unfinished().length,

    async results(of, from, limit) {
      const run = current(of)
      if (run === undefined) throw runNotFound(of.id)
      return run.results.slice(from, from + limit).map((value) => decodeValue(value, codec))
    },
  }

  return {
    runs: {
      ...guarded(check, methods),
      encode: (item) => encodeValue(item, codec),
      decode: (value) => decodeValue(value, codec),
    },
    ended: ({ id, stage, position }, how, value) => later(() => end(runOfToken(id), stage, position, how, value)),
    inputOf: ({ id, stage, position }) => current(runOfToken(id))?.model.inputs.get(runTaskName(stage, position)),
    close: () => timers.close(),
  }
}
