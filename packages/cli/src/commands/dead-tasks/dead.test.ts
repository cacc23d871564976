// Tests `bullpen dead` against a fake API: its requests, its output and its exit codes.
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { run } from '../../capture.fixture.ts'
import { fakeApi, ID, LINKS, problem, view } from '../../fake-api.fixture.ts'

const RETRY = `POST /v1/tasks/${ID}/retry`
const DELETE = `DELETE /v1/tasks/${ID}?by=ann`
const OTHER = `${ID.slice(0, -1)}1`
const retried = { id: ID, status: 'waiting', links: LINKS }

describe('dead retry', () => {
  test('retries each task on behalf of the user, and prints its status', async () => {
    await using api = await fakeApi({ [RETRY]: [200, retried] })
    expect(await run(api, ['dead', 'retry', ID])).toEqual({ code: 0, out: `${ID}  retried, status waiting\n`, err: '' })
    expect(api.seen).toEqual([{ request: RETRY, body: { id: expect.any(String), by: 'ann' } }])
  })

  test('sends a new input from the command line or from standard input', async () => {
    await using api = await fakeApi({ [RETRY]: [200, retried] })
    expect(await run(api, ['dead', 'retry', ID, '--input', '{"n":1}', '--json'])).toMatchObject({ code: 0 })
    const stdin = Readable.from([Buffer.from('{"n":2}')])
    expect(await run(api, ['dead', 'retry', ID, '--input', '-'], { stdin })).toMatchObject({ code: 0 })
    expect(api.seen.map(({ body }) => body)).toMatchObject([{ input: { n: 1 } }, { input: { n: 2 } }])
    expect(await run(api, ['dead', 'retry', ID, OTHER, '--input', '{}'])).toMatchObject({ code: 2 })
    const { code, err } = await run(api, ['dead', 'retry', ID, '--input', '{bad'])
    const why = "Expected property name or '}' in JSON at position 1 (line 1 column 2)"
    const expected = 'expected JSON, such as {"n":5}, or - to read it from standard input'
    expect({ code, err: err.split('\n')[0] }).toEqual({
      code: 2,
      err: `bullpen: --input is not valid JSON: ${why}; ${expected}`,
    })
  })

  test('enqueues the task in another queue, and prints the new id', async () => {
    await using api = await fakeApi({ [RETRY]: [200, { ...retried, id: OTHER, retryOf: ID }] })
    const { code, out } = await run(api, ['dead', 'retry', ID, '--to-queue', 'mail'])
    expect({ code, out }).toEqual({ code: 0, out: `${ID}  enqueued as ${OTHER}, status waiting\n` })
    expect(api.seen[0]?.body).toMatchObject({ queue: 'mail' })
    expect(await run(api, ['dead', 'delete', ID, '--to-queue', 'mail'])).toMatchObject({ code: 2 })
  })

  test('continues after a task that is not dead, and ends with exit code 3', async () => {
    const refused = problem('task_not_dead', 409, { detail: 'task x is waiting' })
    await using api = await fakeApi({ [`POST /v1/tasks/${OTHER}/retry`]: refused, [RETRY]: [200, retried] })
    const { code, out, err } = await run(api, ['dead', 'retry', OTHER, ID])
    expect({ code, out }).toEqual({ code: 3, out: `${ID}  retried, status waiting\n` })
    expect(err).toContain('task_not_dead')
  })
})

test('dead delete deletes each task', async () => {
  await using api = await fakeApi({ [DELETE]: [200, { id: ID }] })
  expect(await run(api, ['dead', 'delete', ID])).toEqual({ code: 0, out: `${ID}  deleted\n`, err: '' })
  expect(await run(api, ['dead', 'delete', ID, '--input', '{}'])).toMatchObject({ code: 2 })
})

test.each([['dead'], ['dead', 'revive'], ['dead', 'retry'], ['dead', 'delete']])(
  'the arguments %j %j are refused before anything is sent',
  async (...args) => {
    await using api = await fakeApi()
    expect(await run(api, args)).toMatchObject({ code: 2, out: '' })
    expect(api.seen).toEqual([])
  },
)

