// Tests `bullpen enqueue --bulk` against a fake API: what it sends, what it prints, and when it sends tasks again.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run } from '../capture.fixture.ts'
import { type Answer, type FakeApi, fakeApi, problem, runShell } from '../fake-api.fixture.ts'

const BULK = 'POST /v1/tasks/bulk'
const nowhere = { url: 'http://127.0.0.1:1' }

interface Task {
  readonly task: string
  readonly input: unknown
}

const tasksIn = (body: unknown): readonly Task[] => (body as { readonly tasks: readonly Task[] }).tasks
const stored = (n: unknown) => ({ id: `cpu-${n}`, action: 'created', status: 'waiting' })
const failed = (code: string, status: number, more: object = {}) => ({
  error: { type: `/problems/${code}`, title: code, status, code, ...more },
})
const results = (all: readonly object[]): Answer => [200, { failed: 0, results: all }]

/** Stores every task, except those for which `except` returns another result. */
function storing(except: (task: Task, index: number) => object | undefined = () => undefined) {
  return (body: unknown): Answer =>
    results(
      tasksIn(body).map(
        (task, i) =>
          except(task, i) ?? (task.task === '-' ? failed('unknown_task', 422) : stored(JSON.stringify(task.input))),
      ),
    )
}

/** Returns these answers in turn, and then the last one. */
function inTurn(...answers: readonly ((body: unknown) => Answer)[]) {
  let at = 0
  return (body: unknown): Answer => {
    const answer = answers[Math.min(at, answers.length - 1)]
    at += 1
    return answer?.(body) ?? 'break'
  }
}

const sent = (api: FakeApi) => api.seen.map(({ body }) => tasksIn(body).map(({ input }) => input))
const linesOf = (count: number, from = 1) =>
  Array.from({ length: count }, (_, i) => `{"task":"a.b","input":${from + i}}\n`).join('')
const numbers = (count: number, from = 1) => Array.from({ length: count }, (_, i) => from + i)

/** Runs `bullpen enqueue` with this standard input. */
const enqueue = (api: { readonly url: string }, stdin: string | readonly string[], ...args: readonly string[]) =>
  run(api, ['enqueue', ...args, '--bulk', '-'], { stdin: Readable.from([stdin].flat()) })

function fileWith(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'bullpen-bulk-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'tasks.ndjson'), text)
  return join(directory, 'tasks.ndjson')
}

