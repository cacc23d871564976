// Tests which file system errors are retryable.
import { expect, test } from 'vitest'
import { declared } from './file-error.ts'

const systemError = (code: string) =>
  Object.assign(new Error(`${code}: from the system`), { code, syscall: 'read', path: '/deep/inside' })

test.each(['EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'ESTALE'])('%s is retryable, and the cause is kept', (code) => {
  const cause = systemError(code)
  expect(declared(cause, '/')).toMatchObject({
    code: 'io_error',
    retryable: true,
    cause,
    message: expect.stringContaining('/deep/inside'),
  })
})

test.each([
  ['ENOENT', 'not_found'],
  ['EACCES', 'not_readable'],
  ['EISDIR', 'not_a_file'],
])('%s is the permanent failure %s', (code, expected) => {
  expect(declared(systemError(code), '/')).toMatchObject({ code: expected, retryable: false })
})

test('an error of another origin stays a panic', () => {
  const error = new TypeError('a bug')
  expect(declared(error, '/')).toBe(error)
})
