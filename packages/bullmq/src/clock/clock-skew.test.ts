// The skew between the clocks of this machine and of Redis, when the machine's clock is set.
import { type Log, VERSION } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { silent } from '../setup.fixture.ts'
import { openSkewMonitor } from './clock-skew.ts'

const HOUR = 3_600_000
/** Redis goes by the same clock as this machine. What it says may be some seconds old if the machine is busy. */
const CLOSE_MS = 60_000

const machineNow = Date.now
const setMachine = (aheadMs: number): void =>
  void vi.spyOn(Date, 'now').mockImplementation(() => machineNow() + aheadMs)
afterEach(() => void vi.restoreAllMocks())

function watch(log: Log = silent, redisUrl: string = inject('redisUrl')) {
  const skew = openSkewMonitor({ redisUrl, namespace: 'any', log, everyMs: 20 })
  onTestFinished(() => skew.close())
  return skew
}

it("is not known, and the time is the machine's, until it is measured", async () => {
  const skew = watch(silent, 'redis://127.0.0.1:1')
  expect(skew.skewMs()).toBeUndefined()
  expect(Math.abs(skew.now() - machineNow())).toBeLessThan(CLOSE_MS)
  skew.close()
  await skew.measured
})

describe.each([HOUR, -HOUR])('a machine that is %i ms ahead', (aheadMs) => {
  it('goes by the time of Redis, and says how far off its own is', async () => {
    setMachine(aheadMs)
    const skew = watch()
    await skew.measured
    expect(Math.abs(skew.now() - machineNow())).toBeLessThan(CLOSE_MS)
    expect(Math.abs(skew.at(performance.now()) - machineNow())).toBeLessThan(CLOSE_MS)
    expect(Math.abs((skew.skewMs() ?? 0) - aheadMs)).toBeLessThan(CLOSE_MS)
  })

  it('is logged when it becomes large and when it is small again, and not in between', async () => {
    const lines: unknown[][] = []
    const log: Log = { ...silent, warn: (...line) => lines.push(line), info: (...line) => lines.push(line) }
    const skew = watch(log)
    await skew.measured
    setMachine(aheadMs)
    // At once, and not with the next measurement.
    expect(Math.abs(skew.now() - machineNow())).toBeLessThan(CLOSE_MS)
    await eventually(() => lines.length === 1)
    expect(lines).toEqual([[{ skewMs: expect.any(Number) }, expect.stringContaining("differs from Redis's clock")]])
    setMachine(0)
    await eventually(() => lines.length > 1)
    expect(lines).toEqual([expect.anything(), [{ skewMs: expect.any(Number) }, expect.stringContaining('agrees')]])
  })
})

it('without the TIME command the machine’s clock is used, and one warning is logged', async () => {
  const admin = new Redis(inject('redisUrl'))
  onTestFinished(() => admin.disconnect())
  const user = `no-time-${VERSION}`
  await admin.acl('SETUSER', user, 'on', '>pass', '~*', '&*', '+@all', '-time')
  onTestFinished(async () => void (await admin.acl('DELUSER', user)))
  const warned: unknown[] = []
  const url = new URL(inject('redisUrl'))
  ;[url.username, url.password] = [user, 'pass']
  const skew = watch({ ...silent, warn: (_, message) => warned.push(message) }, url.href)
  await skew.measured
  expect(skew.skewMs()).toBeUndefined()
  expect(warned).toEqual([expect.stringContaining('rejects the TIME command')])
})
