// Renewal over a connection that falls silent: it is opened anew, and renewing goes on.
import { eventually } from '@bullpen/testkit'
import type { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import type { Charge } from './lock-messages.ts'
import { startRenewal } from './renewal.ts'

const charge: Charge = {
  number: 1,
  base: 'test:',
  lockMs: 1_000,
  renewalMs: 5,
  eventLoopStallLimitMs: undefined,
  beat: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  tables: [],
}

it('asks again over a new connection, though what was asked over the silent one is never settled', async () => {
  let [now, asked, isSilent] = [0, 0, true]
  const redis = {
    ping: () => {
      asked++
      return isSilent ? new Promise(() => {}) : Promise.resolve('PONG')
    },
    // As ioredis: what was under way is forgotten.
    disconnect: () => {
      isSilent = false
    },
    // No more of Redis than a renewal asks for.
  } as unknown as Redis
  const renewal = startRenewal(redis, charge, () => now)
  onTestFinished(() => renewal.end())
  await eventually(() => asked === 1)
  now = charge.lockMs + 1
  await eventually(() => asked > 3)
  expect(isSilent).toBe(false)
})
