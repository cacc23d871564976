// Tests that any sequence of changes keeps the laws of a run: its bounds hold, each item passes each stage once, and it always ends.
import { batchSize, createRunId, MEMBER_ENDS, sectionsOf } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RunSettings } from '../ports/broker/runs.ts'
import { MAX_PASSED_BYTES } from './kept-input.ts'
import { type RunEffect, type RunModel, type RunStep, runTaskName } from './run-model.ts'
import { emitItems, endRunTasks, FORCED_RUN_END_MS, freeOf, startRun, stopRun, visitRun } from './run-state.ts'

const id = createRunId(0, new Uint8Array(10))
const TOTAL_MS = 1_000

const batch = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined })

const settings = fc
  .record({
    onError: fc.constantFrom('cancel' as const, 'collect' as const),
    maxErrors: fc.nat({ max: 3 }),
    ordered: fc.boolean(),
    take: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    stages: fc.array(
      fc.record({
        task: fc.constant('digest'),
        queue: fc.constantFrom('cpu', 'web'),
        concurrency: fc.integer({ min: 1, max: 3 }),
        buffer: fc.nat({ max: 3 }),
        batch,
      }),
      { minLength: 1, maxLength: 3 },
    ),
    resultBatch: batch,
    reduce: fc.option(
      fc.record({ task: fc.constant('sort'), queue: fc.constant('reduce'), maxBytes: fc.constantFrom(3, 1_000) }),
      {
        nil: undefined,
      },
    ),
  })
  .map((drawn): RunSettings => {
    return {
      id,
      incarnation: 'one',
      pipeline: 'p',
      by: 'test',
      source: { task: 'walk', queue: 'io' },
      totalMs: TOTAL_MS,
      keepMs: 1,
      ...drawn,
    }
  })

const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('emit' as const), count: fc.nat({ max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('emit last' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('emit again' as const) }) },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      // Which of the tasks that have not ended.
      which: fc.nat({ max: 50 }),
      end: fc.oneof(
        { weight: 12, arbitrary: fc.constant('completed' as const) },
        { weight: 1, arbitrary: fc.constantFrom(...MEMBER_ENDS) },
      ),
      drops: fc.nat({ max: 5 }).map((drawn) => drawn === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end again' as const), which: fc.nat({ max: 50 }) }) },
)

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never

const stop = fc.constantFrom('none', 'none', 'none', 'cancel', 'time out', 'force')

/** Returns a value with these items, which is sometimes too large to be passed on. */
const textOf = (items: readonly number[]): string =>
  items.join().padEnd((items[0] ?? 0) % 23 === 6 ? MAX_PASSED_BYTES + 1 : 0)

/**
 * A run with what a correct world would do about it: the source's items are '0', '1', …, and each stage passes its items on, of which those
 * of a batch are joined by commas.
 */
