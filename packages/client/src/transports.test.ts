// Tests the client with each transport on a real Redis, with a worker: over HTTP through an API, and over Redis.
import { randomBytes, randomUUID } from 'node:crypto'
import {
  createGroupId,
  defineCatalogue,
  defineHandler,
  defineQueue,
  defineTask,
  followUp,
  type TaskContext,
  TaskError,
} from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createClient, ResultTimeoutError, type TaskClient, TaskEndedError } from './index.ts'
import { TRANSPORTS } from './transports.fixture.ts'

const double = defineTask({
  name: 'math.double',
  queue: 'math',
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
  retry: { maxAttempts: 1 },
})
const single = defineTask({
  name: 'single.task',
  queue: defineQueue({ name: 'single', limits: { maxTasks: 1 }, whenFull: { block: '20s' } }),
  input: z.object({}),
})
const sum = defineTask({ name: 'math.sum', queue: 'math', input: z.object({}) })
const catalogue = defineCatalogue(double, single, sum)

interface Needs {
  readonly client: TaskClient
  readonly sums: PromiseWithResolvers<unknown>
}

/** Reads the outputs of the members of the group that has enqueued it. */
async function readMembers({ group, followUpOf, resources: { client, sums } }: TaskContext<typeof sum, Needs>) {
  const outputs: unknown[] = []
  for await (const { output } of client.group(group?.id ?? '').results()) outputs.push(output)
  sums.resolve({ group, followUpOf, outputs })
}

const handlers = {
  'single.task': defineHandler(single, import.meta.url, async () => {}),
  'math.sum': defineHandler(sum, import.meta.url, readMembers),
  'math.double': defineHandler(double, import.meta.url, async ({ input: { n }, signal }) => {
    if (n < 0) throw new TaskError('negative', 'the number is negative')
    if (n > 1_000) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    return { n: 2 * n }
  }),
}

