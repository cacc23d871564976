// Writes valid requests as HTTP, and changes them: types, sizes, keys, JSON, headers, methods, paths and queries.
import fc from 'fast-check'
import { CONTENT_TYPES, ENCODINGS, HOSTILE_HEADERS, HOSTILE_TEXTS } from './hostile-texts.fixture.ts'
import { hostileJson, jsonText, mutateJson } from './json-mutations.fixture.ts'
import type { ValidRequest } from './operations.fixture.ts'
import type { WireRequest } from './raw-http.fixture.ts'

/** Numbers that choose where and how a mutation changes a request. */
interface Choice {
  readonly at: number
  readonly value: number
}

type JsonMutation = (request: ValidRequest, choice: Choice) => ValidRequest
type WireMutation = (request: WireRequest, choice: Choice) => WireRequest

/** @throws RangeError if the list is empty. */
function pick<T>(from: readonly T[], at: number): T {
  const picked = from[at % from.length]
  if (picked === undefined) throw new RangeError('cannot pick from an empty list')
  return picked
}

const METHODS = ['HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'FOO', 'post', 'GET', 'POST'] as const

const TARGETS = [
  '*',
  '/',
  '//',
  '/v1',
  '/v1/',
  '/v1//tasks',
  '/%',
  '/v1/tasks/%zz',
  '/.',
  '/openapi.json/',
  '/v1/tasks#a',
] as const

const JSON_MUTATIONS: readonly JsonMutation[] = [
  (request, { at, value }) => ({ ...request, body: mutateJson(request.body, at, value) }),
  (request, { value }) => ({ ...request, body: hostileJson(value) }),
  // A body for an operation without one, or none for an operation that needs it.
  (request, { value }) => ({ ...request, body: request.body === undefined ? hostileJson(value) : undefined }),
]

const QUERY_MUTATIONS: readonly JsonMutation[] = [
  ({ query, ...rest }, { at, value }) => {
    const name = query[at % Math.max(1, query.length)]?.[0] ?? 'wait'
    return { ...rest, query: [...query.filter(([other]) => other !== name), [name, pick(HOSTILE_TEXTS, value)]] }
  },
  ({ query, ...rest }, { at, value }) => ({
    ...rest,
    query: [...query, [pick(HOSTILE_TEXTS, at), pick(HOSTILE_TEXTS, value)]],
  }),
  ({ query, ...rest }) => ({ ...rest, query: [...query, ...query] }),
  ({ query, ...rest }, { at }) => ({ ...rest, query: query.filter((_, index) => index !== at % query.length) }),
]

const withHeader = (request: WireRequest, name: string, value: string): WireRequest => ({
  ...request,
  headers: [...request.headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase()), [name, value]],
})

const HEADER_MUTATIONS: readonly WireMutation[] = [
  (request, { value }) => {
    const [name, text] = pick(HOSTILE_HEADERS, value)
    return withHeader(request, name, text)
  },
  // The same header twice, perhaps with different values.
  (request, { value }) => ({ ...request, headers: [...request.headers, pick(HOSTILE_HEADERS, value)] }),
  (request, { at }) => ({
    ...request,
    headers: request.headers.filter((_, index) => index !== at % request.headers.length),
  }),
  (request, { value }) => withHeader(request, 'Content-Type', pick(CONTENT_TYPES, value)),
  (request, { value }) => withHeader(request, 'Content-Encoding', pick(ENCODINGS, value)),
]

const LINE_MUTATIONS: readonly WireMutation[] = [
  (request, { value }) => {
    const method = pick(METHODS, value)
    return { ...request, method, codes: undefined, mayClose: method === 'CONNECT' }
  },
  (request, { value }) => ({ ...request, target: pick(TARGETS, value), codes: undefined }),
  (request, { value }) => ({ ...request, target: `${request.target}/${pick(HOSTILE_TEXTS, value)}`, codes: undefined }),
  (request) => ({ ...request, target: `/${'x'.repeat(17_000)}`, codes: undefined }),
]

