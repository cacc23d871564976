// Tests bullpen top on a fake terminal and on a pipe, against a fake API.
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { Capture, run, terminal } from '../../capture.fixture.ts'
import { type Answer, type FakeApi, fakeApi, problem } from '../../fake-api.fixture.ts'
import { busy, fleetOf, idle, P1, QUEUES, workerOf } from '../../fleet.fixture.ts'

const ANSWERS = {
  'GET /v1/queues': [200, QUEUES],
  'GET /v1/fleet': [200, fleetOf([workerOf(P1)])],
  'GET /v1/slots': [200, { slots: [busy(1, 12), idle(2)] }],
} as const satisfies Record<string, Answer>
const nowhere = { url: 'http://127.0.0.1:1' }

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'

/** A terminal of 100 columns and 24 rows with a keyboard, on which bullpen top runs. */
function screen(api: { readonly url: string }, ...args: readonly string[]) {
  const stdout = Object.assign(terminal(100), { rows: 24 })
  const keyboard = Object.assign(new PassThrough(), { isTTY: true, isRaw: false })
  const stdin = Object.assign(keyboard, { setRawMode: (isRaw: boolean) => Object.assign(keyboard, { isRaw }) })
  const events = new EventEmitter()
  const ended = run(api, ['top', ...(args.length === 0 ? ['--interval', '200ms'] : args)], {
    stdout,
    stdin,
    events,
    env: {},
  })
  return { stdout, stdin, events, ended, shows: (text: string) => eventually(() => stdout.text.includes(text)) }
}

type Screen = ReturnType<typeof screen>

function expectRestored({ stdout, stdin, events }: Screen): void {
  expect(stdout.text.startsWith(ENTER)).toBe(true)
  expect(stdout.text.endsWith(LEAVE)).toBe(true)
  expect(stdin.isRaw).toBe(false)
  expect(stdin.isPaused()).toBe(true)
  expect(events.eventNames()).toEqual([])
  expect(stdout.listenerCount('resize')).toBe(0)
}

describe('top on a terminal', () => {
  it.each([
    ['q', ({ stdin }: Screen) => stdin.write('q')],
    ['Ctrl-C', ({ stdin }: Screen) => stdin.write('\u0003')],
    ['SIGTERM', ({ events }: Screen) => events.emit('SIGTERM')],
    ['SIGHUP', ({ events }: Screen) => events.emit('SIGHUP')],
  ])('draws the fleet in place until %s, and then restores the terminal', async (_, leave) => {
    await using api = await fakeApi(ANSWERS)
    const top = screen(api)
    await top.shows('http_503')
    expect(top.stdin.isRaw).toBe(true)
    const [, first = ''] = top.stdout.text.split('\u001b[H').filter((frame) => frame.includes('cpu'))
    expect(first.split('\r\n').length).toBeLessThanOrEqual(24)
    leave(top)
    expect(await top.ended).toMatchObject({ code: 0, err: '' })
    expectRestored(top)
  })

  it('reads the fleet again at every interval, and keys other than q change nothing', async () => {
    await using api = await fakeApi(ANSWERS)
    const top = screen(api)
    top.stdin.write('x\u001b[A')
    await eventually(() => api.seen.filter(({ request }) => request === 'GET /v1/slots').length >= 3)
    top.stdin.write('q')
    await top.ended
  })

  it('draws again when the size changes, and fits into the new size', async () => {
    await using api = await fakeApi(ANSWERS)
    const top = screen(api, '--interval', '1h')
    await top.shows('http_503')
    Object.assign(top.stdout, { columns: 60, rows: 8, text: '' }).emit('resize')
    const lines = top.stdout.text.replaceAll('\u001b[K', '').split('\r\n')
    expect(lines).toHaveLength(8)
    expect(lines[3]).toBe('queue  waiting  active  dead  oldest  in/s  out/s  state')
    top.stdin.write('q')
    await top.ended
  })

  it('keeps the last data, marked as old, while the API cannot be reached, and recovers', async () => {
    let isAway = false
    const answers = Object.entries(ANSWERS).map(([request, answer]) => [
      request,
      () => (isAway ? problem('internal_error', 500, { detail: 'it has failed' }) : answer),
    ])
    await using api = await fakeApi(Object.fromEntries(answers))
    const top = screen(api)
    await top.shows('http_503')
    isAway = true
    await top.shows('OLD DATA, from ')
    const [, old = ''] = top.stdout.text.split('OLD DATA')
    expect(old).toContain('internal_error: it has failed')
    expect(old).toContain('http_503')
    isAway = false
    top.stdout.text = ''
    await eventually(() => top.stdout.text.split('\u001b[H').some((frame) => /cpu/.test(frame) && !/OLD/.test(frame)))
    top.stdin.write('q')
    expect(await top.ended).toMatchObject({ code: 0 })
  })

  it('says that there is no data yet if the API has never been reached', async () => {
    const top = screen(nowhere)
    await top.shows('NO DATA YET; trying again: unreachable')
    top.stdin.write('q')
    expect(await top.ended).toMatchObject({ code: 0 })
    expectRestored(top)
  })

  it('can be left while a response is outstanding', async () => {
    await using api = await fakeApi({ ...ANSWERS, 'GET /v1/slots': 'silence' })
    const top = screen(api)
    await eventually(() => api.seen.length === 3)
    top.stdin.write('q')
    expect(await top.ended).toMatchObject({ code: 0 })
  })

  it('restores the terminal before it reports an error that does not pass', async () => {
    await using api = await fakeApi({ ...ANSWERS, 'GET /v1/fleet': problem('unauthorized', 401) })
    const top = screen(api)
    expect(await top.ended).toMatchObject({ code: 3, err: expect.stringContaining('bullpen: unauthorized') })
    expectRestored(top)
  })

  it('restores the terminal if the process exits unexpectedly', async () => {
    await using api = await fakeApi(ANSWERS)
    const top = screen(api)
    await top.shows('http_503')
    top.events.emit('exit')
    expect(top.stdout.text.endsWith(LEAVE)).toBe(true)
    top.stdin.write('q')
    await top.ended
  })
})

