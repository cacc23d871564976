// Tests the program as a worker of its own against a fake API: every command, what is told, and the exit codes.
import { describe, expect, test } from 'vitest'
import { COMMAND_NAMES, commandOf } from './commands/command-table.ts'
import { ACCEPTED, FAKE_KEY, fakeApi, ID, LINKS, problem, runBullpen, runShell, view } from './fake-api.fixture.ts'
import { commandView, fleetOf, P1, processOf } from './fleet.fixture.ts'

const ENQUEUE = 'POST /v1/tasks'
const SHOW = `GET /v1/tasks/${ID}`
const WAIT = `${SHOW}?wait=30`
const CANCEL = `POST /v1/tasks/${ID}/cancel`
const nowhere = { url: 'http://127.0.0.1:1' }
const pending = {
  id: 'cpu-1',
  queue: 'cpu',
  enqueuedUntil: '2026-01-01T00:00:00.000Z',
  status: 'pending',
  ended: 0,
  requestedAt: '2026-01-01T00:00:00.000Z',
  links: { self: '/v1/cancels/cpu-1' },
}

const jsonLines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('enqueue', () => {
  test('hands over what it is told, and tells the id', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    const limits = ['--timeout', 'none', '--heartbeat-timeout', '5s', '--queue-timeout', '1m', '--total-timeout', '1h']
    const options = ['--meta', 'a=b', '--meta', 'c=d', '--tag', 'x', '--tag', 'y:1', '--delay', '30s', ...limits]
    const ended = await runBullpen(api, ['enqueue', 'math.factorial', '{"n":5}', ...options])
    expect(ended).toEqual({ code: 0, out: `${ID}  waiting\n`, err: '' })
    const body = { task: 'math.factorial', input: { n: 5 }, meta: { a: 'b', c: 'd' }, timeout: 'none' }
    const more = { tags: ['x', 'y:1'], delay: '30s', heartbeatTimeout: '5s', queueTimeout: '1m', totalTimeout: '1h' }
    expect(api.seen).toEqual([{ request: ENQUEUE, body: { ...body, ...more } }])
  })

  test('reads the input from standard input, or takes an empty one', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED] })
    expect(await runBullpen(api, ['enqueue', 'a.b', '-'], { stdin: '[1,\n2]\n' })).toMatchObject({ code: 0 })
    expect(await runBullpen(api, ['enqueue', 'a.b'])).toMatchObject({ code: 0 })
    expect(api.seen.map(({ body }) => body)).toEqual([
      { task: 'a.b', input: [1, 2] },
      { task: 'a.b', input: {} },
    ])
  })

  test.each([
    [['{"n": x}'], undefined, 'INPUT is not JSON: line 1, column 7: there is "x}" where a value is expected'],
    [['-'], '{\n"n"', "standard input is not JSON: line 2, column 4: it ends where ':' is expected"],
    [['-'], new Uint8Array([0x22, 0xff, 0x22]), 'standard input is not UTF-8'],
  ])('tells the place where an input is no JSON, and asks nothing of the API', async (args, stdin, told) => {
    await using api = await fakeApi()
    const ended = await runBullpen(api, ['enqueue', 'a.b', ...args], stdin === undefined ? {} : { stdin })
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`bullpen: ${told}\n`) })
    expect(api.seen).toEqual([])
  })

  test('with --wait tells the id, then how the task ended', async () => {
    await using api = await fakeApi({ [ENQUEUE]: [202, ACCEPTED], [WAIT]: [200, view()] })
    const { code, out } = await runBullpen(api, ['enqueue', 'math.factorial', '--wait', '10s'])
    expect(code).toBe(0)
    expect(out).toMatch(new RegExp(`^${ID}  waiting\n${ID}  completed\n[^]*output +\\{"value":"120"\\}\n$`))
    const asJson = await runBullpen(api, ['enqueue', 'math.factorial', '--wait', '10s', '--json'])
    expect(jsonLines(asJson.out)).toEqual([ACCEPTED, view()])
  })

  test('tells each place that the API refuses', async () => {
    const errors = [{ path: 'input.n', message: 'too big' }]
    await using api = await fakeApi({ [ENQUEUE]: problem('invalid_input', 422, { detail: 'it does not fit', errors }) })
    const ended = await runBullpen(api, ['enqueue', 'a.b'])
    expect(ended).toEqual({ code: 3, out: '', err: 'bullpen: invalid_input: it does not fit\n  input.n: too big\n' })
    const { code, out, err } = await runBullpen(api, ['enqueue', 'a.b', '--json'])
    expect({ code, out }).toEqual({ code: 3, out: '' })
    const error = { code: 'invalid_input', status: 422, detail: 'it does not fit', errors }
    expect(jsonLines(err)).toEqual([{ error }])
  })

  test('tells the id under which a task may be stored all the same', async () => {
    await using api = await fakeApi({ [ENQUEUE]: problem('redis_unavailable', 503, { taskId: ID }) })
    const { code, err } = await runBullpen(api, ['enqueue', 'a.b'])
    expect({ code, err }).toMatchObject({ code: 3, err: expect.stringContaining(`bullpen show ${ID}`) })
  })
})