describe('enqueue --bulk', () => {
  test('enqueues each line of a file, 1,000 in one request, and prints how many there were', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const ended = await run(api, ['enqueue', '--bulk', fileWith(linesOf(2_500))])
    expect(ended).toEqual({ code: 0, out: '2,500 tasks: 2,500 enqueued\n', err: '' })
    expect(sent(api)).toEqual([numbers(1_000), numbers(1_000, 1_001), numbers(500, 2_001)])
    expect(new Set(api.idempotencyKeys).size).toBe(3)
    for (const key of api.idempotencyKeys) expect(key).toMatch(/^"[0-9a-f-]{36}\/[123]";life=600$/)
  })

  test.each([
    ['1m', 600],
    ['1h', 3_692],
    ['365d', 31_536_000],
  ])(
    'generates a key that is remembered for longer than the tasks are sent again, with --retry-for %s',
    async (time, life) => {
      await using api = await fakeApi({ [BULK]: storing() })
      expect(await enqueue(api, linesOf(1), '--retry-for', time)).toMatchObject({ code: 0 })
      expect(api.idempotencyKeys).toEqual([expect.stringMatching(new RegExp(`";life=${life}$`))])
    },
  )

  test('sends the fields of each line, and the options of the command for the others', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const lines = '{"task":"a.b","input":{},"tags":["y"]}\n\n  \r\n{"task":"c.d","input":[1],"delay":"1h"}'
    const { code, out } = await enqueue(api, lines, '--tag', 'x', '--priority', '3')
    expect({ code, out }).toEqual({ code: 0, out: '2 tasks: 2 enqueued\n' })
    expect(tasksIn(api.seen[0]?.body).filter(({ task }) => task !== '-')).toEqual([
      { task: 'a.b', input: {}, tags: ['y'], priority: 3 },
      { task: 'c.d', input: [1], tags: ['x'], priority: 3, delay: '1h' },
    ])
  })

  test('with TASK takes each line as an input', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    expect(await enqueue(api, '{"task":"x"}\n2\n"three"\n', 'a.b')).toMatchObject({ code: 0 })
    expect(tasksIn(api.seen[0]?.body)).toEqual([
      { task: 'a.b', input: { task: 'x' } },
      { task: 'a.b', input: 2 },
      { task: 'a.b', input: 'three' },
    ])
  })

  test('sends no request if there are no lines', async () => {
    await using api = await fakeApi()
    for (const empty of ['', '\n\n']) {
      expect(await enqueue(api, [empty])).toEqual({ code: 0, out: '0 tasks\n', err: '' })
    }
    expect(api.seen).toEqual([])
  })

  test('reports each line that is not a task with its number, and enqueues the others', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const lines = ['{"task":"a.b","input":1}', '{"task":', '[1]', '{"input":{}}', '{"task":"a.b","input":5}']
    const { code, out, err } = await enqueue(api, `${lines.join('\n')}\n`)
    expect({ code, out }).toEqual({ code: 1, out: '5 tasks: 2 enqueued, 3 rejected\n' })
    const expected = 'expected a JSON object such as {"task":"math.factorial","input":{"n":5}}'
    expect(err).toBe(
      `bullpen: line 2: not valid JSON: Unexpected end of JSON input\nbullpen: line 3: ${expected}\nbullpen: line 4: ${expected}\n`,
    )
    expect(sent(api)).toEqual([[1, null, null, null, 5]])
  })

  test('reports a line that is not UTF-8, and one that is too long for a request', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const stdin = Readable.from([Buffer.from([0x22, 0xff, 0x22, 0x0a]), `"${'x'.repeat(5_000_000)}"\n`, '1\n'])
    const { code, err } = await run(api, ['enqueue', 'a.b', '--bulk', '-'], { stdin })
    expect({ code, err }).toEqual({
      code: 1,
      err: 'bullpen: line 1: not valid UTF-8\nbullpen: line 2: longer than 4,128,768 bytes\n',
    })
  })

  test('reports a line that JSON.stringify would change or could not write', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const lines = ['{"n":[1e999]}', '-1e999', `${'['.repeat(50_000)}${']'.repeat(50_000)}`, '1e308']
    const { code, out, err } = await enqueue(api, lines.join('\n'), 'a.b')
    expect({ code, out }).toEqual({ code: 1, out: '4 tasks: 1 enqueued, 3 rejected\n' })
    expect(err).toBe(
      [
        'bullpen: line 1: contains a number that is too large for a double\n',
        'bullpen: line 2: contains a number that is too large for a double\n',
        'bullpen: line 3: contains more than 1,000 levels of nesting\n',
      ].join(''),
    )
    expect(sent(api)).toEqual([[null, null, null, 1e308]])
  })

  test.each(['invalid_request', 'malformed_json'] as const)(
    'finds and reports the lines for which the API refuses the whole request with %s',
    async (refusal) => {
      const detail = "the body contains a '__proto__' key"
      const strict = (body: unknown): Answer =>
        JSON.stringify(body).includes('__proto__') ? problem(refusal, 400, { detail }) : storing()(body)
      await using api = await fakeApi({ [BULK]: strict })
      const bad = '{"task":"a.b","input":{"__proto__":{}}}\n'
      const { code, out, err } = await enqueue(api, `${linesOf(300)}${bad}${linesOf(400)}${bad}${linesOf(298)}`)
      expect({ code, out }).toEqual({ code: 1, out: '1,000 tasks: 998 enqueued, 2 rejected\n' })
      expect(err).toBe([301, 702].map((line) => `bullpen: line ${line}: ${refusal}: ${detail}\n`).join(''))
      expect(api.seen.length).toBeLessThan(100)
    },
  )

  test('reports what the API says about a line, with places in the line', async () => {
    const at = '/tasks/1/input/n'
    const errors = [{ pointer: at, message: 'expected a number' }]
    const invalid = failed('invalid_input', 422, { detail: `${at}: expected a number`, errors })
    await using api = await fakeApi({ [BULK]: storing(({ input }) => (input === 2 ? invalid : undefined)) })
    const { code, out, err } = await enqueue(api, linesOf(3))
    expect({ code, out, err }).toEqual({
      code: 1,
      out: '3 tasks: 2 enqueued, 1 rejected\n',
      err: 'bullpen: line 2: invalid_input: /input/n: expected a number\n',
    })
  })

  test('counts the tasks that were stored before, and those that were dropped', async () => {
    const others = [
      { ...stored(1), replayed: true },
      { ...stored(2), action: 'existing' },
      { action: 'dropped' },
      stored(4),
    ]
    await using api = await fakeApi({ [BULK]: results(others) })
    expect(await enqueue(api, linesOf(4), '--when-full', 'drop')).toMatchObject({
      code: 1,
      out: '4 tasks: 1 enqueued, 2 already stored, 1 dropped\n',
    })
  })

  test('prints each result as JSON, and each error, and a summary', async () => {
    const unknown = failed('unknown_task', 422, { detail: '/tasks/1: no task has this name' })
    await using api = await fakeApi({ [BULK]: results([stored(1), unknown]) })
    const { code, out, err } = await enqueue(api, `${linesOf(2)}x\n`, '--json')
    expect(code).toBe(1)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((text) => JSON.parse(text)),
    ).toEqual([{ line: 1, ...stored(1) }, { summary: { lines: 3, enqueued: 1, existing: 0, dropped: 0, rejected: 2 } }])
    expect(
      err
        .trimEnd()
        .split('\n')
        .map((text) => JSON.parse(text)),
    ).toMatchObject([
      { error: { line: 3, code: 'invalid_line' } },
      { error: { line: 2, code: 'unknown_task', detail: 'no task has this name' } },
    ])
  })
})

