// Tests which workers a command is for, and whether it cancels tasks.
import type { CommandSpec } from '@bullpen/contract/internal'
import { type RegisteredWorker, SILENT_AFTER_MS } from '@bullpen/engine/internal'
import { describe, expect, it } from 'vitest'
import { recipients } from './commands.ts'
import { cancelsWaiting } from './queue-settings.ts'

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

describe('the recipients of a command', () => {
  it.each<[string, CommandSpec, readonly string[]]>([
    ['a queue: every live worker with a pool on it', { action: 'pause', queue: 'cpu' }, ['a', 'b']],
    ['a worker: that one', { action: 'resume', worker: 'b' }, ['b']],
    ['a pool: its worker, which refuses if it has no such pool', { action: 'pause', queue: 'cpu', worker: 'c' }, ['c']],
    ['a slot: its worker', { action: 'stop', queue: 'cpu', worker: 'a', slot: 1, how: 'hard' }, ['a']],
    ['a queue without workers: none', { action: 'pause', queue: 'mail' }, []],
    [
      'how many each pool of a queue runs: silent workers too, which may come back',
      { action: 'resize', queue: 'cpu', concurrency: 3 },
      ['a', 'b', 'silent'],
    ],
    ['no target: every live worker', { action: 'log_level', level: 'debug' }, ['a', 'b', 'c']],
    ['a silent worker: none', { action: 'pause', worker: 'silent' }, []],
    ['a limit of the whole fleet: none, because Redis enforces it', { action: 'limit', queue: 'cpu' }, []],
  ])('are, for %s', (_, spec, expected) => {
    expect(recipients(spec, FLEET, NOW)).toEqual(expected)
  })
})

it.each<[boolean, CommandSpec]>([
  [true, { action: 'drain', queue: 'mail', mode: 'soft_timeout' }],
  [true, { action: 'drain', queue: 'mail', mode: 'soft' }],
  [true, { action: 'drain', queue: 'mail', mode: 'hard' }],
  [false, { action: 'drain', queue: 'mail', mode: 'light' }],
  [false, { action: 'drain', queue: 'mail', mode: 'hard', worker: 'a' }],
  [false, { action: 'drain', mode: 'hard', worker: 'a' }],
  [false, { action: 'drain', queue: 'cpu', mode: 'hard' }],
  [false, { action: 'pause', queue: 'mail' }],
])('it is %s that the waiting tasks of the queue are cancelled by %j', (cancels, spec) => {
  expect(cancelsWaiting(spec, (queue) => (queue === 'mail' ? 'cancel' : 'keep'))).toBe(cancels)
})
