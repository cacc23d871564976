// Tests that the place where a text stops being JSON is found, and only where the engine too finds one.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonFault } from './json-fault.ts'

test.each([
  ['{"a": x}', 1, 7, 'x}', 'a value'],
  ['{"a": 1,\n "b" 2}', 2, 6, '2}', "':'"],
  ['{"a": 1,}', 1, 9, '}', 'a name in double quotes'],
  ["{'a': 1}", 1, 2, "'a':", "a name in double quotes or '}'"],
  ['[1 2]', 1, 4, '2]', "',' or the closing bracket"],
  ['[1}', 1, 3, '}', "',' or the closing bracket"],
  ['[,]', 1, 2, ',]', "a value or ']'"],
  ['{"a": "é", "b": "x\ny"}', 1, 17, '"x', 'a value'],
  ['{"a"', 1, 5, '', "':'"],
  ['', 1, 1, '', 'a value'],
  ['1 2', 1, 3, '2', 'nothing more'],
  ['01', 1, 2, '1', 'nothing more'],
  ['nul', 1, 1, 'nul', 'a value'],
])('%j stops at line %i, column %i', (text, line, column, found, expected) => {
  expect(jsonFault(text)).toEqual({ line, column, found, expected })
})

test('finds a fault exactly where the engine does not parse', () => {
  const pieces = fc.constantFrom('{', '}', '[', ']', ',', ':', '"a"', '"', '\\', '0', '-1.5e3', 'true', 'nul', ' ', '\n', '\x01', '\x7f') // biome-ignore format: a list
  const broken = fc.array(pieces, { maxLength: 12 }).map((all) => all.join(''))
  const nearly = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '}'))
    .map(
      ([text, at, piece]) => text.slice(0, at % (text.length + 1)) + piece + text.slice((at % (text.length + 1)) + 1),
    )
  const parses = (text: string) => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(fc.oneof(fc.json(), broken, nearly), (text) => (jsonFault(text) === undefined) === parses(text)),
    { numRuns: 2_000 },
  )
})

test('copes with a long string and deep brackets', () => {
  const long = JSON.stringify('x'.repeat(5_000_000))
  expect(jsonFault(long)).toBeUndefined()
  expect(jsonFault(`[${long}`)?.column).toBe(long.length + 2)
  expect(jsonFault('['.repeat(200_000))?.column).toBe(200_001)
})