function world(given: RunSettings) {
  let step = startRun(given, 0)
  let last: Parameters<typeof emitItems>[1] | undefined
  const effects: RunEffect[] = [...step.effects]
  const ended: string[] = []
  /** The values of the tasks that were started. */
  const values = new Map<string, string>()
  const isEmitted = (): boolean => step.model.run.source.isExhausted
  const apply = (next: RunStep | 'stopped' | 'fenced'): void => {
    if (typeof next === 'string') return
    step = next
    effects.push(...next.effects)
    for (const effect of next.effects) {
      if (effect.kind !== 'start') continue
      const name = runTaskName(effect.stage, effect.position)
      values.set(name, next.model.inputs.get(name) ?? effect.value)
    }
    checkLaws(step.model)
  }
  const emit = (count: number, isLast: boolean): void => {
    const { run } = step.model
    const { emitted: from, segment } = run.source
    const size = given.stages[0]?.batch ?? 1
    const most = Math.max(0, freeOf(run)) * size
    // Only the last batch can be shorter.
    const items = isLast ? Math.min(count, most) : Math.floor(Math.min(count, most) / size) * size
    const numbers = Array.from({ length: items }, (_, i) => from + i)
    const batches = Map.groupBy(numbers, (n) => Math.floor((n - from) / size))
    const emitted = { from, values: [...batches.values()].map(textOf), count: items }
    last = { segment, fencingToken: 1, ...emitted, digest: `d${from}`, cursor: '', isLast }
    apply(emitItems(step.model, last, 0))
  }
  const end = (name: string, how: Extract<Action, { kind: 'end' }>['end'], drops: boolean): void => {
    const [stage = 0, position = 0] = name.split('.').map(Number)
    ended.push(name)
    const value = how === 'completed' && !drops ? textOf(itemsOf(values.get(name) ?? '')) : undefined
    apply(endRunTasks(step.model, [{ stage, position, end: how, value }], 0))
  }
  return {
    effects,
    values,
    model: () => step.model,
    apply,
    act(each: Action): void {
      const tasks = [...step.model.tasks]
      switch (each.kind) {
        case 'emit':
          if (!isEmitted()) emit(each.count, false)
          return
        case 'emit last':
          if (!isEmitted()) emit(0, true)
          return
        case 'emit again': {
          const before = step.model
          if (last !== undefined) apply(emitItems(step.model, last, 0))
          expect(step.model.run.source.emitted).toBe(before.run.source.emitted)
          expect(step.model.tasks).toEqual(before.tasks)
          return
        }
        case 'end': {
          const name = tasks[each.which % Math.max(1, tasks.length)]
          if (name !== undefined) end(name, each.end, each.drops && !name.startsWith('0.'))
          return
        }
        case 'end again': {
          const name = ended[each.which % Math.max(1, ended.length)]
          const before = step.model
          if (name !== undefined && !before.tasks.has(name)) {
            end(name, 'dead', false)
            expect(step.model).toBe(before)
          }
          return
        }
      }
    },
    /** Lets the source yield up to `items` items, and every task succeed, until the run has ended. */
    runToEnd(items: number): void {
      for (let turns = 0; step.model.run.state !== 'ended'; turns++) {
        if (turns > 10_000) throw new Error(`the run does not end: ${JSON.stringify(step.model.run)}`)
        const { source, state } = step.model.run
        if (source.state === 'active' && !isEmitted() && state === 'running') {
          const rest = items - source.emitted
          emit(rest, rest < (given.stages[0]?.batch ?? 1) && freeOf(step.model.run) > 0)
          if (!isEmitted() && step.model.run.source.emitted >= items) emit(0, true)
        }
        const [name] = [...step.model.tasks].toSorted((one, other) => Number(one[0] !== '0') - Number(other[0] !== '0'))
        const item = [...step.model.tasks].find((task) => !task.startsWith('0.'))
        end(item ?? name ?? '', 'completed', false)
      }
    },
  }
}

/** The source's items that a value contains. */
const itemsOf = (value: string): number[] => (value === '' ? [] : value.replace('*', '').split(/[,\n]/).map(Number))

