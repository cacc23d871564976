// How a pool's Worker fills its slots: in how many calls, how soon the first handlers start, and what happens to the fetches that are under
// way when the Worker is paused, resized, closed or cut off.
import { setTimeout as sleep } from 'node:timers/promises'
import { amount } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { lockOwner } from '../../locks/stored-lock.fixture.ts'
import { farWorker } from './fetch-ahead.fixture.ts'

const ONE_WAY_MS = 100

it('the first handler starts before a second call has been answered, and few calls fill all slots', async () => {
  const { add, holdJobs, worker, log, count, started, redis, keys, lost } = await farWorker({
    slots: 40,
    oneWayMs: ONE_WAY_MS,
  })
  const end = holdJobs()
  await add(40)
  void worker.run()
  await started(40)
  expect(log.slice(0, 3)).toEqual(['call', 'reply', 'start'])
  // 1, 4, 16 and 19 tasks, of which a call fetches at most 16.
  expect([count('start'), count('call')]).toEqual([40, 5])
  const locks = await Promise.all(Array.from({ length: 40 }, (_, n) => lockOwner(redis, keys, `j${n}`)))
  expect(new Set(locks).size).toBe(40)
  expect([locks.includes(null), lost]).toEqual([false, []])
  end()
})

it('the handlers whose tasks have arrived start, although the first of the fetches is still under way', async () => {
  const { add, holdJobs, worker, started } = await farWorker({ slots: 40 })
  const end = holdJobs()
  const backend = worker.getBackend()
  const fetchJob = backend.moveToActive.bind(backend)
  const late = Promise.withResolvers<void>()
  let fetches = 0
  backend.moveToActive = async (...args) => {
    // The first five fetches find 1 and 4 tasks. The next one is the first of 16.
    if (++fetches === 6) await late.promise
    return fetchJob(...args)
  }
  await add(20)
  void worker.run()
  await started(20)
  late.resolve()
  end()
})

it('1,500 tasks fill 1,500 slots in about a hundred calls, and no lock is lost', async () => {
  const { add, holdJobs, worker, started, count, lost, places } = await farWorker({
    ...{ slots: 1_500, oneWayMs: ONE_WAY_MS, lockMs: 60_000 },
  })
  const end = holdJobs()
  await add(1_500)
  void worker.run()
  await started(1_500)
  expect(count('call')).toBeLessThan(150)
  expect([lost, await places()]).toEqual([[], [0, 1_500, 0]])
  end()
})

it('a lone task costs as many calls as with BullMQ’s loop', async () => {
  const callsOf = async (isPlain: boolean): Promise<number> => {
    const { add, worker, places, count, log } = await farWorker({ slots: 40, isPlain })
    void worker.run()
    const isIdle = () => worker['waiting'] !== null && log.at(-1) !== 'call'
    await eventually(isIdle)
    log.length = 0
    await add(1)
    await eventually(async () => (await places())[2] === 1 && isIdle())
    return count('call')
  }
  expect(await callsOf(false)).toBeLessThanOrEqual(await callsOf(true))
})

it('what is under way when the Worker is paused still starts, and nothing more is fetched until it resumes', async () => {
  const { add, worker, sent, places } = await farWorker({ slots: 40, oneWayMs: ONE_WAY_MS })
  await add(40)
  const third = sent(3)
  void worker.run()
  await third
  await worker.pause(true)
  await eventually(() => !worker.isRunning())
  const [waiting, active, completed] = await places()
  expect([waiting > 0, active, waiting + completed]).toEqual([true, 0, 40])
  void worker.resume()
  await eventually(async () => (await places())[2] === 40)
})

it('what is under way when the Worker closes still starts and ends', async () => {
  const { add, worker, sent, places, count } = await farWorker({ slots: 40, oneWayMs: ONE_WAY_MS })
  await add(40)
  const third = sent(3)
  void worker.run()
  await third
  await worker.close()
  const [waiting, active, completed] = await places()
  expect([waiting > 0, active, waiting + completed]).toEqual([true, 0, 40])
  expect(count('start')).toBe(completed)
})

