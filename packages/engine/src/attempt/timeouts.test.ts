import { defineTask } from '@bullpen/contract'
import { contradictionIn } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type CallTimeouts,
  DEFAULT_TIMEOUTS,
  nextTimeoutAt,
  passedTimeout,
  type RunningTimeouts,
  resolveTimeouts,
  type Timeouts,
  timeoutBeforeStart,
  totalTimeoutAt,
} from './timeouts.ts'

const base = { name: 'test.limits', queue: 'q', input: z.unknown(), output: z.unknown() } as const
const pool: Timeouts = { timeoutMs: 1_000, heartbeatMs: 100, queueMs: 200, totalMs: 5_000, graceMs: 50 }

describe('the limits of an attempt', () => {
  it('are the call’s, else the definition’s, else the pool’s', () => {
    const definition = defineTask({ ...base, timeout: '2s', queueTimeout: '3s' })
    expect(resolveTimeouts(definition, pool, { timeoutMs: 3_000 })).toEqual({
      timeoutMs: 3_000,
      heartbeatMs: 100,
      queueMs: 3_000,
      totalMs: 5_000,
      graceMs: 50,
    })
    expect(resolveTimeouts(definition, pool, undefined)).toMatchObject({ timeoutMs: 2_000 })
  })

  it('are none where the call or the definition says so, whatever the pool says', () => {
    const definition = defineTask({ ...base, heartbeatTimeout: 'none', grace: 'none' })
    expect(resolveTimeouts(definition, pool, { timeoutMs: 'none', totalMs: 'none' })).toEqual({
      timeoutMs: 'none',
      heartbeatMs: 'none',
      queueMs: 200,
      totalMs: 'none',
      graceMs: 'none',
    })
    expect(resolveTimeouts(defineTask({ ...base, timeout: 'none' }), pool, { timeoutMs: 10 })).toMatchObject({
      timeoutMs: 10,
    })
  })

  it('drop a default of the pool that contradicts what was said for this task', () => {
    const definition = defineTask({ ...base, timeout: '50ms' })
    expect(resolveTimeouts(definition, pool, undefined)).toMatchObject({ timeoutMs: 50, heartbeatMs: 'none' })
    expect(resolveTimeouts(defineTask(base), pool, { totalMs: 150 })).toMatchObject({
      timeoutMs: 'none',
      queueMs: 'none',
      totalMs: 150,
    })
  })

  it('have a finite timeout and grace unless anybody says otherwise, and nothing else', () => {
    expect(resolveTimeouts(defineTask(base), DEFAULT_TIMEOUTS, undefined)).toEqual({
      timeoutMs: 300_000,
      heartbeatMs: 'none',
      queueMs: 'none',
      totalMs: 'none',
      graceMs: 5_000,
    })
  })

  it('always hold what the call says, and a pool’s default never against it', () => {
    const ms = fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.constant('none' as const))
    const said = fc.record<CallTimeouts>(
      { timeoutMs: ms, heartbeatMs: ms, queueMs: ms, totalMs: ms },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(said, fc.record({ timeoutMs: ms, heartbeatMs: ms, queueMs: ms, totalMs: ms }), (call, own) => {
        const limits = resolveTimeouts(defineTask(base), { ...own, graceMs: 1 }, call)
        expect(limits).toMatchObject(call)
        for (const limit of ['timeoutMs', 'heartbeatMs', 'queueMs', 'totalMs'] as const) {
          const contradicts = contradictionIn({ ...call, [limit]: own[limit] }) !== undefined
          if (call[limit] === undefined) expect(limits[limit]).toBe(contradicts ? 'none' : own[limit])
        }
      }),
    )
  })
})

describe('the total timeout', () => {
  it('counts from the enqueueing, and never passes when there is none', () => {
    expect(totalTimeoutAt(1_000, { ...pool, totalMs: 500 })).toBe(1_500)
    expect(totalTimeoutAt(1_000, { ...pool, totalMs: 'none' })).toBe('none')
  })
})

describe('a timeout before the start', () => {
  const timeouts: Timeouts = { ...DEFAULT_TIMEOUTS, queueMs: 200, totalMs: 1_000 }
  const task = { timeouts, totalTimeoutAt: 1_000, readyAt: 100 }

  it('is the queue timeout once the task has been ready for that long', () => {
    expect(timeoutBeforeStart(task, 299)).toBeUndefined()
    expect(timeoutBeforeStart(task, 300)).toEqual({ reason: 'queue_timeout', limitMs: 200 })
  })

  it('is the total timeout for a task that has started before, which has no queue timeout', () => {
    const started = { ...task, readyAt: undefined }
    expect(timeoutBeforeStart(started, 999)).toBeUndefined()
    expect(timeoutBeforeStart(started, 1_000)).toEqual({ reason: 'total_timeout', limitMs: 1_000 })
  })
})

describe('the timeouts of a running handler', () => {
  it('pass in their order, and the first is named with its length', () => {
    expect(passedTimeout(running({ timeoutMs: 100, heartbeatMs: 300, totalAt: 300 }), 100)).toEqual({
      reason: 'run_timeout',
      limitMs: 100,
    })
    expect(passedTimeout(running({ timeoutMs: 900, heartbeatMs: 50, totalAt: 900, heartbeatAt: 70 }), 120)).toEqual({
      reason: 'heartbeat_timeout',
      limitMs: 50,
    })
    expect(passedTimeout(running({ timeoutMs: 900, heartbeatMs: 'none', totalAt: 80 }), 80)).toEqual({
      reason: 'total_timeout',
      limitMs: 5_000,
    })
  })

  it('have not passed a moment before', () => {
    expect(passedTimeout(running({ timeoutMs: 100, heartbeatMs: 200, totalAt: 300 }), 99.9)).toBeUndefined()
  })

  it('count the heartbeat timeout, and no other, from the last heartbeat', () => {
    const at = (heartbeatAt: number) => running({ timeoutMs: 1_000, heartbeatMs: 100, totalAt: 'none', heartbeatAt })
    expect([0, 80, 950].map((heartbeatAt) => nextTimeoutAt(at(heartbeatAt)))).toEqual([100, 180, 1_000])
  })

  it('never pass when there are none', () => {
    const unlimited = running({ timeoutMs: 'none', heartbeatMs: 'none', totalAt: 'none' })
    expect(nextTimeoutAt(unlimited)).toBe(Number.POSITIVE_INFINITY)
    expect(passedTimeout(unlimited, 1e12)).toBeUndefined()
  })

  it('pass exactly at the time that is named as the next one', () => {
    const ms = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constant('none' as const))
    const moment = fc.integer({ min: 0, max: 1_000 })
    fc.assert(
      fc.property(ms, ms, ms, moment, moment, (timeoutMs, heartbeatMs, totalAt, heartbeatAt, now) => {
        const handler = running({ timeoutMs, heartbeatMs, totalAt, heartbeatAt })
        expect(passedTimeout(handler, now) !== undefined).toBe(now >= nextTimeoutAt(handler))
      }),
    )
  })
})

interface RunningOptions {
  readonly timeoutMs: number | 'none'
  readonly heartbeatMs: number | 'none'
  readonly totalAt: number | 'none'
  readonly heartbeatAt?: number
}

/** A handler that started at 0. */
function running({ timeoutMs, heartbeatMs, totalAt, heartbeatAt = 0 }: RunningOptions): RunningTimeouts {
  const totalMs = totalAt === 'none' ? 'none' : 5_000
  return {
    timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs, heartbeatMs, totalMs },
    startedAt: 0,
    lastHeartbeatAt: heartbeatAt,
    totalTimeoutAt: totalAt,
  }
}
