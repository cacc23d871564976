// Tests that the check of JSON agrees with JSON.parse, and that it finds the right place.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonSyntaxError } from './json-syntax.ts'

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const characters = [...'{}[]",:\\ \n-+.019eEtrufalsn/\u0000\u007f\u0085😀\ud800']

/** JSON in which a few characters have been deleted, inserted or replaced. */
const nearlyJson = fc
  .tuple(
    fc.json({ maxDepth: 3 }),
    fc.array(fc.tuple(fc.nat(), fc.nat(1), fc.constantFrom('', ...characters)), { maxLength: 3 }),
  )
  .map(([text, changes]) =>
    changes.reduce((before, [place, deleted, inserted]) => {
      const at = place % (before.length + 1)
      return before.slice(0, at) + inserted + before.slice(at + deleted)
    }, text),
  )

it('a text is JSON if and only if JSON.parse accepts it', () => {
  const anyText = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(nearlyJson, anyText), (text) => {
      expect([text, jsonSyntaxError(text) === undefined]).toEqual([text, isJson(text)])
    }),
    { numRuns: 5_000 },
  )
})

it.each([
  ['', 1, 1],
  ['{', 1, 2],
  ['{"a": 1,\n  "b": secret}', 2, 8],
  ['{"a": 1,\n}', 2, 1],
  ['{"a" 1}', 1, 6],
  ["{'a': 1}", 1, 2],
  ['{"a": "never closed}', 1, 7],
  ['[1, 2] 3', 1, 8],
  ['[01]', 1, 3],
])('%j stops being JSON at line %i, column %i', (text, line, column) => {
  expect(jsonSyntaxError(text)).toEqual({ line, column })
})
