import { describe, expect, it } from 'vitest'
import type { CommandAnswer, RegisteredWorker } from '../ports/fleet.ts'
import { isAlive, outcomeOf, SILENT_AFTER_MS } from './fleet.ts'

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

describe('a command', () => {
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