/** A pipe whose reader leaves after this many writes. */
class ShortPipe extends Capture {
  #left: number
  constructor(writes: number) {
    super()
    this.#left = writes
    this.on('error', () => {})
  }
  override _write(chunk: Buffer, encoding: string, done: (error?: Error) => void) {
    if (this.#left-- > 0) super._write(chunk, encoding, done)
    else done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
  }
}

const print = (api: FakeApi, args: readonly string[], stdout: Capture = new Capture(), env = {}) =>
  run(api, ['top', ...args], { stdout, env })

describe('top on a pipe', () => {
  it('with --once prints everything once, without control characters', async () => {
    await using api = await fakeApi(ANSWERS)
    const { code, out, err } = await print(api, ['--once'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('slots 1/4 busy (25%)')
    expect(out).not.toContain('\u001b')
  })

  it('with --once --json prints one line in the form of the API, with the running tasks only', async () => {
    await using api = await fakeApi(ANSWERS)
    const { out } = await print(api, ['--once', '--json'])
    expect(JSON.parse(out)).toEqual({
      now: QUEUES.now,
      queues: QUEUES.queues,
      workers: [workerOf(P1)],
      running: [busy(1, 12)],
    })
  })

  it('with --once fails like other commands', async () => {
    await using api = await fakeApi({ ...ANSWERS, 'GET /v1/fleet': problem('internal_error', 500) })
    expect(await print(api, ['--once'])).toMatchObject({ code: 3, out: '' })
  })

  it('prints a snapshot at each interval until the reader leaves, and reports failures that may pass', async () => {
    let calls = 0
    const fleet = () => (++calls === 2 ? problem('internal_error', 500) : ANSWERS['GET /v1/fleet'])
    await using api = await fakeApi({ ...ANSWERS, 'GET /v1/fleet': fleet })
    const { code, out, err } = await print(api, ['--interval', '200ms'], new ShortPipe(2))
    expect(code).toBe(0)
    expect(out.match(/^bullpen top/gm)).toHaveLength(2)
    expect(err).toBe('bullpen: internal_error\n')
    expect(calls).toBe(4)
  })

  it('with --json prints a line at each interval, also on a terminal', async () => {
    await using api = await fakeApi(ANSWERS)
    const pipe = Object.assign(new ShortPipe(2), { isTTY: true, columns: 80 })
    const { out } = await print(api, ['--interval', '200ms', '--json'], pipe)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).now),
    ).toEqual([QUEUES.now, QUEUES.now])
  })

  it('prints lines on a terminal that cannot be drawn on', async () => {
    await using api = await fakeApi(ANSWERS)
    const { getColorDepth } = terminal()
    const dumb = Object.assign(new ShortPipe(1), { isTTY: true, columns: 80, getColorDepth })
    const { out } = await print(api, ['--interval', '200ms'], dumb, { TERM: 'dumb' })
    expect(out).toContain('slots 1/4 busy (25%)')
    expect(out).not.toContain('\u001b[?')
  })
})

it('top --queue reads only the given queue', async () => {
  const answers = Object.entries(ANSWERS).map(([request, answer]) => [`${request}?queue=cpu`, answer])
  await using api = await fakeApi(Object.fromEntries(answers))
  expect(await print(api, ['--once', '--queue', 'cpu'])).toMatchObject({ code: 0 })
})

it.each([
  [['--once', '--interval', '2s'], '--once and --interval cannot be combined'],
  [['--interval', '10ms'], '200ms'],
])('the arguments %j are refused', async (args, message) => {
  await using api = await fakeApi(ANSWERS)
  const { code, err } = await print(api, args)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
})
