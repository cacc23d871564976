// Tests the rates of a queue.
import { expect, it } from 'vitest'
import { type QueueReading, ratesOf, withReading } from './queue-rates.ts'

const reading = (at: number, accepted: number, ended: number): QueueReading => ({ at, accepted, ended })

it('the rates are those between the oldest reading of the last minute and the newest one', () => {
  const readings = [reading(0, 0, 0), reading(30_000, 1_000, 900), reading(80_000, 1_500, 1_150)]
  expect(ratesOf(readings)).toEqual({ in: 10, out: 5, overMs: 50_000 })
})

it('there are no rates until a second has passed', () => {
  expect(ratesOf([])).toBeUndefined()
  expect(ratesOf([reading(0, 1, 1)])).toBeUndefined()
  expect(ratesOf([reading(0, 1, 1), reading(999, 2, 2)])).toBeUndefined()
  expect(ratesOf([reading(0, 1, 1), reading(1_000, 2, 1)])).toEqual({ in: 1, out: 0, overMs: 1_000 })
})

it('no rate is negative, even if Redis has lost its data', () => {
  expect(ratesOf([reading(0, 100, 90), reading(2_000, 3, 0)])).toEqual({ in: 0, out: 0, overMs: 2_000 })
})

it('about one reading is kept for each second of the last minute, however often it is read', () => {
  let readings: readonly QueueReading[] = []
  for (let at = 0; at <= 200_000; at += 10) readings = withReading(readings, reading(at, at, at))
  expect(readings.length).toBeGreaterThan(55)
  expect(readings.length).toBeLessThan(65)
  expect(ratesOf(readings)?.in).toBe(1_000)
})
