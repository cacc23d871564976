import { describe, expect, it } from 'vitest'
import type { CommandResponse } from '../ports/fleet.ts'
import { isAlive, outcomeOf, SILENT_AFTER_MS } from './fleet.ts'

const NOW = 1_000_000

describe('a command', () => {
  it.each<[readonly CommandResponse['outcome'][], string]>([
    [[], 'done'],
    [['done', 'done'], 'done'],
    [['done', 'pending'], 'pending'],
    [['refused', 'pending'], 'pending'],
    [['done', 'refused'], 'partly'],
    [['done', 'gone'], 'partly'],
    [['refused'], 'refused'],
    [['gone', 'refused'], 'refused'],
  ])('whose responses are %j is %s', (outcomes, expected) => {
    expect(outcomeOf(outcomes.map((outcome) => ({ worker: 'a', outcome })))).toBe(expected)
  })
})

describe('a worker', () => {
  it('is alive until it has missed three heartbeats', () => {
    expect(isAlive({ seenAt: NOW - SILENT_AFTER_MS }, NOW)).toBe(true)
    expect(isAlive({ seenAt: NOW - SILENT_AFTER_MS - 1 }, NOW)).toBe(false)
  })
})
