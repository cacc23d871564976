// Tests the program against a fake API: every command's requests, output and exit codes. Only a few tests start a process, which
// is slow: those of arguments, standard streams, exit codes and the environment, and those in which a shell connects programs.
import { userInfo } from 'node:os'
import { Readable } from 'node:stream'
import type { ScheduleView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { run } from './capture.fixture.ts'
import { COMMAND_NAMES, commandOf } from './commands/command-table.ts'
import {
  ACCEPTED,
  commandOfLine,
  FAKE_KEY,
  fakeApi,
  ID,
  LINKS,
  problem,
  runBullpen,
  runShell,
  view,
  WRONG_KEY,
} from './fake-api.fixture.ts'
import { commandView, fleetOf, LIMITS, P1, QUEUES, workerOf } from './fleet.fixture.ts'

const ENQUEUE = 'POST /v1/tasks'
const SHOW = `GET /v1/tasks/${ID}`
const WAIT = `${SHOW}?wait=30`
const CANCEL = `POST /v1/tasks/${ID}/cancel`
const nowhere = { url: 'http://127.0.0.1:1' }
const pending = {
  id: 'cpu-1',
  queue: 'cpu',
  enqueuedUntil: '2026-01-01T00:00:00.000Z',
  by: 'ann (key 3fa29c01)',
  status: 'pending',
  ended: 0,
  requestedAt: '2026-01-01T00:00:00.000Z',
  links: { self: '/v1/cancels/cpu-1' },
}

const DEAD_REQUEST = {
  ...{ id: 'cpu-1', action: 'retry', queue: 'cpu', rate: 500, by: 'ann', status: 'pending', matching: 7, exact: true },
  ...{ changed: 0, requestedAt: pending.requestedAt, links: { self: '/v1/dead-tasks/requests/cpu-1' } },
}
const KIND_COUNT = {
  ...{ queue: 'cpu', fingerprint: '0123456789abcdef', state: 'DONE_ERROR', code: 'gone', message: 'no customer #' },
  ...{ count: 3, oldestAt: pending.requestedAt, newestAt: pending.requestedAt, newestId: ID },
}
const SCHEDULE: ScheduleView = {
  ...{ name: 'nightly-report', task: 'report.create', queue: 'reports', input: {}, cron: '0 3 * * *', timeZone: 'UTC' },
  ...{
    source: 'catalogue',
    status: 'active',
    changedBy: 'ann',
    runs: 3,
    skipped: 0,
    nextTicks: [],
    waiting: [],
    trouble: [],
  },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', changedAt: '2026-01-01T00:00:00.000Z' },
  links: { self: '/v1/schedules/nightly-report' },
}
const CREATED = { name: 'nightly-report', queue: 'reports', action: 'created', fields: [] }

const jsonLines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

const EXPECTED = 'expected JSON, such as {"n":5}'

describe('enqueue', () => {
  test('sends the input and options, and prints the id', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    const limits = ['--timeout', 'none', '--heartbeat-timeout', '5s', '--queue-timeout', '1m', '--total-timeout', '1h']
    const full = ['--when-full', '10s', '--durability', 'replicated']
    const start = ['--priority', '2', '--concurrency-key', 'a', '--max-attempts', '3']
    const options = [
      '--meta',
      'a=b',
      '--meta',
      'c=d',
      '--tag',
      'x',
      '--tag',
      'y:1',
      '--delay',
      '30s',
      ...limits,
      ...start,
      ...full,
    ]
    const ended = await runBullpen(api, ['enqueue', 'math.factorial', '{"n":5}', ...options])
    expect(ended).toEqual({ code: 0, out: `${ID}  waiting\n`, err: '' })
    const body = { task: 'math.factorial', input: { n: 5 }, meta: { a: 'b', c: 'd' }, timeout: 'none' }
    const more = { tags: ['x', 'y:1'], delay: '30s', heartbeatTimeout: '5s', queueTimeout: '1m', totalTimeout: '1h' }
    const last = { priority: 2, concurrencyKey: 'a', retry: { maxAttempts: 3 }, whenFull: { block: '10s' } }
    const acknowledged = { durability: 'replicated' }
    expect(api.seen).toEqual([{ request: ENQUEUE, body: { ...body, ...more, ...last, ...acknowledged } }])
  })

  test('sends the retry settings of the task, and refuses those that are invalid for every definition', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    const growing = ['--backoff', 'exponential', '--initial-delay', '5s', '--max-delay', '1h', '--factor', '1.5']
    await run(api, ['enqueue', 'a.b', ...growing, '--backoff-jitter', 'full', '--max-attempts', '7'])
    await run(api, ['enqueue', 'a.b', '--backoff', 'list', '--delays', '1s,1m', '--backoff-jitter', '0'])
    const exponential = { type: 'exponential', initialDelay: '5s', maxDelay: '1h', factor: 1.5, jitter: 'full' }
    expect(api.seen.map(({ body }) => body)).toEqual([
      { task: 'a.b', input: {}, retry: { maxAttempts: 7, backoff: exponential } },
      { task: 'a.b', input: {}, retry: { backoff: { type: 'list', delays: ['1s', '1m'], jitter: 0 } } },
    ])
    const refused: readonly (readonly [string, string, string])[] = [
      ['--backoff', 'expo', 'expected one of exponential, linear, fixed, list'],
      ['--factor', '0.5', 'expected a number from 1 to 100'],
      ['--backoff-jitter', '2', 'expected a number from 0 to 1'],
      ['--delays', '1s,', 'expected a positive duration'],
    ]
    for (const [option, value, message] of refused) {
      const ended = await run(api, ['enqueue', 'a.b', option, value])
      expect(ended).toMatchObject({ code: 2, err: expect.stringContaining(message) })
    }
    expect(api.seen).toHaveLength(2)
  })

  test('sends the given idempotency key', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    const repeated = ['enqueue', 'a.b', '--idempotency-key', 'order 17']
    expect(await run(api, repeated)).toMatchObject({ code: 0, out: `${ID}  waiting\n` })
    expect(api.idempotencyKeys).toEqual(['"order 17"'])
  })

  test('says that the task was dropped, and exits with 1, also with --wait', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [200, { action: 'dropped' }] })
    const args = ['enqueue', 'a.b', '--when-full', 'drop', '--wait', '5s']
    expect(await run(api, args)).toEqual({ code: 1, out: 'dropped: the queue is full\n', err: '' })
    expect(await run(api, [...args, '--json'])).toMatchObject({ code: 1, out: '{"action":"dropped"}\n' })
    expect(api.seen[0]?.body).toMatchObject({ whenFull: 'drop' })
  })

  test.each(['soon', '31s', '0s'])('with --when-full %s is refused before anything is sent', async (policy) => {
    await using api = await fakeApi({})
    expect(await run(api, ['enqueue', 'a.b', '--when-full', policy])).toMatchObject({
      code: 2,
      err: expect.stringContaining('expected reject, drop, or a duration of at most 30s'),
    })
    expect(api.seen).toEqual([])
  })

  test('reads the input from standard input, and sends an empty object by default', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    expect(await runBullpen(api, ['enqueue', 'a.b', '-'], { stdin: '[1,\n2]\n' })).toMatchObject({ code: 0 })
    expect(await runBullpen(api, ['enqueue', 'a.b'])).toMatchObject({ code: 0 })
    expect(api.seen.map(({ body }) => body)).toEqual([
      { task: 'a.b', input: [1, 2] },
      { task: 'a.b', input: {} },
    ])
  })

  test.each([
    [
      ['{"n": x}'],
      '',
      `INPUT is not valid JSON: Unexpected token 'x', "{"n": x}"; ${EXPECTED}, or - to read it from standard input`,
    ],
    [
      ['-'],
      '{\n"n"',
      `standard input is not valid JSON: Expected ':' after property name in JSON at position 5 (line 2 column 4); ${EXPECTED}`,
    ],
    [['-'], '', `standard input is empty; ${EXPECTED}`],
    [['-'], ' \n', `standard input is empty; ${EXPECTED}`],
    [[' '], '', `INPUT is empty; ${EXPECTED}, or - to read it from standard input`],
    [['-'], new Uint8Array([0x22, 0xff, 0x22]), 'standard input is not valid UTF-8'],
    [['{"n":1e999}'], '', 'INPUT contains a number that is too large for a double'],
  ])('sends no request if the input %j %j cannot be sent as JSON, and reports why', async (args, stdin, message) => {
    await using api = await fakeApi()
    const ended = await run(api, ['enqueue', 'a.b', ...args], { stdin: Readable.from([stdin]) })
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`bullpen: ${message}\n`) })
    expect(api.seen).toEqual([])
  })

  test('sends no request if standard input cannot be read, and reports why', async () => {
    await using api = await fakeApi()
    const stdin = new Readable({
      read() {
        this.destroy(Object.assign(new Error('EIO: i/o error, read'), { syscall: 'read' }))
      },
    })
    const message = 'bullpen: cannot read standard input: EIO: i/o error, read'
    const ended = await run(api, ['enqueue', 'a.b', '-'], { stdin })
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
    expect(api.seen).toEqual([])
  })

  test('prints the id and then the ended task with --wait', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED], [WAIT]: [200, view()] })
    const { code, out } = await run(api, ['enqueue', 'math.factorial', '--wait', '10s'])
    expect(code).toBe(0)
    expect(out).toMatch(
      new RegExp(
        `^${ID}  waiting\n${ID}  completed\n[^]*output +\\{"value":"120"\\}\nattempts +1 of 5 used, \\d started\n$`,
      ),
    )
    const asJson = await run(api, ['enqueue', 'math.factorial', '--wait', '10s', '--json'])
    expect(jsonLines(asJson.out)).toEqual([ACCEPTED, view()])
  })

  test('sends a unique key with its options', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    const key = ['--unique-key', 'user 17']
    await run(api, ['enqueue', 'a.b', ...key])
    await run(api, ['enqueue', 'a.b', ...key, '--unique-until', '10m', '--on-conflict', 'replace'])
    await run(api, ['enqueue', 'a.b', ...key, '--unique-until', 'started'])
    expect(api.seen.map(({ body }) => body)).toMatchObject([
      { unique: { key: 'user 17' } },
      { unique: { key: 'user 17', until: '10m', onConflict: 'replace' } },
      { unique: { key: 'user 17', until: 'started' } },
    ])
  })

  test.each([
    [['--unique-until', 'started'], '--unique-until requires --unique-key'],
    [['--on-conflict', 'keep'], '--on-conflict requires --unique-key'],
    [
      ['--unique-key', 'k', '--unique-until', 'ended'],
      "--unique-until is 'ended'; expected started, finished, or a duration such as 10m",
    ],
    [
      ['--unique-key', 'k', '--on-conflict', 'replce'],
      "--on-conflict is 'replce'; expected one of keep, replace, extend, error; did you mean replace?",
    ],
  ])('sends no request with %j', async (options, message) => {
    await using api = await fakeApi()
    const ended = await run(api, ['enqueue', 'a.b', ...options])
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`bullpen: ${message}\n`) })
    expect(api.seen).toEqual([])
  })

  test('prints the id of the task that has the unique key', async () => {
    await using api = await fakeApi({ [ENQUEUE]: problem('unique_key_taken', 409, { taskId: ID }) })
    const { code, err } = await run(api, ['enqueue', 'a.b', '--unique-key', 'k', '--on-conflict', 'error'])
    expect({ code, err }).toMatchObject({
      code: 3,
      err: expect.stringContaining(`to see the task that has the key, run: bullpen show ${ID}`),
    })
  })

  test('prints every field that the API rejects', async () => {
    const errors = [{ pointer: '/input/n', message: 'too big' }]
    await using api = await fakeApi({
      [ENQUEUE]: problem('invalid_input', 422, { detail: 'the input is invalid', errors, outcome: 'refused' }),
    })
    const ended = await run(api, ['enqueue', 'a.b'])
    expect(ended).toEqual({
      code: 3,
      out: '',
      err: 'bullpen: invalid_input: the input is invalid\n  /input/n: too big\n',
    })
    const { code, out, err } = await run(api, ['enqueue', 'a.b', '--json'])
    expect({ code, out }).toEqual({ code: 3, out: '' })
    const error = { code: 'invalid_input', status: 422, detail: 'the input is invalid', errors, outcome: 'refused' }
    expect(jsonLines(err)).toEqual([{ error }])
  })

  test('prints the id of a task that may have been stored despite the error', async () => {
    await using api = await fakeApi({ [ENQUEUE]: problem('redis_unavailable', 503, { taskId: ID }) })
    const { code, err } = await run(api, ['enqueue', 'a.b'])
    expect({ code, err }).toMatchObject({ code: 3, err: expect.stringContaining(`bullpen show ${ID}`) })
  })
})

