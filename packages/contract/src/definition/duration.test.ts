// Tests durations: what is read, what is refused and with which hint, and the way back.
import fc from 'fast-check'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type Duration, formatDuration, limitMs, milliseconds } from './duration.ts'

const YEAR_MS = 365 * 86_400_000

test.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['5m', 300_000],
  ['1.5h', 5_400_000],
  ['7d', 604_800_000],
  ['365d', YEAR_MS],
  ['0.6ms', 1],
  ['1.005s', 1_005],
])('%s is %i ms', (text, ms) => {
  expect(milliseconds(text)).toBe(ms)
})

test('is written in a way that reads back as the same, the shortest one', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: 1, max: YEAR_MS }),
        fc.integer({ min: 1, max: 365 * 24 }).map((h) => h * 3_600_000),
      ),
      (ms) => {
        const text = formatDuration(ms)
        expect(milliseconds(text)).toBe(ms)
        for (const [unit, size] of Object.entries({ ms: 1, s: 1e3, m: 6e4, h: 3.6e6, d: 8.64e7 })) {
          if (ms % size === 0) expect(text.length).toBeLessThanOrEqual(`${ms / size}${unit}`.length)
        }
      },
    ),
  )
})

test('counts in proportion to its number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 365 }), fc.constantFrom('s', 'm', 'h', 'd'), (count, unit) => {
      expect(milliseconds(`${count}${unit}`)).toBe(count * milliseconds(`1${unit}`))
    }),
  )
})

describe('refuses, naming the setting and what is right,', () => {
  test.each([
    ['30', "did you mean '30s' or '30ms'?"],
    ['1.5', "did you mean '1.5s' or '1.5ms'?"],
    ['-5s', 'a duration is positive'],
    ['0s', "the shortest is '1ms'"],
    ['0.4ms', "the shortest is '1ms'"],
    ['366d', "the longest duration is '365d'"],
    [`${'9'.repeat(400)}s`, "the longest duration is '365d'"],
    ['', "such as '30s'"],
    ['none', "such as '30s'"],
    ['s', "such as '30s'"],
    ['30 s', "such as '30s'"],
    ['30S', "such as '30s'"],
    ['30min', "such as '30s'"],
    ['1e3s', "such as '30s'"],
    ['.5s', "such as '30s'"],
    ['1.s', "such as '30s'"],
    ['0x10s', "such as '30s'"],
    ['Infinitys', "such as '30s'"],
    ['30s\n', "such as '30s'"],
    ['1h30m', "such as '30s'"],
  ])('%j', (text, hint) => {
    const wrong = { code: 'invalid_duration', message: expect.stringMatching(/^timeout of a\.b is /) }
    expect(() => milliseconds(text, 'timeout of a.b')).toThrow(expect.objectContaining(wrong))
    expect(() => milliseconds(text)).toThrow(hint)
  })

  test('any other text', () => {
    const plain = /^\d+(\.\d+)?(ms|s|m|h|d)$/
    fc.assert(
      fc.property(
        fc.string().filter((text) => !plain.test(text)),
        (text) => {
          expect(() => milliseconds(text)).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
        },
      ),
    )
  })
})

test('a limit may be absent or inherited', () => {
  expect([limitMs('none', 'x'), limitMs(undefined, 'x'), limitMs('2s', 'x')]).toEqual(['none', undefined, 2_000])
  expect(() => limitMs('2', 'grace of a.b')).toThrow('grace of a.b')
})

test('has a type that knows units', () => {
  expectTypeOf<'30s'>().toExtend<Duration>()
  expectTypeOf<'1.5h'>().toExtend<Duration>()
  expectTypeOf<'30'>().not.toExtend<Duration>()
  expectTypeOf<'none'>().not.toExtend<Duration>()
})
