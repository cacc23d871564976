// Tests who is released when, with a store that has a given room, and compares random histories with a simple model.
import { type Enqueued, QueueFullError, type TaskId } from '@bullpen/contract'
import { type FakeClock, fakeClock } from '@bullpen/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBlockedCallers } from './blocked-callers.ts'

type Result = 'waits' | 'stored' | 'full' | 'failed'

function setup(room = 0) {
  const clock = fakeClock()
  const blocked = createBlockedCallers(clock)
  const store = { room, fails: false, tries: 0, order: [] as string[] }
  const results = new Map<string, Result>()
  const leave = new Map<string, () => void>()
  const tryToStore = async (name: string): Promise<Enqueued> => {
    store.tries++
    if (store.fails) throw new Error('Redis is unreachable')
    if (store.room === 0) throw new QueueFullError({ queue: 'q', limit: 'maxTasks', max: 1, found: 1 })
    store.room--
    store.order.push(name)
    return { id: name as TaskId, action: 'created' }
  }
  const arrive = (name: string, queue = 'q'): void => {
    const controller = new AbortController()
    leave.set(name, () => controller.abort())
    results.set(name, 'waits')
    blocked.enqueue({ queue, store: () => tryToStore(name), signal: controller.signal }).then(
      () => results.set(name, 'stored'),
      (error) => results.set(name, error instanceof QueueFullError ? 'full' : 'failed'),
    )
  }
  return { clock, blocked, store, results, arrive, leave: (name: string) => leave.get(name)?.(), names: leave }
}

const settled = (clock: FakeClock) => clock.advance(0)

/** A queue with room for a number of tasks, of which each API key may have one. */
function setupWithApiKeys() {
  const clock = fakeClock()
  const blocked = createBlockedCallers(clock)
  const store = { room: 0, taken: new Set<string>(), order: [] as string[] }
  const arrive = (name: string, apiKeyName: string): (() => void) => {
    const controller = new AbortController()
    const tryToStore = async (): Promise<Enqueued> => {
      const full = { queue: 'q', max: 1, found: 1 }
      if (store.taken.has(apiKeyName)) throw new QueueFullError({ ...full, limit: 'maxUnfinishedTasks', apiKeyName })
      if (store.room === 0) throw new QueueFullError({ ...full, limit: 'maxTasks' })
      store.room--
      store.taken.add(apiKeyName)
      store.order.push(name)
      return { id: name as TaskId, action: 'created' }
    }
    const call = { queue: 'q', apiKeyName, store: tryToStore, signal: controller.signal }
    blocked.enqueue(call).catch(() => store.order.push(`${name} left`))
    return () => controller.abort()
  }
  return { clock, blocked, store, arrive }
}

describe('a caller whose API key has reached its limit', () => {
  it('holds back only callers with the same API key', async () => {
    const { clock, blocked, store, arrive } = setupWithApiKeys()
    store.room = 3
    for (const name of ['a1', 'a2', 'a3']) arrive(name, 'a')
    await settled(clock)
    arrive('b1', 'b')
    await settled(clock)
    expect(store.order).toEqual(['a1', 'b1'])
    expect(blocked.count('q')).toBe(2)
    store.taken.delete('a')
    await clock.advance(20)
    expect(store.order).toEqual(['a1', 'b1', 'a2'])
    expect(blocked.count('q')).toBe(1)
  })

  it('no longer holds back the others after it has waited for room in the queue', async () => {
    const { clock, blocked, store, arrive } = setupWithApiKeys()
    const leave = arrive('a1', 'a')
    await settled(clock)
    arrive('b1', 'b')
    await settled(clock)
    store.taken.add('a')
    store.room = 1
    await clock.advance(40)
    expect(store.order).toEqual(['b1'])
    expect(blocked.count('q')).toBe(1)
    leave()
    await settled(clock)
    expect(store.order).toEqual(['b1', 'a1 left'])
    await clock.advance(40)
    expect(blocked.count('q')).toBe(0)
    expect(clock.pending()).toBe(0)
  })

  it('waits for room in the queue once its API key has room', async () => {
    const { clock, store, arrive } = setupWithApiKeys()
    store.taken.add('a')
    arrive('a1', 'a')
    await settled(clock)
    arrive('b1', 'b')
    await settled(clock)
    store.taken.delete('a')
    await clock.advance(40)
    store.room = 2
    await clock.advance(20)
    expect(store.order).toEqual(['b1', 'a1'])
  })
})

