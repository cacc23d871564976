// Tests the formatting of counts, times and text from other sources.
import fc from 'fast-check'
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { count, formatLength, literal, plain, relativeTime } from './format.ts'

test.each([
  [0, '0ms'],
  [850, '850ms'],
  [1_000, '1s'],
  [1_290, '1.2s'],
  [42_900, '42s'],
  [59_999, '59s'],
  [5 * 60_000 + 59_000, '5m'],
  [3 * 3_600_000, '3h'],
  [49 * 3_600_000, '2d'],
])('%i ms is written as %s', (ms, text) => expect(formatLength(ms)).toBe(text))

test('a point in time is written relative to now, in both directions', () => {
  const now = Date.UTC(2026, 0, 1)
  expect(relativeTime('2026-01-01T00:00:30.000Z', now)).toBe('in 30s')
  expect(relativeTime('2025-12-31T23:55:00.000Z', now)).toBe('5m ago')
  expect(relativeTime('2026-01-01T00:00:00.000Z', now)).toBe('0ms ago')
})

test('foreign text loses its line breaks and control characters, and is cut to the given length', () => {
  expect(plain('a\n\tb\u001b[31mred\u009b2J\u2028c')).toBe('a b [31mred 2J c')
  expect(plain('evil\u202egpj.exe\u2066')).toBe('evil gpj.exe')
  expect(plain('123456', 6)).toBe('123456')
  expect(plain('1234567', 6)).toBe('12345…')
  expect(plain('🚀🚀🚀🚀', 6)).toBe('🚀🚀…')
})

test('text is cut to columns of the terminal, and only between what a reader sees as characters', () => {
  expect(plain('漢字漢字', 5)).toBe('漢字…')
  expect(plain('e\u0301e\u0301e\u0301', 3)).toBe('e\u0301e\u0301e\u0301')
  expect(plain('👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧', 5)).toBe('👨‍👩‍👧👨‍👩‍👧…')
  const texts = fc.string({ unit: fc.constantFrom('a', '漢', '\u0301', '\u200d', '👩', '🇳', 'ｱ', ' ') })
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 20 }), (text, width) => {
      const shown = plain(text, width)
      expect(stringWidth(shown)).toBeLessThanOrEqual(width)
      if (stringWidth(plain(text)) <= width) expect(shown).toBe(plain(text))
    }),
  )
})

test('a noun is in the plural unless there is one', () => {
  expect([0, 1, 2].map((number) => count(number, 'pool'))).toEqual(['0 pools', '1 pool', '2 pools'])
})

test('a name with unusual characters is quoted, with escapes for those that cannot be seen', () => {
  for (const name of ['acme', 'tenant:7/a@b.example+x', 'Zoë', '顧客']) expect(literal(name)).toBe(name)
  const names = ['a b', 'a\tb', 'a\u00a0b', 'a\u001b[2Jb', 'a\u202eb', 'a"b', '"a b"', 'a\u{e0061}b', '', '-']
  expect(names.map(literal)).toEqual([
    '"a b"',
    String.raw`"a\tb"`,
    String.raw`"a\u00a0b"`,
    String.raw`"a\u001b[2Jb"`,
    String.raw`"a\u202eb"`,
    String.raw`"a\"b"`,
    String.raw`"\"a b\""`,
    String.raw`"a\udb40\udc61b"`,
    '""',
    '-',
  ])
})
