// Tests which readings of a process's readiness are late, and which processes stay wrong.
import { expect, it } from 'vitest'
import { createReadinessRecord, type ReadinessReading } from './readiness.ts'

/** Records a reading every 500 ms. */
function recorded(untilMs: number, at: (now: number) => Omit<ReadinessReading, 'now'>) {
  const record = createReadinessRecord()
  for (let now = 0; now <= untilMs; now += 500) record.note({ now, ...at(now) })
  return { lateMs: record.lateMs(), isStuck: record.isStuck(), isRight: record.isRight() }
}

const FAULT = 10_000
const faultAt = (now: number) => (now < FAULT ? undefined : now - (now % FAULT))

it('a process that works is never late, and one that follows each fault late is late by that and not stuck', () => {
  expect(recorded(200_000, (now) => ({ isReady: true, workedAt: now, faultAt: undefined }))).toEqual({
    ...{ lateMs: 0, isStuck: false, isRight: true },
  })
  const follows = (now: number) => {
    const isReady = now < FAULT || now % FAULT > 7_000
    return { isReady, workedAt: isReady ? now : FAULT, faultAt: faultAt(now) }
  }
  expect(recorded(99_500, follows)).toEqual({ lateMs: 7_000, isStuck: false, isRight: true })
})

it('a process that does not become ready is stuck, however many faults follow', () => {
  const lost = (now: number) => ({ isReady: now < FAULT, workedAt: Math.min(now, FAULT), faultAt: faultAt(now) })
  expect(recorded(60_000, lost)).toMatchObject({ isStuck: false, isRight: false })
  expect(recorded(80_000, lost)).toMatchObject({ isStuck: true, isRight: false })
})

it('a process that stays ready and does no work is late and then stuck', () => {
  const idle = (now: number) => ({ isReady: true, workedAt: Math.min(now, FAULT - 500), faultAt: faultAt(now) })
  expect(recorded(50_000, idle)).toEqual({ lateMs: 40_500, isStuck: false, isRight: false })
  expect(recorded(80_000, idle)).toMatchObject({ isStuck: true })
})

it('a single reading that is not ready, although no fault has happened, is neither late nor stuck', () => {
  const flaps = (now: number) => ({ isReady: now !== 5_000, workedAt: now, faultAt: undefined })
  expect(recorded(20_000, flaps)).toEqual({ lateMs: 0, isStuck: false, isRight: true })
})