function checkLaws({ run, tasks, inputs, waiting, early }: RunModel): void {
  const { settings: given, stages, source, sections, stopped } = run
  const names = [...tasks]
  for (const [i, { concurrency, buffer }] of given.stages.entries()) {
    const running = names.filter((name) => name.startsWith(`${i + 1}.`)).length
    expect(stages[i]?.running).toBe(running)
    expect(running).toBeLessThanOrEqual(concurrency)
    expect(stages[i]?.waiting).toBe(waiting[i]?.length)
    if (i > 0 && given.stages[i]?.batch === undefined) {
      const before = given.stages[i - 1] ?? { concurrency: 0, buffer: 0 }
      expect(waiting[i]?.length).toBeLessThanOrEqual(before.concurrency + before.buffer)
    }
    if (stopped === undefined) expect(buffer + concurrency).toBeGreaterThan(0)
  }
  for (const name of inputs.keys()) expect(tasks.has(name)).toBe(true)
  const bounds = sectionsOf(given)
  for (const [i, { entered, left, batching }] of sections.entries()) {
    expect(entered - left + batching).toBeLessThanOrEqual(bounds[i]?.window ?? 0)
  }
  expect(names.some((name) => name.startsWith('0.'))).toBe(source.state === 'active')
  expect(run.state === 'ended').toBe(run.ended !== undefined)
  if (run.state === 'ended') expect(tasks.size).toBe(0)
  if (stopped !== undefined) {
    expect(waiting.flat()).toEqual([])
    return
  }
  for (const [i, { first, last }] of bounds.entries()) {
    const { entered = 0, left = 0 } = sections[i] ?? {}
    const inside = stages.slice(first - 1, last).map(({ running, waiting: waits }) => running + waits)
    // What waits for the first stage of a later section has not entered this section.
    if (i > 0) inside.push(-(waiting[first - 1]?.length ?? 0))
    const arrived = [...early.keys()].filter((name) => name.startsWith(`${i + 1}.`)).length
    expect(entered).toBe(left + inside.reduce((sum, count) => sum + count, 0) + arrived)
  }
  // Nothing that could start waits, so that a run never stands still.
  if (run.state === 'running') expect(tasks.size).toBeGreaterThan(0)
}

const startsOf = (effects: readonly RunEffect[]) =>
  effects.flatMap((effect) => (effect.kind === 'start' ? [runTaskName(effect.stage, effect.position)] : []))

const resultsOf = (effects: readonly RunEffect[]) =>
  effects.flatMap((effect) => (effect.kind === 'result' ? [itemsOf(effect.value)] : []))

it('bounds hold, every task starts once, and the run ends once, whatever happens', () => {
  fc.assert(
    fc.property(settings, fc.array(action, { maxLength: 80 }), stop, (given, actions, how) => {
      const { act, apply, model, effects, runToEnd } = world(given)
      for (const each of actions) act(each)
      const cancel = { at: 5, reason: 'cancelled', by: 'ann' } as const
      if (how === 'cancel') apply(stopRun(model(), cancel))
      if (how === 'time out') apply(visitRun(model(), TOTAL_MS))
      const before = model()
      if (how === 'force' && before.run.state !== 'ended') {
        apply(stopRun(before, cancel))
        apply(visitRun(model(), (model().run.stopped?.at ?? 0) + FORCED_RUN_END_MS))
        expect(model().run.state).toBe('ended')
      } else runToEnd(30)
      const starts = startsOf(effects)
      expect(new Set(starts).size).toBe(starts.length)
      expect(effects.filter(({ kind }) => kind === 'ended')).toHaveLength(1)
      const { run } = model()
      const isStarted = starts.includes(runTaskName(given.stages.length + 1, 0))
      if (run.ended?.result === 'completed') expect(isStarted).toBe(given.reduce !== undefined)
      if (given.take !== undefined) expect(run.results).toBeLessThanOrEqual(given.take)
      if (given.reduce !== undefined) {
        const results = resultsOf(effects)
        expect(results).toHaveLength(run.results)
        if (given.ordered) expect(results.flat()).toEqual(results.flat().toSorted((one, other) => one - other))
      }
      expect(effects.filter(({ kind }) => kind === 'error').length).toBeLessThanOrEqual(given.maxErrors)
      const ended = model()
      apply(stopRun(ended, cancel))
      expect(model()).toBe(ended)
    }),
    { numRuns: 400 },
  )
})

