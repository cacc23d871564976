// Tests which Idempotency-Key headers are accepted.
import { describe, expect, test } from 'vitest'
import { MAX_IDEMPOTENCY_KEY, readIdempotencyKey } from './idempotency-key.ts'

describe('an Idempotency-Key header', () => {
  test.each([
    ['"8e03978e-40d5-43dd"', { key: '8e03978e-40d5-43dd', life: undefined }],
    [' "a b" ', { key: 'a b', life: undefined }],
    ['"say \\"hi\\" \\\\ there"', { key: 'say "hi" \\ there', life: undefined }],
    ['order:17/a', { key: 'order:17/a', life: undefined }],
    ["7aZ!#$%&'*+-./:^_|~`", { key: "7aZ!#$%&'*+-./:^_|~`", life: undefined }],
    ['a=b', undefined],
    ['"a";life=600', { key: 'a', life: 600 }],
    ['"a" ; life=1', undefined],
    ['a; life=600', { key: 'a', life: 600 }],
    [`"${'x'.repeat(MAX_IDEMPOTENCY_KEY)}"`, { key: 'x'.repeat(MAX_IDEMPOTENCY_KEY), life: undefined }],
  ])('%s', (header, read) => {
    if (read === undefined) expect(() => readIdempotencyKey(header)).toThrow()
    else expect(readIdempotencyKey(header)).toEqual(read)
  })

  test('may be absent', () => {
    expect(readIdempotencyKey(undefined)).toBeUndefined()
  })

  test.each([
    '',
    '""',
    '"a',
    'a b',
    '"ä"',
    '"a";life=0',
    '"a";life=soon',
    '"a";life=1;x=2',
    '"a";x=2',
    '"a", "b"',
    `"${'x'.repeat(MAX_IDEMPOTENCY_KEY + 1)}"`,
    ['"a"', '"b"'],
  ])('%j is rejected with the accepted form', (header) => {
    expect(() => readIdempotencyKey(header)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        errors: [
          {
            header: 'Idempotency-Key',
            message: expect.stringMatching(/^expected 1 to 255 .* in quotes.* or without quotes/),
          },
        ],
      }),
    )
  })
})