const BODY_MUTATIONS: readonly WireMutation[] = [
  ({ body, ...rest }, { at }) => ({ ...rest, body: body.subarray(0, at % (body.length + 1)) }),
  ({ body, ...rest }, { at, value }) => {
    const index = at % (body.length + 1)
    return { ...rest, body: Buffer.concat([body.subarray(0, index), Buffer.from([value % 256]), body.subarray(index)]) }
  },
  ({ body, ...rest }) => ({ ...rest, body: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body]) }),
  ({ body, ...rest }) => ({ ...rest, body: Buffer.concat([body, body]) }),
  ({ body, ...rest }) => ({ ...rest, body: Buffer.from(body.toString(), 'utf16le') }),
  ({ body, ...rest }) => ({ ...rest, body: Buffer.concat([body, Buffer.alloc(300_000, ' ')]) }),
]

/** Generates requests with up to three mutations each. `apiKey` is valid, and remains so unless a mutation changes it. */
export function mutatedRequests(valid: fc.Arbitrary<ValidRequest>, apiKey: string): fc.Arbitrary<WireRequest> {
  const choice = fc.record({ at: fc.noBias(fc.nat()), value: fc.noBias(fc.nat()) })
  const some = <M>(of: readonly M[]) => fc.tuple(fc.constantFrom(...of), choice)
  const mutation = fc.oneof(
    { weight: 6, arbitrary: some(JSON_MUTATIONS).map((json) => ({ json })) },
    { weight: 3, arbitrary: some(QUERY_MUTATIONS).map((json) => ({ json })) },
    { weight: 4, arbitrary: some(HEADER_MUTATIONS).map((wire) => ({ wire })) },
    { weight: 1, arbitrary: some(LINE_MUTATIONS).map((wire) => ({ wire })) },
    { weight: 2, arbitrary: some(BODY_MUTATIONS).map((wire) => ({ wire })) },
  )
  return fc.tuple(valid, fc.array(mutation, { maxLength: 3 })).map(([request, mutations]) => {
    const changed = mutations.reduce(
      (before, each) => ('json' in each ? each.json[0](before, each.json[1]) : before),
      request,
    )
    const sent = mutations.reduce(
      (before, each) => ('wire' in each ? each.wire[0](before, each.wire[1]) : before),
      asWire(changed, apiKey),
    )
    return complete(sent)
  })
}

function asWire({ method, path, query, headers, body, codes }: ValidRequest, apiKey: string): WireRequest {
  const search = query.map(([name, value]) => `${inQuery(name)}=${inQuery(value)}`).join('&')
  return {
    method,
    target: search === '' ? path : `${path}?${search}`,
    headers: [
      ['Host', 'api'],
      ['Authorization', `Bearer ${apiKey}`],
      ...(body === undefined ? [] : [['Content-Type', 'application/json'] as const]),
      ...headers.map(
        ([name, value]) => [name, name === 'Idempotency-Key' ? `"${inHeader(value)}"` : inHeader(value)] as const,
      ),
    ],
    body: body === undefined ? Buffer.alloc(0) : Buffer.from(jsonText(body)),
    isLeft: false,
    mayClose: false,
    codes,
  }
}

/** Escapes only what would end the request line, so that the API also gets texts that are not encoded correctly. */
const inQuery = (text: string): string => text.replaceAll(/[^!$'()*+,./:;?@\w~%[\]{}-]/gu, encodeWellFormed)
const encodeWellFormed = (text: string): string => encodeURIComponent(text.toWellFormed())
const inHeader = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '')

/** Adds the headers that depend on the others, and decides whether the caller leaves. */
function complete(request: WireRequest): WireRequest {
  const has = (name: string): boolean => request.headers.some(([other]) => other.toLowerCase() === name)
  const framing = has('content-length') || has('transfer-encoding')
  const headers = [
    ...request.headers,
    ...(framing || request.body.length === 0 ? [] : [['Content-Length', String(request.body.length)] as const]),
    ...(has('connection') ? [] : [['Connection', 'close'] as const]),
  ]
  const waits = /[?&]wait=/.test(request.target) || has('prefer')
  // The API waits for the rest of a body that is shorter than announced.
  return { ...request, headers, isLeft: waits || framing || has('upgrade') || has('connection') }
}
