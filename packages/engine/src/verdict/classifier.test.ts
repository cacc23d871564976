import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyByDefault } from './classifier.ts'

const withCode = (code: string, more: object = {}) => Object.assign(new Error('x'), { code }, more)

describe('the default classifier', () => {
  it('names what real operations really throw', async () => {
    // No server listens on this port by chance, and fetch does not refuse it.
    const port = 2
    const refused = await new Promise<Error>((resolve) => connect(port, '127.0.0.1').on('error', resolve))
    expect(classifyByDefault(refused)).toEqual({ code: 'econnrefused', retryable: true })
    const fetched = await fetch(`http://127.0.0.1:${port}/`).catch((error: unknown) => error)
    expect(classifyByDefault(fetched)).toEqual({ code: 'econnrefused', retryable: true })
    const { readFile } = await import('node:fs/promises')
    expect(classifyByDefault(await readFile('/nowhere').catch((error: unknown) => error))).toEqual({
      code: 'enoent',
      retryable: false,
    })
    const late = await fetch(`http://127.0.0.1:${port}/`, {
      signal: AbortSignal.abort(new DOMException('late', 'TimeoutError')),
    }).catch((error: unknown) => error)
    expect(classifyByDefault(late)).toEqual({ code: 'timeout', retryable: true })
  })

  it.each([
    [withCode('UND_ERR_HEADERS_TIMEOUT'), { code: 'und_err_headers_timeout', retryable: true }],
    [withCode('57P01', { severity: 'FATAL' }), { code: 'sqlstate_57p01', retryable: true }],
    [withCode('40P01', { severity: 'ERROR' }), { code: 'sqlstate_40p01', retryable: true }],
    [withCode('PROTOCOL_CONNECTION_LOST'), { code: 'protocol_connection_lost', retryable: true }],
    [Object.assign(new Error('x'), { name: 'MongoNetworkError' }), { code: 'mongo_network', retryable: true }],
    [Object.assign(new Error('x'), { status: 503 }), { code: 'http_503', retryable: true }],
    [Object.assign(new Error('x'), { statusCode: 429 }), { code: 'http_429', retryable: true }],
    [Object.assign(new Error('x'), { response: { status: 404 } }), { code: 'http_404', retryable: false }],
    [
      new Error('wrapped', { cause: new Error('twice', { cause: withCode('ECONNRESET') }) }),
      { code: 'econnreset', retryable: true },
    ],
  ])('%# names %s', (error, failure) => {
    expect(classifyByDefault(error)).toEqual(failure)
  })

  it.each([
    [new TypeError('x is not a function')],
    [withCode('UND_ERR_INVALID_ARG')],
    [withCode('23505', { severity: 'ERROR' })],
    [withCode('40001')],
    [Object.assign(new Error('x'), { status: 200 })],
    [Object.assign(new Error('x'), { response: null })],
  ])('%# leaves to an engineer: %s', (error) => {
    expect(classifyByDefault(error)).toBeUndefined()
  })

  it('never throws, whatever was thrown, circular causes too', () => {
    const circular = new Error('x')
    circular.cause = circular
    expect(classifyByDefault(circular)).toBeUndefined()
    fc.assert(fc.property(fc.anything(), (thrown) => void classifyByDefault(thrown)))
  })
})
