// Properties of fingerprints: what they ignore, and what they distinguish.
import type { AttemptRecord } from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from '../node/sha256.ts'
import { errorKind, mask, maskMessage } from './fingerprint.ts'

const record = (message: string, more: Partial<AttemptRecord> = {}) =>
  ({ state: 'DONE_ERROR', code: 'gone', message, ...more }) as const

const fingerprint = (message: string, error?: unknown, more: Partial<AttemptRecord> = {}): string =>
  errorKind(record(message, more), error, sha256).fingerprint

const words = fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 8 })
/** What callers and clocks put into a message. */
const variable = fc.oneof(
  fc.nat().map(String),
  fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.nat().map((n) => n.toLocaleString('en')),
  fc.uuid(),
  fc.stringMatching(/^[0-9a-f]{8,40}$/),
  fc.ipV4(),
  fc.nat().map((n) => `cpu-01jd3v7n8q${n}`),
  // A quote at the beginning or after punctuation begins a quoted text.
  fc.oneof(fc.emailAddress(), fc.webUrl()).filter((text) => !/(^|[({:=,;])['`]/.test(text)),
  fc.array(fc.stringMatching(/^[\w.é-]{1,9}$/), { minLength: 1, maxLength: 5 }).map((names) => `/${names.join('/')}`),
  fc.array(fc.stringMatching(/^[\w.é-]{1,9}$/), { minLength: 2, maxLength: 5 }).map((names) => names.join('/')),
  fc.stringMatching(/^[A-Z]:(\\\w{1,8}){1,4}$/),
)
const quoted = fc.oneof(
  fc.stringMatching(/^[\w .,:/é-]{0,30}$/).map((text) => `'${text}'`),
  fc.string({ maxLength: 30 }).map((text) => JSON.stringify(text.replaceAll('"', ''))),
  fc.stringMatching(/^[\w .,:/"'é-]{0,30}$/).map((text) => `“${text}”`),
)

/** An error whose stack has these frames at this line. */
function errorAt(frames: readonly string[], line: number): Error {
  const error = new Error('thrown')
  error.stack = `Error: thrown\n${frames.map((name) => `    at ${name} (file:///app/src/${name}.ts:${line}:7)`).join('\n')}`
  return error
}

const anyText = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'@ab7-_.é日 ("\'`“”/\\:#٣;🚀'), maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
)

describe.each([
  ['frame', mask],
  ['message', maskMessage],
])('a masked %s', (_what, masking) => {
  it('has no digit, is on one line, and is not changed by masking it again', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const masked = masking(text)
        expect(masked).not.toMatch(/\p{N}|\n/u)
        expect(masking(masked)).toBe(masked)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a masked frame', () => {
  it('has # in place of each e-mail address and each word with a digit, and nothing else', () => {
    const variableWord = /[^\s"'<>(),;]+@[^\s"'<>(),;]+|[\p{L}\p{M}\p{N}_-]*\p{N}[\p{L}\p{M}\p{N}_-]*/gu
    fc.assert(
      fc.property(anyText, (message) => {
        expect(mask(message)).toBe(message.replaceAll(variableWord, '#').replaceAll(/\s+/g, ' ').trim())
      }),
      { numRuns: 2_000 },
    )
  })

  it('keeps its path', () => {
    const frame = 'at load (file:///app/src/load.ts:7:3)'
    expect(mask(frame)).toBe('at load (file:///app/src/load.ts:#:#)')
  })
})

describe('a masked message', () => {
  it.each([
    ['no customer 4711', 'no customer #'],
    ['order A-17: 3 of 5 lines failed in 1.5 s', 'order #: # of # lines failed in # s'],
    ['task cpu-01jd3v7n8q0000000000000000 was lost', 'task # was lost'],
    ['no such user: ann.b@example.com', 'no such user: #'],
    ['7d444840-9dc0-41d1-b245-5ffdce74fad2\n  is gone', '# is gone'],
    ['connect ECONNREFUSED 127.0.0.1:6379', 'connect ECONNREFUSED #'],
    ['commit deadbeef-cafe was lost', 'commit # was lost'],
    ["ENOENT: no such file or directory, open '/home/ann/my report'", 'ENOENT: no such file or directory, open #'],
    ['cannot read /home/ann/report: it is empty', 'cannot read # it is empty'],
    ['cannot read C:\\ann\\report', 'cannot read #'],
    ["rejected (o'brien@example.com)", 'rejected #'],
    ['{"name":"Ann","items":[1,2]} is no order', '{#:[#]} is no order'],
    ['GET https://example.com/ann?q=a failed', 'GET # failed'],
    [`Unexpected token 'h', "hello \\" worl"... is not valid JSON`, 'Unexpected token #, #... is not valid JSON'],
    ['no user “ann”, and no `bob`', 'no user #, and no #'],
    [
      "TypeError: Cannot read properties of undefined (reading 'street')",
      "TypeError: Cannot read properties of undefined (reading 'street')",
    ],
    ["TypeError: 'the third street' is no street", 'TypeError: # is no street'],
    ["can't read the users' file, nor Ann's", "can't read the users' file, nor Ann's"],
    [`the reply begins with "${'very '.repeat(300)}`, 'the reply begins with #'],
    ['', ''],
  ])('of %j is %j', (message, masked) => {
    expect(maskMessage(message)).toBe(masked)
  })
})

describe('a fingerprint', () => {
  it.each([
    ['numbers, ids, addresses and paths', variable],
    ['quoted texts', quoted],
  ])('is the same whatever the %s in the message are', (_what, values) => {
    fc.assert(
      fc.property(words, values, values, fc.nat({ max: 8 }), (text, one, other, at) => {
        const withWord = (word: string) => text.toSpliced(at, 0, word).join(' ')
        expect(fingerprint(withWord(one))).toBe(fingerprint(withWord(other)))
      }),
      { numRuns: 1_000 },
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
