// Compares the decisions of the steps in Redis with those of the engine, for random calls of one service.
import { randomUUID } from 'node:crypto'
import type { BreakerMode, BreakerSettings } from '@bullpen/contract'
import { admit, type Breaker, newBreaker, record, setMode, startsAt } from '@bullpen/engine/internal'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { defineScript } from '../scripts/define-script.fixture.ts'
import { runScript } from '../scripts/script.ts'
import { luaInclude } from '../store/scripts.ts'
import { decodeBreaker, encodeSettings } from './stored-breaker.ts'

const START = 1_700_000_000_000
const SERVICE = 'smtp'

/** Runs one step. Returns when a task may start, the generation of the attempt that starts, and what is stored. */
const step = defineScript({
  name: 'test-breaker',
  kind: 'adds',
  keys: ['base'],
  args: ['at', 'does', 'generation', 'settings', 'random'],
  lua: `
local now, gate = tonumber(at), nil
local function set_gate(_, starts_at) gate = starts_at end
${luaInclude('breakers')}
local result
define_breaker('${SERVICE}', settings)
local starts_at = gate
if does == 'start' then
  if starts_at == now then result = admit_to('${SERVICE}') end
elseif does == 'auto' or does == 'open' or does == 'closed' then
  set_breaker('${SERVICE}', does, 'ann', settings)
else
  local call = { generation = tonumber(generation), failed = does == 'fail', slow = does == 'slow' }
  record_breaker_call('${SERVICE}', call, tonumber(random))
end
return { type(starts_at) == 'number' and string.format('%.0f', starts_at) or starts_at, tostring(result),
  redis.call('HGET', base .. 'breakers', '${SERVICE}') }`,
  answer: (reply: unknown) => reply as [startsAt: string, generation: string, stored: string],
})

type Does = 'start' | 'succeed' | 'fail' | 'slow' | BreakerMode

const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(
      { weight: 9, arbitrary: fc.integer({ min: -20, max: 300 }) },
      { weight: 1, arbitrary: fc.integer({ min: -20_000, max: 6_000 }) },
    ),
    does: fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom<Does[]>('start', 'start', 'start', 'succeed', 'fail', 'slow') },
      { weight: 1, arbitrary: fc.constantFrom<Does[]>('auto', 'auto', 'open', 'closed') },
    ),
    which: fc.nat(100),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  }),
  { maxLength: 60, size: 'max' },
)

const randomSettings: fc.Arbitrary<BreakerSettings> = fc.record({
  failureRate: fc.constantFrom(0.1, 0.3, 1),
  slowCallMs: fc.constant(1),
  slowCallRate: fc.constantFrom(0.3, 1),
  minimumCalls: fc.constantFrom(1, 4),
  windowMs: fc.constantFrom(1_005, 60_000),
  openMs: fc.constantFrom(1_000, 1_500),
  maxOpenMs: fc.constantFrom(1_500, 4_000),
  probes: fc.constantFrom(1, 3),
  failureCodes: fc.constant(undefined),
})

describe('circuit breakers in Redis', () => {
  it('decide as the engine does', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const property = fc.asyncProperty(randomSettings, steps, async (settings, program) => {
      const base = `{t-${randomUUID().slice(0, 12)}.q}:q:`
      let at = START
      let known: Breaker | undefined
      const running: number[] = []
      for (const { afterMs, does, which, random } of program) {
        at += afterMs
        const before: Breaker = known ?? newBreaker(at)
        const expectedStart = startsAt(before, at, settings)
        let generation = 0
        let started = 'nil'
        let after: Breaker = before
        if (does === 'start') {
          const admitted = admit(before, at, settings)
          after = admitted ?? before
          if (admitted !== undefined) running.push(admitted.generation)
          if (admitted !== undefined) started = `${admitted.generation}`
        } else if (does === 'auto' || does === 'open' || does === 'closed') {
          after = setMode(before, does, at)
        } else {
          if (running.length === 0) continue
          generation = running.splice(which % running.length, 1)[0] ?? 0
          const call = { generation, failed: does === 'fail', slow: does === 'slow' }
          after = record(before, call, at, settings, () => random)
        }
        const args = { at, does, generation, settings: encodeSettings(settings), random }
        const [start, answer, stored] = await runScript(redis, step, { base }, args)
        expect([start, answer]).toEqual([`${expectedStart}`, started])
        known = decodeBreaker(stored).breaker
        if (after.state === 'closed') {
          const sorted = after.buckets.toSorted((a, b) => a.at - b.at)
          expect(known).toEqual({ ...after, buckets: sorted })
        } else expect(known).toEqual(after)
      }
    })
    await fc.assert(property, { numRuns: 60 })
  })

  it('store who has set a mode, and when', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const base = `{t-${randomUUID().slice(0, 12)}.q}:q:`
    const [settings] = fc.sample(randomSettings, 1)
    if (settings === undefined) expect.fail()
    const args = { does: 'open', generation: 0, settings: encodeSettings(settings), random: 0 }
    await runScript(redis, step, { base }, { ...args, at: START })
    // The same mode again changes nothing.
    const [, , stored] = await runScript(redis, step, { base }, { ...args, at: START + 1 })
    expect(decodeBreaker(stored)).toMatchObject({ setBy: { by: 'ann', at: START }, breaker: { until: 'none' } })
  })
})