describe('enqueue --bulk with an idempotency key', () => {
  test('gives each line the same key and index, although other lines are corrected', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const broken = `${linesOf(999)}broken\n${linesOf(2, 1_001)}`
    expect(await enqueue(api, broken, '--idempotency-key', 'batch 7')).toMatchObject({ code: 1 })
    expect(await enqueue(api, linesOf(1_002), '--idempotency-key', 'batch 7')).toMatchObject({ code: 0 })
    expect(api.idempotencyKeys).toEqual(['"batch 7/1"', '"batch 7/2"', '"batch 7/1"', '"batch 7/2"'])
    expect(sent(api)).toEqual([numbers(999), numbers(2, 1_001), numbers(1_000), numbers(2, 1_001)])
  })

  test('gives each line the same key and index, although the requests are divided by size', async () => {
    const text = (n: number) => `"${String(n).repeat(1)}${'x'.repeat(300_000)}"\n`
    await using api = await fakeApi({ [BULK]: storing() })
    const lines = numbers(9).map(text)
    expect(await enqueue(api, lines, 'a.b', '--idempotency-key', 'k')).toMatchObject({ code: 0 })
    expect(api.seen.length).toBeGreaterThan(1)
    expect(new Set(api.idempotencyKeys)).toEqual(new Set(['"k/1"']))
    const byIndex = api.seen.flatMap(({ body }) =>
      tasksIn(body).flatMap(({ task, input }, i) => (task === '-' ? [] : [[i, `${JSON.stringify(input)}\n`]])),
    )
    expect(byIndex).toEqual(lines.map((line, i) => [i, line]))
    for (const { body } of api.seen) expect(JSON.stringify(body).length).toBeLessThan(4 * 1_048_576)
  })
})

