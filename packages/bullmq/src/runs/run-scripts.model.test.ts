// Compares the scripts that change a pipeline run with the engine's functions, for random sequences of changes on a real Redis.
import { randomBytes, randomUUID } from 'node:crypto'
import { createRunId, MEMBER_ENDS } from '@bullpen/contract/internal'
import {
  type Emission,
  type EndedRunTask,
  emitItems,
  endRunTasks,
  FORCED_RUN_END_MS,
  freeOf,
  type Run,
  type RunEffect,
  type RunModel,
  type RunSettings,
  type RunStep,
  startRun,
  stopRun,
  visitRun,
} from '@bullpen/engine/internal'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { END_LETTERS } from '../groups/end-letters.ts'
import { runChannels, runKeys } from '../keys.ts'
import { runScript } from '../scripts/script.ts'
import {
  emitItemsScript,
  endRunTasksScript,
  readRunScript,
  startRunScript,
  stopRunScript,
  visitRunScript,
} from '../store/scripts.ts'
import { type RunReply, runChange } from './run-change.ts'
import { runErrorOf, runOf, settingsFields } from './run-record.ts'

/** More than 64 KiB of UTF-8 in half as many characters. */
const LARGE = JSON.stringify('ü'.repeat(32_768))

const batch = fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined })

const settings = fc.record({
  onError: fc.constantFrom('cancel' as const, 'collect' as const),
  maxErrors: fc.nat({ max: 2 }),
  ordered: fc.boolean(),
  take: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  stages: fc.array(
    fc.record({
      task: fc.constant('digest'),
      queue: fc.constantFrom('cpu', 'web'),
      concurrency: fc.integer({ min: 1, max: 3 }),
      buffer: fc.nat({ max: 2 }),
      batch,
    }),
    { minLength: 1, maxLength: 3 },
  ),
  resultBatch: batch,
  reduce: fc.option(
    fc.record({
      task: fc.constant('sort'),
      queue: fc.constant('reduce'),
      maxBytes: fc.constantFrom(12, 1_000, 150_000),
    }),
    {
      nil: undefined,
    },
  ),
})

/** Which of the tasks that have not ended, or any other one. */
const which = fc.oneof({ weight: 9, arbitrary: fc.nat({ max: 20 }) }, { weight: 1, arbitrary: fc.constant('unknown') })

const change = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('emit' as const),
      count: fc.nat({ max: 6 }),
      token: fc.integer({ min: 1, max: 2 }),
      isLast: fc.nat({ max: 9 }).map((drawn) => drawn === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('emit again' as const) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      ends: fc.array(
        fc.tuple(
          which,
          fc.oneof(
            { weight: 12, arbitrary: fc.constant('completed' as const) },
            { weight: 1, arbitrary: fc.constantFrom(...MEMBER_ENDS) },
          ),
          fc.option(fc.constantFrom('{"a":1}', '"ü\\n"', '12', LARGE), { nil: undefined, freq: 8 }),
        ),
        { minLength: 1, maxLength: 4 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('cancel' as const, 'time out' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('force' as const) }) },
)

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

let redis: Redis
beforeAll(() => {
  redis = new Redis(inject('redisUrl'))
})
afterAll(() => redis.disconnect())

