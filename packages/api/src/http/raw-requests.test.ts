// Tests what the API responds to requests that HTTP clients do not send by themselves, written to a socket byte by byte.
import { once } from 'node:events'
import { METHODS } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { KEY, testApi } from '../api.fixture.ts'
import { isTooSlow, requestTimeoutMs } from './slow-bodies.ts'

/** Opens a connection to an API, and returns it with the text that it will have received when it closes. */
async function dial(more: Parameters<typeof testApi>[0] = {}) {
  const { app, ...api } = await testApi(more)
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  const received = text(socket)
  return { ...api, socket: socket.on('error', () => {}), received }
}

const HEAD = `POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n`
const BODY = JSON.stringify({ task: 'math.square', input: { n: 4 }, meta: { shop: 'a' } }).padEnd(9_000)

/** Sends the body in parts of this size, `everyMs`, until it is sent or the connection closes. */
async function drip(socket: Socket, body: string, bytes: number, everyMs: number) {
  for (let at = 0; at < body.length && socket.writable; at += bytes) {
    socket.write(body.slice(at, at + bytes))
    await sleep(everyMs)
  }
}

describe('a body', () => {
  test.each([
    [680_000, 136_000, 16_384, false],
    [4_194_304, 20_000, 16_384, false],
    [4_194_304, 1_000, 16_384, true],
    [100, 1, 16_384, true],
  ])('of %i bytes that arrives at %i bytes/s when %i are required is refused: %s', (bytes, rate, required, refused) => {
    const seconds = Array.from({ length: Math.ceil(bytes / rate) }, (_, i) => i)
    const tooSlow = seconds.findIndex((second) => isTooSlow(second, second * rate, required))
    expect(tooSlow !== -1).toBe(refused)
    expect(tooSlow).toBeLessThanOrEqual(4)
    if (!refused) expect((bytes / rate) * 1_000).toBeLessThan(requestTimeoutMs(bytes, required))
  })

  test.concurrent('that arrives more slowly than the rate is refused, and its connection is closed', async () => {
    const { socket, received, broker } = await dial()
    socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`)
    await drip(socket, BODY, 1, 100)
    expect(await received).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n.*"code":"request_timeout"/s)
    expect(broker.enqueued).toEqual([])
  })

  test.concurrent('that takes longer than 3 s at a sufficient rate is accepted', async () => {
    const { socket, received } = await dial({ minBodyRate: 256 })
    socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`)
    await drip(socket, BODY, 1_000, 600)
    expect(await received).toMatch(/^HTTP\/1\.1 202 /)
  })

  test.concurrent('of which the rest does not arrive after the response gets no second response', async () => {
    const { socket, received } = await dial()
    socket.write(`${HEAD.replace('/v1/tasks', '/nope').replace('close', 'keep-alive')}Content-Length: 9\r\n\r\n{`)
    expect((await received).match(/HTTP\/1\.1/g)).toEqual(['HTTP/1.1'])
  })
})

