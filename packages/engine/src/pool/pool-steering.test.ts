// Tests how a running pool is paused, resumed, resized and inspected.
import { describe, expect, it } from 'vitest'
import { clockFrom } from '../time/clock.ts'
import { GRACE_MS, poolFixture, TIMEOUT_MS } from './pool.fixture.ts'

const AT_ONCE = { drainMs: 0, graceMs: GRACE_MS }
const wrongState = expect.objectContaining({ code: 'wrong_state' })

async function started(options: Parameters<typeof poolFixture>[0] = {}) {
  const fixture = poolFixture(options)
  await fixture.pool.start()
  return fixture
}

describe('a pool that is paused', () => {
  it('starts nothing, lets running tasks go on, and releases fetched ones, until it is resumed', async () => {
    const { pool, consumer, give, calls, clock } = await started()
    const running = give()
    await clock.advance(0)
    pool.pause()
    pool.pause()
    expect([pool.state(), consumer.size, pool.status().paused]).toEqual(['BG_RUNNING', 0, true])
    const fetched = give()
    await fetched.settled
    expect([fetched.released, calls[0]?.abortReason()]).toEqual([true, undefined])
    calls[0]?.finish()
    await running.settled
    expect(running.result?.verdict.kind).toBe('completed')
    pool.resume()
    pool.resume()
    expect([consumer.size, pool.status().paused]).toEqual([2, false])
    give()
    await clock.advance(0)
    expect(pool.busy()).toBe(1)
  })

  it('stays ready for the readiness probe, and reports that it is paused', async () => {
    const { pool, consumer } = await started()
    pool.pause()
    expect([pool.notReady(), pool.status().notReady]).toEqual([undefined, 'paused'])
    consumer.lack = 'Redis is not connected'
    expect(pool.notReady()).toBe('Redis is not connected')
  })

  it('stays paused when its consumer fails and is restarted', async () => {
    const { pool, consumer, clock } = await started()
    pool.pause()
    consumer.fail()
    await clock.advance(500)
    expect([consumer.runs, consumer.size]).toEqual([2, 0])
  })

  it('must be running', async () => {
    const { pool } = poolFixture()
    for (const act of [() => pool.pause(), () => pool.resume()]) expect(act).toThrow(wrongState)
    await pool.start()
    await pool.drain(AT_ONCE)
    for (const act of [() => pool.pause(), () => pool.resume()]) expect(act).toThrow(wrongState)
    expect(pool.status()).toMatchObject({
      paused: false,
      notReady: "the pool for queue 'test' is not running: stopped",
    })
  })
})

describe('a pool that is resized', () => {
  const numbers = ({ pool }: ReturnType<typeof poolFixture>) => pool.slots().map(({ slot }) => slot)

  it('to more slots has new ones at once, with new numbers', async () => {
    const fixture = await started()
    const { pool, consumer, give, clock } = fixture
    pool.stopSlot(2, 'wait')
    pool.resize(4)
    expect([numbers(fixture), pool.size(), consumer.size]).toEqual([[1, 3, 4, 5], 4, 4])
    const given = Array.from({ length: 5 }, () => give())
    await clock.advance(0)
    expect([pool.busy(), given.map(({ released }) => released)]).toEqual([4, [false, false, false, false, true]])
  })

  it('to fewer slots stops idle ones first and busy ones after their task, which leave the status at the next resize', async () => {
    const fixture = await started({ concurrency: 4 })
    const { pool, consumer, give, calls, clock, states } = fixture
    const given = [give(), give()]
    await clock.advance(0)
    pool.resize(1)
    expect([pool.size(), consumer.size, pool.busy(), pool.slots().length]).toEqual([1, 1, 2, 2])
    expect(states().sort()).toEqual(['TERMINATING_STOP_SIGNAL', 'WORKING'])
    expect(calls.map((call) => call.abortReason())).toEqual([undefined, undefined])
    for (const { finish } of calls) finish()
    await Promise.all(given.map(({ settled }) => settled))
    expect(given.map(({ result }) => result?.verdict.kind)).toEqual(['completed', 'completed'])
    expect(states().sort()).toEqual(['IDLE', 'TERMINATED'])
    pool.resize(1)
    expect(states()).toEqual(['IDLE'])
  })

  it('back and forth a thousand times leaves no slot and no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
    const before = timers()
    const clock = clockFrom({
      now: Date.now,
      monotonic: () => performance.now(),
      setTimeout,
      clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    })
    const { pool, give, calls } = await started({ clock, concurrency: 1 })
    for (let i = 0; i < 1_000; i++) {
      pool.resize(3)
      const given = [give('test.long', { timeoutMs: 60_000 }), give('test.long', { timeoutMs: 60_000 })]
      pool.resize(1)
      for (const { finish } of calls.splice(0)) finish()
      await Promise.all(given.map(({ settled }) => settled))
    }
    pool.resize(1)
    expect([pool.slots().length, pool.size(), pool.busy()]).toEqual([1, 1, 0])
    expect(timers() - before).toBeLessThanOrEqual(1)
    await pool.drain(AT_ONCE)
    expect(timers()).toBe(before)
  })

  it('while its consumer is down starts the new slots with the others', async () => {
    const { pool, consumer, clock, states } = await started({ concurrency: 1 })
    consumer.fail()
    await clock.advance(0)
    pool.resize(2)
    expect(states()).toEqual(['RECOVER_ERR', 'NEW'])
    await clock.advance(500)
    expect([states(), consumer.size]).toEqual([['IDLE', 'IDLE'], 2])
  })

  it('before its start begins with that many slots', async () => {
    const { pool, consumer, states } = poolFixture()
    pool.resize(3)
    await pool.start()
    expect([states(), consumer.size]).toEqual([['IDLE', 'IDLE', 'IDLE'], 3])
  })

  it('gets slots again after all have been stopped', async () => {
    const { pool, consumer } = await started({ concurrency: 1 })
    pool.stopSlot(1, 'wait')
    pool.resize(1)
    expect([pool.notReady(), consumer.size, pool.slots()]).toMatchObject([undefined, 1, [{ slot: 2, state: 'IDLE' }]])
  })

  it('to an invalid number, or while it ends, is a typed error', async () => {
    const { pool } = await started()
    for (const size of [0, 1.5, 10_001, Number.NaN]) {
      expect(() => pool.resize(size)).toThrow(expect.objectContaining({ code: 'invalid_configuration' }))
    }
    await pool.drain(AT_ONCE)
    expect(() => pool.resize(2)).toThrow(wrongState)
  })
})

describe('the status of a pool', () => {
  it('shows what it does, and when the run timeout of a long task passes', async () => {
    const { pool, give, clock } = await started({ concurrency: 3 })
    const [long, short, endless] = [give('test.long'), give('test.short'), give('test.long', { timeoutMs: 'none' })]
    const began = clock.now()
    await clock.advance(10)
    const { slots, ...rest } = pool.status()
    expect(rest).toEqual({
      queue: 'test',
      state: 'BG_RUNNING',
      paused: false,
      concurrency: 3,
      busy: 3,
      stuckHandlers: 0,
      notReady: undefined,
    })
    const timeoutAt = ({ task }: { task: { id: string } }) =>
      slots.find((each) => each.task?.id === task.id)?.task?.timeoutAt
    expect([timeoutAt(long), timeoutAt(short), timeoutAt(endless)]).toEqual([began + TIMEOUT_MS, undefined, undefined])
  })
})