async function rig(given: RunSettings) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const keys = runKeys(namespace, given.id)
  const args = { id: given.id, channels: runChannels(namespace) }
  const create = { ...args, settings: JSON.stringify(given), totalMs: given.totalMs, spareMs: 60_000 }
  const visit = (forcedEndMs: number) =>
    runScript(redis, visitRunScript, keys, { ...args, forcedEndMs, leftForMs: 60_000 })
  return {
    keys,
    start: () => runScript(redis, startRunScript, keys, create, settingsFields(given)),
    emit: ({ segment, fencingToken: token, from, values, count, digest, cursor, isLast }: Emission) =>
      runScript(
        redis,
        emitItemsScript,
        keys,
        {
          ...args,
          incarnation: given.incarnation,
          segment,
          token,
          from,
          count,
          digest,
          cursor,
          isLast: isLast ? '1' : '',
        },
        values,
      ),
    end: (ends: readonly EndedRunTask[]) =>
      runScript(
        redis,
        endRunTasksScript,
        keys,
        { ...args, incarnation: given.incarnation },
        ends.flatMap(({ stage, position, end, value = '' }) => [stage, position, END_LETTERS[end], value]),
      ),
    stop: () => runScript(redis, stopRunScript, keys, { ...args, by: 'ann' }),
    async timeOut() {
      await redis.hset(keys.meta, 'timeoutAt', 1)
      return visit(FORCED_RUN_END_MS)
    },
    force: () => visit(-1),
    async read() {
      const stored = await runScript(redis, readRunScript, keys, {})
      if (stored === null) throw new Error('no run')
      const [fields, , waiting] = stored
      const lists = await Promise.all(waiting.map((_, i) => redis.lrange(keys.waiting(`${i + 1}`), 0, -1)))
      return {
        run: runOf(given, { fields, waiting }),
        waiting: given.resultBatch === undefined ? lists.slice(0, -1) : lists,
        tasks: new Set(await redis.smembers(keys.tasks)),
        inputs: new Map(Object.entries(await redis.hgetall(keys.inputs))),
        early: new Map(Object.entries(await redis.hgetall(keys.early))),
        results: await redis.lrange(keys.results, 0, -1),
        errors: (await redis.lrange(keys.errors, 0, -1)).map(runErrorOf),
      }
    },
  }
}

/** Replaces times, which differ, by whether they are set. */
function timeless({ createdAt: _, timeoutAt: _timeoutAt, stopped, ended, ...run }: Run) {
  return { ...run, stopped: stopped && { ...stopped, at: 0 }, ended: ended && { ...ended, at: 0 } }
}

/** How many items have left each stage, without zeros. A completed item that was dropped counts only as dropped. */
function outcomesOf({ stages }: Run): Readonly<Record<string, number>> {
  const all = stages.flatMap(({ completed, dropped, failed }, i) => [
    [`${i + 1} completed`, completed - dropped],
    [`${i + 1} dropped`, dropped],
    [`${i + 1} failed`, failed],
  ])
  return Object.fromEntries(all.filter(([, count]) => count !== 0))
}

/** The entries that the scripts write for these effects. */
function entriesOf(id: string, effects: readonly RunEffect[], given: RunSettings): string[] {
  return effects.flatMap((effect) => {
    if (effect.kind === 'start') return [`i ${id}.one ${effect.stage} ${effect.position}\n${effect.value}`]
    if (effect.kind !== 'cancel') return []
    const { queues, reduce, stop } = effect
    const ofItems = queues.map((queue) => `k ${id}.one ${queue} ${stop.by}`)
    return reduce ? [...ofItems, `k reduce${id.slice(3)}.one ${given.reduce?.queue} ${stop.by}`] : ofItems
  })
}