describe('show', () => {
  test('shows a task as it stands, whatever its status', async () => {
    await using api = await fakeApi({ [SHOW]: [200, view({ status: 'dead' })] })
    const { code, out, err } = await runBullpen(api, ['show', ID])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(new RegExp(`^${ID}  dead\ntask +math.factorial, version 1\n`))
  })

  test('with --json it is what the API answered, on one line', async () => {
    const answer = { ...view(), 'of a later API': [1, { b: 2 }] }
    await using api = await fakeApi({ [SHOW]: [200, answer] })
    expect((await runBullpen(api, ['show', ID, '--json'])).out).toBe(`${JSON.stringify(answer)}\n`)
  })

  test.each(['dead', 'cancelled', 'expired'] as const)(
    'with --wait a task that is %s is exit code 1',
    async (status) => {
      await using api = await fakeApi({ [WAIT]: [200, view({ status })] })
      const { code, out } = await runBullpen(api, ['show', ID, '--wait', '10s'])
      expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining(`${ID}  ${status}\n`) })
    },
  )

  test('with --wait a task that has not ended in time is shown as it stands', async () => {
    await using api = await fakeApi({ [WAIT]: 'silence', [SHOW]: [200, view({ status: 'active' })] })
    const { code, out } = await runBullpen(api, ['show', ID, '--wait', '100ms'])
    expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining(`${ID}  active\n`) })
  })

  test('a task that is not there is refused', async () => {
    await using api = await fakeApi()
    expect(await runBullpen(api, ['show', ID])).toMatchObject({ code: 3, err: 'bullpen: task_not_found\n' })
  })
})

describe('list', () => {
  const listing = (limit: number, cursor = '') =>
    `GET /v1/tasks?queue=cpu&status=dead&limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`
  const DEAD = ['list', '--queue', 'cpu', '--status', 'dead']
  const tasks = [view({ id: `${ID}1` }), view({ id: `${ID}2` })]

  test('writes a line for each task, and says when there may be more', async () => {
    await using api = await fakeApi({ [listing(2)]: [200, { tasks, next: 'c' }], [listing(50)]: [200, { tasks }] })
    const { code, out, err } = await runBullpen(api, [...DEAD, '--limit', '2'])
    expect({ code, lines: out.split('\n').map((line) => line.split(' ')[0]) }).toEqual({
      code: 0,
      lines: [`${ID}1`, `${ID}2`, ''],
    })
    expect(err).toBe('2 shown; there may be more: --all, or a higher --limit\n')
    expect(await runBullpen(api, [...DEAD, '--json'])).toEqual({
      code: 0,
      out: tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
      err: '',
    })
  })

  test('with --all follows the pages', async () => {
    await using api = await fakeApi({
      [listing(200)]: [200, { tasks, next: 'c' }],
      [listing(200, 'c')]: [200, { tasks: [view()] }],
    })
    const { code, out } = await runBullpen(api, [...DEAD, '--all', '--json'])
    expect({ code, tasks: jsonLines(out) }).toEqual({ code: 0, tasks: [...tasks, view()] })
  })

  test('stops without an error when its reader leaves', async () => {
    const many = Array.from({ length: 200 }, () => view({ input: 'x'.repeat(1_000) }))
    await using api = await fakeApi({
      [listing(200)]: [200, { tasks: many, next: 'c' }],
      // For ever, unless it stops.
      [listing(200, 'c')]: [200, { tasks: many, next: 'c' }],
    })
    const ended = await runShell(api, `bullpen ${DEAD.join(' ')} --all --json | head -1`)
    expect(ended).toEqual({ code: 0, out: `${JSON.stringify(many[0])}\n`, err: '' })
  })

  test.each([
    [['list', '--status', 'dead'], '--queue QUEUE is missing'],
    [['list', '--queue', 'cpu', '--status', 'daed'], "there is no status 'daed'; did you mean dead?"],
    [[...DEAD, '--all', '--limit', '2'], '--all and --limit contradict each other'],
  ])('%j is wrong usage', async (args, told) => {
    expect(await runBullpen(nowhere, args)).toMatchObject({ code: 2, err: expect.stringContaining(told) })
  })
})

