// Tests the commands for the fleet against a fake API: what is asked of it, what is told, and the exit codes.
import { userInfo } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { CommandView, FleetView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { Capture, run, terminal } from './capture.fixture.ts'
import { type Answer, fakeApi, problem, runBullpen } from './fake-api.fixture.ts'
import { busy, commandView, fleetOf, idle, P1, P2, pool, processOf, queueOf } from './fleet.fixture.ts'

const SEND = 'POST /v1/commands?wait=5'
const FLEET = 'GET /v1/fleet'
const TWO = fleetOf([processOf(P1), processOf(P2)])
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

describe('fleet', () => {
  test('shows the fleet, and the slots when asked for them', async () => {
    await using api = await fakeApi({ [FLEET]: ok(TWO), 'GET /v1/workers': ok({ slots: [busy(1, 30), idle(2)] }) })
    const { code, out, err } = await runBullpen(api, ['fleet', '--slots'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^queue {2}busy {2}pools {2}state\ncpu /)
    expect(out).toContain(`\n    ${P1}/cpu/1  WORKING  30s  math.factorial`)
    expect(out).not.toContain('\u001b')
    expect((await run(api, ['fleet'])).out).not.toContain('WORKING')
  })

  test('with --json is what the API answered', async () => {
    const slots = { slots: [busy(1, 30)] }
    const one = fleetOf([processOf(P1)])
    await using api = await fakeApi({ 'GET /v1/fleet?queue=cpu': ok(one), 'GET /v1/workers?queue=cpu': ok(slots) })
    const { out } = await run(api, ['fleet', '--queue', 'cpu', '--slots', '--json'])
    expect(jsonLines(out)).toEqual([one, slots])
  })

  test('that is empty is no error, and a queue that there is not is one', async () => {
    await using api = await fakeApi({
      [FLEET]: ok(fleetOf([], [])),
      'GET /v1/fleet?queue=cpv': problem('queue_not_found', 404, { detail: "did you mean 'cpu'?" }),
    })
    expect(await run(api, ['fleet'])).toMatchObject({ code: 0, out: expect.stringContaining('no worker works here') })
    expect(await run(api, ['fleet', '--queue', 'cpv'])).toMatchObject({ code: 3, err: expect.stringContaining('cpu') })
  })

  test('fits a terminal of 80 columns', async () => {
    await using api = await fakeApi({ [FLEET]: ok(TWO), 'GET /v1/workers': ok({ slots: [busy(1, 30), idle(2)] }) })
    const { out } = await run(api, ['fleet', '--slots'], { stdout: terminal(80) })
    const seen = stripVTControlCharacters(out).split('\n')
    expect(Math.max(...seen.map((line) => line.length))).toBeLessThanOrEqual(80)
  })
})

describe('a command', () => {
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
    [['limit', '--queue', 'cpu', '--rate', 'none'], { action: 'limit', queue: 'cpu', rate: 'none' }],
  ])('%j is sent as an order', async (args, order) => {
    await using api = await fakeApi({ [SEND]: done({ answers: [{ worker: P1, outcome: 'done' }] }), [FLEET]: ok(TWO) })
    expect(await run(api, args)).toMatchObject({ code: 0 })
    const { id, ...body } = lastBody(api)
    expect(body).toEqual({ ...order, by: 'ann' })
    expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  })

  test('is by whoever $BULLPEN_BY names, and else by the user', async () => {
    await using api = await fakeApi({ [SEND]: done() })
    await run(api, ['pause', '--queue', 'cpu'], { env: {} })
    await run(api, ['pause', '--queue', 'cpu'], { env: { BULLPEN_BY: `a\nb${'x'.repeat(200)}` } })
    const by = api.seen.map(({ body }) => (body as { by: string }).by)
    expect(by).toEqual([userInfo().username, expect.stringMatching(/^a bx{96}…$/)])
  })

  const answers = [
    { worker: P1, outcome: 'done', detail: 'paused' },
    { worker: 'b\u001b[2J', outcome: 'refused', detail: 'no\nsuch pool' },
  ] as const

  test.each([
    ['done', 0],
    ['partly', 1],
    ['refused', 1],
    ['pending', 1],
  ] as const)('that is %s is exit code %i', async (outcome, code) => {
    await using api = await fakeApi({ [SEND]: done({ outcome, answers: [...answers] }) })
    const ended = await run(api, ['pause', '--queue', 'cpu'])
    expect(ended.code).toBe(code)
    expect(ended.out).toBe(
      `pause cpu  ${outcome}  c1\n  ${P1}  done     paused\n  b [2J                    refused  no such pool\n`,
    )
    expect(ended.err).toBe(outcome === 'pending' ? 'not all have answered yet: bullpen commands c1 --wait 30s\n' : '')
    const asJson = await run(api, ['pause', '--queue', 'cpu', '--json'])
    expect(asJson).toMatchObject({ code, err: '' })
    expect(jsonLines(asJson.out)).toMatchObject([{ outcome, answers }])
  })

  test('for nobody says so', async () => {
    await using api = await fakeApi({ [SEND]: done() })
    const told = { err: 'no worker works it now\n' }
    expect(await run(api, ['pause', '--queue', 'cpu'])).toMatchObject({ code: 0, ...told })
    expect(await run(api, ['resize', '--queue', 'cpu', '--concurrency', '8'])).toMatchObject({ code: 1, ...told })
  })

  test('that the API refuses is exit code 3', async () => {
    await using api = await fakeApi({ [SEND]: problem('queue_not_found', 404) })
    expect(await run(api, ['pause', '--queue', 'cpv'])).toMatchObject({ code: 3, err: 'bullpen: queue_not_found\n' })
  })

  test.each([
    [['pause'], 'it is not said for whom: --queue QUEUE, --worker WORKER, or both'],
    [['stop', 'cpu/3'], "'cpu/3' is no slot: it is WORKER/QUEUE/SLOT"],
    [['stop', 'p/Cpu/3'], 'is no slot'],
    [['stop', 'p/cpu/0'], 'is no slot'],
    [['resize', '--queue', 'cpu'], '--concurrency N is missing'],
    [
      ['resize', '--queue', 'cpu', '--concurrency', 'many'],
      "--concurrency is 'many': it is a whole number from 1 to 999999999",
    ],
    [['limit', '--queue', 'cpu'], 'it is not said what: --concurrency N, --rate RATE, or both'],
    [['limit', '--queue', 'cpu', '--rate', '100'], "--rate is '100': it is starts in a time, such as 100/1s"],
    [['limit', '--queue', 'cpu', '--rate', '100/1'], '--rate is "1": a duration has a unit'],
    [['drain', '--queue', 'cpu', '--mode', 'sotf'], "--mode is 'sotf'; did you mean soft?; it is one of light, soft"],
    [['drain', '--queue', 'cpu', '--mode', 'hard', '--timeout', '1s'], '--timeout is for the mode soft_timeout'],
    [['drain', '--queue', 'cpu', '--dry-run', '--wait', '1s'], '--dry-run and --wait contradict each other'],
    [['commands', '--wait', '1s'], '--wait is for one command'],
    [['commands', 'c1', '--limit', '1'], '--limit is for the list'],
  ])('%j is wrong usage', async (args, told) => {
    expect(await run(nowhere, args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(told) })
  })
})