test('show names who retried the task', async () => {
  const at = new Date(Date.now() - 7_200_000).toISOString()
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}`]: [200, view({ retries: [{ at, by: 'ann (key 1)' }] })] })
  expect((await run(api, ['show', ID])).out).toMatch(/^retried +by ann \(key 1\) 2h ago$/m)
})

describe('dead list', () => {
  const SEARCH = 'GET /v1/dead-tasks?queue=cpu'
  const error = { code: 'gone', message: 'no customer 7' }
  const endedAt = new Date(Date.now() - 7_200_000).toISOString()
  const task = view({ status: 'dead', fingerprint: '0123456789abcdef', error, endedAt })

  test('prints a line for each task that matches', async () => {
    await using api = await fakeApi({
      [`${SEARCH}&task=a.b&state=DONE_ERROR&code=gone&tag=x&fingerprint=0123456789abcdef&text=no+customer&limit=50`]: [
        200,
        { tasks: [task] },
      ],
    })
    const filter = ['--task', 'a.b', '--state', 'DONE_ERROR', '--code', 'gone', '--tag', 'x', '--text', 'no customer']
    const args = ['dead', 'list', '--queue', 'cpu', ...filter, '--fingerprint', '0123456789abcdef']
    const { code, out, err } = await run(api, args)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^\S+ {2}0123456789abcdef {2}ended 2h ago +\S+ {2}gone: no customer 7\n$/)
  })

  test('converts ages to times', async () => {
    await using api = await fakeApi()
    await run(api, ['dead', 'list', '--queue', 'cpu', '--newer-than', '12h', '--older-than', '1h'])
    const query = new URLSearchParams(api.seen[0]?.request.split('?')[1])
    const age = (name: string) => Math.round((Date.now() - Date.parse(query.get(name) ?? '')) / 60_000)
    expect([age('endedFrom'), age('endedUntil')]).toEqual([720, 60])
  })

  test('prints a remark if none matches, and stops at --limit', async () => {
    await using api = await fakeApi({
      [`${SEARCH}&limit=50`]: [200, { tasks: [] }],
      [`${SEARCH}&limit=1`]: [200, { tasks: [task], next: 'c' }],
    })
    expect(await run(api, ['dead', 'list', '--queue', 'cpu'])).toEqual({
      code: 0,
      out: '',
      err: 'no dead tasks in cpu match\n',
    })
    expect(await run(api, ['dead', 'list', '--queue', 'cpu', '--limit', '1'])).toMatchObject({
      code: 0,
      err: expect.stringContaining('stopped after 1 task'),
    })
  })

  test.each([[[]], [['--queue', 'cpu', '--state', 'NEW']], [['--queue', 'cpu', '--tag', 'a', '--tag', 'b']], [['x']]])(
    'with %j is refused',
    async (args) => {
      await using api = await fakeApi()
      expect(await run(api, ['dead', 'list', ...args])).toMatchObject({ code: 2, out: '' })
    },
  )
})

test('dead counts prints a table with a line for each kind of error', async () => {
  const at = new Date(Date.now() - 60_000).toISOString()
  const kind = {
    fingerprint: '0123456789abcdef',
    state: 'DONE_ERROR',
    code: 'gone',
    message: 'no customer #',
    count: 90,
  }
  const fingerprints = [{ queue: 'cpu', ...kind, oldestAt: at, newestAt: at, newestId: ID }]
  await using api = await fakeApi({
    'GET /v1/dead-tasks/fingerprints': [200, { fingerprints }],
    'GET /v1/dead-tasks/fingerprints?queue=mail': [200, { fingerprints: [] }],
  })
  const { code, out } = await run(api, ['dead', 'counts'])
  expect(code).toBe(0)
  expect(out).toMatch(
    /^count +fingerprint +queue +code +newest +message\n90 +0123456789abcdef +cpu +gone +1m ago +no customer #\n$/,
  )
  expect(JSON.parse((await run(api, ['dead', 'counts', '--json'])).out)).toEqual({ fingerprints })
  expect(await run(api, ['dead', 'counts', '--queue', 'mail'])).toEqual({ code: 0, out: '', err: 'no dead tasks\n' })
})

describe.each([
  ['retry', 'Retry', 'retried'],
  ['delete', 'Delete', 'deleted'],
] as const)('dead %s by filter', (action, title, done) => {
  const SEND = `POST /v1/dead-tasks/${action}`
  const PREVIEW = 'POST /v1/dead-tasks/retry?dryRun=true'
  const preview = { queue: 'cpu', matching: 7, exact: true }
  const pending = {
    ...{
      id: 'cpu-1',
      action,
      queue: 'cpu',
      rate: 500,
      by: 'ann',
      status: 'pending',
      matching: 7,
      exact: true,
      changed: 0,
    },
    ...{ requestedAt: '2026-01-01T00:00:00.000Z', links: { self: '/v1/dead-tasks/requests/cpu-1' } },
  }
  const filter = ['dead', action, '--queue', 'cpu', '--code', 'gone', '--tag', 'x']

  test('sends the filter and the rate with --yes, and prints the request', async () => {
    await using api = await fakeApi({ [SEND]: [202, pending] })
    expect(await run(api, [...filter, '--rate', '2000', '--yes'])).toEqual({
      code: 0,
      out: `cpu-1  pending: ${done} 0 of 7 tasks so far\n`,
      err: 'to see its progress, run: bullpen dead requests cpu-1\n',
    })
    expect(api.seen).toEqual([{ request: SEND, body: { queue: 'cpu', code: 'gone', tag: 'x', rate: 2000, by: 'ann' } }])
  })

  test('with --dry-run prints how many tasks match, and changes nothing', async () => {
    await using api = await fakeApi({ [PREVIEW]: [200, preview] })
    const expected = { code: 0, out: `would ${action} 7 dead tasks of cpu\n`, err: '' }
    expect(await run(api, [...filter, '--dry-run'])).toEqual(expected)
    expect(api.seen.map(({ request }) => request)).toEqual([PREVIEW])
  })

  test.each([
    ['y', 0],
    ['n', 1],
  ])('asks for confirmation on a terminal, and the answer %s ends with exit code %i', async (answer, code) => {
    await using api = await fakeApi({ [PREVIEW]: [200, preview], [SEND]: [202, pending] })
    const stdin = Object.assign(Readable.from([`${answer}\n`]), { isTTY: true })
    const ended = await run(api, filter, { stdin })
    expect(ended.code).toBe(code)
    expect(ended.err).toContain(`${title} 7 dead tasks of cpu?`)
    expect(api.seen.filter(({ request }) => request === SEND)).toHaveLength(code === 0 ? 1 : 0)
  })

  test.each([
    ['done', 0, `cpu-1  done: ${done} 7 tasks`],
    ['pending', 1, `cpu-1  pending: ${done} 7 of 7 tasks so far`],
    ['stopped', 1, `cpu-1  stopped: ${done} 7 of 7 tasks`],
  ])('with --wait prints the progress, and %s ends with exit code %i', async (status, code, line) => {
    const last = { ...pending, status, changed: 7 }
    await using api = await fakeApi({ [SEND]: [202, pending], 'GET /v1/dead-tasks/requests/cpu-1': [200, last] })
    const ended = await run(api, [...filter, '--yes', '--wait', '1ms'])
    expect({ code: ended.code, last: ended.out.split('\n').at(-2) }).toEqual({ code, last: line })
    const next = 'the time is up, and the request continues; to see its progress, run: bullpen dead requests cpu-1\n'
    expect(ended.err).toBe(status === 'pending' ? next : '')
  })

  test.each([
    [[ID, '--queue', 'cpu'], 'IDs and --queue cannot be combined'],
    [['--code', 'gone', '--yes'], 'missing option --queue QUEUE'],
    [['--queue', 'cpu'], 'add --yes to confirm'],
    [['--queue', 'cpu', '--yes', '--rate', '0'], '--rate'],
    [['--queue', 'cpu', '--yes', '--input', '{}'], '--input'],
  ])('%j is refused before anything is sent', async (args, message) => {
    await using api = await fakeApi()
    expect(await run(api, ['dead', action, ...args])).toMatchObject({ code: 2, err: expect.stringContaining(message) })
    expect(api.seen).toEqual([])
  })
})

describe('dead requests', () => {
  const retry = {
    ...{ id: 'cpu-2', action: 'retry', queue: 'cpu', code: 'http_503', tag: 'batch:7', rate: 500, by: 'ann (key ops)' },
    ...{ status: 'pending', matching: 700, exact: true, changed: 300, requestedAt: '2026-01-01T00:05:00.123Z' },
    links: { self: '/v1/dead-tasks/requests/cpu-2' },
  }
  const removal = {
    ...{ ...retry, id: 'cpu-1', action: 'delete', code: undefined, tag: undefined, by: 'bob (key ops)' },
    ...{ status: 'done', matching: 9, exact: false, changed: 12, requestedAt: '2026-01-01T00:00:00.000Z' },
  }

  test('lists who has retried or deleted tasks, and how many', async () => {
    await using api = await fakeApi({
      'GET /v1/dead-tasks/requests': [200, { requests: [retry, removal] }],
      'GET /v1/dead-tasks/requests?queue=mail&limit=5': [200, { requests: [] }],
    })
    const { code, out, err } = await run(api, ['dead', 'requests'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['requested', 'status', 'tasks', 'filter', 'by', 'id'],
      [
        ...['2026-01-01T00:05:00Z', 'pending', 'retried 300 of 700 tasks'],
        ...['cpu, code http_503, tag batch:7', 'ann (key ops)', 'cpu-2'],
      ],
      ['2026-01-01T00:00:00Z', 'done', 'deleted 12 of at least 9 tasks', 'cpu', 'bob (key ops)', 'cpu-1'],
    ])
    expect(await run(api, ['dead', 'requests', '--queue', 'mail', '--limit', '5'])).toEqual({
      code: 0,
      out: '',
      err: 'no dead tasks have been retried or deleted by filter\n',
    })
  })

  test('shows one request, and prints it unchanged with --json', async () => {
    await using api = await fakeApi({ 'GET /v1/dead-tasks/requests/cpu-2': [200, retry] })
    expect((await run(api, ['dead', 'requests', 'cpu-2'])).out).toContain('retried 300 of 700 tasks')
    expect(JSON.parse((await run(api, ['dead', 'requests', 'cpu-2', '--json'])).out)).toEqual(retry)
  })

  test.each([
    [['cpu-2', 'cpu-1'], 'accepts a single ID'],
    [['cpu-2', '--queue', 'cpu'], 'cannot be combined'],
    [['--limit', '0'], '--limit'],
  ])('with %j is refused before anything is sent', async (args, message) => {
    await using api = await fakeApi()
    expect(await run(api, ['dead', 'requests', ...args])).toMatchObject({
      code: 2,
      err: expect.stringContaining(message),
    })
    expect(api.seen).toEqual([])
  })
})

describe('dead stop', () => {
  const STOP = 'POST /v1/dead-tasks/requests/cpu-1/stop'
  const request = {
    ...{ id: 'cpu-1', action: 'retry', queue: 'cpu', rate: 500, by: 'ann', matching: 12, exact: true, changed: 3 },
    ...{ requestedAt: '2026-01-01T00:00:00.000Z', links: { self: '/v1/dead-tasks/requests/cpu-1' } },
  }

  test('stops the request on behalf of the user, and prints how many tasks were changed', async () => {
    await using api = await fakeApi({ [STOP]: [200, { ...request, status: 'stopped', stoppedBy: 'ann (key ops)' }] })
    const out = 'cpu-1  stopped: retried 3 of 12 tasks\n'
    expect(await run(api, ['dead', 'stop', 'cpu-1'])).toEqual({ code: 0, out, err: '' })
    expect(api.seen).toEqual([{ request: STOP, body: { by: 'ann' } }])
  })

  test('of a request that was already done says so, and ends with exit code 1', async () => {
    await using api = await fakeApi({ [STOP]: [200, { ...request, status: 'done', changed: 12 }] })
    const [out, err] = ['cpu-1  done: retried 12 tasks\n', 'the request was already done\n']
    expect(await run(api, ['dead', 'stop', 'cpu-1'])).toEqual({ code: 1, out, err })
  })

  test.each([[[]], [['cpu-1', 'cpu-2']]])('with %j is refused before anything is sent', async (args) => {
    await using api = await fakeApi()
    expect(await run(api, ['dead', 'stop', ...args])).toMatchObject({
      code: 2,
      err: expect.stringContaining('single ID'),
    })
    expect(api.seen).toEqual([])
  })
})
