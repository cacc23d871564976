// Tests that a stream is split into its lines, whatever its chunks are.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitLines } from './lines.ts'

async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0
  for (const size of sizes) {
    yield bytes.subarray(from, from + size)
    from += size
  }
  yield bytes.subarray(from)
}

async function linesOf(source: AsyncIterable<Uint8Array | string>, maxBytes: number) {
  const lines: (string | undefined)[] = []
  for await (const { number, bytes } of splitLines(source, maxBytes)) {
    expect(number).toBe(lines.length + 1)
    lines.push(bytes === undefined ? undefined : Buffer.from(bytes).toString())
  }
  return lines
}

test('the lines of a stream do not depend on its chunks, and those that are too long are left out', async () => {
  const text = fc
    .array(fc.constantFrom('a', 'é', '\n', '\r', '{}', '"long"'), { maxLength: 60 })
    .map((all) => all.join(''))
  const sizes = fc.array(fc.nat(10), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(text, sizes, fc.integer({ min: 1, max: 20 }), async (given, chunks, maxBytes) => {
      const expected = given.split('\n').map((line) => (Buffer.byteLength(line) > maxBytes ? undefined : line))
      if (expected.at(-1) === '') expected.pop()
      expect(await linesOf(inChunks(Buffer.from(given), chunks), maxBytes)).toEqual(expected)
    }),
  )
})