it('the scripts change a run as the model does, and a run that has ended keeps only its record', async () => {
  await fc.assert(
    fc.asyncProperty(settings, fc.array(change, { maxLength: 40 }), async (drawn, changes) => {
      const id = createRunId(Date.now(), randomBytes(10))
      const given: RunSettings = {
        ...{ id, incarnation: 'one' },
        ...{ pipeline: 'p', by: 'test', source: { task: 'walk', queue: 'io' }, totalMs: 3_600_000, keepMs: 86_400_000 },
        ...drawn,
      }
      const stored = await rig(given)
      let model: RunModel
      let results: string[] = []
      let errors: unknown[] = []
      let last: Emission | undefined
      /** How many items the replies have counted, by stage and outcome. */
      const counted: Record<string, number> = {}

      const expectSame = async (step: RunStep, answer: RunReply<unknown> | null) => {
        const reply = answer === null ? undefined : runChange(answer)
        model = step.model
        results.push(...step.effects.flatMap((effect) => (effect.kind === 'result' ? [effect.value] : [])))
        errors.push(...step.effects.flatMap((effect) => (effect.kind === 'error' ? [effect.error] : [])))
        const hasEnded = step.effects.some(({ kind }) => kind === 'ended')
        if (hasEnded) results = []
        expect(reply?.ended?.result).toBe(hasEnded ? model.run.ended?.result : undefined)
        for (const { stage, outcome, count } of reply?.items ?? [])
          counted[`${stage} ${outcome}`] = (counted[`${stage} ${outcome}`] ?? 0) + count
        expect(counted).toEqual(outcomesOf(model.run))
        expect(reply?.entries.map(([, text]) => text)).toEqual(entriesOf(id, step.effects, given))
        const found = await stored.read()
        expect(timeless(found.run)).toEqual(timeless(model.run))
        expect(found.waiting).toEqual(
          model.waiting.map((items) => items.map(({ position, value }) => `${position} ${value}`)),
        )
        expect(found.tasks).toEqual(model.tasks)
        expect(found.inputs).toEqual(model.inputs)
        expect(found.early).toEqual(new Map([...model.early].map(([name, value]) => [name, value ?? ''])))
        expect({ results: found.results, errors: found.errors }).toEqual({ results, errors })
      }

      const apply = async (each: Change): Promise<void> => {
        const now = Date.now()
        switch (each.kind) {
          case 'emit':
          case 'emit again': {
            if (each.kind === 'emit') {
              const { source } = model.run
              const size = given.stages[0]?.batch ?? 1
              const length = source.isExhausted ? 0 : Math.min(each.count, Math.max(0, freeOf(model.run)))
              const values = Array.from({ length }, (_, i) => (i === 5 ? LARGE : `"item ${source.emitted + i}"`))
              const [from, isLast] = [source.emitted, each.isLast]
              // The source's last batch is shorter.
              const count = length * size - (isLast && length > 0 ? size - 1 : 0)
              last = {
                ...{ segment: source.segment, fencingToken: each.token, from, values, count, isLast },
                ...{ digest: `d${from}`, cursor: `c${from}` },
              }
            }
            if (last === undefined) return
            const step = emitItems(model, last, now)
            const reply = await stored.emit(last)
            const [, , position] = reply
            if (typeof step === 'string') {
              expect(position).toBe(step)
              return
            }
            await expectSame(step, reply)
            const { emitted, digest, cursor } = step.model.run.source
            const size = given.stages[0]?.batch ?? 0
            expect(position).toEqual([emitted, size, freeOf(step.model.run), digest, cursor])
            return
          }
          case 'end': {
            const names = [...model.tasks]
            const ends = each.ends.map(([task, end, value]): EndedRunTask => {
              const name = typeof task === 'number' ? names[task % Math.max(1, names.length)] : undefined
              const [stage = 1, position = 99] = name?.split('.').map(Number) ?? []
              return { stage, position, end, value: end === 'completed' ? value : undefined }
            })
            await expectSame(endRunTasks(model, ends, now), await stored.end(ends))
            return
          }
          case 'cancel':
            await expectSame(stopRun(model, { at: now, reason: 'cancelled', by: 'ann' }), await stored.stop())
            return
          case 'time out': {
            const late = { ...model, run: { ...model.run, timeoutAt: 1 } }
            await expectSame(visitRun(late, now), await stored.timeOut())
            return
          }
          case 'force': {
            const { stopped } = model.run
            const isStopped = stopped !== undefined && stopped.reason !== 'taken'
            const at = isStopped ? stopped.at + FORCED_RUN_END_MS : model.run.createdAt
            await expectSame(visitRun(model, at), await stored.force())
            return
          }
        }
      }

      const started = startRun(given, Date.now())
      errors = []
      await expectSame(started, await stored.start())
      model = started.model
      // A repeated start changes nothing.
      await expectSame({ model, effects: [] }, await stored.start())
      for (const each of changes) await apply(each)
      const kept = await redis.keys(`${stored.keys.base}*`)
      for (const key of kept) expect(await redis.pttl(key)).toBeGreaterThan(0)
      const record = [stored.keys.meta, stored.keys.definition, stored.keys.errors, stored.keys.outbox]
      if (model.run.state === 'ended') expect(kept.filter((key) => !record.includes(key))).toEqual([])
      await redis.del(...kept)
    }),
    { numRuns: 60 },
  )
})
