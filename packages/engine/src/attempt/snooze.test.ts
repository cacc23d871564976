import { describe, expect, it } from 'vitest'
import { soloist } from '../pool/pool.fixture.ts'
import { Snooze } from '../verdict/outcome.ts'

describe('a snooze', () => {
  it('accepts only a duration', () => {
    expect(new Snooze('2m').delayMs).toBe(120_000)
    expect(() => new Snooze('soon' as never)).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
  })

  it.each(['test.short', 'test.long'])(
    'ends an attempt of %s as TERMINATED_CTX_CLOSED (snoozed), schedules the task again, and does not count',
    async (task) => {
      const { run, calls, clock, named } = soloist()
      const ended = run(task, {}, { attempt: 3 })
      await clock.advance(0)
      calls[0]?.snooze('90s')
      expect(await ended).toMatchObject({
        record: { state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', attempt: 3 },
        verdict: { kind: 'snoozed', delayMs: 90_000 },
      })
      expect(named('attempt.ended')).toMatchObject([{ verdict: 'snoozed', delayMs: 90_000, error: undefined }])
    },
  )

  it('works in a handler that has not returned a promise yet', async () => {
    const { run } = soloist({ handle: ({ snooze }) => snooze('1s') })
    expect((await run('test.long')).verdict).toEqual({ kind: 'snoozed', delayMs: 1_000 })
  })

  it('with an invalid duration is a panic of the handler', async () => {
    const { run } = soloist({ handle: ({ snooze }) => snooze('soon' as never) })
    expect((await run('test.long')).record).toMatchObject({ state: 'RECOVER_ERR', reason: 'unexpected_error' })
  })

  it.each([
    ['before', 499, 'snoozed'],
    ['at', 500, 'dead'],
    ['beyond', 501, 'dead'],
  ] as const)('that ends %s the total timeout of the task (%i ms) gives the verdict %s', async (_, ms, verdict) => {
    const { run, calls, clock } = soloist()
    const ended = run('test.long', { totalMs: 600 })
    await clock.advance(50)
    calls[0]?.snooze(`${ms + 50}ms`)
    const result = await ended
    expect(result.verdict.kind).toBe(verdict)
    if (verdict === 'dead') {
      expect(result.record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'total_timeout' })
    }
  })

  it('after the signal changes nothing', async () => {
    const { run, calls, clock, slot } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    slot.interruption?.stop({ reason: 'cancelled' })
    calls[0]?.snooze('1s')
    expect((await ended).verdict).toEqual({ kind: 'cancelled' })
  })
})
