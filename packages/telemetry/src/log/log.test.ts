import type { LogLevel, TaskEvent } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { logEvents } from './event-log.ts'
import { createLog } from './log.ts'
import { LOG_FIELDS } from './log-fields.ts'

type Line = Readonly<Record<string, unknown>>

const about = { queue: 'mail', task: 'receipt.send', id: 'mail-1' }
const long = { ...about, kind: 'long', fencingToken: 2, attempt: 1, correlationId: 'req-7' } as const
const short = { ...long, kind: 'short' } as const
const started = (attempt: typeof long | typeof short): TaskEvent => ({
  ...attempt,
  event: 'attempt.started',
  waitedMs: 3,
})
const success = {
  event: 'attempt.ended',
  state: 'DONE_SUCCESS',
  reason: undefined,
  code: undefined,
  error: undefined,
  durationMs: 12,
  verdict: 'completed',
  delayMs: undefined,
} as const
const declined = {
  ...success,
  state: 'DONE_ERROR',
  code: 'card_declined',
  error: new Error('the bank said no'),
} as const

describe('event lines', () => {
  it.each<[string, TaskEvent, string]>([
    ['the start of a short task', started(short), 'debug'],
    ['the start of a long task', started(long), 'info'],
    ['the good end of a short task', { ...short, ...success }, 'debug'],
    ['the good end of a long task', { ...long, ...success }, 'info'],
    ['an end that is retried', { ...long, ...declined, verdict: 'retrying', delayMs: 2_000 }, 'warn'],
    ['an end that leaves the task dead', { ...short, ...declined, verdict: 'dead' }, 'error'],
    [
      'a panic',
      { ...long, ...declined, state: 'RECOVER_ERR', reason: 'unexpected_error', verdict: 'retrying' },
      'error',
    ],
    ['a cancel', { ...long, ...success, state: 'TERMINATED_STOP_SIGNAL', verdict: 'cancelled' }, 'info'],
    [
      'a replaced isolate',
      { event: 'isolate.replaced', isolation: 'thread', isolate: 'thread 7', cause: 'killed' },
      'warn',
    ],
    [
      'a blocked event loop',
      {
        event: 'event_loop.stalled',
        ...about,
        fencingToken: 2,
        attempt: 1,
        location: 'spin (/spin.ts:7)',
        stalledMs: 1_500,
      },
      'warn',
    ],
    ['a late result', { ...long, event: 'attempt.late', overrunMs: 9 }, 'warn'],
    ['an enqueued task', { ...about, event: 'task.enqueued' }, 'debug'],
    ['a pool that drains', { event: 'pool.state', queue: 'mail', from: 'BG_RUNNING', to: 'SHUTTING_DOWN' }, 'info'],
    [
      'a pool past its deadline',
      { event: 'pool.state', queue: 'mail', from: 'SHUTTING_DOWN', to: 'TERMINATE_TIMEOUT' },
      'error',
    ],
  ])('%s', (_, event, level) => {
    const { log, lines } = capture('debug')
    logEvents(log)(event)
    expect(lines()).toMatchObject([{ level }])
  })

  it('carry the same fields in every line of an attempt, and the next delay at a retry', () => {
    const { log, lines } = capture('info')
    const sink = logEvents(log)
    sink(started(long))
    sink({ ...long, ...declined, verdict: 'retrying', delayMs: 2_000 })
    for (const line of lines())
      expect(line).toMatchObject({ ...about, fencingToken: 2, attempt: 1, correlationId: 'req-7' })
    expect(lines()[1]).toMatchObject({
      state: 'DONE_ERROR',
      code: 'card_declined',
      verdict: 'retrying',
      durationMs: 12,
      delayMs: 2_000,
      err: { type: 'Error', message: 'the bank said no' },
    })
    const known = new Set([...Object.keys(LOG_FIELDS), 'level', 'time', 'pid', 'hostname', 'name', 'msg'])
    expect(
      lines()
        .flatMap(Object.keys)
        .filter((field) => !known.has(field)),
    ).toEqual([])
  })

  it('are neither built nor passed on below the level of the log', () => {
    const calls: string[] = []
    const note = (level: string) => () => calls.push(level)
    const log = {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error'),
      isLevelEnabled: (level: string) => level === 'warn' || level === 'error',
    }
    const sink = logEvents(log)
    sink(started(short))
    sink({ ...short, ...success })
    expect(calls).toEqual([])
    sink({ ...short, ...declined, verdict: 'retrying' })
    expect(calls).toEqual(['warn'])
  })
})

describe('the log', () => {
  it('writes levels as words and times as RFC 3339', () => {
    const { log, lines } = capture('info')
    log.info({ queue: 'mail' }, 'hello')
    expect(lines()).toMatchObject([{ level: 'info', name: 'test', queue: 'mail', msg: 'hello' }])
    expect(lines()[0]?.['time']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  it.each([
    { authorization: 'Bearer secret' },
    { headers: { authorization: 'Bearer secret', cookie: 'key=secret' } },
    { req: { headers: { Authorization: 'Bearer secret' } } },
    { config: { options: { headers: { 'x-api-key': 'secret' } } } },
  ])('hides keys: %j', (fields) => {
    const { log, lines } = capture('info')
    log.info(fields, 'request')
    expect(JSON.stringify(lines())).not.toContain('secret')
    expect(JSON.stringify(lines())).toContain('[redacted]')
  })

  it('shows of an error what helps, and nothing that a client hung on it', () => {
    const { log, lines } = capture('info')
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const error = Object.assign(new TypeError('fetch failed', { cause }), { request: { token: 'secret' } })
    log.error({ err: error }, 'delivery failed')
    expect(lines()).toMatchObject([
      { err: { type: 'TypeError', message: 'fetch failed', cause: { code: 'ECONNREFUSED', message: 'refused' } } },
    ])
    expect(JSON.stringify(lines())).not.toContain('secret')
  })

  it.each([['a string'], [null], [undefined], [Object.create(null)]])('survives a thrown %s', (thrown) => {
    const { log, lines } = capture('info')
    log.error({ err: thrown }, 'odd')
    expect(lines()).toHaveLength(1)
  })

  it('survives an error that is its own cause', () => {
    const { log, lines } = capture('info')
    const error: Error = new Error('round')
    error.cause = error
    log.error({ err: error }, 'odd')
    expect(lines()).toMatchObject([{ err: { message: 'round' } }])
  })
})

function capture(level: LogLevel) {
  const written: string[] = []
  const log = createLog({ level, name: 'test', destination: { write: (line) => void written.push(line) } })
  return { log, lines: () => written.map((line) => JSON.parse(line) as Line) }
}
