// Tests that JSON for a terminal contains only what a terminal shows, and the same value.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonText } from './json-text.ts'

/** C0, DEL and C1, the marks, embeddings, overrides and isolates of bidirectional text, and the separators of lines and paragraphs. */
const HARMFUL = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, i) => 0x7f + i),
  ...[0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
].map((code) => String.fromCharCode(code))
const harmful = new Set(HARMFUL)

test('the JSON of a value has no character that a terminal would obey, and is the same value', () => {
  const unit = fc.oneof(fc.constantFrom(...HARMFUL, '\\', '"', '\\u', 'é', '漢', '😀', '\ud800'), fc.string())
  const text = fc.string({ unit, maxLength: 20 })
  const value = fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.dictionary(text, text), fc.array(text))
  fc.assert(
    fc.property(value, (given) => {
      const written = jsonText({ given })
      expect(written.split('').filter((char) => harmful.has(char))).toEqual([])
      expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify({ given })))
    }),
  )
})

test('each of these characters is escaped, and all others stay', () => {
  const all = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code))
  const escaped = all.filter((char) => jsonText([char]) !== JSON.stringify([char]))
  // JSON.stringify escapes those below the space itself.
  expect(escaped).toEqual(HARMFUL.filter((char) => char >= ' '))
  expect(jsonText({ 'a\u009b': 'b\u202e' })).toBe(String.raw`{"a\u009b":"b\u202e"}`)
})
