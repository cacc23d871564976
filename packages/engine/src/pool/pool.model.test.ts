// Runs a pool on a fake consumer through random steps, and compares it with its reference model after every step.
import { type DrainMode, rateLimited, TaskError } from '@bullpen/contract'
import { DRAIN_MODES } from '@bullpen/contract/internal'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LEAVINGS, type Leaving } from '../attempt/reference.fixture.ts'
import { drainLimits } from './drain.ts'
import { type Given, GRACE_MS, poolFixture, poolStates } from './pool.fixture.ts'
import { PoolModel } from './pool-model.fixture.ts'

const SIZE = 3
const MAX_LEFTOVERS = 1

/** `task`: one of those that were started, counted round. */
type Step =
  | { readonly do: 'give'; readonly kind: 'short' | 'long' | 'fragile' }
  | { readonly do: 'leave'; readonly task: number; readonly how: Leaving }
  | { readonly do: 'escape' | 'cancel' | 'lose lock'; readonly task: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'stop slot'; readonly slot: number; readonly how: 'wait' | 'hard' }
  | { readonly do: 'drain'; readonly mode: DrainMode; readonly ms: number; readonly broken: boolean }
  | { readonly do: 'resize'; readonly size: number }
  | { readonly do: 'pause' | 'resume' }
  | { readonly do: 'close parent' | 'fail consumer' }

const task = fc.nat({ max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('give' as const),
      kind: fc.constantFrom('short', 'long', 'long', 'fragile'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('leave' as const),
      task,
      how: fc.constantFrom(...(Object.keys(LEAVINGS) as Leaving[])),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('escape', 'cancel', 'lose lock'), task }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.constantFrom(50, 100, 150, 600, 40_000)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('stop slot' as const),
      slot: fc.integer({ min: 0, max: 2 * SIZE }),
      how: fc.constantFrom('wait', 'hard'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('resize' as const), size: fc.integer({ min: 1, max: 2 * SIZE }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('drain' as const),
      mode: fc.constantFrom(...DRAIN_MODES),
      ms: fc.constantFrom(0, 60, 400),
      broken: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('close parent', 'fail consumer') }) },
)

function poolAndModel() {
  const parent = new AbortController()
  const fixture = poolFixture({ concurrency: SIZE, maxStuckHandlers: MAX_LEFTOVERS, parent: parent.signal })
  const model = new PoolModel(SIZE, MAX_LEFTOVERS)
  const given: Given[] = []
  const { pool, consumer, calls, clock } = fixture

  /** The pool chooses which idle slot takes a task. The model follows this choice and checks that the slot was idle. */
  function newlyAtWork(): number {
    return pool.slots().findIndex(({ state }, at) => state === 'WORKING' && model.slots[at]?.state === 'IDLE')
  }

  function obeys(may: boolean, act: () => void): void {
    if (may) act()
    else expect(act).toThrow(expect.objectContaining({ code: 'wrong_state' }))
  }

  async function take(each: Step): Promise<void> {
    switch (each.do) {
      case 'give':
        given.push(fixture.give(`test.${each.kind}`))
        model.give(each.kind, newlyAtWork())
        return
      case 'advance':
        await clock.advance(each.ms)
        model.advance(each.ms)
        return
      case 'stop slot':
        obeys(model.stopWorker(each.slot, each.how), () => pool.stopSlot(each.slot, each.how))
        return
      case 'resize':
        obeys(model.resize(each.size), () => pool.resize(each.size))
        return
      case 'pause':
        obeys(model.pause(true), () => pool.pause())
        return
      case 'resume':
        obeys(model.pause(false), () => pool.resume())
        return
      case 'drain':
        void pool.drain({ ...drainLimits(each.mode, { drainMs: each.ms, graceMs: GRACE_MS }), broken: each.broken })
        model.drain(each.mode, each.ms, each.broken)
        return
      case 'close parent':
        parent.abort()
        model.parentCloses()
        return
      case 'fail consumer':
        consumer.fail()
        model.feedFails()
        return
    }
    const started = model.tasks
    const at = each.task % Math.max(1, started.length)
    const [known, call] = [started[at], calls[at]]
    const { id } = given.filter(({ released }) => !released)[at]?.task ?? {}
    if (known === undefined || call === undefined || id === undefined) return
    switch (each.do) {
      case 'leave':
        leave(call, each.how)
        model.leave(known, each.how)
        return
      case 'escape':
        call.escape(new Error('escaped'))
        model.escape(known)
        return
      case 'cancel':
        expect(pool.cancel(id)).toBe(model.cancel(known))
        return
      case 'lose lock':
        consumer.pool.lockLost(id)
        model.interrupt(known, 'lock_lost')
    }
  }

  function compare(): void {
    expect({
      state: pool.state(),
      paused: pool.status().paused,
      slots: pool.slots().map(({ slot, state, task }) => `${slot} ${state} ${task === undefined ? '' : 'task'}`),
      busy: pool.busy(),
      size: pool.size(),
      stuckHandlers: pool.stuckHandlers(),
      takes: pool.notReady() === undefined,
      given: given.map(({ released, result }) => {
        if (released) return 'released'
        return result && `${result.record.state} ${result.record.reason} ${result.verdict.kind}`
      }),
      late: fixture.named('attempt.late').length,
    }).toEqual({
      state: model.state,
      paused: model.paused,
      slots: model.slots.map(({ number, state, task }) => `${number} ${state} ${task === undefined ? '' : 'task'}`),
      busy: model.busy,
      size: model.size,
      stuckHandlers: model.stuckHandlers,
      takes: model.takes,
      given: model.given.map((each) => {
        if (each === 'released') return each
        return each.end && `${each.end.state} ${each.end.reason} ${each.end.verdict}`
      }),
      late: model.late,
    })
    if (model.runs) expect(consumer.size).toBe(model.full || model.paused ? 0 : model.size)
  }
  return { ...fixture, given, model, take, compare }
}

