// Tests durations: parsing, formatting, and the hints for invalid ones.
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

test('a formatted duration is the shortest text with the same length', () => {
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

test('a duration is proportional to its number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 365 }), fc.constantFrom('s', 'm', 'h', 'd'), (count, unit) => {
      expect(milliseconds(`${count}${unit}`)).toBe(count * milliseconds(`1${unit}`))
    }),
  )
})

describe('an invalid duration is rejected with the setting and a hint', () => {
  test.each([
    ['30', "expected a duration with a unit, such as '30s' or '30ms'"],
    ['1.5', "such as '1.5s' or '1.5ms'"],
    ['1m30s', "expected a single number with a unit, such as '90s'"],
    ['1h 30m', "expected a positive duration such as '30s'"],
    ['-5s', "expected a positive duration such as '30s'"],
    ['0s', "the shortest is '1ms'"],
    ['0.4ms', "the shortest is '1ms'"],
    ['0', "the shortest is '1ms'"],
    ['366d', "the longest is '365d'"],
    [`${'9'.repeat(400)}s`, "the longest is '365d'"],
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
    ['1h30m', "expected a single number with a unit, such as '90m'"],
  ])('%j', (text, hint) => {
    const wrong = { code: 'invalid_duration', message: expect.stringMatching(/^timeout of a\.b is /) }
    expect(() => milliseconds(text, 'timeout of a.b')).toThrow(expect.objectContaining(wrong))
    expect(() => milliseconds(text)).toThrow(hint)
  })

  test('any other text is rejected', () => {
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

describe('a limit', () => {
  test("is a duration, 'none' or undefined", () => {
    expect(limitMs('2s', 'x')).toBe(2_000)
    expect(limitMs('none', 'x')).toBe('none')
    expect(limitMs(undefined, 'x')).toBeUndefined()
  })

  test.each(['0s', '0', '0ms', 0])('of %j is rejected, and the error says how to have no limit', (zero) => {
    expect(() => limitMs(zero as string, 'timeout of a.b')).toThrow(
      `timeout of a.b is ${JSON.stringify(zero)}; use 'none' for no limit, or leave it out to inherit the default`,
    )
  })

  test("that is not a duration is rejected with 'none' among what is accepted", () => {
    expect(() => limitMs('never', 'grace of a.b')).toThrow("such as '30s', or 'none' for no limit")
    expect(() => limitMs('2', 'grace of a.b')).toThrow("such as '2s' or '2ms'")
    expect(() => limitMs(5 as never, 'grace of a.b')).toThrow(
      "grace of a.b is 5; expected a duration with a unit, such as '5s'",
    )
  })
})

test('the type Duration requires a unit', () => {
  expectTypeOf<'30s'>().toExtend<Duration>()
  expectTypeOf<'1.5h'>().toExtend<Duration>()
  expectTypeOf<'30'>().not.toExtend<Duration>()
  expectTypeOf<'none'>().not.toExtend<Duration>()
})