describe('show', () => {
  test('prints a task regardless of its status', async () => {
    await using api = await fakeApi({ [SHOW]: [200, view({ status: 'dead' })] })
    const { code, out, err } = await run(api, ['show', ID])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(new RegExp(`^${ID}  dead\ntask +math.factorial, version 1\n`))
  })

  test('prints the answer unchanged on one line with --json', async () => {
    const answer = { ...view(), 'of a later API': [1, { b: 2 }] }
    await using api = await fakeApi({ [SHOW]: [200, answer] })
    expect((await run(api, ['show', ID, '--json'])).out).toBe(`${JSON.stringify(answer)}\n`)
  })

  test('prints the text and the kind of a reason to wait that only a later API knows, and the answer with --json', async () => {
    const waitsFor = { kind: 'moon_phase', text: 'the full\u009b2Jmoon', phase: { until: 'later' } } as never
    const answer = { ...view({ status: 'waiting' }), waitsFor }
    await using api = await fakeApi({ [SHOW]: [200, answer] })
    const { code, out, err } = await run(api, ['show', ID])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('\nwaits for    the full 2Jmoon (moon_phase)\n')
    const asJson = await run(api, ['show', ID, '--json'])
    expect(asJson.out).toContain(String.raw`the full\u009b2Jmoon`)
    expect(jsonLines(asJson.out)).toEqual([answer])
  })

  test('prints no control character of an error with --json', async () => {
    await using api = await fakeApi({ [SHOW]: problem('task_not_found', 404, { detail: 'no task\u009b2J\u202e' }) })
    const { err } = await run(api, ['show', ID, '--json'])
    expect(err).toContain(String.raw`no task\u009b2J\u202e`)
    const usage = await run(api, ['show', 'a\u009b2J', '--nope\u009b2J', '--json'])
    expect(usage.err).not.toContain('\u009b')
    expect(jsonLines(usage.err)).toHaveLength(1)
  })

  test.each(['dead', 'cancelled', 'expired'] as const)(
    'ends with exit code 1 with --wait if the task is %s',
    async (status) => {
      await using api = await fakeApi({ [WAIT]: [200, view({ status })] })
      const { code, out } = await run(api, ['show', ID, '--wait', '10s'])
      expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining(`${ID}  ${status}\n`) })
    },
  )

  test('prints the current state with --wait if the task has not ended in time', async () => {
    await using api = await fakeApi({ [WAIT]: 'silence', [SHOW]: [200, view({ status: 'active' })] })
    const { code, out } = await run(api, ['show', ID, '--wait', '100ms'])
    expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining(`${ID}  active\n`) })
  })

  test('rejects an unknown task', async () => {
    await using api = await fakeApi()
    expect(await run(api, ['show', ID])).toMatchObject({ code: 3, err: 'bullpen: task_not_found\n' })
  })
})

