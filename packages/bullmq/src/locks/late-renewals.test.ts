// Tests that locks that are not renewed in time are reported before they are lost, once for each lock.
import type { Log } from '@bullpen/contract'
import { eventually, faultProxy } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openLockRenewer } from './lock-renewer.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

it('locks are late once half of their duration has passed without a renewal, and are then reported once', async () => {
  const proxy = await faultProxy(inject('redisUrl'))
  const events: string[] = []
  const renewer = openLockRenewer({
    redisUrl: proxy.url,
    base: '{t.late}:',
    lockMs: 400,
    renewalMs: 40,
    eventLoopStallLimitMs: undefined,
    slots: 3,
    onLate: (locks) => events.push(...Array.from({ length: locks }, () => 'late')),
    log: silent,
  })
  onTestFinished(async () => {
    renewer.close()
    await proxy.close()
  })
  await renewer.ready
  proxy.cut()
  for (const id of ['a', 'b', 'c']) {
    const { release } = renewer.add(id, 'token', 0, (isByStall) => events.push(isByStall ? 'lost by a stall' : 'lost'))
    // The last task ends before its lock is late.
    if (id === 'c') release()
  }
  await eventually(() => events.filter((event) => event === 'lost').length === 2)
  expect(events.filter((event) => event === 'late')).toHaveLength(2)
  expect(events.indexOf('lost')).toBeGreaterThan(events.indexOf('late'))
})

it('a lock that may have expired while the event loop was blocked is not held, before any timer can report that', () => {
  const renewer = openLockRenewer({
    redisUrl: inject('redisUrl'),
    base: '{t.blocked}:',
    lockMs: 100_000,
    renewalMs: 20_000,
    eventLoopStallLimitMs: 0,
    slots: 2,
    log: silent,
  })
  onTestFinished(() => renewer.close())
  // It is lost 300 ms later, when a tenth of its duration is left.
  const lock = renewer.add('a', 'token', 89_700, () => {})
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
  expect(lock.isHeld()).toBe(false)
  expect(renewer.add('b', 'token', 0, () => {}).isHeld()).toBe(true)
})

it('a lock that is lost because the event loop was blocked for longer than its limit is reported as such: that counts as a death', async () => {
  const renewer = openLockRenewer({
    redisUrl: inject('redisUrl'),
    base: '{t.stalled}:',
    lockMs: 300,
    renewalMs: 60,
    eventLoopStallLimitMs: 100,
    slots: 1,
    log: silent,
  })
  onTestFinished(() => renewer.close())
  const lost = new Promise<boolean>((resolve) => renewer.add('a', 'token', 0, resolve))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
  expect(await lost).toBe(true)
})