it('a Worker that is resized while fetches are under way keeps to its new size from then on', async () => {
  const { add, worker, sent, places, onStart } = await farWorker({ slots: 40, oneWayMs: 5 })
  let running = 0
  const most: number[] = []
  onStart(async () => {
    most.push(++running)
    await sleep(1)
    running--
  })
  await add(200)
  const third = sent(3)
  void worker.run()
  await third
  worker.concurrency = 2
  await eventually(async () => (await places())[2] === 200)
  expect(Math.max(...most)).toBeLessThanOrEqual(40)
  expect(Math.max(...most.slice(-100))).toBeLessThanOrEqual(2)
})

it('fetches whose connection is lost are sent again, and each task runs once', async () => {
  const { add, worker, sent, places, count, proxy } = await farWorker({ slots: 40, oneWayMs: ONE_WAY_MS })
  await add(40)
  const third = sent(3)
  void worker.run()
  await third
  proxy.reset()
  await eventually(async () => (await places())[2] === 40)
  expect([count('start'), await places()]).toEqual([40, [0, 0, 40]])
})

it('no more tasks start than a rate limit permits, and the others start when it permits them', async () => {
  const { add, worker, places, queue } = await farWorker({ slots: 40 })
  await queue.setGlobalRateLimit(5, 3_600_000)
  await add(40)
  void worker.run()
  await eventually(async () => (await places())[2] === 5 && worker['limitUntil'] > 0)
  expect(await places()).toEqual([35, 0, 5])
  await queue.setGlobalRateLimit(1_000, 3_600_000)
  await eventually(async () => (await places())[2] === 40)
})

it('a paused queue starts nothing, and everything once it is resumed', async () => {
  const { add, worker, places, queue, count } = await farWorker({ slots: 40 })
  await queue.pause()
  await add(40)
  // The Worker fetches at once.
  worker['drained'] = false
  void worker.run()
  await eventually(() => count('reply') > 0 && worker['waiting'] !== null)
  expect(await places()).toEqual([40, 0, 0])
  await queue.resume()
  await eventually(async () => (await places())[2] === 40)
})

it('a Worker with candidates starts each of them once, and no other task', async () => {
  const free = new Set(Array.from({ length: 30 }, (_, n) => `j${n}`))
  const candidates = {
    next: () => [...free] as never,
    fetched: (id: string) => void free.delete(id),
    // A wait that ended at once would keep BullMQ's loop from letting the event loop turn.
    ...{ returned() {}, noneWaits: () => sleep(5, true), stop() {} },
  }
  const { add, worker, places, onStart, count } = await farWorker({ slots: 40, oneWayMs: 10, candidates })
  onStart(async ({ id = '' }) => candidates.fetched(id))
  await add(40)
  void worker.run()
  await eventually(async () => (await places())[2] === 30)
  expect([count('start'), await places()]).toEqual([30, [10, 0, 30]])
})

it('whatever is added, paused, resized and cut off while fetches are under way, every task runs once', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), jobs: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ do: fc.constant('resize' as const), to: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const, 'reset' as const, 'turn' as const) }),
  )
  const program = fc.array(step, { minLength: 5, maxLength: 25, size: 'max' })
  const play = async (steps: typeof program extends fc.Arbitrary<infer T> ? T : never): Promise<void> => {
    const { queue, worker, proxy, places, onStart } = await farWorker({ slots: 10, oneWayMs: 2 })
    const ran: unknown[] = []
    onStart(async ({ id }) => void ran.push(id))
    void worker.run()
    let added = 0
    for (const each of steps) {
      if (each.do === 'add')
        await queue.addBulk(Array.from({ length: each.jobs }, () => ({ name: 'x', data: { n: added++ } })))
      else if (each.do === 'resize') worker.concurrency = each.to
      else if (each.do === 'pause') void worker.pause(true)
      else if (each.do === 'resume') void worker.resume()
      else if (each.do === 'reset') proxy.reset()
      else await sleep(3)
    }
    void worker.resume()
    await eventually(async () => (await places())[2] === added)
    expect(await places()).toEqual([0, 0, added])
    expect(new Set(ran).size).toBe(added)
    expect(ran.length).toBe(added)
  }
  await fc.assert(fc.asyncProperty(program, play), { numRuns: amount({ small: 15, full: 200 }), endOnFailure: true })
})
