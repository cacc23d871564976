import type { TaskEvent } from '@bullpen/contract'
import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { summarizeAttempts } from './attempt-summaries.ts'

const ended = (task: string, verdict: 'completed' | 'retrying', durationMs: number): TaskEvent => ({
  ...{ event: 'attempt.ended', queue: 'mail', task, id: 'mail-1', kind: 'short', fencingToken: 1, attempt: 1 },
  ...{ correlationId: undefined, state: 'DONE_SUCCESS', reason: undefined, code: undefined, error: undefined },
  ...{ durationMs, verdict, delayMs: undefined },
})

function summaries() {
  const clock = fakeClock()
  const lines: object[] = []
  const log = { info: (fields: object, msg: string) => void lines.push({ ...fields, msg }) }
  return { clock, lines, ...summarizeAttempts(log, clock, 60_000) }
}

describe('the summaries of short tasks', () => {
  it('count the attempts of each task by verdict, with rounded times, and begin again after each line', async () => {
    const { clock, lines, sink } = summaries()
    await clock.advance(5_000)
    sink(ended('mail.send', 'completed', 0.123_456))
    sink(ended('mail.send', 'completed', 0.2))
    sink(ended('mail.send', 'retrying', 1.5))
    sink(ended('mail.sort', 'completed', 3))
    await clock.advance(59_999)
    expect(lines).toEqual([])
    await clock.advance(1)
    const line = { msg: 'attempts of a short task ended', queue: 'mail', overMs: 60_000 }
    const mail = { task: 'mail.send', verdicts: { completed: 2, retrying: 1 }, meanMs: 0.61, maxMs: 1.5 }
    const sort = { task: 'mail.sort', verdicts: { completed: 1 }, meanMs: 3, maxMs: 3 }
    expect(lines.splice(0)).toEqual([
      { ...line, ...mail },
      { ...line, ...sort },
    ])
    sink(ended('mail.sort', 'completed', 5))
    await clock.advance(60_000)
    expect(lines).toEqual([{ ...line, ...sort, meanMs: 5, maxMs: 5 }])
  })

  it('leave out long tasks, and need no timer while no short task ends', async () => {
    const { clock, lines, sink } = summaries()
    sink({ ...ended('mail.send', 'completed', 1), kind: 'long' } as TaskEvent)
    expect(clock.pending()).toBe(0)
    await clock.advance(120_000)
    expect(lines).toEqual([])
  })

  it('are written for the rest of the interval when the process ends', async () => {
    const { clock, lines, sink, close } = summaries()
    sink(ended('mail.send', 'completed', 1))
    await clock.advance(250)
    close()
    expect(lines).toMatchObject([{ verdicts: { completed: 1 }, overMs: 250 }])
    expect(clock.pending()).toBe(0)
  })
})
