// Tests the fleet commands against a fake API: requests, output and exit codes.
import { userInfo } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { CommandView, FleetView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { Capture, run, terminal } from '../../capture.fixture.ts'
import { type Answer, fakeApi, problem } from '../../fake-api.fixture.ts'
import { busy, commandView, fleetOf, idle, P1, P2, pool, QUEUES, queueOf, workerOf } from '../../fleet.fixture.ts'

const SEND = 'POST /v1/commands?wait=5'
const FLEET = 'GET /v1/fleet'
const TWO = fleetOf([workerOf(P1), workerOf(P2)])
const nowhere = { url: 'http://127.0.0.1:1' }

const ok = (body: unknown): Answer => [200, body]
const done = (more: Partial<CommandView> = {}) => ok(commandView({ action: 'pause', queue: 'cpu' }, more))
const lastBody = (api: { seen: { body: unknown }[] }) =>
  (api.seen.at(-1)?.body ?? {}) as { id?: string; worker?: string }
const jsonLines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('queues', () => {
  test('prints the tasks, the age of the oldest one, the rates, the slots and the state of each queue', async () => {
    await using api = await fakeApi({ 'GET /v1/queues': ok(QUEUES) })
    const { code, out, err } = await run(api, ['queues'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [heading = '', row = ''] = out.split('\n')
    expect(heading.split(/ {2,}/)).toEqual([
      'queue',
      'waiting',
      'active',
      'scheduled',
      'retrying',
      'dead',
      'oldest',
      'in/s',
      'out/s',
      'busy',
      'state',
    ])
    expect(row.split(/ {2,}/)).toEqual([
      'cpu',
      '12',
      '3',
      '0',
      '1',
      '9',
      '30s',
      '4.5',
      '3',
      '1/4',
      'paused, at most 500 tasks',
    ])
  })

  test('prints the most frequent kinds of error of the dead tasks below, and how many other dead tasks there are', async () => {
    await using api = await fakeApi({ 'GET /v1/queues': ok(QUEUES) })
    const { out } = await run(api, ['queues'])
    expect(out.split('\n').slice(2)).toEqual([
      '',
      'queue  dead  fingerprint       error',
      'cpu    7     0123456789abcdef  http_503: the provider responded with status # to request # of the cu…',
      'cpu    2     others',
      '',
    ])
  })

  test('prints one table if no task is dead', async () => {
    const [queue] = QUEUES.queues
    const healthy = { ...QUEUES, queues: [{ ...queue, tasks: { ...queue?.tasks, dead: 0 }, deadByFingerprint: [] }] }
    await using api = await fakeApi({ 'GET /v1/queues': ok(healthy) })
    expect((await run(api, ['queues'])).out.trimEnd().split('\n')).toHaveLength(2)
  })

  test('fits into a terminal with 80 columns', async () => {
    await using api = await fakeApi({ 'GET /v1/queues': ok(QUEUES) })
    const { out } = await run(api, ['queues'], { stdout: terminal(80) })
    const seen = stripVTControlCharacters(out).split('\n')
    expect(Math.max(...seen.map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  test('prints the response of the API unchanged with --json', async () => {
    await using api = await fakeApi({ 'GET /v1/queues?queue=cpu': ok(QUEUES) })
    expect(jsonLines((await run(api, ['queues', '--queue', 'cpu', '--json'])).out)).toEqual([QUEUES])
  })
})

describe('fleet', () => {
  test('prints the fleet, and with --slots also its slots', async () => {
    await using api = await fakeApi({ [FLEET]: ok(TWO), 'GET /v1/slots': ok({ slots: [busy(1, 30), idle(2)] }) })
    const { code, out, err } = await run(api, ['fleet', '--slots'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^queue {2}busy {2}pools {2}state\ncpu /)
    expect(out).toContain(`\n    ${P1}/cpu/1  running a task  30s  math.factorial`)
    expect(out).not.toContain('\u001b')
    expect((await run(api, ['fleet'])).out).not.toContain('running a task')
  })

  test('prints the responses of the API unchanged with --json', async () => {
    const slots = { slots: [busy(1, 30)] }
    const one = fleetOf([workerOf(P1)])
    await using api = await fakeApi({ 'GET /v1/fleet?queue=cpu': ok(one), 'GET /v1/slots?queue=cpu': ok(slots) })
    const { out } = await run(api, ['fleet', '--queue', 'cpu', '--slots', '--json'])
    expect(jsonLines(out)).toEqual([one, slots])
  })

  test('accepts an empty fleet, and rejects an unknown queue', async () => {
    await using api = await fakeApi({
      [FLEET]: ok(fleetOf([], [])),
      'GET /v1/fleet?queue=cpv': problem('queue_not_found', 404, { detail: "did you mean 'cpu'?" }),
    })
    expect(await run(api, ['fleet'])).toMatchObject({ code: 0, out: expect.stringContaining('no workers are running') })
    expect(await run(api, ['fleet', '--queue', 'cpv'])).toMatchObject({ code: 3, err: expect.stringContaining('cpu') })
  })

  test('fits into a terminal with 80 columns', async () => {
    await using api = await fakeApi({ [FLEET]: ok(TWO), 'GET /v1/slots': ok({ slots: [busy(1, 30), idle(2)] }) })
    const { out } = await run(api, ['fleet', '--slots'], { stdout: terminal(80) })
    const seen = stripVTControlCharacters(out).split('\n')
    expect(Math.max(...seen.map((line) => line.length))).toBeLessThanOrEqual(80)
  })
})

describe('a fleet command', () => {
  test.each([
    [['pause', '--queue', 'cpu'], { action: 'pause', queue: 'cpu' }],
    [['resume', '--worker', P1], { action: 'resume', worker: P1 }],
    [['pause', '--queue', 'cpu', '--worker', 'worker-7'], { action: 'pause', queue: 'cpu', worker: P1 }],
    [['drain', '--queue', 'cpu'], { action: 'drain', queue: 'cpu', mode: 'soft_timeout' }],
    [
      ['drain', '--worker', P2, '--mode', 'soft_timeout', '--timeout', '30s'],
      { action: 'drain', worker: P2, mode: 'soft_timeout', timeout: '30s' },
    ],
    [['stop', 'worker-8/cpu/3'], { action: 'stop', worker: P2, queue: 'cpu', slot: 3, how: 'wait' }],
    [['stop', `${P1}/cpu/10`, '--hard'], { action: 'stop', worker: P1, queue: 'cpu', slot: 10, how: 'hard' }],
    [
      ['limit', '--queue', 'cpu', '--concurrency', 'none', '--rate', '100/1s'],
      { action: 'limit', queue: 'cpu', concurrency: 'none', rate: { max: 100, per: '1s' } },
    ],
    [['resize', '--queue', 'cpu', '--concurrency', '8'], { action: 'resize', queue: 'cpu', concurrency: 8 }],
    [['log-level', 'debug'], { action: 'log_level', level: 'debug' }],
    [
      ['log-level', 'debug', '--worker', 'worker-7', '--for', '10m'],
      { action: 'log_level', level: 'debug', worker: P1, for: '10m' },
    ],
    [['limit', '--queue', 'cpu', '--rate', 'none'], { action: 'limit', queue: 'cpu', rate: 'none' }],
    [
      ['limit', '--queue', 'cpu', '--concurrency-per-key', '3', '--rate-per-key', '100/1m', '--burst', '10'],
      { action: 'limit', queue: 'cpu', concurrencyPerKey: 3, ratePerKey: { max: 100, per: '1m', burst: 10 } },
    ],
    [
      ['limit', '--queue', 'cpu', '--concurrency-key', 'acme', '--concurrency', '0', '--rate', '5/1s', '--burst', '2'],
      {
        action: 'limit',
        queue: 'cpu',
        concurrencyKey: 'acme',
        concurrency: 0,
        rate: { max: 5, per: '1s', burst: 2 },
      },
    ],
    [
      ['limit', '--queue', 'cpu', '--permits', 'db=5', '--permits', 'gpu=none'],
      { action: 'limit', queue: 'cpu', permits: { db: 5, gpu: 'none' } },
    ],
    [
      ['limit', '--queue', 'cpu', '--task', 'cpu.hash', '--concurrency', '0'],
      { action: 'limit', queue: 'cpu', task: 'cpu.hash', concurrency: 0 },
    ],
    [['limit', '--queue', 'cpu', '--max-tasks', '500'], { action: 'limit', queue: 'cpu', maxTasks: 500 }],
    [['limit', '--queue', 'cpu', '--max-tasks', 'none'], { action: 'limit', queue: 'cpu', maxTasks: 'none' }],
    [
      ['limit', '--queue', 'cpu', '--max-bytes', '64MiB', '--max-age', '10m'],
      { action: 'limit', queue: 'cpu', maxBytes: '64MiB', maxAge: '10m' },
    ],
    [['limit', '--queue', 'cpu', '--max-bytes', '500000'], { action: 'limit', queue: 'cpu', maxBytes: 500_000 }],
    [
      ['limit', '--queue', 'cpu', '--max-bytes', 'none', '--max-age', 'none'],
      { action: 'limit', queue: 'cpu', maxBytes: 'none', maxAge: 'none' },
    ],
    [
      ['limit', '--api-key-name', 'shop', '--enqueue-rate', '500/1s'],
      { action: 'limit', apiKeyName: 'shop', enqueueRate: { max: 500, per: '1s' } },
    ],
    [
      ['limit', '--queue', 'cpu', '--api-key-name', 'shop', '--max-unfinished-tasks', '50'],
      { action: 'limit', queue: 'cpu', apiKeyName: 'shop', maxUnfinishedTasks: 50 },
    ],
    [
      ['limit', '--queue', 'cpu', '--api-key-name', 'shop', '--enqueue-rate', '5/1m'],
      { action: 'limit', queue: 'cpu', apiKeyName: 'shop', enqueueRate: { max: 5, per: '1m' } },
    ],
    [
      ['limit', '--api-key-name', 'shop', '--enqueue-rate', 'none'],
      { action: 'limit', apiKeyName: 'shop', enqueueRate: 'none' },
    ],
    [['breaker', 'smtp', 'open', '--queue', 'cpu'], { action: 'breaker', queue: 'cpu', service: 'smtp', to: 'open' }],
  ])('%j is sent as a command', async (args, order) => {
    await using api = await fakeApi({
      [SEND]: done({ responses: [{ worker: P1, outcome: 'done' }] }),
      [FLEET]: ok(TWO),
    })
    expect(await run(api, args)).toMatchObject({ code: 0 })
    const { id, ...body } = lastBody(api)
    expect(body).toEqual({ ...order, by: 'ann' })
    expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  })

  test('is sent in the name of --by, $BULLPEN_BY or the user', async () => {
    await using api = await fakeApi({ [SEND]: done() })
    await run(api, ['pause', '--queue', 'cpu'], { env: {} })
    await run(api, ['pause', '--queue', 'cpu'], { env: { BULLPEN_BY: `a\nb${'x'.repeat(200)}` } })
    await run(api, ['pause', '--queue', 'cpu', '--by', 'bob'])
    const by = api.seen.map(({ body }) => (body as { by: string }).by)
    expect(by).toEqual([userInfo().username, expect.stringMatching(/^a bx{97}$/), 'bob'])
  })

  const responses = [
    { worker: P1, outcome: 'done', detail: 'paused' },
    { worker: 'b\u001b[2J', outcome: 'refused', detail: 'no\nsuch pool' },
  ] as const

  test.each([
    ['done', 0],
    ['partly', 1],
    ['refused', 1],
    ['pending', 1],
  ] as const)('with outcome %s ends with exit code %i', async (outcome, code) => {
    await using api = await fakeApi({ [SEND]: done({ outcome, responses: [...responses] }) })
    const ended = await run(api, ['pause', '--queue', 'cpu'])
    expect(ended.code).toBe(code)
    const head = outcome === 'done' ? 'paused cpu  command c1' : `pause cpu  ${outcome}  command c1`
    expect(ended.out).toBe(`${head}\n  ${P1}  done     paused\n  b [2J                    refused  no such pool\n`)
    expect(ended.err).toBe(
      outcome === 'pending' ? 'some workers have not responded yet; check with: bullpen audit c1 --wait 30s\n' : '',
    )
    const asJson = await run(api, ['pause', '--queue', 'cpu', '--json'])
    expect(asJson).toMatchObject({ code, err: '' })
    expect(jsonLines(asJson.out)).toMatchObject([{ outcome, responses }])
  })

  test('prints a remark if no worker has a pool that matches', async () => {
    await using api = await fakeApi({ [SEND]: done() })
    const remark = { err: 'no running worker has a pool that matches the target\n' }
    expect(await run(api, ['pause', '--queue', 'cpu'])).toMatchObject({ code: 0, ...remark })
    expect(await run(api, ['resize', '--queue', 'cpu', '--concurrency', '8'])).toMatchObject({ code: 1, ...remark })
  })

  test('ends with exit code 3 if the API rejects it', async () => {
    await using api = await fakeApi({ [SEND]: problem('queue_not_found', 404) })
    expect(await run(api, ['pause', '--queue', 'cpv'])).toMatchObject({ code: 3, err: 'bullpen: queue_not_found\n' })
  })

  test.each([
    [['pause'], 'specify a target: --queue, --worker, or both'],
    [['stop', 'cpu/3'], "'cpu/3' is not a slot; expected WORKER/QUEUE/SLOT"],
    [['stop', 'p/Cpu/3'], 'is not a slot'],
    [['stop', 'p/cpu/0'], 'is not a slot'],
    [['resize', '--queue', 'cpu'], 'missing option --concurrency N'],
    [
      ['resize', '--queue', 'cpu', '--concurrency', 'many'],
      "--concurrency is 'many'; expected a whole number from 1 to 10000",
    ],
    [['log-level', 'loud'], 'expected'],
    [['log-level', '--for', '1m'], '--for requires LEVEL: debug, info, warn, error, silent, configured'],
    [
      ['limit', '--queue', 'cpu'],
      'specify a limit: --concurrency, --rate, --concurrency-per-key, --rate-per-key, --permits, --max-tasks, --max-bytes or --max-age',
    ],
    [
      ['limit', '--queue', 'cpu', '--rate', '100'],
      "--rate is '100'; expected a number per period, such as 100/1s, or none",
    ],
    [['limit', '--queue', 'cpu', '--rate', '100/1'], '--rate is "1"'],
    [
      ['limit', '--queue', 'cpu', '--max-bytes', '64MB'],
      '--max-bytes is "64MB"; expected a whole number with MiB or GiB',
    ],
    [['limit', '--queue', 'cpu', '--max-age', '10'], '--max-age is "10"'],
    [['limit'], 'missing option --queue QUEUE or --api-key-name NAME'],
    [['limit', '--queue', 'cpu', '--burst', '3', '--rate', '1/1s'], '--burst requires --rate-per-key'],
    [
      ['limit', '--queue', 'cpu', '--concurrency-key', 'acme'],
      'specify a limit of the concurrency key: --concurrency or --rate',
    ],
    [
      ['limit', '--queue', 'cpu', '--concurrency-key', 'acme', '--concurrency', '3', '--max-age', '1m'],
      '--max-age is a limit of a queue; remove --concurrency-key',
    ],
    [
      ['limit', '--queue', 'cpu', '--concurrency-key', 'acme', '--rate', 'none', '--burst', '3'],
      '--burst requires a rate; --rate is none',
    ],
    [['limit', '--queue', 'cpu', '--permits', 'db'], "--permits is 'db'; expected NAME=N or NAME=none, such as db=5"],
    [['limit', '--queue', 'cpu', '--permits', 'db=5', '--permits', 'db=6'], "--permits names 'db' twice"],
    [['limit', '--queue', 'cpu', '--task', 'a.b'], 'missing option --concurrency N'],
    [
      ['limit', '--queue', 'cpu', '--task', 'a.b', '--concurrency', '3', '--permits', 'db=1'],
      '--permits is not a limit of a task definition; remove --task',
    ],
    [['limit', '--queue', 'cpu', '--enqueue-rate', '1/1s'], '--enqueue-rate requires --api-key-name'],
    [['limit', '--api-key-name', 'shop'], 'specify a limit of the API key: --enqueue-rate or --max-unfinished-tasks'],
    [['limit', '--api-key-name', 'shop', '--max-unfinished-tasks', '5'], 'missing option --queue QUEUE'],
    [
      ['limit', '--api-key-name', 'shop', '--enqueue-rate', '1000001/1s'],
      "--enqueue-rate is '1000001'; expected a whole number from 1 to 1000000",
    ],
    [
      ['limit', '--api-key-name', 'shop', '--max-tasks', '5'],
      '--max-tasks is a limit of a queue; remove --api-key-name',
    ],
    [
      ['drain', '--queue', 'cpu', '--mode', 'sotf'],
      "--mode is 'sotf'; expected one of light, soft, soft_timeout, hard; did you mean soft?",
    ],
    [['drain', '--queue', 'cpu', '--mode', 'hard', '--timeout', '1s'], '--timeout requires --mode soft_timeout'],
    [['drain', '--queue', 'cpu', '--dry-run', '--wait', '1s'], '--dry-run and --wait cannot be combined'],
    [['audit', '--wait', '1s'], '--wait requires the ID of a command'],
    [['audit', 'c1', '--limit', '1'], '--limit cannot be combined with an ID'],
  ])('%j is rejected as invalid usage', async (args, message) => {
    expect(await run(nowhere, args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
  })
})

describe('log-level without LEVEL', () => {
  const logLevel = { level: 'debug', by: 'ann', command: 'c-1', until: '2026-01-01T00:20:00.000Z' } as const
  const inForce = 'every process logs at debug, set by ann; it ends in 10m'

  test('prints the level that is in force, as bullpen fleet does', async () => {
    await using api = await fakeApi({ [FLEET]: ok({ ...TWO, logLevel }) })
    expect(await run(api, ['log-level'])).toEqual({ code: 0, out: `${inForce}\n`, err: '' })
    expect((await run(api, ['fleet'])).out).toContain(inForce)
    expect(jsonLines((await run(api, ['log-level', '--json'])).out)).toEqual([{ logLevel }])
  })

  test('says so if no level is in force', async () => {
    await using api = await fakeApi({ [FLEET]: ok(TWO) })
    expect((await run(api, ['log-level'])).out).toBe('every process logs at the level of its settings\n')
    expect(jsonLines((await run(api, ['log-level', '--json'])).out)).toEqual([{ logLevel: null }])
  })
})

describe('--worker', () => {
  const hostile = 'über pod/1\u001b[2J:7:x'
  const answers = {
    [SEND]: done(),
    [FLEET]: ok(fleetOf([workerOf(P1), workerOf(`${P1}0`), workerOf(P2), workerOf(hostile)])),
  }
  const named = (api: { seen: { body: unknown }[] }) => lastBody(api).worker

  test('accepts a unique prefix, and a full name that is a prefix of another name', async () => {
    await using api = await fakeApi(answers)
    await run(api, ['pause', '--worker', 'worker-8'])
    expect(named(api)).toBe(P2)
    await run(api, ['pause', '--worker', P1])
    expect(named(api)).toBe(P1)
  })

  test('accepts a name as it is printed, without control characters', async () => {
    await using api = await fakeApi(answers)
    await run(api, ['stop', 'über pod/1 [2J:7:x/cpu/2'])
    expect(api.seen.at(-1)?.body).toMatchObject({ worker: hostile, queue: 'cpu', slot: 2 })
    await run(api, ['pause', '--worker', 'über pod/1 ['])
    expect(named(api)).toBe(hostile)
  })

  test('prefers an exact name to another name that looks the same when printed', async () => {
    const twins = fleetOf([workerOf('a\tb'), workerOf('a b')])
    await using api = await fakeApi({ ...answers, [FLEET]: ok(twins) })
    await run(api, ['pause', '--worker', 'a b'])
    expect(named(api)).toBe('a b')
  })

  test('lists the candidates of an ambiguous prefix, and sends no command', async () => {
    await using api = await fakeApi(answers)
    const { code, err } = await run(api, ['drain', '--worker', 'worker-'])
    expect({ code, err }).toMatchObject({
      code: 2,
      err: expect.stringContaining(`--worker worker- is ambiguous: ${P1}, ${P1}0, ${P2}\n`),
    })
    expect(api.seen.map(({ request }) => request)).toEqual([FLEET])
  })

  test('lists the running workers if none matches', async () => {
    await using api = await fakeApi(answers)
    const { code, err } = await run(api, ['drain', '--worker', 'nobody', '--json'])
    expect({ code, error: jsonLines(err) }).toMatchObject({
      code: 3,
      error: [{ error: { code: 'worker_not_found', detail: expect.stringContaining(P2), outcome: 'refused' } }],
    })
  })

  test.each([
    [['pause', '--worker', 'nobody']],
    [['resume', '--worker', 'nobody']],
    [['drain', '--worker', 'nobody']],
    [['drain', '--worker', 'nobody', '--dry-run']],
    [['stop', 'nobody/cpu/1']],
    [['resize', '--queue', 'cpu', '--worker', 'nobody', '--concurrency', '2']],
  ])('%j with an unknown worker sends no command, and does not say that one may have taken effect', async (args) => {
    await using api = await fakeApi(answers)
    const { code, err } = await run(api, args)
    expect(code).toBe(3)
    expect(err).toMatch(/^bullpen: worker_not_found: no worker is named nobody; the running workers are [^\n]+\n$/)
    expect(api.seen.map(({ request }) => request)).toEqual([FLEET])
  })
})

describe('drain --wait', () => {
  const ONE = 'GET /v1/fleet?queue=cpu'
  const drain = ['drain', '--queue', 'cpu', '--wait', '10s']
  const drained = (more: Partial<CommandView> = {}) =>
    ok(
      commandView(
        { action: 'drain', queue: 'cpu', mode: 'soft_timeout' },
        { responses: [{ worker: P1, outcome: 'done' }], ...more },
      ),
    )
  const inTurn = (...views: readonly FleetView[]) => {
    let at = 0
    return () => ok(views[Math.min(at++, views.length - 1)])
  }
  const running = fleetOf([workerOf(P1, { pools: [pool({ state: 'SHUTTING_DOWN', busy: 2 })] })])

  test('returns when the pools have ended or their workers have exited, and shows its progress on a terminal', async () => {
    const ended = fleetOf([
      workerOf(P2, { pools: [pool({ state: 'SHUTDOWN' }), pool({ queue: 'files' })] }),
      workerOf('started since', { pools: [pool({ state: 'NEW', notReady: "its queue's fleet drains" })] }),
    ])
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: inTurn(running, ended) })
    const stderr = terminal()
    const { code, out } = await run(api, drain, { stderr })
    expect({ code, out }).toEqual({
      code: 0,
      out: `drain of cpu started, soft_timeout  command c1\n  ${P1}  done\ncpu: drained\n`,
    })
    expect(stderr.text).toContain('\r\u001b[2Kcpu: waiting for 1 pool, 2 running tasks')
    expect(stderr.text.endsWith('\u001b[2K')).toBe(true)
  })

  test('shows no progress in a pipe, and prints both responses as JSON', async () => {
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: inTurn(running, fleetOf([])) })
    const { code, out, err } = await run(api, [...drain, '--json'], { stderr: new Capture() })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(jsonLines(out)).toMatchObject([{ id: 'c1', outcome: 'done' }, { workers: [] }])
  })

  test('ends with exit code 1 when the time is up, and prints which pools are left', async () => {
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: ok(running) })
    const { code, out } = await run(api, ['drain', '--queue', 'cpu', '--wait', '100ms'])
    expect({ code, last: out.trimEnd().split('\n').at(-1) }).toEqual({
      code: 1,
      last: 'cpu: not drained yet: 1 pool, 2 running tasks',
    })
  })

  test('ends with exit code 1 if a worker falls silent or a pool fails', async () => {
    const bad = fleetOf([
      workerOf(P1, { alive: false }),
      workerOf(P2, { pools: [pool({ state: 'TERMINATE_TIMEOUT', label: 'drain timed out' })] }),
    ])
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: ok(bad) })
    const { code, out } = await run(api, drain)
    expect(code).toBe(1)
    expect(out).toContain(`${P1} stopped sending heartbeats\n`)
    expect(out).toContain(`cpu of ${P2}: drain timed out\n`)
  })

  test('does not wait if the command is refused', async () => {
    await using api = await fakeApi({ [SEND]: drained({ outcome: 'refused' }) })
    expect(await run(api, drain)).toMatchObject({ code: 1 })
    expect(api.seen).toHaveLength(1)
  })

  test('waits only for the pools of the worker', async () => {
    const other = fleetOf([workerOf(P2)])
    await using api = await fakeApi({ [SEND]: drained(), [FLEET]: inTurn(TWO, TWO, other) })
    expect(await run(api, ['drain', '--worker', P1, '--wait', '10s'])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${P1}: drained\n`),
    })
  })
})

describe('drain --dry-run', () => {
  const WORKERS = 'GET /v1/slots?queue=cpu'
  const answers = (slots: readonly object[]) => ({ 'GET /v1/fleet?queue=cpu': ok(TWO), [WORKERS]: ok({ slots }) })

  test('sends no command and ends with exit code 1 if a task may be interrupted', async () => {
    await using api = await fakeApi(answers([busy(1, 12, { kind: 'short' }), busy(2, 90), idle(3)]))
    const { code, out } = await run(api, ['drain', '--queue', 'cpu', '--dry-run'])
    expect({ code, last: out.trimEnd().split('\n').at(-1) }).toEqual({
      code: 1,
      last: 'drain of cpu: 1 of 2 may be signalled and returned to the queue',
    })
    expect(api.seen.map(({ request }) => request)).toEqual(['GET /v1/fleet?queue=cpu', WORKERS])
    const asJson = await run(api, ['drain', '--queue', 'cpu', '--dry-run', '--json'])
    expect(jsonLines(asJson.out)).toMatchObject([
      { dryRun: { queue: 'cpu', mode: 'soft_timeout', workers: [{ worker: P1, maySignal: 1 }, { worker: P2 }] } },
    ])
  })

  test('ends with exit code 0 if every task ends in time or no worker is live', async () => {
    await using api = await fakeApi(answers([busy(1, 12, { kind: 'short' })]))
    expect(await run(api, ['drain', '--queue', 'cpu', '--dry-run'])).toMatchObject({ code: 0 })
    await using empty = await fakeApi({
      'GET /v1/fleet?queue=cpu': ok(fleetOf([], [queueOf('cpu', { pools: 0 })])),
      [WORKERS]: ok({ slots: [] }),
    })
    expect(await run(empty, ['drain', '--queue', 'cpu', '--dry-run'])).toMatchObject({
      code: 0,
      out: 'drain of cpu: no live workers\n',
    })
  })
})

describe('audit', () => {
  const order = { action: 'stop', worker: P1, queue: 'cpu', slot: 3, how: 'hard' } as const
  const commands = [
    commandView(order),
    commandView({ action: 'limit', queue: 'cpu', rate: { max: 10, per: '1s' } }, { by: 'b\u001b' }),
  ]

  test('lists the newest commands, a line for each', async () => {
    await using api = await fakeApi({
      'GET /v1/commands?limit=2': ok({ commands }),
      'GET /v1/commands': ok({ commands: [] }),
    })
    expect((await run(api, ['audit', '--limit', '2'])).out).toBe(
      `2026-01-01T00:10:00Z  done  stop ${P1}/cpu/3, hard  ann (key 3fa29c01)  c1\n` +
        '2026-01-01T00:10:00Z  done  limit cpu, rate 10/1s                     b                   c1\n',
    )
    expect(await run(api, ['audit'])).toEqual({ code: 0, out: '', err: 'no commands have been sent\n' })
    expect(await run(api, ['audit', '--json'])).toMatchObject({ err: '' })
    expect(jsonLines((await run(api, ['audit', '--limit', '2', '--json'])).out)).toEqual([{ commands }])
  })

  test('shows one command, and with --wait reports its outcome in the exit code', async () => {
    const partly = commandView(order, { outcome: 'partly', responses: [{ worker: P1, outcome: 'gone' }] })
    await using api = await fakeApi({ 'GET /v1/commands/c1': ok(partly), 'GET /v1/commands/c1?wait=30': ok(partly) })
    expect(await run(api, ['audit', 'c1'])).toEqual({
      code: 0,
      out: `by ann (key 3fa29c01), 2026-01-01T00:10:00.000Z\nstop ${P1}/cpu/3, hard  partly  command c1\n  ${P1}  gone\n`,
      err: '',
    })
    expect(await run(api, ['audit', 'c1', '--wait', '30s'])).toMatchObject({ code: 1 })
  })
})
