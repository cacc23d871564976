// Properties of fingerprints: what they ignore, and what they distinguish.
import type { AttemptRecord } from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from '../node/sha256.ts'
import { errorKind, mask } from './fingerprint.ts'

const record = (message: string, more: Partial<AttemptRecord> = {}) =>
  ({ state: 'DONE_ERROR', code: 'gone', message, ...more }) as const

const fingerprint = (message: string, error?: unknown, more: Partial<AttemptRecord> = {}): string =>
  errorKind(record(message, more), error, sha256).fingerprint

const words = fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 8 })
const variable = fc.oneof(
  fc.nat().map(String),
  fc.float({ noNaN: true, noDefaultInfinity: true }).map((n) => String(Math.abs(n))),
  fc.uuid().filter((id) => /\d/.test(id)),
  fc.nat().map((n) => `cpu-01jd3v7n8q${n}`),
  fc.nat().map((n) => `user_${n}@example.com`),
)

/** An error whose stack has these frames at this line. */
function errorAt(frames: readonly string[], line: number): Error {
  const error = new Error('thrown')
  error.stack = `Error: thrown\n${frames.map((name) => `    at ${name} (file:///app/src/${name}.ts:${line}:7)`).join('\n')}`
  return error
}

describe('a masked message', () => {
  it('has no digit, is on one line, and is not changed by masking it again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
        const masked = mask(text)
        expect(masked).not.toMatch(/\p{N}|\n/u)
        expect(mask(masked)).toBe(masked)
      }),
    )
  })

  it('has # in place of each e-mail address and each word with a digit, and nothing else', () => {
    const variableWord = /[^\s"'<>(),;]+@[^\s"'<>(),;]+|[\p{L}\p{M}\p{N}_-]*\p{N}[\p{L}\p{M}\p{N}_-]*/gu
    const text = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'@ab7-_.é日 ("٣;🚀'), maxLength: 40 }),
      fc.string({ unit: 'grapheme', maxLength: 300 }),
    )
    fc.assert(
      fc.property(text, (message) => {
        expect(mask(message)).toBe(message.replaceAll(variableWord, '#').replaceAll(/\s+/g, ' ').trim())
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['no customer 4711', 'no customer #'],
    ['order A-17: 3 of 5 lines failed in 1.5 s', 'order #: # of # lines failed in #.# s'],
    ['task cpu-01jd3v7n8q0000000000000000 was lost', 'task # was lost'],
    ['no such user: ann.b@example.com', 'no such user: #'],
    ['7d444840-9dc0-41d1-b245-5ffdce74fad2\n  is gone', '# is gone'],
    ['connect ECONNREFUSED 127.0.0.1:6379', 'connect ECONNREFUSED #.#.#.#:#'],
    ['', ''],
  ])('of %j is %j', (message, masked) => {
    expect(mask(message)).toBe(masked)
  })
})

describe('a fingerprint', () => {
  it('is the same whatever the numbers, ids and addresses in the message are', () => {
    const messages = fc.tuple(words, variable, variable, fc.nat({ max: 8 }))
    fc.assert(
      fc.property(messages, ([text, one, other, at]) => {
        const withWord = (word: string) => text.toSpliced(at, 0, word).join(' ')
        // A decimal point separates two words, so both variables need the same number of words.
        fc.pre(mask(one) === mask(other))
        expect(fingerprint(withWord(one))).toBe(fingerprint(withWord(other)))
      }),
    )
  })

  it('differs if the words of the message differ', () => {
    fc.assert(
      fc.property(words, words, (one, other) => {
        fc.pre(one.join(' ') !== other.join(' '))
        expect(fingerprint(one.join(' '))).not.toBe(fingerprint(other.join(' ')))
      }),
    )
  })

  it('depends on the functions at the top of the stack, and not on lines or on frames below the third', () => {
    fc.assert(
      fc.property(words, fc.nat(), fc.nat(), fc.stringMatching(/^[a-z]{9}$/), (frames, line, otherLine, extra) => {
        const expected = fingerprint('m', errorAt(frames, line))
        expect(fingerprint('m', errorAt(frames, otherLine))).toBe(expected)
        expect(fingerprint('m', errorAt([extra, ...frames], line))).not.toBe(expected)
        if (frames.length >= 3) expect(fingerprint('m', errorAt([...frames, extra], line))).toBe(expected)
      }),
    )
  })

  it('depends on the state and the code', () => {
    const all = [
      fingerprint('m'),
      fingerprint('m', undefined, { code: 'other' }),
      fingerprint('m', undefined, { state: 'RECOVER_ERR', code: undefined, reason: 'unexpected_error' }),
    ]
    expect(new Set(all).size).toBe(3)
    expect(all).toEqual(all.map(() => expect.stringMatching(/^[0-9a-f]{16}$/)))
  })

  it('of an error whose stack throws is that of an error without a stack', () => {
    const hostile = Object.defineProperty(new Error('x'), 'stack', {
      get() {
        throw new Error('no stack')
      },
    })
    expect(fingerprint('m', hostile)).toBe(fingerprint('m'))
  })

  it('names the code, or else the reason, and a message of at most 200 characters', () => {
    const panic = { state: 'RECOVER_ERR', code: undefined, reason: 'process_lost' } as const
    expect(errorKind(record(`x${'🚀'.repeat(500)}`), undefined, sha256).message).toBe(`x${'🚀'.repeat(99)}`)
    expect(errorKind(record('x '.repeat(500), panic), undefined, sha256)).toMatchObject({
      state: 'RECOVER_ERR',
      code: 'process_lost',
      message: 'x '.repeat(100),
    })
  })
})