it('a run without errors passes every item through every stage, and is completed with all results', () => {
  fc.assert(
    fc.property(settings, fc.nat({ max: 60 }), (given, items) => {
      const whole = { ...given, take: undefined, reduce: { task: 'sort', queue: 'reduce', maxBytes: 1_000_000 } }
      const { model, effects, runToEnd } = world(whole)
      runToEnd(items)
      expect(model().run).toMatchObject({ source: { emitted: items }, ended: { result: 'completed' } })
      const positions = Array.from({ length: items }, (_, i) => i)
      const results = resultsOf(effects)
      expect(results.flat().toSorted((one, other) => one - other)).toEqual(positions)
      let arriving = items
      for (let stage = 1; stage <= whole.stages.length + 1; stage++) {
        const size = batchSize(whole, stage) ?? 1
        arriving = Math.ceil(arriving / size)
        if (stage > whole.stages.length) expect(results).toHaveLength(arriving)
        else expect(startsOf(effects).filter((name) => name.startsWith(`${stage}.`))).toHaveLength(arriving)
      }
    }),
  )
})

/** A run with one stage and without a reduction, whose source has emitted this many items. */
function small(more: Partial<RunSettings>, items: number) {
  const stages = [{ task: 'digest', queue: 'cpu', concurrency: 2, buffer: 2 }]
  const made = world({
    ...{ id, incarnation: 'one' },
    ...{ pipeline: 'p', by: 'test', onError: 'cancel', maxErrors: 10, ordered: false, take: undefined, stages },
    ...{ source: { task: 'walk', queue: 'io' }, reduce: undefined, totalMs: TOTAL_MS, keepMs: 1 },
    ...more,
  })
  made.act({ kind: 'emit', count: items })
  const end = (stage: number, position: number, how: 'completed' | 'dead' | 'cancelled' = 'completed') =>
    made.apply(endRunTasks(made.model(), [{ stage, position, end: how, value: `${position}` }], 7))
  return { ...made, end, run: () => made.model().run }
}

it('a large input is kept until its task has ended, and the task gets a reference instead', () => {
  const { model, effects, apply, end } = small({}, 0)
  const [fits, large] = ['ü'.repeat(MAX_PASSED_BYTES / 2), 'ü'.repeat(MAX_PASSED_BYTES / 2 + 1)]
  const emission = { segment: 1, fencingToken: 1, from: 0, digest: '', cursor: '', isLast: false }
  apply(emitItems(model(), { ...emission, values: [fits, large], count: 2 }, 0))
  const started = effects.flatMap((effect) => (effect.kind === 'start' && effect.stage === 1 ? [effect.value] : []))
  expect(started).toEqual([fits, `@${MAX_PASSED_BYTES + 2}`])
  expect(model().inputs).toEqual(new Map([['1.1', large]]))
  end(1, 0)
  expect(model().inputs.size).toBe(1)
  end(1, 1)
  expect(model().inputs.size).toBe(0)
})

it('the first error stops the run, which ends once its running tasks have', () => {
  const { run, end, effects } = small({}, 4)
  end(1, 1, 'dead')
  expect(run()).toMatchObject({ state: 'stopping', firstError: { stage: 1, position: 1, end: 'dead' } })
  expect(effects.at(-1)).toMatchObject({ kind: 'cancel', queues: ['io', 'cpu'], reduce: false })
  end(1, 0)
  expect(run()).toMatchObject({ state: 'stopping', results: 0 })
  end(0, 1, 'cancelled')
  expect(run()).toMatchObject({
    state: 'ended',
    ended: { at: 7, result: 'failed' },
    stopped: { reason: 'first_error' },
  })
})

it('an error that is collected removes its item only', () => {
  const { run, end, effects, act } = small({ onError: 'collect' }, 2)
  end(1, 0, 'dead')
  act({ kind: 'emit last' })
  end(1, 1)
  end(0, 1)
  expect(run()).toMatchObject({ errors: 1, results: 1, ended: { result: 'completed' } })
  expect(effects).toContainEqual({ kind: 'error', error: { stage: 1, position: 0, end: 'dead' } })
})

