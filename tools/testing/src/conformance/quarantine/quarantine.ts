// Tests that every broker quarantines tasks whose process has died, and that a pool on it runs them apart from other tasks.
import type { TaskEvent, TaskId } from '@bullpen/contract'
import type { Outcome } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { type Gathering, type Handle, long, short } from '../setup.ts'

import { childProcesses, killed, openQuarantine, returned } from './quarantine-setup.ts'

/** A handler whose tasks run until the test ends them, by number. */
function controlled() {
  const running = new Map<number, () => void>()
  const starts: number[] = []
  /** For each start, the tasks that were then running. */
  const beside: (readonly number[])[] = []
  let isOver = false
  const handle: Handle = ({ input: { n }, signal }) => {
    starts.push(n)
    beside.push([...running.keys()])
    if (isOver) return { n }
    return new Promise((resolve, reject) => {
      running.set(n, () => running.delete(n) && resolve({ n }))
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  }
  return {
    handle,
    starts,
    beside,
    running,
    end: (n: number) => running.get(n)?.(),
    /** Ends all tasks. Later ones end at once. */
    finish(): void {
      isOver = true
      for (const end of [...running.values()]) end()
    },
  }
}

export function quarantine(open: OpenBackend): void {
  it('tasks whose worker died run when no other attempt is running, and nothing else starts before they have ended', async () => {
    const { handle, running, end } = controlled()
    const { enqueue, start, settled, die } = await openQuarantine(open, { handle, concurrency: 3 })
    const lost = await Promise.all([1, 2, 3].map((n) => enqueue(long, { n })))
    await start('test:1')
    await eventually(() => running.size === 3)
    const pool = await start('test:2')
    const others = [await enqueue(long, { n: 4 })]
    await eventually(() => running.size === 4)
    for (const n of [1, 2, 3]) running.delete(n)
    await die('test:1', ...lost)
    await eventually(() => pool.status().notReady === 'the worker runs only quarantined tasks')
    others.push(await enqueue(short, { n: 5 }))
    expect([...running.keys()]).toEqual([4])
    end(4)
    const ended = new Set<number>()
    while (ended.size < 4) {
      await eventually(() => running.size > 0)
      const now = [...running.keys()]
      if (now.some((n) => n <= 3)) expect(now.filter((n) => n > 3)).toEqual([])
      for (const n of now) {
        ended.add(n)
        end(n)
      }
    }
    for (const id of [...lost, ...others])
      expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })

  it('tasks that have died once run together, at most eight, and a task that has died twice runs strictly alone', async () => {
    const { handle, running, starts, beside, end } = controlled()
    // However slowly the store returns the tasks, the second worker waits until eight of them have come.
    const eightCame = Promise.withResolvers<void>()
    let places = 0
    const gather: Gathering = {
      after(ms, wake) {
        let isCancelled = false
        const cancel = systemClock.after(ms, () => void eightCame.promise.then(() => isCancelled || wake()))
        return () => {
          isCancelled = true
          cancel()
        }
      },
      onPlace() {
        if (++places === 8) eightCame.resolve()
      },
    }
    const { enqueue, start, settled, die } = await openQuarantine(open, { handle, concurrency: 10, gather })
    const ids = await Promise.all(Array.from({ length: 10 }, (_, n) => enqueue(long, { n })))
    await start('test:1')
    await eventually(() => running.size === 10)
    running.clear()
    await die('test:1', ...ids)
    await start('test:2')
    await eventually(() => running.size === 8)
    const suspects = starts.slice(10, 18).map((n) => ids[n] ?? ('' as TaskId))
    running.clear()
    await die('test:2', ...suspects)
    await start('test:3')
    const first = starts.length
    const deadTwice = new Set(starts.slice(10, first))
    const ended = new Set<number>()
    while (ended.size < 10) {
      await eventually(() => running.size > 0)
      for (const n of running.keys()) {
        ended.add(n)
        end(n)
      }
    }
    for (const [i, n] of starts.slice(first).entries()) {
      const others = beside[first + i] ?? []
      if (deadTwice.has(n)) expect(others).toEqual([])
      expect(others.filter((each) => deadTwice.has(each))).toEqual([])
    }
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })

  it('a task that ends an attempt by itself is no longer quarantined', async () => {
    const { handle, running, end } = controlled()
    const failing: Handle = (context) => {
      if (context.input.n === 1 && context.fencingToken === 2) throw new Error('lived, but failed')
      return handle(context)
    }
    const { enqueue, start, settled, die } = await openQuarantine(open, { handle: failing })
    const suspect = await enqueue(long, { n: 1 })
    await start('test:1')
    await eventually(() => running.has(1))
    await die('test:1', suspect)
    running.clear()
    await start('test:2')
    await eventually(() => running.has(1))
    // The retry runs beside another task.
    const other = await enqueue(long, { n: 2 })
    await eventually(() => running.size === 2)
    end(1)
    end(2)
    expect(await settled(suspect)).toMatchObject({
      status: 'completed',
      fencingToken: 3,
      attemptsMade: 2,
      attempts: [
        { reason: 'process_lost', counted: false, attempt: 1 },
        { reason: 'unexpected_error', counted: true, attempt: 1 },
        { state: 'DONE_SUCCESS', attempt: 2 },
      ],
    })
    expect(await settled(other)).toMatchObject({ status: 'completed' })
  })

  it('a task that has killed three workers is dead as poison, and its handler is not called again', async () => {
    const { handle, starts, running } = controlled()
    const { enqueue, start, settled, die, lost, events } = await openQuarantine(open, { handle })
    const id = await enqueue(long, { n: 1 })
    for (let deaths = 1; deaths <= 3; deaths++) {
      const worker = `test:${deaths}`
      await start(worker)
      await eventually(() => running.has(1))
      running.clear()
      await die(worker, id)
      await lost(id, deaths)
    }
    await start('test:4')
    const record = await settled(id)
    expect(record).toMatchObject({ status: 'dead', fencingToken: 3, attemptsMade: 0 })
    expect(record?.attempts.map(({ fencingToken, reason, counted }) => [fencingToken, reason, counted])).toEqual([
      [1, 'process_lost', false],
      [2, 'process_lost', false],
      [3, 'process_lost', false],
      [0, 'poison', false],
    ])
    expect(starts).toHaveLength(3)
    const isEnd = (event: TaskEvent): boolean => event.event === 'attempt.ended' && event.id === id
    await eventually(() => events.some(isEnd))
    expect(events.filter(isEnd)).toMatchObject([{ verdict: 'dead', state: 'RECOVER_ERR', reason: 'poison' }])
  })

  it('a task that kills its child process in quarantine uses no attempt, and is dead as poison after three deaths', async () => {
    const { handle, running } = controlled()
    const isolator = childProcesses(async () => killed)
    const { enqueue, start, settled, die } = await openQuarantine(open, { handle, processes: { max: 8, isolator } })
    const id = await enqueue(short, { n: 1 })
    await start('test:1')
    await eventually(() => running.has(1))
    await die('test:1', id)
    await start('test:2')
    const record = await settled(id)
    expect(record).toMatchObject({ status: 'dead', fencingToken: 3, attemptsMade: 0 })
    expect(record?.attempts.map(({ reason, counted }) => [reason, counted])).toEqual([
      ['process_lost', false],
      ['isolate_died', false],
      ['isolate_died', false],
      ['poison', false],
    ])
  })

  it('quarantined tasks use all child processes, beside other tasks; the rest wait and hold no slot', async () => {
    const { handle, running, end } = controlled()
    const gates = new Map<TaskId, PromiseWithResolvers<Outcome>>()
    const isolator = childProcesses(({ id }) => {
      const gate = Promise.withResolvers<Outcome>()
      gates.set(id, gate)
      return gate.promise
    })
    const { enqueue, start, settled, die, find } = await openQuarantine(open, {
      handle,
      processes: { max: 2, isolator },
    })
    const suspects = [1, 2, 3, 4].map((n) => enqueue(long, { n }))
    const ids = await Promise.all(suspects)
    await start('test:1')
    await eventually(() => running.size === 4)
    running.clear()
    await die('test:1', ...ids)
    const pool = await start('test:2')
    await eventually(() => gates.size === 2)
    const other = await enqueue(long, { n: 5 })
    await eventually(() => running.has(5))
    expect(pool.busy()).toBe(3)
    const waiting = ids.filter((id) => !gates.has(id))
    for (const id of waiting) {
      await eventually(async () => (await find(id)).status === 'scheduled')
      expect(await find(id)).toMatchObject({ fencingToken: 1, attemptsMade: 0 })
    }
    // A task that waits for a place starts before a task that was enqueued earlier than its return.
    for (const gate of gates.values()) gate.resolve(returned(0))
    await eventually(() => gates.size === 4)
    for (const gate of gates.values()) gate.resolve(returned(0))
    end(5)
    for (const id of [...ids, other]) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })

  it('a task without a place returns to the head of the queue', async () => {
    const { handle, running, end, starts, finish } = controlled()
    const first = Promise.withResolvers<Outcome>()
    const inProcess: TaskId[] = []
    const isolator = childProcesses(({ id }) => {
      inProcess.push(id)
      return inProcess.length === 1 ? first.promise : Promise.resolve(returned(0))
    })
    const setup = await openQuarantine(open, { handle, concurrency: 2, processes: { max: 1, isolator } })
    const { enqueue, start, settled, die, find } = setup
    const ids = await Promise.all([1, 2].map((n) => enqueue(long, { n })))
    await start('test:1')
    await eventually(() => running.size === 2)
    running.clear()
    await die('test:1', ...ids)
    await start('test:2')
    await eventually(() => inProcess.length === 1)
    const waiting = ids.find((id) => !inProcess.includes(id)) ?? inProcess[0]
    if (waiting === undefined) throw new Error('no task runs in a process')
    await eventually(async () => (await find(waiting)).status === 'scheduled')
    const others = await Promise.all(Array.from({ length: 10 }, (_, i) => enqueue(long, { n: 3 + i })))
    await eventually(() => running.size === 1)
    first.resolve(returned(0))
    // Another task may get the slot before the waiting one is due.
    await eventually(() => inProcess.length === 2 || running.size === 2)
    await eventually(async () => inProcess.length === 2 || ((await find(waiting)).dueAt ?? 0) < Date.now())
    end(starts.at(-1) ?? 0)
    await eventually(() => inProcess.length === 2)
    expect(starts.slice(2).length).toBeLessThan(5)
    finish()
    for (const id of [...ids, ...others]) expect(await settled(id)).toMatchObject({ status: 'completed' })
  })

  it('the death of a worker is not a death of a task that runs in a child process of that worker', async () => {
    const { handle, running } = controlled()
    let deaths = 0
    const isolator = childProcesses(() => (deaths < 5 ? new Promise(() => {}) : Promise.resolve(returned(1))))
    const setup = await openQuarantine(open, { handle, processes: { max: 8, isolator } })
    const { enqueue, start, settled, die, lost, find } = setup
    const id = await enqueue(long, { n: 1 })
    await start('test:0')
    await eventually(() => running.has(1))
    for (; deaths < 5; deaths++) {
      await eventually(async () => {
        const { status, fencingToken } = await find(id)
        return status === 'active' && fencingToken === deaths + 1
      })
      await die(`test:${deaths}`, id)
      await lost(id, deaths + 1)
      await start(`test:${deaths + 1}`)
    }
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 6, attemptsMade: 1 })
  })

  it('a task that waits to run alone can be cancelled, and a drain returns it to its queue', async () => {
    const { handle, running, end } = controlled()
    const { enqueue, start, settled, die, find, broker } = await openQuarantine(open, { handle, concurrency: 2 })
    const ids = [await enqueue(long, { n: 1 }), await enqueue(long, { n: 2 })]
    await start('test:1')
    await eventually(() => running.size === 2)
    running.clear()
    const pool = await start('test:2')
    const busy = await enqueue(long, { n: 3 })
    await eventually(() => running.has(3))
    await die('test:1', ...ids)
    const held = await eventually(async () => {
      const found = await Promise.all(ids.map(find))
      return found.find(({ status, fencingToken }) => status === 'active' && fencingToken === 2)
    })
    await broker.cancel(held.id, { stoppable: true, by: 'me' })
    expect(await settled(held.id)).toMatchObject({ status: 'cancelled' })
    const other = ids.find((id) => id !== held.id) ?? held.id
    await eventually(async () => (await find(other)).status === 'active')
    const drained = pool.drain({ drainMs: 5_000, graceMs: 1_000 })
    // After the first task, the pool may rest and send this one back by itself. The drain then does not count it.
    const isBack = async () => ['waiting', 'scheduled'].includes((await find(other)).status)
    await eventually(isBack)
    end(3)
    expect(await drained).toMatchObject({ abandoned: [], unconfirmed: [] })
    expect(await settled(busy)).toMatchObject({ status: 'completed' })
    expect(await find(other)).toMatchObject({ fencingToken: 1, attemptsMade: 0 })
    expect(await isBack()).toBe(true)
  })
}
