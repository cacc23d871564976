// Tests which calls have spans, and what is stored with their tasks, with tracing that records its calls.
import { BullpenError, defineTask, type GroupId, type RunId, type TaskId } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Broker } from '../ports/broker/broker.ts'
import type { NewMembers } from '../ports/broker/groups.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { NewRun } from '../ports/broker/runs.ts'
import type { EnqueueEnd, TracedEnqueue } from '../ports/tracing.ts'
import { newTask } from '../task/new-task.ts'
import { tracedBroker } from './traced-broker.ts'

const OF_CALLER = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
const OF_SPAN = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01' }

const define = (name: `letter.${string}`, queue: string) => defineTask({ name, queue, input: z.object({}) })
const [mail, print] = [define('letter.mail', 'mail'), define('letter.print', 'print')]
const create = (definition: typeof mail, id = 'mail-1'): NewTask =>
  newTask(definition, {}, {}, { id: id as TaskId, enqueuedAt: 0, correlationId: 'c-1', traceContext: OF_CALLER })
const { id: _, enqueuedAt: _at, expiresAt: _expires, ...template } = create(print)
const followUp = { ...template, expiresInMs: undefined }

const full = new BullpenError('queue_full', "queue 'mail' is full")

/** Opens a broker that stores nothing and refuses the task `full`. */
function openTraced() {
  const spans: { enqueue: TracedEnqueue; ends: EnqueueEnd[] }[] = []
  const stored: NewTask[] = []
  let isInSpan = false
  const store = async (task: NewTask) => {
    expect(isInSpan).toBe(true)
    if (task.id === 'full') throw full
    stored.push(task)
    return { id: task.id, action: 'created' as const }
  }
  const ids = async (tasks: readonly NewTask[]) => (await Promise.all(tasks.map(store))).map(({ id }) => id)
  const broker = {
    enqueue: store,
    enqueueBulk: (tasks) => Promise.allSettled(tasks.map(store)),
    enqueueAll: (tasks) => Promise.all(tasks.map(store)),
    // Of groups and runs, only the calls that enqueue tasks are traced. The others are never called here.
    groups: {
      add: async (_: GroupId, { tasks }: NewMembers) => ({ start: 0, ids: await ids(tasks) }),
    } as unknown as Broker['groups'],
    runs: {
      async start({ tasks }: NewRun) {
        await ids(tasks)
        return { run: {}, isNew: false }
      },
    } as unknown as Broker['runs'],
  } satisfies Partial<Broker>
  const tracing = {
    current: () => undefined,
    startEnqueue(enqueue: TracedEnqueue) {
      const span = { enqueue, ends: [] as EnqueueEnd[] }
      spans.push(span)
      return {
        traceContext: OF_SPAN,
        run<T>(call: () => T): T {
          isInSpan = true
          try {
            return call()
          } finally {
            isInSpan = false
          }
        },
        end: (end: EnqueueEnd) => void span.ends.push(end),
      }
    },
  }
  return { broker, traced: tracedBroker(broker, tracing), spans, stored }
}

/** Returns what a span describes, if it belongs to the caller's trace. */
const described = (fields: Partial<TracedEnqueue>) => ({
  ...{ queue: undefined, task: undefined, id: undefined, count: undefined, correlationId: 'c-1' },
  ...{ group: undefined, run: undefined, retryOf: undefined, traceContext: OF_CALLER },
  ...fields,
})
const ofMail = { queue: 'mail', task: 'letter.mail' }

describe('a traced broker', () => {
  it('stores a task and all of its follow-ups with the trace context of the span', async () => {
    const { traced, spans, stored } = openTraced()
    const nested = { ...followUp, followUps: [{ on: 'end' as const, task: followUp }] }
    await traced.enqueue({ ...create(mail), followUps: [{ on: 'success', task: nested }] })
    const inner = { traceContext: OF_SPAN, followUps: [{ on: 'end', task: { traceContext: OF_SPAN } }] }
    expect(stored).toMatchObject([{ traceContext: OF_SPAN, followUps: [{ on: 'success', task: inner }] }])
    const ends = [{ id: 'mail-1', action: 'created' }]
    expect(spans).toEqual([{ enqueue: described({ ...ofMail, id: 'mail-1' as TaskId }), ends }])
  })

  it('ends the span of a call that fails, with its error', async () => {
    const { traced, spans } = openTraced()
    await expect(traced.enqueue(create(mail, 'full'))).rejects.toBe(full)
    expect(spans).toMatchObject([{ ends: [{ error: full }] }])
  })

  it('has one span for a bulk call, which says how many tasks were not stored', async () => {
    const { traced, spans, stored } = openTraced()
    await traced.enqueueBulk([create(mail), create(print, 'print-1'), create(mail, 'full')])
    await traced.enqueueAll([create(mail), create(mail, 'mail-2')])
    expect(spans).toEqual([
      { enqueue: described({ count: 3 }), ends: [{ error: full, failed: 1 }] },
      { enqueue: described({ ...ofMail, count: 2 }), ends: [{}] },
    ])
    expect(stored.map(({ traceContext }) => traceContext)).toEqual([OF_SPAN, OF_SPAN, OF_SPAN, OF_SPAN])
  })

  it('has no span for a call without tasks', async () => {
    const { traced, spans } = openTraced()
    expect(await traced.enqueueBulk([])).toEqual([])
    expect(await traced.enqueueAll([])).toEqual([])
    await traced.groups.add('g' as GroupId, { key: 'k', digest: 'd', tasks: [], seal: true })
    expect(spans).toEqual([])
  })

  it('has one span for the members that a call adds to a group', async () => {
    const { traced, spans, stored } = openTraced()
    const tasks = [create(mail), create(mail, 'mail-2')]
    await traced.groups.add('g' as GroupId, { key: 'k', digest: 'd', tasks, seal: true })
    expect(spans).toEqual([{ enqueue: described({ ...ofMail, count: 2, group: 'g' as GroupId }), ends: [{}] }])
    expect(stored.map(({ traceContext }) => traceContext)).toEqual([OF_SPAN, OF_SPAN])
  })

  it('has one span for the start of a run, whose tasks all belong to it', async () => {
    const { traced, spans, stored } = openTraced()
    const settings = { id: 'r' as RunId, source: { queue: 'mail', task: 'letter.mail' } }
    // The other settings of a run have no part in its span.
    await traced.runs.start({ settings, tasks: [create(mail), create(print)] } as unknown as NewRun)
    expect(spans).toEqual([{ enqueue: described({ ...ofMail, run: 'r' as RunId }), ends: [{ action: 'existing' }] }])
    expect(stored.map(({ traceContext }) => traceContext)).toEqual([OF_SPAN, OF_SPAN])
  })

  it('is the broker itself if calls have no spans, so that enqueueing costs nothing more', () => {
    const { broker } = openTraced()
    expect(tracedBroker(broker, undefined)).toBe(broker)
    expect(tracedBroker(broker, { current: () => OF_CALLER })).toBe(broker)
  })
})