function leave(call: ReturnType<typeof poolFixture>['calls'][number], how: Leaving): void {
  if (how === 'valid output') call.finish()
  else if (how === 'invalid output') call.finish({ n: 'seven' as never })
  else if (how === 'snoozes') call.snooze('1s')
  else if (how === 'is rate limited') call.fail(rateLimited('1s'))
  else if (how === 'throws an undeclared error') call.fail(new Error('panic'))
  else call.fail(new TaskError('failed', '', { retryable: how === 'declares a retryable failure' }))
}

/** Whatever has happened: once the handlers have left, no slot is lost, nothing is left over, and nothing stays behind. */
async function settles(life: ReturnType<typeof poolAndModel>): Promise<void> {
  const { calls, clock, pool, model, named, consumer, given, take, compare } = life
  for (const { finish } of calls) finish()
  for (const known of model.tasks) model.leave(known, 'valid output')
  await take({ do: 'advance', ms: 60_000 })
  compare()
  expect([pool.busy(), pool.stuckHandlers()]).toEqual([0, 0])
  if (model.runs) expect(pool.slots().filter(({ state }) => state === 'IDLE')).toHaveLength(pool.size())
  await take({ do: 'drain', mode: 'hard', ms: 0, broken: false })
  await take({ do: 'advance', ms: 2_000 })
  compare()
  const { abandoned, ...report } = await pool.drain({ drainMs: 0, graceMs: GRACE_MS })
  expect({ ...report, abandoned: abandoned.length }).toEqual({ queue: 'test', unconfirmed: [], ...model.drained })
  expect(pool.slots().every(({ state }) => state === 'TERMINATED')).toBe(true)
  expect(named('attempt.started')).toHaveLength(given.filter(({ released }) => !released).length)
  expect([...named('attempt.ended'), ...named('attempt.commit_refused')]).toHaveLength(named('attempt.started').length)
  expect([clock.pending(), consumer.closed, consumer.stops]).toEqual([0, true, 1])
  // A broken pool may reach RECOVER_ERR before, during or after its drain.
  expect(poolStates(life).at(-1)).toBe(model.state)
  expect(new Set(poolStates(life)).size).toBe(poolStates(life).length)
}

it('a pool does what its model does and loses no slot, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30, size: 'max' }), async (steps) => {
      const life = poolAndModel()
      await life.pool.start()
      for (const each of steps) {
        await life.take(each)
        await life.clock.advance(0)
        life.model.advance(0)
        life.compare()
      }
      await settles(life)
    }),
    { numRuns: amount({ small: 400, full: 15_000 }) },
  )
})
