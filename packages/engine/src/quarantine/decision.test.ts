// Tests how a quarantined task runs, for each state of its worker, and what each outcome shows about it.
import { describe, expect, it } from 'vitest'
import type { Outcome } from '../ports/attempt-result.ts'
import { type Apart, decideQuarantine, mayShare, type Places, restAfter, survivalOf } from './decision.ts'

const free: Places = {
  inProcesses: 0,
  maxProcesses: 8,
  idleProcesses: 1,
  unchangedMs: 0,
  reservation: 'none',
  restMs: 0,
}
const full: Places = { ...free, inProcesses: 8 }
const run = (apart: Apart) => ({ kind: 'run', apart })
const wait = (delayMs: number) => ({ kind: 'wait', delayMs })
const poison = { kind: 'poison' }

describe('a quarantined task', () => {
  it.each<[deaths: number, apart: Apart, places: Places, decision: object]>([
    [1, 'own_process', full, run('own_process')],
    [1, 'process', free, run('process')],
    [1, 'process', { ...free, inProcesses: 7 }, run('process')],
    [1, 'process', { ...free, idleProcesses: 0 }, wait(200)],
    [1, 'process', { ...free, idleProcesses: 0, unchangedMs: 400 }, wait(400)],
    [1, 'process', { ...free, idleProcesses: 0, unchangedMs: 60_000 }, wait(500)],
    [1, 'process', full, wait(200)],
    [1, 'process', { ...full, unchangedMs: 1_000 }, wait(1_000)],
    [1, 'process', { ...full, unchangedMs: 60_000 }, wait(5_000)],
    [1, 'process', { ...free, maxProcesses: 0 }, wait(200)],
    [1, 'alone', full, run('alone')],
    [1, 'alone', { ...free, restMs: 3_000 }, wait(3_000)],
    [1, 'own_process', { ...free, reservation: 'open' }, wait(200)],
    [1, 'process', { ...free, reservation: 'open' }, wait(200)],
    [1, 'alone', { ...free, reservation: 'open', restMs: 3_000 }, run('alone')],
    [2, 'alone', { ...free, reservation: 'open' }, wait(200)],
    [1, 'alone', { ...free, reservation: 'closed' }, wait(200)],
    [2, 'alone', free, run('alone')],
    [2, 'process', free, run('process')],
    [3, 'process', free, poison],
    [3, 'own_process', free, poison],
    [3, 'alone', full, poison],
    [4, 'alone', { ...free, reservation: 'open' }, poison],
  ])('after %i deaths, with a place %s among %o: %o', (deaths, apart, places, decision) => {
    expect(decideQuarantine({ deaths, maxDeaths: 3, apart }, places, () => 1)).toEqual(decision)
  })

  it('that has no place waits for half to all of the time, at random', () => {
    const waits = [0, 0.5, 1].map((random) =>
      decideQuarantine({ deaths: 1, maxDeaths: 3, apart: 'process' }, { ...full, unchangedMs: 2_000 }, () => random),
    )
    expect(waits).toEqual([wait(1_000), wait(1_500), wait(2_000)])
  })
})

it('a worker runs other tasks for half as long as it was reserved, and for at most 30 s', () => {
  expect([0, 700, 60_000, 300_000].map(restAfter)).toEqual([0, 350, 30_000, 30_000])
})

it.each([
  [1, 3, true],
  [1, 10, true],
  [2, 3, false],
  [1, 2, false],
  [1, 1, false],
])('a task that has died %i of %i times may run together with others: %s', (deaths, maxDeaths, expected) => {
  expect(mayShare({ deaths, maxDeaths })).toBe(expected)
})

describe('the survival of a quarantined task', () => {
  const error = new Error('x')
  const failure = { code: 'x', retryable: true, retryAfterMs: undefined }
  const panicked = (reason: Extract<Outcome, { kind: 'panicked' }>['reason']): Outcome => ({
    kind: 'panicked',
    reason,
    error,
  })
  it.each<[name: string, outcome: Outcome, inChild: unknown, alone: unknown, ownProcess: unknown]>([
    ['an output', { kind: 'returned', output: 1 }, 'lived', 'lived', 'lived'],
    ['a declared failure', { kind: 'declared', failure, error }, 'lived', 'lived', 'lived'],
    ['a snooze', { kind: 'snoozed', delayMs: 1 }, 'lived', 'lived', 'lived'],
    ['a rate limit', { kind: 'rate_limited', delayMs: 1, of: 'queue' }, 'lived', 'lived', 'lived'],
    ['a thrown error', panicked('unexpected_error'), 'lived', 'lived', 'lived'],
    ['an invalid output', panicked('invalid_output'), 'lived', 'lived', 'lived'],
    ['an escaped error', panicked('escaped_error'), 'lived', 'lived', 'lived'],
    ['the end of the child process', panicked('isolate_died'), 'died', undefined, undefined],
    ['a lack of memory', panicked('out_of_memory'), 'died', undefined, undefined],
    ['a timeout', { kind: 'timed_out', reason: 'run_timeout', limitMs: 1 }, undefined, undefined, undefined],
    ['a drain', { kind: 'closed', reason: 'drain' }, undefined, undefined, undefined],
    ['a lost lock', { kind: 'closed', reason: 'lock_lost' }, undefined, undefined, undefined],
    ['a cancel', { kind: 'stopped', reason: 'cancelled' }, undefined, undefined, undefined],
  ])('after %s', (_name, outcome, inChild, alone, ownProcess) => {
    expect(survivalOf(outcome, 'process')).toBe(inChild)
    expect(survivalOf(outcome, 'alone')).toBe(alone)
    expect(survivalOf(outcome, 'own_process')).toBe(ownProcess)
  })
})