describe('list', () => {
  const listing = (limit: number, cursor = '') =>
    `GET /v1/tasks?queue=cpu&status=dead&limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`
  const DEAD = ['list', '--queue', 'cpu', '--status', 'dead']
  const tasks = [view({ id: `${ID}1` }), view({ id: `${ID}2` })]

  test('prints a line for each task, and reports that there may be more', async () => {
    await using api = await fakeApi({ [listing(2)]: [200, { tasks, next: 'c' }], [listing(50)]: [200, { tasks }] })
    const { code, out, err } = await run(api, [...DEAD, '--limit', '2'])
    expect({ code, lines: out.split('\n').map((line) => line.split(' ')[0]) }).toEqual({
      code: 0,
      lines: [`${ID}1`, `${ID}2`, ''],
    })
    expect(err).toBe('stopped after 2 tasks; there may be more, so use --all or a higher --limit to see them\n')
    expect(await run(api, [...DEAD, '--json'])).toEqual({
      code: 0,
      out: tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
      err: '',
    })
  })

  test('prints a remark if no task has the status, except with --json', async () => {
    await using api = await fakeApi({ [listing(50)]: [200, { tasks: [] }] })
    expect(await run(api, DEAD)).toEqual({ code: 0, out: '', err: 'no dead tasks in cpu\n' })
    expect(await run(api, [...DEAD, '--json'])).toEqual({ code: 0, out: '', err: '' })
  })

  test('follows the pages with --all', async () => {
    await using api = await fakeApi({
      [listing(200)]: [200, { tasks, next: 'c' }],
      [listing(200, 'c')]: [200, { tasks: [view()] }],
    })
    const { code, out } = await run(api, [...DEAD, '--all', '--json'])
    expect({ code, tasks: jsonLines(out) }).toEqual({ code: 0, tasks: [...tasks, view()] })
  })

  test('stops without an error when its reader closes the pipe', async () => {
    const many = Array.from({ length: 200 }, () => view({ input: 'x'.repeat(1_000) }))
    await using api = await fakeApi({
      [listing(200)]: [200, { tasks: many, next: 'c' }],
      // The page refers to itself: a program that did not stop would run forever.
      [listing(200, 'c')]: [200, { tasks: many, next: 'c' }],
    })
    const ended = await runShell(api, `bullpen ${DEAD.join(' ')} --all --json | head -1`)
    expect(ended).toEqual({ code: 0, out: `${JSON.stringify(many[0])}\n`, err: '' })
  })

  test.each([
    [['list', '--status', 'dead'], 'missing option --queue QUEUE'],
    [['list', '--queue', 'cpu', '--status', 'daed'], "--status is 'daed'; expected one of scheduled"],
    [[...DEAD, '--all', '--limit', '2'], '--all and --limit cannot be combined'],
  ])('%j is rejected as invalid usage', async (args, message) => {
    expect(await run(nowhere, args)).toMatchObject({ code: 2, err: expect.stringContaining(message) })
  })
})

