// Tests on every broker what the events of a group's members say, and what a reader of a group's events receives.
import { type GroupId, TaskError, type TaskId } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import { createEventFeeds, type GroupItem, openGroupStream, STREAM_START } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, gate, long, QUEUE } from '../setup.ts'
import { openGroups } from './groups-setup.ts'

export function groupEvents(open: OpenBackend): void {
  it('every event of a member names its group and its number, whichever way the member ends', async () => {
    const hold = gate()
    const {
      backend,
      broker,
      create,
      groupOf,
      start,
      enqueue,
      groups: all,
      ended,
    } = await openGroups(open, {
      async handle(context) {
        const { attempt, input, log, progress } = context
        if (input.n === 13) throw new TaskError('unlucky', 'thirteen', { retryable: false })
        if (input.n !== 1) return hold.handle(context)
        log.info('working')
        await progress(0.5)
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
    })
    const other = await enqueue(long, { n: 1 })
    const tasks = [
      create(long, { n: 1 }),
      create(long, { n: 13 }),
      create(long, { n: 2 }, { queueTimeout: '10ms' }),
      create(long, { n: 3 }),
      create(long, { n: 4 }, { delay: '1h' }),
    ]
    const { id, ids } = await groupOf(tasks)
    await eventually(async () => (await typesOf(broker, ids[2] as TaskId)).at(-1) === 'ended')
    await start('dies:1')
    await hold.holds(1)
    await eventually(async () => (await typesOf(broker, ids[3] as TaskId)).includes('started'))
    for (const each of [other, ids[0], ids[1]]) {
      await eventually(async () => (await typesOf(broker, each as TaskId)).at(-1) === 'ended')
    }
    await backend.kill('dies:1', [ids[3] as TaskId])
    await eventually(async () => (await typesOf(broker, ids[3] as TaskId)).includes('requeued'))
    await all.cancel(id, 'ann')
    await ended(id)
    await broker.retry(ids[1] as TaskId, { request: 'r', by: 'ann' })
    const stored = (await broker.events(QUEUE).read(STREAM_START, 1_000)).events
    for (const { taskId, body } of stored) {
      const member = ids.indexOf(taskId)
      expect([taskId, body.type, body.group]).toEqual([taskId, body.type, member < 0 ? undefined : { id, member }])
    }
    expect(stored.some(({ taskId }) => taskId === other)).toBe(true)
    const typesOfMembers = await Promise.all(ids.map((each) => typesOf(broker, each)))
    expect(typesOfMembers).toEqual([
      ['enqueued', 'started', 'log', 'progress', 'retrying', 'started', 'log', 'progress', 'ended'],
      ['enqueued', 'started', 'ended', 'retry_requested'],
      ['enqueued', 'ended'],
      ['enqueued', 'started', 'requeued', 'ended'],
      ['enqueued', 'ended'],
    ])
  })

  it('a new reader receives everything since the creation of the group, in further queues too, and then the end', async () => {
    const { broker, create, createGroup, longs, add, start, groups: all } = await openGroups(open)
    await start()
    const id = await createGroup()
    const { ids } = await add(id, longs(1, 13))
    await eventually(async () => (await all.find(id))?.ends.dead === 1)
    const reader = await read(broker, id)
    await eventually(() => reader.items.length === 6)
    const later = await add(id, [create(after, { n: 1 })])
    await eventually(() => reader.items.length === 7)
    await all.cancel(id, 'ann')
    await reader.done
    const { items } = reader
    expect(items.at(-1)).toMatchObject({ kind: 'ended', group: { state: 'ended', count: 3, queues: [QUEUE, AFTER] } })
    for (const each of ids) expect(eventsOf(items, each)).toEqual(['enqueued', 'started', 'ended'])
    expect(eventsOf(items, later.ids[0] as TaskId)).toEqual(['enqueued', 'ended'])
    expect(items).toHaveLength(9)
  })

  it('a reader that resumes after any item receives exactly what followed it', async () => {
    const { broker, create, groupOf, longs, start, groups: all, ended } = await openGroups(open)
    await start()
    const { id } = await groupOf([...longs(1, 2, 3), create(after, { n: 4 })])
    await eventually(async () => (await all.find(id))?.ends.completed === 3)
    await all.cancel(id, 'ann')
    await ended(id)
    const whole = await read(broker, id)
    await whole.done
    expect(whole.items.map(({ kind }) => kind)).toEqual([...Array(11).fill('event'), 'ended'])
    for (const [i, { cursor }] of whole.items.slice(0, -1).entries()) {
      const resumed = await read(broker, id, cursor)
      await resumed.done
      const seen = [...whole.items.slice(0, i + 1), ...resumed.items].map(keyOf)
      expect(seen.toSorted()).toEqual(whole.items.map(keyOf).toSorted())
    }
  })

  it('a reader whose position is no longer kept receives a gap, a snapshot and what is kept, and a new one begins with the snapshot', async () => {
    const { broker, create, createGroup, add, groups: all } = await openGroups(open)
    const id = await createGroup()
    await add(id, [create(long, { n: 0 })])
    const first = await read(broker, id)
    await eventually(() => first.items.length === 1)
    first.stop()
    const tasks = Array.from({ length: 500 }, () => ({ ...create(long, {}), events: 100 }))
    for (const from of [0, 200, 400]) await broker.enqueueAll(tasks.slice(from, from + 200))
    await add(id, [create(long, { n: 1 })])
    const kept = [
      { kind: 'snapshot', group: { id, count: 2 } },
      { kind: 'event', event: { body: { type: 'enqueued', group: { member: 1 } } } },
    ]
    const gap = { kind: 'gap', from: first.items[0]?.cursor }
    const cases = [
      [first.items[0]?.cursor, [gap, ...kept]],
      [undefined, kept],
    ] as const
    for (const [cursor, expected] of cases) {
      const reader = await read(broker, id, cursor)
      await eventually(() => reader.items.length === expected.length)
      expect(reader.items).toMatchObject(expected)
      reader.stop()
    }
    await all.cancel(id, 'ann')
  })

  it('a group without members has a stream, and a group that does not exist has none', async () => {
    const { broker, createGroup, groups: all } = await openGroups(open)
    const id = await createGroup()
    const reader = await read(broker, id)
    await all.seal(id)
    await reader.done
    expect(reader.items).toMatchObject([{ kind: 'ended', cursor: '', group: { ended: { result: 'completed' } } }])
    const unknown = `group-${'0'.repeat(26)}` as GroupId
    await expect(read(broker, unknown)).rejects.toMatchObject({ code: 'group_not_found' })
    await expect(read(broker, id, 'seven')).rejects.toMatchObject({ code: 'invalid_cursor' })
  })
}

/** Reads a group's stream until it ends, or until `stop`. */
async function read(broker: Broker, id: GroupId, position?: string) {
  const feeds = createEventFeeds({
    stream: (queue) => broker.events(queue),
    limit: () => 10_000,
    after: systemClock.after,
  })
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const options = { id, after: position, signal: controller.signal, queues: [QUEUE, AFTER] }
  const stream = await openGroupStream({ feeds, broker }, options).catch((error: unknown) => {
    feeds.close()
    throw error
  })
  const items: GroupItem[] = []
  const done = (async () => {
    for await (const item of stream) if (item.kind !== 'position') items.push(item)
    feeds.close()
  })()
  return { items, done, stop: () => controller.abort() }
}

function eventsOf(items: readonly GroupItem[], id: TaskId): readonly string[] {
  return items.flatMap((item) => (item.kind === 'event' && item.event.taskId === id ? [item.event.body.type] : []))
}

function keyOf(item: GroupItem): string {
  return item.kind === 'event' ? `${item.queue} ${item.event.id}` : item.kind
}

async function typesOf(broker: Broker, id: TaskId): Promise<readonly string[]> {
  const all = (await broker.events(QUEUE).read(STREAM_START, 10_000)).events
  return all.flatMap(({ taskId, body }) => (taskId === id ? [body.type] : []))
}
