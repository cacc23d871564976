// Tests an attempt whose handler throttles its queue.
import { rateLimited } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { soloist } from '../pool/pool.fixture.ts'

const limited = { state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited', attempt: 3 }

describe('a rate limit', () => {
  it.each(['test.short', 'test.long'])(
    'ends an attempt of %s as TERMINATED_CTX_CLOSED (rate_limited), requeues the task, throttles the queue, and counts no failure',
    async (task) => {
      const { run, calls, clock, named } = soloist()
      const ended = run(task, {}, { attempt: 3 })
      await clock.advance(0)
      calls[0]?.fail(rateLimited('90s'))
      expect(await ended).toMatchObject({ record: limited, verdict: { kind: 'requeued', throttleMs: 90_000 } })
      expect(named('attempt.ended')).toMatchObject([{ verdict: 'requeued', delayMs: 90_000, error: undefined }])
    },
  )

  it('comes before the definition’s classifier, and before a promise is returned', async () => {
    const { run } = soloist({
      handle: () => {
        throw rateLimited('1s')
      },
    })
    expect((await run('test.long', {}, { attempt: 3 })).record).toMatchObject(limited)
  })

  it('after the signal changes nothing', async () => {
    const { run, calls, clock, slot } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    slot.interruption?.stop({ reason: 'cancelled' })
    calls[0]?.fail(rateLimited('1s'))
    expect((await ended).verdict).toEqual({ kind: 'cancelled' })
  })
})
