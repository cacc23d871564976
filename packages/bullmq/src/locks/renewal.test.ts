// Renewal over a connection that stops answering: it reconnects and goes on.
import { eventually } from '@bullpen/testkit'
import type { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import type { LockGroup } from './lock-messages.ts'
import { startRenewal } from './renewal.ts'

const group: LockGroup = {
  number: 1,
  base: 'test:',
  lockMs: 1_000,
  renewalMs: 5,
  eventLoopStallLimitMs: undefined,
  lastTurn: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  tables: [],
}

it('renewal reconnects when Redis is silent, though the pending command is never settled', async () => {
  let [now, asked, isSilent] = [0, 0, true]
  const redis = {
    exists: () => {
      asked++
      return isSilent ? new Promise(() => {}) : Promise.resolve('PONG')
    },
    // Like ioredis: commands under way are dropped.
    disconnect: () => {
      isSilent = false
    },
    // Only the commands that a renewal sends.
  } as unknown as Redis
  const renewal = startRenewal(redis, group, () => now)
  onTestFinished(() => renewal.end())
  now = group.lockMs / 2
  await eventually(() => asked === 1)
  now = group.lockMs + 1
  await eventually(() => !isSilent)
  now += group.lockMs / 2
  await eventually(() => asked === 2)
})

it('the groups of a connection without locks send one ping for each half of a lock’s duration', async () => {
  let [now, asked, answered] = [0, 0, 0]
  const redis = {
    exists: () => {
      asked++
      // By then, the timers of the other groups have fired.
      const answer = new Promise((resolve) => setTimeout(resolve, 4 * group.renewalMs, 'PONG'))
      return answer.finally(() => answered++)
    },
    // Only the commands that a renewal sends.
  } as unknown as Redis
  const renewals = Array.from({ length: 10 }, (_, number) => startRenewal(redis, { ...group, number }, () => now))
  onTestFinished(() => renewals.forEach((renewal) => void renewal.end()))
  for (let half = 1; half <= 4; half++) {
    now = (half * group.lockMs) / 2
    await eventually(() => answered >= half)
    expect(asked).toBe(half)
  }
})
