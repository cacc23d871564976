import type { LogLevel, TaskEvent } from '@bullpen/contract'
import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { childLog } from './child-log.ts'
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

const { delayMs: _, ...committed } = success
const refused = { ...committed, event: 'attempt.commit_refused' } as const

describe('a line about an event', () => {
  it.each<[event: string, event: TaskEvent, level: string, message: string]>([
    ['the start of a short task', started(short), 'debug', 'attempt started'],
    ['the start of a long task', started(long), 'info', 'attempt started'],
    ['the success of a short task', { ...short, ...success }, 'debug', 'task completed'],
    ['the success of a long task', { ...long, ...success }, 'info', 'task completed'],
    [
      'a failure that is retried',
      { ...long, ...declined, verdict: 'retrying', delayMs: 2_000 },
      'warn',
      'attempt failed: task will be retried',
    ],
    ['a permanent failure', { ...short, ...declined, verdict: 'dead' }, 'error', 'attempt failed: task is dead'],
    [
      'a panic',
      { ...long, ...declined, state: 'RECOVER_ERR', reason: 'unexpected_error', verdict: 'retrying' },
      'error',
      'attempt panicked: task will be retried',
    ],
    [
      'a cancel',
      { ...long, ...success, state: 'TERMINATED_STOP_SIGNAL', verdict: 'cancelled' },
      'info',
      'task cancelled',
    ],
    [
      'a refused commit',
      { ...long, ...refused, refusal: 'lock_taken' },
      'warn',
      'result dropped: another attempt holds the lock',
    ],
    ['a cancel before the start', { ...about, event: 'task.cancelled' }, 'info', 'task cancelled before it started'],
    [
      'a drain',
      { ...long, ...success, state: 'TERMINATED_CTX_CLOSED', reason: 'drain', verdict: 'requeued' },
      'info',
      'task requeued: worker is draining',
    ],
    [
      'a replaced isolate',
      { event: 'isolate.replaced', isolation: 'thread', isolate: 'thread 7', cause: 'killed' },
      'warn',
      'isolate replaced: killed',
    ],
    [
      'a stalled event loop',
      {
        event: 'event_loop.stalled',
        ...about,
        fencingToken: 2,
        attempt: 1,
        location: 'spin (/spin.ts:7)',
        stalledMs: 1_500,
      },
      'warn',
      'event loop stalled',
    ],
    [
      'a late result',
      { ...long, event: 'attempt.late', overrunMs: 9 },
      'warn',
      'handler returned after its attempt had ended: result dropped',
    ],
    [
      'a refused task',
      { event: 'task.refused', queue: 'mail', task: 'receipt.send', limit: 'maxTasks', action: 'dropped' },
      'debug',
      'task dropped: queue is full',
    ],
    [
      'a task that exceeds the rate of its API key',
      { event: 'task.refused', queue: 'mail', task: 'receipt.send', limit: 'enqueueRate', action: 'rejected' },
      'debug',
      'task rejected: API key has reached its rate',
    ],
    [
      'a task whose API key has too many',
      { event: 'task.refused', queue: 'mail', task: 'receipt.send', limit: 'maxUnfinishedTasks', action: 'rejected' },
      'debug',
      'task rejected: API key has too many unfinished tasks',
    ],
    ['an enqueued task', { ...about, event: 'task.enqueued' }, 'debug', 'task enqueued'],
    [
      'a pool that drains',
      { event: 'pool.state', queue: 'mail', from: 'BG_RUNNING', to: 'SHUTTING_DOWN' },
      'info',
      'pool draining',
    ],
    [
      'a pool whose drain timed out',
      { event: 'pool.state', queue: 'mail', from: 'SHUTTING_DOWN', to: 'TERMINATE_TIMEOUT' },
      'error',
      'pool drain timed out',
    ],
  ])('has the right level and message for %s', (_, event, level, message) => {
    const { log, lines } = capture('debug')
    logEvents(log, fakeClock())(event)
    expect(lines()).toMatchObject([{ level, msg: message }])
  })

  it.each(['drain', 'snoozed', 'rate_limited', 'cancelled', 'slot_stopped'] as const)(
    'shows no error for a healthy task whose attempt ended by %s',
    (reason) => {
      const { log, lines } = capture('info')
      const error = new Error('the reason of the signal')
      logEvents(
        log,
        fakeClock(),
      )({ ...long, ...success, state: 'TERMINATED_CTX_CLOSED', reason, error, verdict: 'requeued' })
      expect(lines()).toMatchObject([{ level: 'info', reason }])
      expect(lines()[0]).not.toHaveProperty('err')
    },
  )

  it('shows times in whole milliseconds', () => {
    const { log, lines } = capture('info')
    const sink = logEvents(log, fakeClock())
    sink({ ...started(long), waitedMs: 6.495849609375 } as TaskEvent)
    sink({ ...long, ...declined, durationMs: 2.7923329999975977, verdict: 'retrying', delayMs: 1_000.4 })
    sink({ ...long, event: 'attempt.late', overrunMs: 9.5 })
    expect(lines()).toMatchObject([{ waitedMs: 6 }, { durationMs: 3, delayMs: 1_000 }, { overrunMs: 10 }])
  })

  it('has the same fields in every line of an attempt, and shows the delay of a retry', () => {
    const { log, lines } = capture('info')
    const sink = logEvents(log, fakeClock())
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

  it('has the level debug if short attempts of its task have failed ten times within the second', async () => {
    const { log, lines } = capture('debug')
    const clock = fakeClock()
    const sink = logEvents(log, clock)
    const levels = (times: number, event: TaskEvent) => {
      const before = lines().length
      for (let i = 0; i < times; i++) sink(event)
      return lines()
        .slice(before)
        .map(({ level }) => level)
    }
    const retried = { ...short, ...declined, verdict: 'retrying' } as const
    const tenOf = (level: string) => Array(10).fill(level)
    expect(levels(12, retried)).toEqual([...tenOf('warn'), 'debug', 'debug'])
    // Each level and each task has lines of its own, and long attempts have no limit.
    expect(levels(11, { ...retried, verdict: 'dead' })).toEqual([...tenOf('error'), 'debug'])
    expect(levels(11, { ...retried, task: 'receipt.print' })).toEqual([...tenOf('warn'), 'debug'])
    expect(levels(20, { ...retried, kind: 'long' })).toEqual([...tenOf('warn'), ...tenOf('warn')])
    await clock.advance(999)
    expect(levels(1, retried)).toEqual(['debug'])
    await clock.advance(1)
    expect(levels(11, retried)).toEqual([...tenOf('warn'), 'debug'])
  })

  it('is neither built nor written below the level of the log', () => {
    const calls: string[] = []
    const note = (level: string) => () => calls.push(level)
    const log = {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error'),
      isLevelEnabled: (level: string) => level === 'warn' || level === 'error',
    }
    const sink = logEvents(log, fakeClock())
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
    { requests: [{ headers: { COOKIE: 'key=secret', accept: '*/*' } }] },
    { error: Object.assign(new Error('refused'), { config: { headers: { Authorization: 'Bearer secret' } } }) },
  ])('hides secrets: %j', (fields) => {
    const { log, lines } = capture('info')
    const before = JSON.stringify(fields)
    log.info(fields, 'request')
    expect(JSON.stringify(lines())).not.toContain('secret')
    expect(JSON.stringify(lines())).toContain('[redacted]')
    expect(JSON.stringify(fields)).toBe(before)
  })

  it('shows an error whose request has secrets', () => {
    const { log, lines } = capture('info')
    const err = Object.assign(new Error('refused'), { config: { headers: { authorization: 'Bearer secret' } } })
    log.info({ err, headers: { accept: '*/*' } }, 'request')
    expect(lines()).toMatchObject([{ err: { type: 'Error', message: 'refused' }, headers: { accept: '*/*' } }])
    expect(JSON.stringify(lines())).not.toContain('secret')
  })

  it('shows the type, message, code and causes of an error, but no field that a client added', () => {
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

  it('writes the lines of a child at the level that the log has now', () => {
    const { log, lines } = capture('info')
    const child = childLog(log, { task: 'receipt.send' })
    child.debug({}, 'one')
    log.level = 'debug'
    child.debug({}, 'two')
    log.level = 'silent'
    child.error({}, 'three')
    expect(lines()).toMatchObject([{ level: 'debug', task: 'receipt.send', msg: 'two' }])
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
