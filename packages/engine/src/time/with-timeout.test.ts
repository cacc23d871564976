import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { settlesWithin as settlesWithinNode, withTimeout } from '../node/with-timeout.ts'
import { settlesWithin } from './with-timeout.ts'

const NEVER = new Promise<never>(() => {})

describe('waiting for a promise on the engine’s clock', () => {
  it.each([
    ['resolves', () => Promise.resolve()],
    ['rejects', () => Promise.reject(new Error('failed'))],
  ])('reports true when it %s in time, and leaves no timer', async (_, settled) => {
    const clock = fakeClock()
    expect(await settlesWithin(clock, settled(), 10)).toBe(true)
    expect(clock.pending()).toBe(0)
  })

  it('reports false when the time passes, and not before', async () => {
    const clock = fakeClock()
    let answer: boolean | undefined
    void settlesWithin(clock, NEVER, 10).then((settled) => (answer = settled))
    await clock.advance(9)
    expect(answer).toBeUndefined()
    await clock.advance(1)
    expect(answer).toBe(false)
  })

  it('reports false as soon as the signal aborts, before or during the wait, and leaves no timer', async () => {
    const clock = fakeClock()
    expect(await settlesWithin(clock, NEVER, 10, AbortSignal.abort())).toBe(false)
    const giveUp = new AbortController()
    const answer = settlesWithin(clock, NEVER, 10, giveUp.signal)
    giveUp.abort()
    expect(await answer).toBe(false)
    expect(clock.pending()).toBe(0)
  })
})

describe('a promise with a timeout on Node’s timers', () => {
  const timeoutError = (): Error => new Error('no answer')

  it('settles as the promise does when that is in time', async () => {
    expect(await withTimeout(Promise.resolve('answer'), 60_000, timeoutError)).toBe('answer')
    await expect(withTimeout(Promise.reject(new Error('refused')), 60_000, timeoutError)).rejects.toThrow('refused')
  })

  it('rejects with the given error when the time passes, and drops a failure that comes later', async () => {
    const late = Promise.withResolvers<never>()
    await expect(withTimeout(late.promise, 1, timeoutError)).rejects.toThrow('no answer')
    late.reject(new Error('dropped'))
  })

  it('reports whether a promise settles in time, and leaves no timer', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    expect(await settlesWithinNode(Promise.resolve(), 60_000)).toBe(true)
    expect(timers()).toBe(before)
    expect(await settlesWithinNode(NEVER, 1)).toBe(false)
    expect(await settlesWithinNode(NEVER, 60_000, AbortSignal.abort())).toBe(false)
  })
})