describe('cancel', () => {
  const answer = (outcome: string, status: string) => [200, { id: ID, outcome, status, links: LINKS }] as const

  test.each([
    ['cancelled', 'cancelled', 0, `${ID}  cancelled\n`],
    ['cancelling', 'active', 0, `${ID}  cancelling, status active\n`],
    ['not_cancellable', 'active', 1, `${ID}  not cancellable, status active\n`],
    ['already_ended', 'completed', 1, `${ID}  already ended, status completed\n`],
    ['already_ended', 'cancelled', 0, `${ID}  already ended, status cancelled\n`],
  ])('with outcome %s and status %s ends with exit code %i', async (outcome, status, code, out) => {
    await using api = await fakeApi({ [CANCEL]: answer(outcome, status) })
    expect(await run(api, ['cancel', ID])).toEqual({ code, out, err: '' })
  })

  test('ends with exit code 1 with --wait if the task has not stopped in time', async () => {
    await using api = await fakeApi({ [`${CANCEL}?wait=10`]: answer('cancelling', 'active') })
    const { code, out } = await run(api, ['cancel', ID, '--wait', '10s', '--json'])
    expect({ code, out: jsonLines(out) }).toEqual({ code: 1, out: [answer('cancelling', 'active')[1]] })
    expect(await run(api, ['cancel', ID, '--wait', '31s'])).toMatchObject({ code: 2 })
  })

  test('is sent in the name of --by, $BULLPEN_BY or the user', async () => {
    await using api = await fakeApi({ [CANCEL]: answer('cancelled', 'cancelled') })
    await run(api, ['cancel', ID])
    await run(api, ['cancel', ID, '--by', 'bob'])
    await run(api, ['cancel', ID], { env: {} })
    expect(api.seen.map(({ body }) => body)).toEqual([{ by: 'ann' }, { by: 'bob' }, { by: userInfo().username }])
  })

  test('continues after a rejected id, and reports both', async () => {
    await using api = await fakeApi({ [CANCEL]: answer('cancelled', 'cancelled') })
    const { code, out, err } = await run(api, ['cancel', 'cpu-x', ID, '--json'])
    expect({ code, out: jsonLines(out), err: jsonLines(err) }).toEqual({
      code: 3,
      out: [answer('cancelled', 'cancelled')[1]],
      err: [{ error: { code: 'task_not_found', status: 404, outcome: 'refused' } }],
    })
  })
})