describe('a caller of a full queue', () => {
  it('is not held back if there is room', async () => {
    const { clock, arrive, results, blocked } = setup(1)
    arrive('a')
    await settled(clock)
    expect(results.get('a')).toBe('stored')
    expect(blocked.count('q')).toBe(0)
    expect(clock.pending()).toBe(0)
  })

  it('is released within 20 ms of room, and those behind it at once, in the order in which they came', async () => {
    const { clock, arrive, store, results, blocked } = setup()
    for (const name of ['a', 'b', 'c']) arrive(name)
    await clock.advance(50)
    expect(blocked.count('q')).toBe(3)
    store.room = 2
    await clock.advance(20)
    expect(store.order).toEqual(['a', 'b'])
    expect(Object.fromEntries(results)).toEqual({ a: 'stored', b: 'stored', c: 'waits' })
    expect(blocked.count('q')).toBe(1)
  })

  it('does not overtake callers that came earlier', async () => {
    const { clock, arrive, store } = setup()
    arrive('a')
    await clock.advance(5)
    store.room = 1
    arrive('b')
    await settled(clock)
    expect(store.order).toEqual([])
    await clock.advance(20)
    expect(store.order).toEqual(['a'])
  })

  it('is not held back by the callers of another queue', async () => {
    const { clock, arrive, store } = setup()
    arrive('a')
    await settled(clock)
    store.room = 1
    arrive('b', 'other')
    await settled(clock)
    expect(store.order).toEqual(['b'])
  })

  it('gets the error of the full queue when its signal aborts, and those behind it go on waiting', async () => {
    const { clock, arrive, leave, store, results } = setup()
    for (const name of ['a', 'b', 'c']) arrive(name)
    await clock.advance(5)
    leave('b')
    leave('a')
    await settled(clock)
    expect(Object.fromEntries(results)).toEqual({ a: 'full', b: 'full', c: 'waits' })
    store.room = 1
    await clock.advance(20)
    expect(results.get('c')).toBe('stored')
  })

  it('does not wait if its signal has already aborted', async () => {
    const { clock, arrive, leave, results, blocked } = setup()
    arrive('a')
    leave('a')
    arrive('b')
    leave('b')
    await settled(clock)
    expect(Object.fromEntries(results)).toEqual({ a: 'full', b: 'full' })
    expect(blocked.count('q')).toBe(0)
  })

  it('gets any other error of its own try at once, and the next caller tries', async () => {
    const { clock, arrive, store, results } = setup()
    arrive('a')
    arrive('b')
    await settled(clock)
    store.fails = true
    await clock.advance(20)
    expect(Object.fromEntries(results)).toEqual({ a: 'failed', b: 'failed' })
  })

  it('whose task is already stored gets it at once, and does not take the room of those before it', async () => {
    const { clock, blocked, arrive, store, results } = setup()
    arrive('a')
    await settled(clock)
    const found = { id: 'q-1' as TaskId, action: 'created' } as const
    const calls = { store: () => Promise.reject(new Error('not its turn')), signal: new AbortController().signal }
    const call = { queue: 'q', ...calls, findExisting: () => Promise.resolve(found) }
    expect(blocked.mustWait(call)).toBe(true)
    expect(await blocked.enqueue(call)).toEqual(found)
    expect(blocked.count('q')).toBe(1)
    store.room = 1
    await clock.advance(20)
    expect(results.get('a')).toBe('stored')
    expect(blocked.mustWait(call)).toBe(false)
  })

  it('whose look-up of its task fails gets the error, and goes on waiting if there is no such task', async () => {
    const { clock, blocked, arrive } = setup()
    arrive('a')
    await settled(clock)
    const full = new QueueFullError({ queue: 'q', limit: 'maxTasks', max: 0, found: 1 })
    const call = (error: Error) =>
      blocked.enqueue({
        queue: 'q',
        store: () => Promise.reject(new Error('not its turn')),
        findExisting: () => Promise.reject(error),
        signal: new AbortController().signal,
      })
    await expect(call(new Error('Redis is unreachable'))).rejects.toThrow('Redis is unreachable')
    call(full).catch(() => {})
    await settled(clock)
    expect(blocked.count('q')).toBe(2)
  })

  it('is the only one of its queue that tries, every 20 ms', async () => {
    const { clock, arrive, store } = setup()
    for (let i = 0; i < 100; i++) arrive(`${i}`)
    await settled(clock)
    const before = store.tries
    await clock.advance(200)
    expect(store.tries - before).toBe(10)
  })

  it('whose signal aborts during its try gets what the try returns', async () => {
    const clock = fakeClock()
    const blocked = createBlockedCallers(clock)
    const full = new QueueFullError({ queue: 'q', limit: 'maxTasks', max: 1, found: 1 })
    const tries = [Promise.reject(full), Promise.withResolvers<Enqueued>()] as const
    tries[0].catch(() => {})
    const controller = new AbortController()
    let n = 0
    const store = () => (n++ === 0 ? tries[0] : tries[1].promise)
    const answer = blocked.enqueue({ queue: 'q', store, signal: controller.signal })
    await clock.advance(20)
    controller.abort()
    tries[1].resolve({ id: 'q-1' as TaskId, action: 'created' })
    expect(await answer).toEqual({ id: 'q-1', action: 'created' })
    expect(blocked.count('q')).toBe(0)
  })
})

const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('arrive' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), who: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('room' as const), for: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 60 }) }) },
)

it('in every history, callers are stored in the order in which they came, and no room stays unused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (history) => {
      const { clock, blocked, store, results, arrive, leave, names } = setup()
      const waiting = () => [...names.keys()].filter((name) => results.get(name) === 'waits')
      for (const step of history) {
        if (step.do === 'arrive') arrive(`${names.size}`)
        else if (step.do === 'leave') leave(`${step.who}`)
        else if (step.do === 'room') store.room += step.for
        else await clock.advance(step.ms)
        await settled(clock)
        expect(blocked.count('q')).toBe(waiting().length)
        expect(store.order.map(Number)).toEqual(store.order.map(Number).toSorted((a, b) => a - b))
      }
      await clock.advance(20)
      expect(store.room === 0 || waiting().length === 0).toBe(true)
      for (const name of names.keys()) leave(name)
      await clock.advance(20)
      expect(waiting()).toEqual([])
      expect([...results.values()].filter((result) => result === 'stored')).toHaveLength(store.order.length)
      expect(clock.pending()).toBe(0)
    }),
  )
})