const GET = (path: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${KEY}\r\n${headers}\r\n`
const POST = (headers: string, body: string | Buffer = SQUARE) =>
  Buffer.concat([
    Buffer.from(`${HEAD.replace('application/json', '')}`.replace('Content-Type: \r\n', '')),
    Buffer.from(`${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`),
    Buffer.from(body),
  ])
const ofVersion = (version: string) => GET('/livez').replace('HTTP/1.1', version)
const chunked = (coding: string) =>
  `${HEAD}Transfer-Encoding: ${coding}\r\n\r\n${SQUARE.length.toString(16)}\r\n${SQUARE}\r\n0\r\n\r\n`
const SQUARE = '{"task":"math.square","input":{"n":4}}'
const KEPT_ALIVE = `${HEAD.replace('Connection: close\r\n', '')}Content-Length: ${SQUARE.length}\r\n\r\n${SQUARE}`
const BROWSER = 'Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n'
const JSON_TYPE = 'Content-Type: application/json'

describe('a request', () => {
  test.each([
    ['with 64 KiB of headers', GET('/livez', `X: ${'x'.repeat(65_536)}\r\n`), 431, /"code":"headers_too_large"/],
    ['with a path of 64 KiB', GET(`/${'x'.repeat(65_536)}`), 431, /"code":"headers_too_large"/],
    ['that is not HTTP', 'hello\r\n\r\n', 400, /malformed HTTP/],
    ['whose lines end in LF', GET('/livez').replaceAll('\r\n', '\n'), 400, /malformed HTTP.*LF alone/],
    ['whose request line ends in LF', GET('/livez').replace('\r\n', '\n'), 400, /malformed HTTP.*LF alone/],
    ['of HTTP/2.0 whose lines end in LF', ofVersion('HTTP/2.0').replaceAll('\r\n', '\n'), 400, /malformed HTTP/],
    ['with a header that ends in LF', GET('/livez', 'X: y\n'), 400, /malformed HTTP/],
    ['whose empty line is LF', GET('/livez').replace(/\r\n$/, '\n'), 400, /malformed HTTP/],
    ['with two Host headers', GET('/livez', 'host: y\r\n'), 400, /"header":"Host"/],
    ['in two transfer codings', chunked('gzip, chunked'), 501, /"header":"Transfer-Encoding"/],
    [
      'in two Transfer-Encoding headers',
      chunked('gzip\r\nTransfer-Encoding: chunked'),
      501,
      /"header":"Transfer-Encoding"/,
    ],
    ['in an unknown transfer coding', chunked('unknown'), 501, /"code":"unsupported_transfer_coding".*"refused"/],
    ['without a body in an unknown transfer coding', GET('/livez', 'Transfer-Encoding: x\r\n'), 501, /"refused"/],
    [
      'with a broken body after its response',
      `${HEAD.replace('/v1/tasks', '/nope')}Transfer-Encoding: chunked\r\n\r\nx`,
      404,
      /"route_n/,
    ],
    ['that bytes follow which are not HTTP', `${KEPT_ALIVE}hello\r\n\r\n`, 202, /"created"/],
    ['whose bytes are more than its length', `${POST(`${JSON_TYPE}\r\n`)}}`, 202, /"created"/],
    ['in chunks that are then in another coding', chunked('chunked, gzip'), 400, /malformed HTTP/],
    ['with a length and in chunks', POST(`${JSON_TYPE}\r\nTransfer-Encoding: chunked\r\n`), 400, /malformed HTTP/],
    ['of HTTP/2.0', ofVersion('HTTP/2.0'), 505, /"code":"unsupported_http_version".*"outcome":"refused"/],
    ['of HTTP/0.9', ofVersion('HTTP/0.9'), 505, /"code":"unsupported_http_version"/],
    ['of HTTP/3.0', ofVersion('HTTP/3.0'), 505, /"code":"unsupported_http_version"/],
    ['of HTTP/1.0', ofVersion('HTTP/1.0'), 200, /"alive"/],
    ['with the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, /"code":"unsupported_http_version"/],
    ['in chunks', chunked('Chunked'), 202, /"created"/],
    ['with gzip', POST(`${JSON_TYPE}\r\nContent-Encoding: gzip\r\n`), 415, /\naccept-encoding: identity\r/],
    ['with text in gzip', POST('Content-Type: text/plain\r\nContent-Encoding: gzip\r\n'), 415, /\naccept-encoding: i/],
    ['with the coding Identity', POST(`${JSON_TYPE}\r\nContent-Encoding: Identity\r\n`), 202, /"created"/],
    ['with text', POST('Content-Type: text/plain\r\n'), 415, /\naccept: application\/json\r/],
    ['in UTF-16', POST(`${JSON_TYPE}; charset=utf-16\r\n`), 415, /is 'utf-16'; expected UTF-8/],
    ['in Latin-1', POST(`${JSON_TYPE};charset="ISO-8859-1"\r\n`), 415, /is 'ISO-8859-1'; expected UTF-8/],
    ['in UTF-8, by its name', POST(`${JSON_TYPE}; Charset="UTF-8"\r\n`), 202, /"created"/],
    ['with a byte order mark', POST(`${JSON_TYPE}\r\n`, `\u{feff}${SQUARE}`), 202, /"created"/],
    ['of a byte order mark', POST(`${JSON_TYPE}\r\n`, '\u{feff}'), 400, /"code":"malformed_json"/],
    ['with the mark of UTF-16', POST(`${JSON_TYPE}\r\n`, Buffer.from('fffe7b007d00', 'hex')), 400, /not valid UTF-8/],
    [
      'with a slash too many',
      POST(`${JSON_TYPE}\r\n`).toString().replace('/v1/tasks', '/v1/tasks/'),
      404,
      /use \/v1\/tasks"/,
    ],
    ['with a slash after an id', GET('/v1/tasks/x/?wait=1'), 404, /use \/v1\/tasks\/x"/],
    ['with a slash after a probe', GET('/livez/'), 404, /use \/livez"/],
    ['OPTIONS', GET('/v1/tasks/bulk').replace('GET', 'OPTIONS'), 204, /\nallow: POST, OPTIONS\r/],
    ['TRACE', GET('/v1/tasks').replace('GET', 'TRACE'), 405, /\nallow: POST, GET, HEAD, OPTIONS\r/],
    ['PUT of the document', GET('/openapi.json').replace('GET', 'PUT'), 405, /\nallow: GET, HEAD, OPTIONS\r/],
    ['DELETE of the log-in', GET('/board/login').replace('GET', 'DELETE'), 405, /\nallow: GET, HEAD, POST, OPTIONS\r/],
    ['HEAD of a list', GET('/v1/slots').replace('GET', 'HEAD'), 200, /\r\n\r\n$/],
    ['HEAD of a POST', GET('/v1/tasks/bulk').replace('GET', 'HEAD'), 405, /\nallow: POST, OPTIONS\r[^{]*\r\n\r\n$/],
    ['of the address, by a browser', GET('/', BROWSER), 200, /href="\/reference"/],
    ['of the address, by a program', GET('/', 'Accept: application/json\r\n'), 404, /"code":"route_not_found"/],
    ['OPTIONS of the server', GET('*').replace('GET', 'OPTIONS'), 204, /\nallow: /],
  ])('%s is answered as the RFCs say', async (_name, bytes, status, expected) => {
    const { socket, received } = await dial()
    socket.write(bytes)
    const response = await received
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(response).toMatch(expected)
    expect(response.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
  })
})

test('every method that Node can read and a path does not accept gets 405 and the methods that it accepts', async () => {
  const { app } = await testApi()
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const answers = await Promise.all(
    ['/v1/tasks', '/v1/tasks/x', '/v1/tasks/bulk', '/livez', '/openapi.json', '/'].flatMap((path) =>
      METHODS.map(async (method) => {
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(GET(path).replace('GET', method)))
        const response = await text(socket)
        const [, status = ''] = /^HTTP\/1\.1 (\d+) /.exec(response) ?? []
        const [, allow = ''] = /\r\nallow: (.*)\r\n/.exec(response) ?? []
        return {
          path,
          method,
          status,
          isRefused: status === '405',
          allow,
          hasCode: /"code":"method_not/.test(response),
        }
      }),
    ),
  )
  const allowed = new Map(answers.flatMap(({ path, method, allow }) => (method === 'OPTIONS' ? [[path, allow]] : [])))
  for (const answer of answers) {
    const { path, method, isRefused } = answer
    const accepts = allowed.get(path) ?? expect.fail()
    expect(isRefused, JSON.stringify(answer)).toBe(!accepts.split(', ').includes(method))
    // The response to HEAD has no body.
    if (isRefused) expect(answer).toMatchObject({ allow: accepts, hasCode: method !== 'HEAD' })
  }
  expect(answers.filter(({ isRefused }) => isRefused).length).toBeGreaterThan(170)
})

const PARENTS = ['..', '%2e%2e', '.%2E', '%2e.', '%252e%252e', '%25252e.']
const SLASHES = ['/', '\\', '%2f', '%5C', '%252F', '%25255c']
const PLACES = ['/board/static', '/reference/static', '/board', '/reference', '/v1/tasks', '/problems', '/nope', '']
const boardQueues = [{ name: 'cpu', metaValues: { version: 'bullmq:6' } } as never]

test.each(PLACES)(
  'a path below %j that leads out of a directory is forbidden, however it is encoded',
  async (place) => {
    const leadsOut = PARENTS.flatMap((parent) =>
      SLASHES.flatMap((slash) => [`${parent}${slash}x`, `x${slash}${parent}`]),
    )
    const forbidden = [...leadsOut, 'x/..?y=z', '..%2f..%2fetc/passwd', '..%2f%00']
    if (place.endsWith('/static')) forbidden.push('x%00')
    const others = ['..x', 'x..', '...', 'x?y=/../', '%2e%2ex']
    const { socket, received } = await dial({ boardQueues })
    for (const path of [...forbidden, ...others]) {
      socket.write(GET(`${place}/${path}`).replace('Connection: close\r\n', ''))
    }
    socket.write(GET('/livez'))
    const statuses = Array.from((await received).matchAll(/HTTP\/1\.1 (\d+) /g), ([, status]) => Number(status))
    expect(statuses).toHaveLength(forbidden.length + others.length + 1)
    expect(forbidden.filter((_, i) => statuses[i] !== 403)).toEqual([])
    expect(others.filter((_, i) => statuses[forbidden.length + i] === 403)).toEqual([])
  },
)