const commanded = commandView({ action: 'pause', queue: 'cpu' }, { responses: [{ worker: P1, outcome: 'done' }] })

/** Answers for the examples of the fleet commands. */
const FLEET = {
  'GET /v1/fleet': [200, fleetOf([workerOf(P1)])],
  'GET /v1/fleet?queue=cpu': [200, fleetOf([])],
  'GET /v1/queues': [200, QUEUES],
  'GET /v1/queues?queue=cpu': [200, QUEUES],
  'GET /v1/queues/mail/limits': [200, LIMITS],
  'GET /v1/queues/mail/limits?sort=active&limit=10': [200, LIMITS],
  'GET /v1/queues/mail/limits?concurrencyKey=acme': [200, LIMITS],
  'GET /v1/slots': [200, { slots: [] }],
  'GET /v1/slots?queue=cpu': [200, { slots: [] }],
  [`GET /v1/slots?worker=${encodeURIComponent(P1)}`]: [200, { slots: [] }],
  'POST /v1/commands?wait=5': [200, commanded],
  'GET /v1/commands?limit=10': [200, { commands: [commanded] }],
  'GET /v1/commands/5d0f4c2a9be1f07733c1a2e4?wait=30': [200, commanded],
} as const

describe('cancel by filter', () => {
  const SEND = 'POST /v1/tasks/cancel'
  const PREVIEW = 'POST /v1/tasks/cancel?dryRun=true'
  const preview = { queue: 'cpu', enqueuedUntil: pending.enqueuedUntil, matching: 12, exact: true }
  const filter = ['--queue', 'cpu', '--task', 'a.b', '--tag', 'x', '--older-than', '1h']
  const body = { queue: 'cpu', task: 'a.b', tag: 'x', olderThan: '1h' }
  const answering = (answer: string) => Object.assign(Readable.from([answer]), { isTTY: true })

  test('sends the filter and prints the id of the cancellation with --yes', async () => {
    await using api = await fakeApi({ [SEND]: [202, pending] })
    expect(await run(api, ['cancel', ...filter, '--yes'])).toEqual({
      code: 0,
      out: 'cpu-1  in effect: no matching task enqueued until 2026-01-01T00:00:00.000Z will start\n',
      err: '',
    })
    const { out } = await run(api, ['cancel', '--queue', 'cpu', '--yes', '--json'])
    expect(jsonLines(out)).toEqual([pending])
    expect(api.seen).toEqual([
      { request: SEND, body: { ...body, by: 'ann' } },
      { request: SEND, body: { queue: 'cpu', by: 'ann' } },
    ])
  })

  test('asks for confirmation on a terminal, with the number of matching tasks', async () => {
    await using api = await fakeApi({ [PREVIEW]: [200, preview], [SEND]: [202, pending] })
    const { code, err } = await run(api, ['cancel', ...filter], { stdin: answering('y\n') })
    expect({ code, err }).toEqual({
      code: 0,
      err: 'Cancel 12 tasks of cpu (task a.b, tag x, older than 1h)? [y/N] ',
    })
    expect(api.seen).toEqual([
      { request: PREVIEW, body },
      { request: SEND, body: { ...body, by: 'ann' } },
    ])
  })

  test('neither asks nor cancels anything if no task matches', async () => {
    await using api = await fakeApi({ [PREVIEW]: [200, { ...preview, matching: 0 }] })
    const ended = await run(api, ['cancel', '--queue', 'cpu', '--tag', 'x'], { stdin: answering('y\n') })
    expect(ended).toEqual({ code: 0, out: '', err: 'nothing to cancel: 0 tasks of cpu (tag x)\n' })
    expect(api.seen.map(({ request }) => request)).toEqual([PREVIEW])
  })

  test.each(['n\n', '\n', 'yeah\n', ''])('the answer %j cancels nothing', async (answer) => {
    await using api = await fakeApi({ [PREVIEW]: [200, { ...preview, matching: 1, exact: false }] })
    const { code, err } = await run(api, ['cancel', '--queue', 'cpu'], { stdin: answering(answer) })
    expect({ code, err }).toEqual({
      code: 1,
      err: 'Cancel at least 1 task of cpu? [y/N] nothing was cancelled\n',
    })
    expect(api.seen.map(({ request }) => request)).toEqual([PREVIEW])
  })

  test('requires --yes and sends no request without a terminal or with --json', async () => {
    await using api = await fakeApi()
    const message =
      'bullpen: cancel --queue asks for confirmation, which requires a terminal; add --yes to confirm, or --dry-run to count the tasks'
    const piped = await run(api, ['cancel', '--queue', 'cpu'])
    expect(piped).toMatchObject({ code: 2, err: expect.stringContaining(message) })
    expect(await run(api, ['cancel', '--queue', 'cpu', '--json'], { stdin: answering('y\n') })).toMatchObject({
      code: 2,
    })
    expect(api.seen).toEqual([])
  })

  test('prints how many tasks match without cancelling any with --dry-run', async () => {
    await using api = await fakeApi({ [PREVIEW]: [200, preview] })
    const args = ['cancel', '--queue', 'cpu', '--dry-run']
    expect(await run(api, args)).toEqual({ code: 0, out: 'would cancel 12 tasks of cpu\n', err: '' })
    expect(jsonLines((await run(api, [...args, '--json'])).out)).toEqual([preview])
    expect(api.seen.map(({ request }) => request)).toEqual([PREVIEW, PREVIEW])
  })

  test.each([
    ['done', 0],
    ['pending', 1],
  ])('with --wait prints the cancellation again, and %s ends with exit code %i', async (status, code) => {
    const last = { ...pending, status, ended: 7 }
    await using api = await fakeApi({ [SEND]: [202, pending], 'GET /v1/cancels/cpu-1': [200, last] })
    const ended = await run(api, ['cancel', '--queue', 'cpu', '--yes', '--wait', '1ms', '--json'])
    expect({ code: ended.code, out: jsonLines(ended.out) }).toEqual({ code, out: [pending, last] })
  })

  test.each([
    [[], 'missing argument; expected bullpen cancel ID… | --queue QUEUE'],
    [[ID, '--queue', 'cpu'], 'IDs and --queue cannot be combined'],
    [['--tag', 'x'], 'missing option --queue QUEUE'],
    [['--queue', 'cpu', '--tag', 'x', '--tag', 'y'], 'cancel accepts a single --tag'],
    [['--queue', 'cpu', '--wait', 'long'], '--wait'],
    [['--queue', 'cpu', '--older-than', 'long'], '--older-than'],
  ])('%j is rejected as invalid usage', async (args, message) => {
    const ended = await run(nowhere, ['cancel', ...args])
    expect(ended).toMatchObject({ code: 2, err: expect.stringContaining(message) })
  })
})

