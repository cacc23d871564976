import type { CommandSpec } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import type { CommandAnswer, RegisteredWorker } from '../ports/fleet.ts'
import { isAlive, outcomeOf, recipients, SILENT_AFTER_MS } from './fleet.ts'

const NOW = 1_000_000

function registered(worker: string, queues: readonly string[], seenAt = NOW): RegisteredWorker {
  const pools = queues.map((queue) => ({
    queue,
    state: 'BG_RUNNING' as const,
    paused: false,
    concurrency: 2,
    busy: 0,
    stuckHandlers: 0,
    notReady: undefined,
    slots: [],
  }))
  return {
    worker,
    host: 'h',
    pid: 1,
    version: '1',
    startedAt: 0,
    draining: false,
    skewMs: 0,
    drainTimeoutMs: 1,
    graceMs: 1,
    pools,
    seenAt,
  }
}

const FLEET = [
  registered('a', ['cpu']),
  registered('b', ['cpu', 'files']),
  registered('c', ['files']),
  registered('silent', ['cpu'], NOW - SILENT_AFTER_MS - 1),
]

describe('a command', () => {
  it.each<[string, CommandSpec, readonly string[]]>([
    ['a queue: every live worker with a pool on it', { action: 'pause', queue: 'cpu' }, ['a', 'b']],
    ['a worker: that one', { action: 'resume', worker: 'b' }, ['b']],
    [
      'a pool: its worker, which says so when it has no such pool',
      { action: 'pause', queue: 'cpu', worker: 'c' },
      ['c'],
    ],
    ['a slot: its worker', { action: 'stop', queue: 'cpu', worker: 'a', slot: 1, how: 'hard' }, ['a']],
    ['a queue that nobody works: nobody', { action: 'pause', queue: 'mail' }, []],
    [
      'how many each pool of a queue runs: silent workers too, which may come back',
      { action: 'resize', queue: 'cpu', concurrency: 3 },
      ['a', 'b', 'silent'],
    ],
    ['a silent worker: nobody', { action: 'pause', worker: 'silent' }, []],
    ['what a whole fleet may do: nobody, since Redis itself obeys it', { action: 'limit', queue: 'cpu' }, []],
  ])('is given to the workers that it concerns; of %s', (_, order, expected) => {
    expect(recipients(order, FLEET, NOW)).toEqual(expected)
  })

  it.each<[readonly CommandAnswer['outcome'][], string]>([
    [[], 'done'],
    [['done', 'done'], 'done'],
    [['done', 'pending'], 'pending'],
    [['refused', 'pending'], 'pending'],
    [['done', 'refused'], 'partly'],
    [['done', 'gone'], 'partly'],
    [['refused'], 'refused'],
    [['gone', 'refused'], 'refused'],
  ])('that was answered with %j is %s', (outcomes, expected) => {
    expect(outcomeOf(outcomes.map((outcome) => ({ worker: 'a', outcome })))).toBe(expected)
  })
})

describe('a worker', () => {
  it('is alive until it has been silent for three of its signs of life', () => {
    expect(isAlive(registered('a', [], NOW - SILENT_AFTER_MS), NOW)).toBe(true)
    expect(isAlive(registered('a', [], NOW - SILENT_AFTER_MS - 1), NOW)).toBe(false)
  })
})
