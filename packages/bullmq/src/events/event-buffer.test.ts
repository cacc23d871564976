// What the attempts of a consumer report: what is sent together, what is held back, and what goes with the end.
import { TaskError } from '@bullpen/contract'
import type { AttemptResult } from '@bullpen/engine/internal'
import type { Job } from 'bullmq'
import { expect, it, onTestFinished, vi } from 'vitest'
import { BULLPEN_OPTION } from '../internals/worker/foreign-job.ts'
import { type AttemptBatch, createEventBuffer } from './event-buffer.ts'

const job = (id: string, data: object = { v: 2, events: 100 }): Job =>
  ({ id, name: 'a.b', data, opts: { [BULLPEN_OPTION]: 1 }, attemptsMade: 0, attemptsStarted: 1 }) as unknown as Job

const attempt = { task: 'a.b', attempt: 1, fencingToken: 1 }
const started = { type: 'started', ...attempt, worker: 'w' } as const
const progress = (fraction: number) => ({ type: 'progress', ...attempt, fraction }) as const

function resultOf(verdict: AttemptResult['verdict']): AttemptResult {
  const isDone = verdict.kind === 'completed'
  const record = { fencingToken: 1, attempt: 1, counted: true, worker: 'w', startedAt: 1, endedAt: 2 }
  return {
    record: isDone ? { ...record, state: 'DONE_SUCCESS' } : { ...record, state: 'DONE_ERROR', code: 'c', message: 'm' },
    verdict,
    error: isDone ? undefined : new TaskError('c', 'm'),
    event: { event: 'attempt.ended' } as AttemptResult['event'],
  }
}

/** A buffer whose batches are confirmed when the test says so. */
function setup() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const batches: (readonly AttemptBatch[])[] = []
  const confirms: (() => void)[] = []
  let now = 1_000
  const buffer = createEventBuffer({
    send(batch) {
      batches.push(batch)
      return new Promise<void>((resolve) => void confirms.push(resolve))
    },
    now: () => now,
    flushMs: 1,
  })
  const typesIn = (events: string | undefined): readonly string[] =>
    (events ?? '')
      .split('\n')
      .slice(1)
      .map((line) => /"type":"(\w+)"/.exec(line)?.[1] ?? line)
  return { buffer, batches, confirms, typesIn, pass: (ms: number) => (now += ms) }
}

it('the reports of several attempts are sent together, and the next ones only when those are confirmed', async () => {
  const { buffer, batches, confirms, typesIn } = setup()
  const [first, second] = [buffer.open(job('q-1'), 't1'), buffer.open(job('q-2'), 't2')]
  first?.report(started)
  second?.report(started)
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toHaveLength(1)
  first?.report(progress(0.5))
  second?.report({ type: 'log', ...attempt, line: 1, level: 'info', message: 'hi' })
  await vi.advanceTimersByTimeAsync(100)
  expect(batches.map((batch) => batch.map(({ id, token }) => [id, token]))).toEqual([
    [
      ['q-1', 't1'],
      ['q-2', 't2'],
    ],
  ])
  confirms[0]?.()
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toHaveLength(2)
  expect(batches[1]?.map(({ events }) => typesIn(events))).toEqual([['progress'], ['log']])
})

it('what has not been sent goes with the end of the attempt, before the event of its end', async () => {
  const { buffer, batches, typesIn } = setup()
  const own = job('q-1')
  const events = buffer.open(own, 't')
  events?.report(started)
  const lines = buffer.close(own, resultOf({ kind: 'completed', output: 1 }))
  expect([lines?.split('\n')[0], typesIn(lines)]).toEqual(['100', ['started', 'ended']])
  events?.report(progress(1))
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toEqual([])
})

it('only the latest of many progress reports is sent, four times a second, and the last one with the end', async () => {
  const { buffer, batches, confirms, typesIn, pass } = setup()
  const own = job('q-1')
  const events = buffer.open(own, 't')
  for (const fraction of [0.1, 0.2, 0.3]) events?.report(progress(fraction))
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toHaveLength(1)
  confirms[0]?.()
  expect(batches[0]?.[0]?.events).toContain('"fraction":0.3')
  expect(typesIn(batches[0]?.[0]?.events)).toEqual(['progress'])
  events?.report(progress(0.4))
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toHaveLength(1)
  pass(250)
  await vi.advanceTimersByTimeAsync(100)
  expect(batches).toHaveLength(2)
  confirms[1]?.()
  events?.report(progress(0.9))
  const lines = buffer.close(own, resultOf({ kind: 'completed', output: 1 }))
  expect(typesIn(lines)).toEqual(['progress', 'ended'])
  expect(lines).toContain('"fraction":0.9')
})

it('the script that delays a retry completes its event with the time', () => {
  const { buffer } = setup()
  const lines = (delayMs: number) => buffer.close(job('q-1'), resultOf({ kind: 'retrying', delayMs }))
  expect(lines(500)).toMatch(/"type":"retrying".*"dueAt":$/)
  expect(JSON.parse(lines(0)?.split('\n')[1] ?? '')).toMatchObject({ type: 'retrying', dueAt: 1_000 })
})

it('a task without events, and a job that Bullpen has not added, report nothing', () => {
  const { buffer } = setup()
  const foreign = { ...job('q-2'), opts: {} } as unknown as Job
  for (const own of [job('q-1', { v: 2 }), foreign]) {
    expect(buffer.open(own, 't')).toBeUndefined()
    expect(buffer.close(own, resultOf({ kind: 'completed', output: 1 }))).toBeUndefined()
    expect(buffer.death(own, 'process_lost')).toBeUndefined()
  }
})

it('an attempt that has lost its task adds no event of an end', () => {
  const { buffer } = setup()
  expect(buffer.close(job('q-1'), resultOf({ kind: 'lost' }))).toBeUndefined()
})