const eventStream = (event: object) =>
  [200, `data: ${JSON.stringify(event)}\n\n`, { 'content-type': 'text/event-stream' }] as const

const GROUP = {
  ...{ id: 'group-01jd3v7n8q0000000000000000', state: 'ended', result: 'completed', count: 1, ended: 1, progress: 1 },
  statuses: { completed: 1, dead: 0, cancelled: 0, expired: 0, removed: 0 },
  ...{ queues: ['cpu'], onError: 'cancel', by: 'ann' },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', timeoutAt: '2026-01-08T00:00:00.000Z' },
}

const RUN = {
  ...{ id: 'run-01jd3v7n8q0000000000000000', pipeline: 'files.digest-tree', state: 'ended', result: 'completed' },
  source: { task: 'files.walk', queue: 'io', state: 'done', emitted: 1, segments: 1, taskId: ID },
  stages: [
    {
      task: 'files.digest',
      queue: 'cpu',
      concurrency: 20,
      waiting: 0,
      running: 0,
      completed: 1,
      dropped: 0,
      failed: 0,
    },
  ],
  ...{ onError: 'cancel', results: 1, errors: 0, by: 'ann' },
  ...{ startedAt: '2026-01-01T00:00:00.000Z', timeoutAt: '2026-01-08T00:00:00.000Z' },
}