describe('enqueue --bulk sends tasks again', () => {
  test.each([
    [
      '429 with Retry-After',
      (): Answer => [429, { status: 429, code: 'queue_full', title: 'T' }, { 'retry-after': '0' }],
    ],
    ['503', () => problem('redis_unavailable', 503)],
    ['a broken connection', (): Answer => 'break'],
  ])('after %s, with the same key', async (_, refusal) => {
    await using api = await fakeApi({ [BULK]: inTurn(refusal, refusal, storing()) })
    expect(await enqueue(api, linesOf(3))).toEqual({ code: 0, out: '3 tasks: 3 enqueued\n', err: '' })
    expect(sent(api)).toEqual([numbers(3), numbers(3), numbers(3)])
    expect(new Set(api.idempotencyKeys).size).toBe(1)
  })

  test('for which the queue has no room, as long as others are accepted', async () => {
    const full = failed('queue_full', 429, { detail: 'the queue is full' })
    // Each request finds room for one task.
    const limited = (body: unknown): Answer => {
      const first = tasksIn(body).find(({ task }) => task !== '-')
      return storing((task) => (task.task === '-' || task === first ? undefined : full))(body)
    }
    await using api = await fakeApi({ [BULK]: limited })
    const { code, out, err } = await enqueue(api, linesOf(3), '--json')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(sent(api)).toEqual([
      [1, 2, 3],
      [null, 2, 3],
      [null, null, 3],
    ])
    expect(out.match(/"line":\d/g)).toEqual(['"line":1', '"line":2', '"line":3'])
  })

  test('in smaller requests if the API’s limit is lower, and rejects a single task that exceeds the limit', async () => {
    const limit = 2_000
    const limited = (body: unknown): Answer =>
      JSON.stringify(body).length > limit
        ? problem('payload_too_large', 413, { detail: `the body is larger than the limit of ${limit} bytes` })
        : storing()(body)
    await using api = await fakeApi({ [BULK]: limited })
    const lines = [`"${'x'.repeat(3_000)}"\n`, ...numbers(20).map((n) => `"${n}${'y'.repeat(300)}"\n`)]
    const { code, out, err } = await enqueue(api, lines, 'a.b')
    expect({ code, out, err }).toEqual({
      code: 1,
      out: '21 tasks: 20 enqueued, 1 rejected\n',
      err: 'bullpen: line 1: payload_too_large: the body is larger than the limit of 2000 bytes\n',
    })
  })

  test('in requests with fewer tasks if the rate of the API key permits only a few at once', async () => {
    const limited = (body: unknown): Answer =>
      tasksIn(body).filter(({ task }) => task !== '-').length > 5 ? problem('payload_too_large', 413) : storing()(body)
    await using api = await fakeApi({ [BULK]: limited })
    expect(await enqueue(api, linesOf(40), '--retry-for', '1ms')).toEqual({
      code: 0,
      out: '40 tasks: 40 enqueued\n',
      err: '',
    })
  })

  test('one at a time if the API refuses them with 413, and rejects each task that it still refuses', async () => {
    await using api = await fakeApi({ [BULK]: problem('enqueue_rate_exceeded', 413, { detail: 'too fast' }) })
    expect(await enqueue(api, linesOf(2), '--retry-for', '1ms')).toEqual({
      code: 1,
      out: '2 tasks: 2 rejected\n',
      err: 'bullpen: line 1: enqueue_rate_exceeded: too fast\nbullpen: line 2: enqueue_rate_exceeded: too fast\n',
    })
  })

  test('in smaller requests if a request does not arrive in time', async () => {
    const slow = (body: unknown): Answer =>
      JSON.stringify(body).length > 3_000 ? problem('request_timeout', 408) : storing()(body)
    await using api = await fakeApi({ [BULK]: slow })
    const lines = numbers(14).map((n) => `"${n}${'y'.repeat(300)}"\n`)
    expect(await enqueue(api, lines, 'a.b', '--retry-for', '10s')).toMatchObject({
      ...{ code: 0, out: '14 tasks: 14 enqueued\n' },
    })
  })

  test.each([
    [problem('queue_full', 429, { detail: 'full' }), 3],
    ['break' as const, 4],
  ])('until none was accepted for the given time, and then stops', async (answer, code) => {
    await using api = await fakeApi({ [BULK]: inTurn(storing(), () => answer) })
    const began = performance.now()
    const ended = await enqueue(api, linesOf(1_500), '--retry-for', '150ms')
    expect(performance.now() - began).toBeGreaterThanOrEqual(150)
    expect(ended).toMatchObject({ code, out: '1,500 tasks: 1,000 enqueued\n' })
    expect(ended.err).toContain(
      'stopped: 500 tasks may or may not be stored, and the lines after them were not read; to be able to repeat the command safely, use --idempotency-key\n',
    )
  })
})