describe('a worker', () => {
  const odd = 'über pod/1\u001b[2J:7:x'
  const answers = {
    [SEND]: done(),
    [FLEET]: ok(fleetOf([processOf(P1), processOf(`${P1}0`), processOf(P2), processOf(odd)])),
  }
  const named = (api: { seen: { body: unknown }[] }) => lastBody(api).worker

  test('may be named by the beginning of its name, and by a whole name that is the beginning of another', async () => {
    await using api = await fakeApi(answers)
    await run(api, ['pause', '--worker', 'worker-8'])
    expect(named(api)).toBe(P2)
    await run(api, ['pause', '--worker', P1])
    expect(named(api)).toBe(P1)
  })

  test('with a strange name is meant by the name as it is shown', async () => {
    await using api = await fakeApi(answers)
    await run(api, ['stop', 'über pod/1 [2J:7:x/cpu/2'])
    expect(api.seen.at(-1)?.body).toMatchObject({ worker: odd, queue: 'cpu', slot: 2 })
    await run(api, ['pause', '--worker', 'über pod/1 ['])
    expect(named(api)).toBe(odd)
  })

  test('is meant by its exact name, where another one is shown as the same', async () => {
    const twins = fleetOf([processOf('a\tb'), processOf('a b')])
    await using api = await fakeApi({ ...answers, [FLEET]: ok(twins) })
    await run(api, ['pause', '--worker', 'a b'])
    expect(named(api)).toBe('a b')
  })

  test('that could be several is told with all of them, and nothing is commanded', async () => {
    await using api = await fakeApi(answers)
    const { code, err } = await run(api, ['drain', '--worker', 'worker-'])
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(`any of ${P1}, ${P1}0, ${P2}\n`) })
    expect(api.seen.map(({ request }) => request)).toEqual([FLEET])
  })

  test('that there is not is told with those that there are', async () => {
    await using api = await fakeApi(answers)
    const { code, err } = await run(api, ['drain', '--worker', 'nobody', '--json'])
    expect({ code, error: jsonLines(err) }).toMatchObject({
      code: 3,
      error: [{ error: { code: 'worker_not_found', detail: expect.stringContaining(P2) } }],
    })
  })
})

