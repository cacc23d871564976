import { defineTask } from '@bullpen/contract'
import { contradictionIn } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type CallTimeouts, DEFAULT_TIMEOUTS, resolveTimeouts, type Timeouts } from './timeouts.ts'

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