describe('help', () => {
  test('lists every command, option and exit code, and explains each command', async () => {
    const { code, out, err } = await run(nowhere, ['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    for (const word of [...COMMAND_NAMES, '--api URL', '--key KEY', '--json', '70  a bug']) expect(out).toContain(word)
    expect((await run(nowhere, ['help', 'list'])).out).toMatch(/^usage: bullpen list --queue QUEUE/)
    expect((await run(nowhere, ['list', '--help'])).out).toMatch(/^usage: bullpen list --queue QUEUE/)
    expect(await run(nowhere, ['--version'])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d/) })
  })

  const examples = COMMAND_NAMES.flatMap((name) => commandOf(name).examples)
  // The other example connects to a Redis (bullmq.test.ts).
  const ofApi = examples.filter((line) => !line.includes('--bullmq'))

  test.each(ofApi)('the example works: %s', async (line) => {
    const tasks = [view()]
    await using api = await fakeApi({
      ...{ [ENQUEUE]: [202, ACCEPTED], [SHOW]: [200, view()], [WAIT]: [200, view()] },
      ...{ [`${CANCEL}?wait=10`]: [200, { id: ID, outcome: 'cancelled', status: 'cancelled', links: LINKS }] },
      'POST /v1/tasks/bulk': [200, { failed: 0, results: [{ id: ID, action: 'created', status: 'waiting' }] }],
      'POST /v1/tasks/cancel': [202, pending],
      'POST /v1/tasks/cancel?dryRun=true': [200, { ...pending, matching: 12, exact: true }],
      'GET /v1/tasks?queue=cpu&status=dead&limit=10': [200, { tasks }],
      'GET /v1/tasks?queue=cpu&status=dead&limit=200': [200, { tasks }],
      'GET /v1/dead-tasks?queue=cpu&code=http_503&limit=10': [200, { tasks }],
      'GET /v1/dead-tasks/fingerprints': [200, { fingerprints: [KIND_COUNT] }],
      'POST /v1/dead-tasks/retry': [202, DEAD_REQUEST],
      'GET /v1/dead-tasks/requests/cpu-1': [200, { ...DEAD_REQUEST, status: 'done', changed: 7 }],
      [`POST /v1/dead-tasks/requests/${ID}/stop`]: [200, { ...DEAD_REQUEST, status: 'stopped', changed: 3 }],
      'GET /v1/dead-tasks/requests?queue=cpu': [200, { requests: [DEAD_REQUEST] }],
      'POST /v1/dead-tasks/retry?dryRun=true': [200, { queue: 'cpu', matching: 7, exact: true }],
      [`POST /v1/tasks/${ID}/retry`]: [200, { id: ID, status: 'waiting', links: LINKS }],
      [`DELETE /v1/tasks/${ID}?by=ann`]: [200, { id: ID }],
      'GET /v1/schedules?trouble=true&limit=200': [200, { schedules: [SCHEDULE] }],
      'GET /v1/schedules/nightly-report?next=10': [200, SCHEDULE],
      'POST /v1/schedules': [201, { action: 'created', schedule: SCHEDULE }],
      'POST /v1/schedules/sync?dryRun=false': [200, { dryRun: false, changes: [CREATED] }],
      'POST /v1/runs': [201, RUN],
      [`GET /v1/runs/${RUN.id}`]: [200, RUN],
      [`GET /v1/runs/${RUN.id}?wait=30`]: [200, RUN],
      [`POST /v1/runs/${RUN.id}/cancel`]: [200, RUN],
      'POST /v1/groups': [201, GROUP],
      [`GET /v1/groups/${GROUP.id}?wait=30`]: [200, GROUP],
      [`POST /v1/groups/${GROUP.id}/tasks`]: [202, { start: 0, count: 1, ids: [ID] }],
      [`POST /v1/groups/${GROUP.id}/cancel`]: [200, GROUP],
      [`GET /v1/groups/${GROUP.id}`]: [200, GROUP],
      [`GET /v1/groups/${GROUP.id}/results?from=0&limit=200`]: [
        200,
        { results: [{ member: 0, id: ID, status: 'completed', output: 120 }] },
      ],
      'GET /v1/diagnosis': [200, { now: pending.requestedAt, findings: [], passed: ['clocks'], skipped: [] }],
      'GET /v1/orphans': [200, { orphans: [], examined: 7 }],
      [`GET /v1/tasks/${ID}/events`]: eventStream({ type: 'snapshot', id: '1-0', task: view() }),
      'GET /v1/queues/cpu/events': eventStream({ type: 'snapshot', id: '1-0', queues: { cpu: { waiting: 1 } } }),
      ...FLEET,
    })
    const shell = line
      // Without --once, the command runs until the user leaves.
      .replace(/^(bullpen top(?: --queue cpu)?)(?: --interval 5s)?$/, '$1 --once')
      .replace(/<receipts?\.(nd)?json/, '<<<"{}"')
      .replace(/<(tasks|more)\.ndjson/, `<<<'{"task":"math.factorial","input":{"n":5}}'`)
    const ended = shell.includes('|') ? await runShell(api, shell) : await run(api, ...(await commandOfLine(shell)))
    expect(ended).toMatchObject({ code: 0, err: '' })
    expect(ended.out).not.toBe('')
  })
})