describe('enqueue --bulk stops', () => {
  test('if the API rejects the request', async () => {
    await using api = await fakeApi({ [BULK]: problem('unauthorized', 401, { detail: 'wrong key' }) })
    const { code, err } = await enqueue(api, linesOf(2_000))
    expect({ code, requests: api.seen.length }).toEqual({ code: 3, requests: 1 })
    expect(err).toContain('bullpen: unauthorized: wrong key\n')
  })

  test('if the API rejects a header of the request', async () => {
    const errors = [{ header: 'Idempotency-Key', message: 'expected a string' }]
    await using api = await fakeApi({ [BULK]: problem('invalid_request', 400, { errors }) })
    const { code } = await enqueue(api, linesOf(2_000))
    expect({ code, requests: api.seen.length }).toEqual({ code: 3, requests: 1 })
  })

  test('if no API can be reached', async () => {
    expect(await enqueue(nowhere, linesOf(1), '--retry-for', '1ms')).toMatchObject({ code: 4 })
  })

  test('if the reader of its output has left', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const stdout = Object.assign(
      new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error('gone'), { code: 'EPIPE' })) }),
      { text: '' },
    )
    stdout.on('error', () => {})
    const stdin = Readable.from([linesOf(3_000)])
    // The fixture's output is a stream that cannot fail.
    const { code, err } = await run(api, ['enqueue', '--bulk', '-', '--json'], { stdin, stdout: stdout as never })
    expect(code).toBe(1)
    expect(err).toBe('')
    expect(api.seen).toHaveLength(1)
  })

  test('if its output cannot be written, and does not report that as an error of its input', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' })
    const stdout = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done(error) }), { text: '' })
    stdout.on('error', () => {})
    const stdin = Readable.from([linesOf(3_000)])
    // The fixture's output is a stream that cannot fail.
    const { code, err } = await run(api, ['enqueue', '--bulk', '-', '--json'], { stdin, stdout: stdout as never })
    expect({ code, requests: api.seen.length }).toEqual({ code: 74, requests: 1 })
    const detail = 'cannot write to standard output: ENOSPC: no space left on device, write'
    expect(JSON.parse(err)).toEqual({ error: { code: 'unwritable_output', detail } })
  })

  test('if it is part of a pipeline that ends early', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const line = `seq 5000 | bullpen enqueue a.b --bulk - --json | head -1`
    expect(await runShell(api, line)).toEqual({
      code: 1,
      out: `${JSON.stringify({ line: 1, ...stored(1) })}\n`,
      err: '',
    })
    expect(api.seen.length).toBeLessThan(5)
  })

  test('if the input cannot be read to its end, and says how many tasks are enqueued', async () => {
    await using api = await fakeApi({ [BULK]: storing() })
    const stdin = Readable.from(
      (async function* () {
        yield linesOf(1_001)
        throw Object.assign(new Error('EIO: i/o error, read'), { syscall: 'read' })
      })(),
    )
    const { code, out, err } = await run(api, ['enqueue', '--bulk', '-'], { stdin })
    expect({ code, out }).toEqual({ code: 1, out: '1,000 tasks: 1,000 enqueued\n' })
    expect(err).toContain('bullpen: cannot read standard input: EIO: i/o error, read\n')
  })
})

test.each([
  [['--bulk', 'no-such-file'], "cannot read no-such-file: ENOENT: no such file or directory, open 'no-such-file'"],
  [['--bulk', tmpdir()], `cannot read ${tmpdir()}: it is a directory`],
  [['a.b', '{}', '--bulk', '-'], 'INPUT and --bulk cannot be combined'],
  [['a.b', '--bulk', '-', '--wait', '1s'], '--wait and --bulk cannot be combined'],
  [['a.b', '--retry-for', '1s'], '--retry-for requires --bulk'],
  [['--bulk', '-', '--idempotency-key', 'é'], "--idempotency-key is 'é'; expected 1 to 247 printable ASCII characters"],
  [['--tag', 'x'], 'missing argument; expected bullpen enqueue TASK [INPUT | -] | [TASK] --bulk FILE'],
])('enqueue %j is refused before anything is sent', async (args, message) => {
  await using api = await fakeApi()
  const { code, out, err } = await run(api, ['enqueue', ...args])
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(`bullpen: ${message}\n`)
  expect(api.seen).toEqual([])
})

test('a long stream is read only as far as it has been sent', async () => {
  let pulled = 0
  let received = 0
  const ahead: number[] = []
  const counting = (body: unknown): Answer => {
    received += tasksIn(body).length
    ahead.push(pulled - received)
    return storing()(body)
  }
  await using api = await fakeApi({ [BULK]: counting })
  const stdin = Readable.from(
    (function* () {
      for (pulled = 1; pulled <= 20_000; pulled++) yield `${pulled}\n`
    })(),
  )
  const { code, out } = await run(api, ['enqueue', 'a.b', '--bulk', '-'], { stdin })
  expect({ code, out }).toEqual({ code: 0, out: '20,000 tasks: 20,000 enqueued\n' })
  // The stream itself reads a few lines ahead.
  expect(Math.max(...ahead)).toBeLessThan(100)
})
