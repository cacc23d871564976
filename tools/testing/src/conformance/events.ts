// Tests the events of tasks: what they say, their order, how many of them are kept, and which tasks have none.
import { TaskError, type TaskId } from '@bullpen/contract'
import { type EventBody, MAX_LOG_EVENTS } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { compareEventIds, STREAM_START, type StoredEvent } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, loud, openSetup, QUEUE, short } from './setup.ts'

export function events(open: OpenBackend): void {
  it('the events of a task say what happened to it, in order', async () => {
    const { broker, enqueue, start, settled } = await openSetup(open, {
      async handle({ attempt, log, progress, input }) {
        log.info({ attempt }, 'working')
        await progress(0.5, 'half')
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
    })
    const id = await enqueue(long, { n: 1 }, { tags: ['a', 'b'] })
    await start('worker:1')
    expect(await settled(id)).toMatchObject({ status: 'completed' })
    const all = await eventsOf(broker, id)
    const [first, second] = [1, 2].map((attempt) => ({ attempt, fencingToken: attempt }))
    expect(all).toEqual(
      [
        { type: 'enqueued' },
        { type: 'started', ...first, worker: 'worker:1' },
        { type: 'log', ...first, line: 1, level: 'info', message: 'working', fields: { attempt: 1 } },
        { type: 'progress', ...first, fraction: 0.5, note: 'half' },
        {
          type: 'retrying',
          ...first,
          outcome: 'failed',
          error: { code: 'busy', message: 'not now' },
          dueAt: expect.any(Number),
        },
        { type: 'started', ...second, worker: 'worker:1' },
        { type: 'log', ...second, line: 1, level: 'info', message: 'working', fields: { attempt: 2 } },
        { type: 'progress', ...second, fraction: 0.5, note: 'half' },
        { type: 'ended', ...second, outcome: 'succeeded', status: 'completed' },
      ].map((event) => ({ task: long.name, tags: ['a', 'b'], ...event })),
    )
  })

  it('a running task reports its progress and its log lines while it runs', async () => {
    const opened = Promise.withResolvers<void>()
    const { broker, enqueue, start, settled } = await openSetup(open, {
      async handle({ log, progress, input }) {
        log.warn('waiting')
        await progress(0.1)
        await opened.promise
        return input
      },
    })
    const id = await enqueue(long, {})
    await start()
    await eventually(async () => (await typesOf(broker, id)).join() === 'enqueued,started,log,progress')
    opened.resolve()
    await settled(id)
    expect(await typesOf(broker, id)).toEqual(['enqueued', 'started', 'log', 'progress', 'ended'])
  })

  it('a short task has events only if its definition asks for them', async () => {
    const { broker, enqueue, start, settled } = await openSetup(open)
    const ids = [await enqueue(short, {}), await enqueue(loud, {})]
    await start()
    for (const id of ids) await settled(id)
    expect(await Promise.all(ids.map((id) => typesOf(broker, id)))).toEqual([[], ['enqueued', 'started', 'ended']])
  })

  it('a delayed task is enqueued with the time at which it is due', async () => {
    const { broker, create, enqueueTask } = await openSetup(open)
    const task = create(long, {}, { delay: '1h' })
    const id = await enqueueTask(task)
    expect(await eventsOf(broker, id)).toEqual([
      { type: 'enqueued', task: long.name, dueAt: task.enqueuedAt + 3_600_000 },
    ])
  })

  it('a task that is enqueued twice has one event', async () => {
    const { broker, create, enqueueTask } = await openSetup(open)
    const task = { ...create(long, {}), caller: { token: 'mine' } }
    const id = await enqueueTask(task)
    await enqueueTask({ ...task, isRepeat: true })
    expect(await typesOf(broker, id)).toEqual(['enqueued'])
  })

  it('all tasks of an atomic call have events', async () => {
    const { broker, create } = await openSetup(open)
    const tasks = [create(long, {}), create(short, {}), create(long, {}, { delay: '1h' })]
    await broker.enqueueAll(tasks)
    expect(await Promise.all(tasks.map(({ id }) => typesOf(broker, id)))).toEqual([['enqueued'], [], ['enqueued']])
  })

  it('a task that is cancelled before it starts ends with who cancelled it', async () => {
    const { broker, enqueue } = await openSetup(open)
    const id = await enqueue(long, {}, { tags: ['x'] })
    await broker.cancel(id, { stoppable: true, by: 'ann' })
    await broker.cancel(id, { stoppable: true, by: 'bob' })
    expect(await eventsOf(broker, id)).toMatchObject([
      { type: 'enqueued' },
      {
        type: 'ended',
        tags: ['x'],
        status: 'cancelled',
        outcome: 'cancelled',
        error: { code: 'cancelled' },
        by: 'ann',
      },
    ])
  })

  it('a task that is cancelled while it runs ends once', async () => {
    const { handle, holds } = gate()
    const { broker, enqueue, start, settled } = await openSetup(open, { handle })
    const id = await enqueue(long, {})
    await start()
    await holds(1)
    await broker.cancel(id, { stoppable: true, by: 'ann' })
    await settled(id)
    expect(await typesOf(broker, id)).toEqual(['enqueued', 'started', 'ended'])
    expect((await eventsOf(broker, id)).at(-1)).toMatchObject({ status: 'cancelled', outcome: 'cancelled', by: 'ann' })
  })

  it('a task that expires ends', async () => {
    const { broker, enqueue, settled } = await openSetup(open, { locks: 'quick' })
    const id = await enqueue(long, {}, { queueTimeout: '10ms' })
    await settled(id)
    expect(await eventsOf(broker, id)).toMatchObject([
      { type: 'enqueued' },
      { type: 'ended', status: 'expired', outcome: 'timed out', error: { code: 'queue_timeout' } },
    ])
  })

  it('a dead task that is retried by request goes on', async () => {
    let attempts = 0
    const { broker, enqueue, start, settled } = await openSetup(open, {
      handle({ input }) {
        attempts++
        if (attempts === 1) throw new TaskError('broken', 'for good', { retryable: false })
        return input
      },
    })
    const id = await enqueue(long, {})
    await start()
    expect(await settled(id)).toMatchObject({ status: 'dead' })
    await broker.retry(id, { request: 'r-1', by: 'ann' })
    await broker.retry(id, { request: 'r-1', by: 'ann' })
    await settled(id)
    expect(await typesOf(broker, id)).toEqual(['enqueued', 'started', 'ended', 'retry_requested', 'started', 'ended'])
  })

  it('a task whose attempt is snoozed, and one that is drained, are requeued', async () => {
    const { broker, enqueue, start, settled } = await openSetup(open, {
      handle({ fencingToken, snooze, input }) {
        return fencingToken === 1 ? snooze('20ms') : input
      },
    })
    const id = await enqueue(long, {})
    await start()
    await settled(id)
    expect(await eventsOf(broker, id)).toMatchObject([
      { type: 'enqueued' },
      { type: 'started', fencingToken: 1 },
      { type: 'requeued', attempt: 1, outcome: 'interrupted', error: { code: 'snoozed' }, dueAt: expect.any(Number) },
      { type: 'started', fencingToken: 2 },
      { type: 'ended', status: 'completed' },
    ])
  })

  it('a task whose worker is lost is requeued, and what the lost attempt reports later is dropped', async () => {
    const { handle, holds } = gate()
    const { backend, broker, enqueue, start } = await openSetup(open, { handle, locks: 'quick' })
    const id = await enqueue(long, {})
    await start('dies:1')
    await holds(1)
    await eventually(async () => (await typesOf(broker, id)).includes('started'))
    await backend.kill('dies:1', [id])
    await eventually(async () => (await typesOf(broker, id)).length === 3)
    expect((await eventsOf(broker, id)).at(-1)).toMatchObject({
      type: 'requeued',
      attempt: 1,
      fencingToken: 1,
      outcome: 'panicked',
      error: { code: 'process_lost' },
    })
  })

  it(`only the first ${MAX_LOG_EVENTS} log lines of a task become events, over all of its attempts`, async () => {
    const { broker, enqueue, start, settled } = await openSetup(open, {
      handle({ attempt, log, input }) {
        for (let line = 0; line < 70; line++) log.info(`line ${line} of attempt ${attempt}`)
        log.debug('this line does not become an event')
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
    })
    const id = await enqueue(long, {})
    await start()
    await settled(id)
    const lines = (await eventsOf(broker, id)).filter(({ type }) => type === 'log')
    expect(lines).toHaveLength(MAX_LOG_EVENTS)
    expect(lines.filter((event) => 'attempt' in event && event.attempt === 1)).toHaveLength(70)
    expect((await typesOf(broker, id)).at(-1)).toBe('ended')
  })

  it('the stream drops its oldest events, and says so', async () => {
    const { broker, create } = await openSetup(open)
    const stream = broker.events(QUEUE)
    expect(await stream.bounds()).toEqual({ first: undefined, last: STREAM_START, isComplete: true })
    const tasks = Array.from({ length: 500 }, () => ({ ...create(long, {}), events: 100 }))
    await broker.enqueueAll(tasks.slice(0, 50))
    const before = await stream.bounds()
    expect(before).toMatchObject({ first: expect.any(String), isComplete: true })
    for (const from of [50, 200, 350]) await broker.enqueueAll(tasks.slice(from, from + 150))
    const after = await stream.bounds()
    expect(after.isComplete).toBe(false)
    expect(compareEventIds(after.first ?? '', before.first ?? '')).toBeGreaterThan(0)
    const kept = (await stream.read(STREAM_START, 1_000)).events
    expect(kept.length).toBeGreaterThanOrEqual(100)
    expect(kept.length).toBeLessThan(300)
    expect(kept.at(-1)?.id).toBe(after.last)
    expect(kept.map(({ taskId }) => taskId)).toEqual(tasks.slice(-kept.length).map(({ id }) => id))
  })

  it('a follower receives all events after its position once and in order, and none after it stops', async () => {
    const { broker, create, enqueueTask } = await openSetup(open)
    const stream = broker.events(QUEUE)
    await enqueueTask(create(long, {}))
    const { last } = await stream.bounds()
    const early = await enqueueTask(create(long, {}))
    const received: StoredEvent[] = []
    const onLost = (): never => expect.fail('nothing was lost')
    const stop = stream.follow(last, { onEvents: (events) => received.push(...events), onLost })
    const others: StoredEvent[] = []
    const stopOther = stream.follow(STREAM_START, { onEvents: (events) => others.push(...events), onLost })
    const later: TaskId[] = []
    for (let n = 0; n < 20; n++) later.push(await enqueueTask(create(long, {})))
    await eventually(() => received.length === 21 && others.length === 22)
    expect(received.map(({ taskId }) => taskId)).toEqual([early, ...later])
    expect(others.slice(1)).toEqual(received)
    expect(received.map(({ id }) => id)).toEqual(received.map(({ id }) => id).toSorted(compareEventIds))
    stop()
    await enqueueTask(create(long, {}))
    await eventually(() => others.length === 23)
    expect(received).toHaveLength(21)
    stopOther()
  })

  it('an unknown queue has no stream', async () => {
    const { broker } = await openSetup(open)
    expect(() => broker.events('elsewhere')).toThrow(expect.objectContaining({ code: 'queue_not_found' }))
  })
}

async function eventsOf(broker: Broker, id: TaskId): Promise<readonly EventBody[]> {
  const all = (await broker.events(QUEUE).read(STREAM_START, 10_000)).events
  return all.filter(({ taskId }) => taskId === id).map(({ body }) => body)
}

async function typesOf(broker: Broker, id: TaskId): Promise<readonly string[]> {
  return (await eventsOf(broker, id)).map(({ type }) => type)
}