describe('an error', () => {
  test.each([
    [['revive'], "unknown command 'revive'", 'bullpen help'],
    [['show', ID, '--wiat', '1s'], "unknown option '--wiat'; did you mean --wait?", 'bullpen help show'],
  ])('%j is reported as invalid usage, with what to do next', async (args, message, next) => {
    const ended = await run(nowhere, args)
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`bullpen: ${message}`) })
    expect(ended.err).toContain(`run '${next}' for usage`)
    const asJson = await run(nowhere, [...args, '--json'])
    expect(jsonLines(asJson.err)).toEqual([{ error: { code: 'usage', detail: expect.stringContaining(message) } }])
  })

  test.each([
    [['show', '..'], 'id'],
    [['schedules', 'run', '.'], 'name'],
    [['limits', '--queue', '..'], 'queue'],
  ])('%j is refused before it is sent, because it would reach another route', async (args, parameter) => {
    const { code, err } = await run(nowhere, args)
    expect({ code, err }).toMatchObject({
      code: 3,
      err: expect.stringContaining(`invalid_request: ${parameter}: expected an id or a name, got '.`),
    })
  })

  test('an unreachable API ends with exit code 4', async () => {
    const { code, err } = await run(nowhere, ['show', ID])
    expect({ code, err }).toMatchObject({
      code: 4,
      err: expect.stringMatching(
        /^bullpen: unreachable: .*127\.0\.0\.1:1.*\ncheck that the API is running, and set its address/,
      ),
    })
  })

  test.each([
    ['a detail without the field', 'remove totalTimeout', 'remove totalTimeout', []],
    ['a detail with the field', '/a: unknown field (and 1 more)', 'unknown field', ['/b: unknown field']],
  ])('a field error is printed once: %s', async (_, detail, message, rest) => {
    const errors = ['/a', ...(rest.length === 0 ? [] : ['/b'])].map((pointer) => ({ pointer, message }))
    const problem = { code: 'invalid_request', title: 'Invalid request', status: 400, detail, errors }
    await using api = await fakeApi({ [SHOW]: [400, problem] })
    const { err } = await run(api, ['show', ID])
    expect(err).toBe([`bullpen: invalid_request: ${detail}`, ...rest.map((line) => `  ${line}`), ''].join('\n'))
  })

  test('says that the API does not know the outcome if it has lost Redis', async () => {
    await using api = await fakeApi({
      [CANCEL]: problem('redis_unavailable', 503, { detail: 'Redis is not reachable' }),
    })
    expect(await run(api, ['cancel', ID])).toMatchObject({
      code: 3,
      err: 'bullpen: redis_unavailable: Redis is not reachable\nthe request may have taken effect, because the API does not know its outcome\n',
    })
  })

  test('a server that is not a Bullpen API ends with exit code 4', async () => {
    await using api = await fakeApi({ [SHOW]: [200, '<html>'] })
    expect(await run(api, ['show', ID])).toMatchObject({
      code: 4,
      err: expect.stringMatching(/^bullpen: unexpected_response: GET .* it begins with "<html>"; .*\n$/),
    })
  })

  test('a wrong key is reported with the message of the API, and no key is printed', async () => {
    await using api = await fakeApi()
    const ended = await runBullpen(api, ['show', ID, '--key', 'wrong-secret'])
    expect(ended).toMatchObject({
      code: 3,
      out: '',
      err: `bullpen: unauthorized: ${WRONG_KEY}\nset BULLPEN_KEY to one of the keys that the API accepts\n`,
    })
    const invalid = await runBullpen(api, ['show', ID], { env: { BULLPEN_KEY: `${FAKE_KEY}\n` } })
    expect(invalid).toMatchObject({ code: 2, err: expect.not.stringContaining(FAKE_KEY) })
    expect(await runBullpen(api, ['show', ID], { env: { BULLPEN_KEY: '' } })).toMatchObject({ code: 2 })
  })
})
