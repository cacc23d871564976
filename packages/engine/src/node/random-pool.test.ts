import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRandomPool } from './random-pool.ts'

it('a pool returns as many bytes as requested, and never the same part twice', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 4_000, max: 9_000 })))
  fc.assert(
    fc.property(sizes, (wanted) => {
      const random = createRandomPool()
      const parts = wanted.map((size) => random(size))
      expect(parts.map(({ length }) => length)).toEqual(wanted)
      for (const [i, part] of parts.entries()) part.fill(i % 256)
      for (const [i, part] of parts.entries()) expect(part.every((byte) => byte === i % 256)).toBe(true)
    }),
  )
})

it('the ids of 100,000 tasks are all different', () => {
  const random = createRandomPool()
  const ids = Array.from({ length: 100_000 }, () => Buffer.from(random(10)).toString('hex'))
  expect(new Set(ids).size).toBe(ids.length)
})

it('two pools return different bytes', () => {
  expect(createRandomPool()(16)).not.toEqual(createRandomPool()(16))
})
