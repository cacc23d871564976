// Tests what the client says about arguments that TypeScript would not have accepted.
import { defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { type Client, createClient, http } from './index.ts'
import { api, problem } from './server.fixture.ts'

const count = defineTask({ name: 'task.count', queue: 'cpu', input: taskViewSchema.pick({ fencingToken: true }) })

/** The client's methods, with any arguments, since plain JavaScript can pass what the compiler rejects. */
type Untyped = Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>

test.each<[method: string, args: readonly unknown[], message: string]>([
  ['enqueue', [], 'client.enqueue: expected a task definition as the first argument, got undefined'],
  ['enqueue', ['task.count', {}], "got a string; if you only have the task's name, use client.enqueueNamed"],
  ['enqueueNamed', [count, {}], 'client.enqueueNamed: expected the name of a task, got an object'],
  ['enqueueBulk', [null, []], 'client.enqueueBulk: expected a task definition as the first argument, got null'],
  ['enqueueBulk', [count, { fencingToken: 1 }], 'client.enqueueBulk: expected an array of inputs, got an object'],
  ['enqueueBulkNamed', ['task.count'], 'client.enqueueBulkNamed: expected an array of tasks, got a string'],
  ['enqueueBulkNamed', [[{ task: 'a.b', input: 1 }, null]], 'element 1 is not a task; expected an object such as'],
  ['task', [], 'client.task: expected a task id, got undefined'],
  ['task', [count, 5], 'client.task: expected a task id, got a number'],
  ['waitUntilFinished', [count], 'client.waitUntilFinished: expected a task id, got undefined'],
  ['result', [count], 'client.result: expected a task id, got undefined'],
  ['cancel', [['a']], 'client.cancel: expected a task id, got an array'],
  ['createGroup', [{ id: 7 }], 'client.createGroup: expected the id of a group, got a number'],
])('%s(%j) rejects and sends nothing', async (method, args, message) => {
  const { client, seen } = await api([])
  const error = await (client as unknown as Untyped)[method]?.(...args).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(TypeError)
  expect(error).toHaveProperty('message', expect.stringContaining(message))
  expect(seen).toEqual([])
})

test.each<[filter: unknown, message: string]>([
  [undefined, 'expected either a queue or a tag, such as'],
  [{}, 'got neither'],
  [{ task: 'task.count' }, 'got neither'],
  [{ queue: 'cpu', tag: 'customer:7' }, 'got both'],
  [{ queue: 5 }, 'client.events: expected the name of a queue, got a number'],
  [{ tag: null }, 'client.events: expected a tag, got null'],
])('events(%j) throws a TypeError', async (filter, message) => {
  const { client } = await api([])
  expect(() => client.events(filter as never)).toThrow(TypeError)
  expect(() => client.events(filter as never)).toThrow(message)
})

test.each([
  ['a BigInt', { fencingToken: 5n }, 'the input cannot be written as JSON: Do not know how to serialize a BigInt'],
  [
    'an object that contains itself',
    circular(),
    'the input cannot be written as JSON: Converting circular structure to JSON',
  ],
])('an input with %s is refused before it is sent', async (_, input, detail) => {
  const { client, seen } = await api([])
  const refused = { name: 'ProblemError', code: 'invalid_input', outcome: 'refused', detail }
  await expect(client.enqueueNamed('task.count', input)).rejects.toMatchObject(refused)
  await expect(client.enqueueBulkNamed([{ task: 'task.count', input }])).rejects.toMatchObject(refused)
  expect(seen).toEqual([])
})

const BY_ID: Readonly<Record<string, (client: Client, id: string) => Promise<unknown>>> = {
  task: (client, id) => client.task(id),
  waitUntilFinished: (client, id) => client.waitUntilFinished(id),
  result: (client, id) => client.result(count, id),
  taskEvents: (client, id) => client.taskEvents(id).next(),
  cancel: (client, id) => client.cancel(id, { wait: '1s' }),
  retryTask: (client, id) => client.retryTask(id),
  deleteTask: (client, id) => client.deleteTask(id, { by: 'ann' }),
  deadTaskRequest: (client, id) => client.deadTaskRequest(id),
  stopDeadRequest: (client, id) => client.stopDeadRequest(id),
  cancellation: (client, id) => client.cancellation(id),
  commandById: (client, id) => client.commandById(id),
  'group().add': (client, id) => client.group(id).add(count, [{ fencingToken: 1 }]),
  'group().addNamed': (client, id) => client.group(id).addNamed([{ task: 'a.b', input: 1 }]),
  'group().seal': (client, id) => client.group(id).seal(),
  'group().cancel': (client, id) => client.group(id).cancel(),
  'group().describe': (client, id) => client.group(id).describe(),
  'group().waitUntilEnded': (client, id) => client.group(id).waitUntilEnded(),
  'group().results': (client, id) => client.group(id).results()[Symbol.asyncIterator]().next(),
  'group().events': (client, id) => client.group(id).events().next(),
  'run().describe': (client, id) => client.run(id).describe(),
  'run().waitUntilEnded': (client, id) => client.run(id).waitUntilEnded(),
  'run().cancel': (client, id) => client.run(id).cancel(),
  'run().delete': (client, id) => client.run(id).delete({ by: 'ann' }),
  'run().errors': (client, id) => client.run(id).errors()[Symbol.asyncIterator]().next(),
}

const BY_NAME: typeof BY_ID = {
  'schedules.show': (client, name) => client.schedules.show(name, { next: 3 }),
  'schedules.pause': (client, name) => client.schedules.pause(name),
  'schedules.resume': (client, name) => client.schedules.resume(name),
  'schedules.run': (client, name) => client.schedules.run(name),
  'schedules.delete': (client, name) => client.schedules.delete(name),
}

const BY_QUEUE: typeof BY_ID = {
  limits: (client, queue) => client.limits(queue, { limit: 5 }),
  events: (client, queue) => client.events({ queue }).next(),
}

test.each(
  Object.entries({ id: BY_ID, name: BY_NAME, queue: BY_QUEUE }).flatMap(([parameter, calls]) =>
    Object.entries(calls).map(([method, call]) => [method, parameter, call] as const),
  ),
)('%s refuses an invalid %s, with which the request would reach another route', async (_, parameter, call) => {
  const { client, seen } = await api([[200, {}]])
  for (const given of ['..', '.', '']) {
    const message = `expected an id or a name, got '${given}', which cannot be a segment of a URL's path`
    await expect(call(client, given)).rejects.toMatchObject({
      ...{ name: 'ProblemError', code: 'invalid_request', outcome: 'refused', errors: [{ parameter, message }] },
    })
  }
  expect(seen).toEqual([])
})

test('an id with other dots is sent as it is', async () => {
  const { client, seen } = await api([problem('task_not_found', 404)])
  for (const id of ['...', '..a', '%2e%2e', 'a/../b'])
    await expect(client.task(id)).rejects.toMatchObject({ code: 'task_not_found' })
  expect(seen.map(({ url }) => url)).toEqual([
    '/v1/tasks/...',
    '/v1/tasks/..a',
    '/v1/tasks/%252e%252e',
    '/v1/tasks/a%2F..%2Fb',
  ])
})

test('an idempotency key that is a number is refused before it is sent', async () => {
  const { client, seen } = await api([])
  const call = client.enqueue(count, { fencingToken: 1 }, { idempotencyKey: 5 as never })
  await expect(call).rejects.toMatchObject({ code: 'invalid_request', errors: [{ parameter: 'idempotencyKey' }] })
  expect(seen).toEqual([])
})

test.each([undefined, 'http://127.0.0.1:8080', {}, { transport: 'http://127.0.0.1:8080' }])(
  'a client is not created from %j',
  (options) => {
    expect(() => createClient(options as never)).toThrow('createClient({ transport: http(url, apiKey) })')
  },
)

test.each([undefined, '', 'a secret', 'a-secret\n', 'sécret'])('the API key %j is refused, and not repeated', (key) => {
  const create = () => http('http://127.0.0.1:8080', key as never)
  expect(create).toThrow(expect.objectContaining({ code: 'invalid_configuration' }))
  expect(create).toThrow(/^(?!.*s[eé]cret)/s)
  expect(create).toThrow('pass the key as the second argument of http()')
})

function circular(): object {
  const input: { self?: object } = {}
  input.self = input
  return input
}
