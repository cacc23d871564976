// Tests which errors of the file system are worth another attempt.
import { expect, test } from 'vitest'
import { declared } from './file-error.ts'

const systemError = (code: string) =>
  Object.assign(new Error(`${code}: it is said`), { code, syscall: 'read', path: '/deep/inside' })

test.each(['EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'ESTALE'])('%s is retryable, with the cause kept', (code) => {
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
])('%s is %s for good', (code, expected) => {
  expect(declared(systemError(code), '/')).toMatchObject({ code: expected, retryable: false })
})

test('what is not from the file system stays a panic', () => {
  const error = new TypeError('a bug')
  expect(declared(error, '/')).toBe(error)
})