describe.each(TRANSPORTS)('a client over %s', (_, open) => {
  async function setup({ worker: hasWorker = true } = {}) {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    const client = createClient({ transport: await open(catalogue, namespace) })
    const sums = Promise.withResolvers<unknown>()
    onTestFinished(() => client.close())
    if (hasWorker) {
      const config = { redisUrl: inject('redisUrl'), namespace, port: 0, logLevel: 'silent' } as const
      const worker = createWorker({
        ...{ catalogue, handlers, config },
        resources: { client: { open: () => client }, sums: { open: () => sums } },
      })
      onTestFinished(async () => void (await worker.drain()))
      await worker.start()
    }
    return { ...client, sums: sums.promise }
  }

  test('enqueues a task with a follow-up, which runs when the task has ended', async () => {
    const client = await setup()
    const task = await client.enqueue(double, { n: 4 }, { onSuccess: [followUp(double, { n: 5 }, { tags: ['next'] })] })
    expect((await task.waitUntilFinished()).status).toBe('completed')
    const failed = await client.enqueue(double, { n: -1 }, { onSuccess: [followUp(double, { n: 6 })] })
    expect((await failed.waitUntilFinished()).followUps).toEqual([{ on: 'success', task: double.name, queue: 'math' }])
    const wrong = { onEnd: [followUp(double, { n: 'x' as never })] }
    await expect(client.enqueue(double, { n: 1 }, wrong)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  test('enqueues a task and gets its result', async () => {
    const client = await setup()
    const task = await client.enqueue(double, { n: 21 })
    expect(task).toMatchObject({ action: 'created', status: 'waiting', id: expect.stringMatching(/^math-/) })
    expect(await task.result({ timeout: '2m' })).toEqual({ n: 42 })
    expect(await client.result(double, task.id)).toEqual({ n: 42 })
    expect(await task.describe()).toMatchObject({ id: task.id, status: 'completed', output: { n: 42 } })
  })

  test('creates a group, adds members to it, waits for it and reads the results', async () => {
    const client = await setup()
    const group = await client.createGroup({ by: 'ann' })
    expect(await group.describe()).toMatchObject({ id: group.id, state: 'open', count: 0 })
    await group.add(double, [{ n: 1 }, { n: 2 }])
    const added = await group.addNamed([{ task: 'math.double', input: { n: 3 } }], { seal: true })
    expect(added).toMatchObject({ start: 2, count: 1 })
    const ended = await group.waitUntilEnded({ timeout: '30s' })
    expect(ended).toMatchObject({ state: 'ended', result: 'completed', progress: 1, statuses: { completed: 3 } })
    const outputs: unknown[] = []
    for await (const { member, output } of client.group(group.id).results({ from: 1 })) outputs.push([member, output])
    expect(outputs).toEqual([
      [1, { n: 4 }],
      [2, { n: 6 }],
    ])
    await expect(group.add(double, [{ n: 4 }])).rejects.toMatchObject({ code: 'group_ended', outcome: 'refused' })
  })

  test('adds more members than fit into one call, and cancels the group', async () => {
    const client = await setup()
    const group = await client.createGroup({ onError: 'cancel' })
    const inputs = Array.from({ length: 1_200 }, (_, n) => ({ n }))
    const added = await group.add(double, inputs, { seal: true, delay: '1h' })
    expect(added).toMatchObject({ start: 0, count: 1_200 })
    expect(new Set(added.ids).size).toBe(1_200)
    expect(await group.cancel({ by: 'ann' })).toMatchObject({ cancelReason: 'cancelled' })
    expect(await group.waitUntilEnded({ timeout: '15s' })).toMatchObject({
      result: 'cancelled',
      statuses: { cancelled: 1_200 },
    })
    const missing = client.group('group-01jd3v7n8q0000000000000000')
    await expect(missing.describe()).rejects.toMatchObject({ code: 'group_not_found' })
  })

  test('creates one group for calls with the same id, and refuses other settings and ids', async () => {
    const client = await setup({ worker: false })
    const id = createGroupId(Date.now(), randomBytes(10))
    const call = (onError: 'cancel' | 'continue', by: string) =>
      client.createGroup({ id, onError, by, onSuccess: [followUp(sum, {}, { tags: ['sums'], meta: { of: id } })] })
    const handles = await Promise.all(['ann', 'bob', 'ann'].map((by) => call('cancel', by)))
    expect(handles.map((handle) => handle.id)).toEqual([id, id, id])
    expect(await client.group(id).addNamed([{ task: 'single.task', input: {} }])).toMatchObject({ start: 0 })
    await call('cancel', 'ann')
    expect(await client.group(id).describe()).toMatchObject({ id, onError: 'cancel', count: 1 })
    for (const other of [call('continue', 'ann'), client.createGroup({ id })])
      await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused', outcome: 'refused' })
    for (const wrong of ['album-17', '', 'group-17', 'queue-00000000010000000000000000'])
      await expect(client.createGroup({ id: wrong }), wrong).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining('id: expected a group id such as'),
        outcome: 'refused',
      })
  })

  test("a group's follow-up reads the outputs of the members", async () => {
    const client = await setup()
    const id = createGroupId(Date.now(), randomBytes(10))
    const inputs = [{ n: 1 }, { n: 2 }, { n: 3 }]
    // A second attempt of the caller adds what the first has not.
    for (const most of [2, 3, 3]) {
      const group = await client.createGroup({ id, onSuccess: [followUp(sum, {})] })
      const { count } = await group.describe()
      await group.add(double, inputs.slice(count, most), { seal: most === 3 })
    }
    const outputs = [{ n: 2 }, { n: 4 }, { n: 6 }]
    expect(await client.sums).toEqual({ group: { id }, followUpOf: id, outputs })
  })

  test('a wait for a group that does not end in time rejects', async () => {
    const client = await setup({ worker: false })
    const group = await client.createGroup()
    await expect(group.waitUntilEnded({ timeout: '50ms' })).rejects.toThrow(ResultTimeoutError)
  })

  test('reports a task that ended without output', async () => {
    const client = await setup()
    const task = await client.enqueue(double, { n: -1 })
    const error = await task.result({ timeout: '2m' }).catch((caught) => caught)
    expect(error).toBeInstanceOf(TaskEndedError)
    expect(error).toMatchObject({ code: 'negative', task: { id: task.id, status: 'dead' } })
  })

  test('waits no longer than it was asked to, and cancels a running task', async () => {
    const client = await setup()
    const task = await client.enqueue(double, { n: 1_001 })
    const error = await task.result({ timeout: '50ms' }).catch((caught) => caught)
    expect(error).toBeInstanceOf(ResultTimeoutError)
    expect(error.id).toBe(task.id)
    const ended = task.waitUntilFinished({ timeout: '30s' })
    expect(await task.cancel({ wait: '10s', by: 'ann' })).toMatchObject({ id: task.id, status: 'cancelled' })
    expect((await ended).status).toBe('cancelled')
  })

  test('stops waiting when the signal aborts', async () => {
    const client = await setup({ worker: false })
    const task = await client.enqueue(double, { n: 1 })
    const stop = new AbortController()
    const waiting = task.result({ signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  test('stores one task for calls with the same idempotency key, and refuses another request with it', async () => {
    const client = await setup({ worker: false })
    const call = (n: number) => client.enqueue(double, { n }, { idempotencyKey: 'order 17' })
    const tasks = await Promise.all(Array.from({ length: 10 }, () => call(1)))
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
    await expect(call(2)).rejects.toMatchObject({ code: 'idempotency_key_reused', outcome: 'refused' })
  })

  test.each(['enqueueNamed', 'enqueueBulkNamed'] as const)(
    'waits for room as the queue says, also in %s',
    async (call) => {
      const client = await setup({ worker: false })
      const first = await client.enqueue(single, {})
      const second =
        call === 'enqueueNamed'
          ? client.enqueueNamed('single.task', {})
          : client.enqueueBulkNamed([{ task: 'single.task', input: {} }]).then(([result]) => result)
      await first.cancel()
      expect(await second).toMatchObject({ action: 'created' })
    },
  )

  test('gets an error that says what is wrong with a request', async () => {
    const client = await setup({ worker: false })
    await expect(client.enqueue(double, { n: 0.5 })).rejects.toMatchObject({
      code: 'invalid_input',
      outcome: 'refused',
    })
    const both = { delay: '1s', runAt: new Date() } as const
    await expect(client.enqueue(double, { n: 1 }, both)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(client.enqueue(double, { n: 1 }, { concurrencyKey: 'acme\n' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('expected text without line breaks, other control characters'),
      outcome: 'refused',
    })
    const odd = { concurrencyKey: 'a\u202eb', unique: { key: 'a\0' }, meta: { 'a\n': 'x', b: 'half \ud83d' } }
    for (const [field, text] of Object.entries(odd)) {
      await expect(client.enqueue(double, { n: 1 }, { [field]: text }), field).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining(field),
        outcome: 'refused',
      })
    }
    const task = await client.enqueue(double, { n: 1 }, { delay: '1h' })
    await expect(task.cancel({ by: 'Ann \ud83d' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/\bby: expected well-formed/),
      outcome: 'refused',
    })
    await task.cancel({ by: 'Ann 😀' })
    await expect(client.enqueueNamed('math.triple', {})).rejects.toMatchObject({
      code: 'unknown_task',
      outcome: 'refused',
    })
    await expect(client.task('math-01jd3v7n8q0000000000000000')).rejects.toMatchObject({ code: 'task_not_found' })
  })
})