it("the source's error fails the run only after the items that it had emitted", () => {
  const { run, end } = small({ reduce: { task: 'sort', queue: 'reduce', maxBytes: 100 } }, 2)
  end(0, 1, 'dead')
  expect(run()).toMatchObject({ state: 'running', source: { state: 'failed' } })
  end(1, 0)
  end(1, 1)
  expect(run()).toMatchObject({ results: 2, reduce: 'pending', ended: { result: 'failed' }, stopped: undefined })
})

it.each([
  ['cancelled', 'cancelled'],
  ['dead', 'failed'],
] as const)('a run whose reduction is %s has failed', (how, reduce) => {
  const { run, end } = small({ take: 1, reduce: { task: 'sort', queue: 'reduce', maxBytes: 100 } }, 1)
  end(1, 0)
  end(0, 1, 'cancelled')
  expect(run().reduce).toBe('running')
  end(2, 0, how)
  expect(run()).toMatchObject({ reduce, ended: { result: 'failed' } })
})

it('a run that has taken enough results cancels the rest and is completed', () => {
  const { run, end, effects } = small({ take: 1, reduce: { task: 'sort', queue: 'reduce', maxBytes: 100 } }, 4)
  end(1, 1)
  expect(run()).toMatchObject({ state: 'stopping', stopped: { reason: 'taken' } })
  end(1, 0, 'dead')
  end(0, 1, 'cancelled')
  expect(effects.at(-1)).toEqual({ kind: 'start', stage: 2, position: 0, value: '' })
  end(2, 0)
  expect(run()).toMatchObject({ results: 1, errors: 0, ended: { result: 'completed' } })
})

it('a source without room waits, and is notified when half of the window is free', () => {
  const { run, end, effects } = small({}, 4)
  expect(run().source.isWaiting).toBe(true)
  end(1, 0)
  expect(effects.some(({ kind }) => kind === 'credits')).toBe(false)
  end(1, 1)
  expect(effects.at(-1)).toEqual({ kind: 'credits' })
})

it('a source that gives up its slot gets a new task once half of the window is free', () => {
  const { run, end, effects } = small({}, 4)
  end(0, 1)
  expect(run().source).toMatchObject({ state: 'parked', isWaiting: false })
  end(1, 0)
  end(1, 1)
  expect(effects.at(-1)).toEqual({ kind: 'start', stage: 0, position: 2, value: '' })
})

it('a source that gives up its slot while only a part of a batch waits gets a new task at once', () => {
  const stages = [{ task: 'digest', queue: 'cpu', concurrency: 1, buffer: 0 }]
  const { run, end, effects } = small({ stages, resultBatch: 5 }, 4)
  for (let position = 0; position < 4; position++) end(1, position)
  expect(run()).toMatchObject({ results: 0, sections: [{ entered: 4, left: 4, batching: 4 }] })
  end(0, 1)
  expect(effects.at(-1)).toEqual({ kind: 'start', stage: 0, position: 2, value: '' })
})

it('an attempt of the source that another has replaced cannot emit', () => {
  const { model } = small({}, 1)
  const late = { segment: 1, from: 1, values: ['x'], count: 1, digest: '', cursor: '', isLast: false }
  const newer = emitItems(model(), { ...late, fencingToken: 2, values: [], count: 0 }, 0)
  if (typeof newer === 'string') throw new Error(newer)
  expect(emitItems(newer.model, { ...late, fencingToken: 1 }, 0)).toBe('fenced')
  expect(emitItems(newer.model, { ...late, fencingToken: 2, segment: 2 }, 0)).toBe('fenced')
})

it('results that become too large stop the run', () => {
  const { run, end } = small({ reduce: { task: 'sort', queue: 'reduce', maxBytes: 1 } }, 2)
  end(1, 0)
  end(1, 1)
  expect(run()).toMatchObject({ results: 1, resultBytes: 1, stopped: { reason: 'results_too_large' } })
})