describe('cancel', () => {
  const answer = (outcome: string, status: string) => [200, { id: ID, outcome, status, links: LINKS }] as const

  test.each([
    ['cancelled', 'cancelled', 0, `${ID}  cancelled\n`],
    ['cancelling', 'active', 0, `${ID}  cancelling, it is active\n`],
    ['not_cancellable', 'active', 1, `${ID}  not_cancellable, it is active\n`],
    ['already_ended', 'completed', 1, `${ID}  already_ended, it is completed\n`],
    ['already_ended', 'cancelled', 0, `${ID}  already_ended, it is cancelled\n`],
  ])('a task that is then %s, %s, is exit code %i', async (outcome, status, code, out) => {
    await using api = await fakeApi({ [CANCEL]: answer(outcome, status) })
    expect(await runBullpen(api, ['cancel', ID])).toEqual({ code, out, err: '' })
  })

  test('with --wait a task that has not stopped in time is exit code 1', async () => {
    await using api = await fakeApi({ [`${CANCEL}?wait=10`]: answer('cancelling', 'active') })
    const { code, out } = await runBullpen(api, ['cancel', ID, '--wait', '10s', '--json'])
    expect({ code, out: jsonLines(out) }).toEqual({ code: 1, out: [answer('cancelling', 'active')[1]] })
    expect(await runBullpen(api, ['cancel', ID, '--wait', '31s'])).toMatchObject({ code: 2 })
  })

  test('goes on after one that is refused, and tells of both', async () => {
    await using api = await fakeApi({ [CANCEL]: answer('cancelled', 'cancelled') })
    const { code, out, err } = await runBullpen(api, ['cancel', 'cpu-x', ID, '--json'])
    expect({ code, out: jsonLines(out), err: jsonLines(err) }).toEqual({
      code: 3,
      out: [answer('cancelled', 'cancelled')[1]],
      err: [{ error: { code: 'task_not_found', status: 404 } }],
    })
  })
})

const commanded = commandView({ action: 'pause', queue: 'cpu' }, { answers: [{ worker: P1, outcome: 'done' }] })

/** For the examples of the fleet's commands. */
const FLEET = {
  'GET /v1/fleet': [200, fleetOf([processOf(P1)])],
  'GET /v1/fleet?queue=cpu': [200, fleetOf([])],
  'GET /v1/workers': [200, { slots: [] }],
  [`GET /v1/workers?worker=${encodeURIComponent(P1)}`]: [200, { slots: [] }],
  'POST /v1/commands?wait=5': [200, commanded],
  'GET /v1/commands?limit=10': [200, { commands: [commanded] }],
  'GET /v1/commands/5d0f4c2a9be1f07733c1a2e4?wait=30': [200, commanded],
} as const

describe('cancel by filter', () => {
  const asked = 'POST /v1/tasks/cancel'

  test('asks for what it is told, and tells the id of the cancel', async () => {
    await using api = await fakeApi({ [asked]: [202, pending] })
    const filter = ['--queue', 'cpu', '--task', 'a.b', '--tag', 'x', '--older-than', '1h']
    expect(await runBullpen(api, ['cancel', ...filter])).toEqual({
      code: 0,
      out: 'cpu-1  pending, 0 ended that nobody ran, covers what was enqueued until 2026-01-01T00:00:00.000Z\n',
      err: '',
    })
    const { out } = await runBullpen(api, ['cancel', '--queue', 'cpu', '--json'])
    expect(jsonLines(out)).toEqual([pending])
    expect(api.seen).toEqual([
      { request: asked, body: { queue: 'cpu', task: 'a.b', tag: 'x', olderThan: '1h' } },
      { request: asked, body: { queue: 'cpu' } },
    ])
  })

  test.each([
    ['done', 0],
    ['pending', 1],
  ])('with --wait tells what has become of it: %s', async (status, code) => {
    const last = { ...pending, status, ended: 7 }
    await using api = await fakeApi({ [asked]: [202, pending], 'GET /v1/cancels/cpu-1': [200, last] })
    const ended = await runBullpen(api, ['cancel', '--queue', 'cpu', '--wait', '1ms', '--json'])
    expect({ code: ended.code, out: jsonLines(ended.out) }).toEqual({ code, out: [pending, last] })
  })

  test.each([
    [[], 'cancel needs ID… | --queue QUEUE'],
    [[ID, '--queue', 'cpu'], 'cancel takes IDs or --queue, not both'],
    [['--tag', 'x'], '--queue QUEUE is missing'],
    [['--queue', 'cpu', '--tag', 'x', '--tag', 'y'], 'cancel takes one --tag'],
    [['--queue', 'cpu', '--wait', 'long'], '--wait'],
    [['--queue', 'cpu', '--older-than', 'long'], '--older-than'],
  ])('%j is wrong usage', async (args, told) => {
    const ended = await runBullpen(nowhere, ['cancel', ...args])
    expect(ended).toMatchObject({ code: 2, err: expect.stringContaining(told) })
  })
})