describe('drain --wait', () => {
  const ONE = 'GET /v1/fleet?queue=cpu'
  const drain = ['drain', '--queue', 'cpu', '--wait', '10s']
  const drained = (more: Partial<CommandView> = {}) =>
    ok(
      commandView(
        { action: 'drain', queue: 'cpu', mode: 'soft_timeout' },
        { answers: [{ worker: P1, outcome: 'done' }], ...more },
      ),
    )
  const inTurn = (...views: readonly FleetView[]) => {
    let at = 0
    return () => ok(views[Math.min(at++, views.length - 1)])
  }
  const running = fleetOf([processOf(P1, { pools: [pool({ state: 'SHUTTING_DOWN', busy: 2 })] })])

  test('is over when the pools have ended or their workers have gone, and tells how far it is on a terminal', async () => {
    const ended = fleetOf([
      processOf(P2, { pools: [pool({ state: 'SHUTDOWN' }), pool({ queue: 'files' })] }),
      processOf('started since', { pools: [pool({ state: 'NEW', notReady: "its queue's fleet drains" })] }),
    ])
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: inTurn(running, ended) })
    const stderr = terminal()
    const { code, out } = await run(api, drain, { stderr })
    expect({ code, out }).toEqual({ code: 0, out: `drain cpu, soft_timeout  done  c1\n  ${P1}  done\ncpu: ended\n` })
    expect(stderr.text).toContain('\r\u001b[2Kcpu: waiting for 1 pool, 2 tasks run')
    expect(stderr.text.endsWith('\u001b[2K')).toBe(true)
  })

  test('tells nothing meanwhile in a pipe, and both answers as JSON', async () => {
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: inTurn(running, fleetOf([])) })
    const { code, out, err } = await run(api, [...drain, '--json'], { stderr: new Capture() })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(jsonLines(out)).toMatchObject([{ id: 'c1', outcome: 'done' }, { workers: [] }])
  })

  test('that is not over in time is exit code 1, with what is left', async () => {
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: ok(running) })
    const { code, out } = await run(api, ['drain', '--queue', 'cpu', '--wait', '100ms'])
    expect({ code, last: out.trimEnd().split('\n').at(-1) }).toEqual({
      code: 1,
      last: 'cpu: not ended: 1 pool, 2 tasks run',
    })
  })

  test('a worker that fell silent, or a pool that ended badly, is exit code 1', async () => {
    const bad = fleetOf([
      processOf(P1, { alive: false }),
      processOf(P2, { pools: [pool({ state: 'TERMINATE_TIMEOUT' })] }),
    ])
    await using api = await fakeApi({ [SEND]: drained(), [ONE]: ok(bad) })
    const { code, out } = await run(api, drain)
    expect(code).toBe(1)
    expect(out).toContain(`${P1} has fallen silent\n`)
    expect(out).toContain(`cpu of ${P2}: TERMINATE_TIMEOUT, did not end well\n`)
  })

  test('is not begun when the command is refused', async () => {
    await using api = await fakeApi({ [SEND]: drained({ outcome: 'refused' }) })
    expect(await run(api, drain)).toMatchObject({ code: 1 })
    expect(api.seen).toHaveLength(1)
  })

  test('of a worker waits for its pools alone', async () => {
    const other = fleetOf([processOf(P2)])
    await using api = await fakeApi({ [SEND]: drained(), [FLEET]: inTurn(TWO, TWO, other) })
    expect(await run(api, ['drain', '--worker', P1, '--wait', '10s'])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${P1}: ended\n`),
    })
  })
})

describe('drain --dry-run', () => {
  const WORKERS = 'GET /v1/workers?queue=cpu'
  const answers = (slots: readonly object[]) => ({ 'GET /v1/fleet?queue=cpu': ok(TWO), [WORKERS]: ok({ slots }) })

  test('commands nothing, tells what would be interrupted, and is exit code 1', async () => {
    await using api = await fakeApi(answers([busy(1, 12, { kind: 'short' }), busy(2, 90), idle(3)]))
    const { code, out } = await run(api, ['drain', '--queue', 'cpu', '--dry-run'])
    expect({ code, last: out.trimEnd().split('\n').at(-1) }).toEqual({
      code: 1,
      last: 'drain of cpu: 1 of 2 may be signalled and handed back',
    })
    expect(api.seen.map(({ request }) => request)).toEqual(['GET /v1/fleet?queue=cpu', WORKERS])
    const asJson = await run(api, ['drain', '--queue', 'cpu', '--dry-run', '--json'])
    expect(jsonLines(asJson.out)).toMatchObject([
      { dryRun: { queue: 'cpu', mode: 'soft_timeout', workers: [{ worker: P1, maySignal: 1 }, { worker: P2 }] } },
    ])
  })

  test('is exit code 0 when all ends in time, or when no worker is there', async () => {
    await using api = await fakeApi(answers([busy(1, 12, { kind: 'short' })]))
    expect(await run(api, ['drain', '--queue', 'cpu', '--dry-run'])).toMatchObject({ code: 0 })
    await using empty = await fakeApi({
      'GET /v1/fleet?queue=cpu': ok(fleetOf([], [queueOf('cpu', { pools: 0 })])),
      [WORKERS]: ok({ slots: [] }),
    })
    expect(await run(empty, ['drain', '--queue', 'cpu', '--dry-run'])).toMatchObject({
      code: 0,
      out: 'drain of cpu: no live worker works it\n',
    })
  })
})

describe('commands', () => {
  const order = { action: 'stop', worker: P1, queue: 'cpu', slot: 3, how: 'hard' } as const
  const commands = [
    commandView(order),
    commandView({ action: 'limit', queue: 'cpu', rate: { max: 10, per: '1s' } }, { by: 'b\u001b' }),
  ]

  test('lists the newest, on a line each', async () => {
    await using api = await fakeApi({
      'GET /v1/commands?limit=2': ok({ commands }),
      'GET /v1/commands': ok({ commands: [] }),
    })
    expect((await run(api, ['commands', '--limit', '2'])).out).toBe(
      `2026-01-01T00:10:00Z  done  stop ${P1}/cpu/3, hard  ann (key 3fa29c01)  c1\n` +
        '2026-01-01T00:10:00Z  done  limit cpu, 10 in 1s                       b                   c1\n',
    )
    expect(await run(api, ['commands'])).toEqual({ code: 0, out: '', err: '' })
    expect(jsonLines((await run(api, ['commands', '--limit', '2', '--json'])).out)).toEqual([{ commands }])
  })

  test('shows one, and with --wait says by its exit code what has come of it', async () => {
    const partly = commandView(order, { outcome: 'partly', answers: [{ worker: P1, outcome: 'gone' }] })
    await using api = await fakeApi({ 'GET /v1/commands/c1': ok(partly), 'GET /v1/commands/c1?wait=30': ok(partly) })
    expect(await run(api, ['commands', 'c1'])).toEqual({
      code: 0,
      out: `by ann (key 3fa29c01), 2026-01-01T00:10:00.000Z\nstop ${P1}/cpu/3, hard  partly  c1\n  ${P1}  gone\n`,
      err: '',
    })
    expect(await run(api, ['commands', 'c1', '--wait', '30s'])).toMatchObject({ code: 1 })
  })
})
