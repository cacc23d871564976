import type { TaskStatus } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import type { UniqueKey } from '../ports/broker/new-task.ts'
import { extendedSpan, hasKey, type KeyOwner, keySpan, resolveConflict } from './unique-key.ts'

const NOW = 1_000_000

const owner = (given: Partial<KeyOwner> = {}): KeyOwner => ({
  status: 'waiting',
  hasStarted: false,
  willNotStart: false,
  isEnded: false,
  enqueuedAt: NOW - 1_000,
  dueAt: undefined,
  ...given,
})
const scheduled = (dueAt: number): KeyOwner => owner({ status: 'scheduled', dueAt })
const key = (given: Partial<UniqueKey> = {}): UniqueKey => ({
  key: 'k',
  until: 'finished',
  onConflict: 'keep',
  maxDelayMs: undefined,
  ...given,
})

describe('a task has its key', () => {
  it.each([
    ['started', owner(), true],
    ['started', owner({ hasStarted: true, status: 'active' }), false],
    ['started', owner({ hasStarted: true, status: 'retrying' }), false],
    ['finished', owner({ hasStarted: true, status: 'retrying' }), true],
    ['finished', owner({ isEnded: true, status: 'dead' }), false],
    ['finished', owner({ willNotStart: true }), false],
    ['started', owner({ willNotStart: true }), false],
    ['finished', undefined, false],
    ['started', undefined, false],
    [NOW + 1, undefined, true],
    [NOW + 1, owner({ isEnded: true, status: 'completed' }), true],
    [NOW, owner(), false],
  ] as const)('with the span %j and %j: %s', (span, task, isOwner) => {
    expect(hasKey(span, task, NOW)).toBe(isOwner)
  })

  it('from its enqueue for as long as it asked', () => {
    expect(keySpan(key({ until: 500 }), NOW)).toBe(NOW + 500)
    expect(keySpan(key({ until: 'started' }), NOW)).toBe('started')
  })

  it('for a new time if it is postponed, if both tasks ask for a time', () => {
    expect(extendedSpan(NOW + 5, key({ until: 500 }), NOW)).toBe(NOW + 500)
    expect(extendedSpan(NOW + 5, key({ until: 'finished' }), NOW)).toBe(NOW + 5)
    expect(extendedSpan('finished', key({ until: 500 }), NOW)).toBe('finished')
  })
})

describe('on a conflict', () => {
  const LATER = NOW + 5_000

  it.each<[UniqueKey['onConflict'], KeyOwner | undefined, ReturnType<typeof resolveConflict>]>([
    ['error', owner(), { action: 'refused' }],
    ['error', undefined, { action: 'refused' }],
    ['keep', owner(), { action: 'existing' }],
    ['keep', undefined, { action: 'existing' }],
    ['replace', owner(), { action: 'replaced' }],
    ['replace', scheduled(NOW + 1), { action: 'replaced' }],
    ['replace', owner({ status: 'scheduled', hasStarted: true, dueAt: NOW + 1 }), { action: 'existing' }],
    ['replace', owner({ status: 'active', hasStarted: true }), { action: 'existing' }],
    ['replace', owner({ status: 'cancelled', isEnded: true }), { action: 'existing' }],
    ['replace', owner({ willNotStart: true }), { action: 'existing' }],
    ['replace', undefined, { action: 'existing' }],
    ['extend', scheduled(NOW + 1), { action: 'extended', dueAt: LATER }],
    ['extend', scheduled(LATER), { action: 'existing' }],
    ['extend', { ...scheduled(NOW + 1), willNotStart: true }, { action: 'existing' }],
    ['extend', owner(), { action: 'existing' }],
    ['extend', owner({ status: 'scheduled', hasStarted: true, dueAt: NOW + 1 }), { action: 'existing' }],
    ['extend', undefined, { action: 'existing' }],
  ])("'%s' with the other task %j gives %j", (onConflict, other, expected) => {
    expect(resolveConflict(key({ onConflict }), LATER, other)).toEqual(expected)
  })

  it('no task is postponed past the total timeout, which begins when that task is enqueued', () => {
    const decide = (maxDelayMs: number) =>
      resolveConflict(key({ onConflict: 'extend', maxDelayMs }), LATER, scheduled(NOW + 1)).action
    expect(decide(6_001)).toBe('extended')
    expect(decide(6_000)).toBe('existing')
  })

  it.each<TaskStatus>(['waiting', 'scheduled', 'active', 'retrying', 'completed', 'dead', 'cancelled', 'expired'])(
    'a task that has started is never replaced or postponed: %s',
    (status) => {
      for (const onConflict of ['replace', 'extend'] as const) {
        const other = owner({ status, hasStarted: true, dueAt: NOW })
        expect(resolveConflict(key({ onConflict }), LATER, other)).toEqual({ action: 'existing' })
      }
    },
  )
})