describe('help', () => {
  test('names every command, option and exit code, and explains each command', async () => {
    const { code, out, err } = await runBullpen(nowhere, ['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    for (const word of [...COMMAND_NAMES, '--api URL', '--key KEY', '--json', '70  a bug']) expect(out).toContain(word)
    expect((await runBullpen(nowhere, ['help', 'list'])).out).toMatch(/^usage: bullpen list --queue QUEUE/)
    expect((await runBullpen(nowhere, ['list', '--help'])).out).toMatch(/^usage: bullpen list --queue QUEUE/)
    expect(await runBullpen(nowhere, ['--version'])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d/) })
  })

  test.each(COMMAND_NAMES.flatMap((name) => [...commandOf(name).examples]))(
    'this example of it works: %s',
    async (line) => {
      const tasks = [view()]
      await using api = await fakeApi({
        ...{ [ENQUEUE]: [202, ACCEPTED], [SHOW]: [200, view()], [WAIT]: [200, view()] },
        ...{ [`${CANCEL}?wait=10`]: [200, { id: ID, outcome: 'cancelled', status: 'cancelled', links: LINKS }] },
        'POST /v1/tasks/cancel': [202, pending],
        'GET /v1/tasks?queue=cpu&status=dead&limit=10': [200, { tasks }],
        'GET /v1/tasks?queue=cpu&status=dead&limit=200': [200, { tasks }],
        ...FLEET,
      })
      const ended = await runShell(api, line.replace('<receipt.json', '<<<"{}"'))
      expect(ended).toMatchObject({ code: 0, err: '' })
      expect(ended.out).not.toBe('')
    },
  )
})

describe('what stands in the way', () => {
  test.each([
    [['redrive'], "there is no command 'redrive'"],
    [['show', ID, '--wiat', '1s'], 'there is no option --wiat; did you mean --wait?'],
  ])('%j is wrong usage, with a way on', async (args, told) => {
    const ended = await runBullpen(nowhere, args)
    expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`bullpen: ${told}`) })
    expect(ended.err).toContain("'bullpen help' tells what there is")
    const asJson = await runBullpen(nowhere, [...args, '--json'])
    expect(jsonLines(asJson.err)).toEqual([{ error: { code: 'usage', detail: expect.stringContaining(told) } }])
  })

  test('an API that is not reached is exit code 4', async () => {
    const { code, err } = await runBullpen(nowhere, ['show', ID])
    expect({ code, err }).toMatchObject({
      code: 4,
      err: expect.stringMatching(/^bullpen: unreachable: .*127\.0\.0\.1:1/),
    })
  })

  test('something else at its address is exit code 4', async () => {
    await using api = await fakeApi({ [SHOW]: [200, '<html>'] })
    expect(await runBullpen(api, ['show', ID])).toMatchObject({
      code: 4,
      err: 'bullpen: unexpected_answer: the answer is not JSON\n',
    })
  })

  test('a wrong key is refused, and no key is printed', async () => {
    await using api = await fakeApi()
    const ended = await runBullpen(api, ['show', ID, '--key', 'wrong-secret'])
    expect(ended).toMatchObject({ code: 3, out: '', err: 'bullpen: unauthorized\n' })
    const odd = await runBullpen(api, ['show', ID], { env: { BULLPEN_KEY: `${FAKE_KEY}\n` } })
    expect(odd).toMatchObject({ code: 2, err: expect.not.stringContaining(FAKE_KEY) })
    expect(await runBullpen(api, ['show', ID], { env: { BULLPEN_KEY: '' } })).toMatchObject({ code: 2 })
  })
})
