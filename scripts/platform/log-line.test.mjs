// Which log lines the terminal shows.
import { createLog } from '@bullpen/telemetry/internal'
import { describe, expect, it } from 'vitest'
import { terminalLine } from './log-line.mjs'

describe('a log line on the terminal', () => {
  const json = (entry) => JSON.stringify({ time: 0, ...entry })
  it.each([
    ['an info line is hidden', json({ level: 'info', msg: 'started' }), 'stdout', undefined],
    ['a warning is shown', json({ level: 'warn', msg: 'slow', task: 'a.b', id: 't1' }), 'stdout', 'warn  a.b t1  slow'],
    [
      'an error is shown with its cause',
      json({ level: 'error', msg: 'failed', err: { message: 'gone' } }),
      'stdout',
      'error  failed: gone',
    ],
    [
      'a refused request is shown with its route and status',
      json({ level: 'warn', msg: 'request completed', method: 'POST', route: '/v1/tasks', status: 503 }),
      'stdout',
      'warn  request completed: POST /v1/tasks 503',
    ],
    ['plain text on stdout is hidden', 'hello', 'stdout', undefined],
    ['plain text on stderr is shown', 'Error: x', 'stderr', 'Error: x'],
    ['an empty line is hidden', ' ', 'stderr', undefined],
    ['JSON that is not a log line is hidden', 'null', 'stderr', undefined],
  ])('%s', (_, line, stream, shown) => expect(terminalLine(line, stream)).toBe(shown))

  it('is derived from the format that the programs write', () => {
    const lines = []
    const log = createLog({ level: 'info', name: 'x', destination: { write: (line) => lines.push(line) } })
    log.info({}, 'fine')
    log.warn({ task: 'a.b', id: 't1', err: new Error('busy') }, 'retrying')
    expect(lines.map((line) => terminalLine(line, 'stdout'))).toEqual([undefined, 'warn  a.b t1  retrying: busy'])
  })

  it('also shows what handlers log at info, in dev', () => {
    const lines = []
    const log = createLog({ level: 'info', name: 'x', destination: { write: (line) => lines.push(line) } })
    const attempt = { task: 'a.b', id: 't1', fencingToken: 1, attempt: 1 }
    log.child(attempt).info({}, 'sending')
    log.info({ ...attempt, queue: 'a' }, 'attempt started')
    log.info({}, 'worker ready')
    const shown = lines.map((line) => terminalLine(line, 'stdout', { handlers: true }))
    expect(shown).toEqual(['info  a.b t1  sending', undefined, undefined])
  })
})
