// Tests that no request makes the API fail: sends requests that are generated from the OpenAPI document and then mutated.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Accepted, ErrorCode } from '@bullpen/contract'
import { ERRORS, PROBLEM_CONTENT_TYPE, problemSchema } from '@bullpen/contract/internal'
import { catalogue, mathFactorial } from '@bullpen/tasks'
import { processTree, programEnv, seeds } from '@bullpen/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { mutatedRequests } from './mutated-requests/mutations.fixture.ts'
import { type OpenApiDocument, requestsOf } from './mutated-requests/operations.fixture.ts'
import { bytesOf, sendBytes, type WireRequest, type WireResponse } from './mutated-requests/raw-http.fixture.ts'

const MAIN = new URL('./main.ts', import.meta.url).pathname
const KEY = 'mutated-requests-key-0123456789'
const REQUESTS_PER_SEED = 1_000
const AT_ONCE = 16
/** The heap's limit in the API process, so that a leak ends the process. */
const HEAP_MB = 96
/** The limit of all memory of the process, which includes the buffers of requests and Node's own code. */
const MEMORY_MB = 320
const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const DURATIONS = ['30s', '2m', '1h', 'none']
const SHOWN_BYTES = 600
const SHOWN_FAULTS = 10

/** The problems that any request can have, whatever its operation: malformed HTTP, or a path that is not in the document. */
const OF_ANY_REQUEST: readonly ErrorCode[] = [
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'unsupported_transfer_coding',
  'unsupported_http_version',
  'forbidden',
  'route_not_found',
  'method_not_allowed',
]

interface RunningApi {
  readonly child: ChildProcess
  readonly port: number
  readonly document: OpenApiDocument
  /** What the process has written. */
  readonly output: () => string
  /** The id of a stored task. */
  readonly id: string
  /** The statuses of all responses so far. */
  readonly statuses: Set<number>
}

let api: RunningApi

beforeAll(async () => {
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, MAIN], {
    env: programEnv({
      REDIS_URL: inject('redisUrl'),
      BULLPEN_API_KEYS: KEY,
      BULLPEN_API_PORT: '0',
      BULLPEN_API_METRICS_PORT: '0',
      BULLPEN_NAMESPACE: `mutated-${process.pid}`,
    }),
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const url = await vi.waitUntil(() => /"url":"([^"]+)"/.exec(output)?.[1], { timeout: 120_000, interval: 20 })
  const body = JSON.stringify({ task: mathFactorial.name, input: { n: 5 } })
  const { id } = (await (await fetch(`${url}/v1/tasks`, { method: 'POST', headers: HEADERS, body })).json()) as Accepted
  const document = (await (await fetch(`${url}/openapi.json`, { headers: HEADERS })).json()) as OpenApiDocument
  api = { child, port: Number(new URL(url).port), document, output: () => output, id, statuses: new Set() }
})

afterAll(() => void api.child.kill('SIGKILL'))

test.each(seeds({ small: 1, full: 10 }))(
  '1,000 generated requests with mutations get no server error, and every error is a documented problem: seed %i',
  async (seed) => {
    const valid = requestsOf(api.document, [...catalogue.queues, api.id, ...DURATIONS])
    const requests = fc.sample(mutatedRequests(valid, KEY), { seed, numRuns: REQUESTS_PER_SEED })
    await resumeQueues()
    const faults: string[] = []
    const send = async (): Promise<void> => {
      for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
        const response = await sendBytes(api.port, request)
        const fault = response === undefined ? faultOfSilence(request) : faultOf(request, response)
        if (fault !== undefined) faults.push(`${fault}, for the request ${shown(request)}`)
        if (response !== undefined) api.statuses.add(response.status)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, send))
    expect(faults.slice(0, SHOWN_FAULTS), `${faults.length} faults with seed ${seed}`).toEqual([])
  },
)

test('these requests had every kind of outcome', () => {
  // If all of them were rejected for the same reason, they would test little.
  expect([...api.statuses]).toEqual(expect.arrayContaining([200, 202, 400, 401, 404, 405, 413, 415, 422]))
})

test('after these requests, the API is ready and within its memory, and has logged no failure', async () => {
  const { child, port, output } = api
  expect(child.exitCode).toBeNull()
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
  expect(ready.status).toBe(200)
  expect(processTree(child.pid ?? 0).ownBytes / 2 ** 20).toBeLessThan(MEMORY_MB)
  expect(output()).not.toContain('request failed')
})

/** Resumes the queues, because generated commands drain them, and a drained queue accepts no tasks. */
async function resumeQueues(): Promise<void> {
  const url = `http://127.0.0.1:${api.port}/v1/commands`
  const resume = (queue: string) =>
    fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify({ action: 'resume', queue }) })
  const responses = await Promise.all(catalogue.queues.map(resume))
  expect(responses.map(({ status }) => status)).toEqual(catalogue.queues.map(() => 200))
}

function faultOfSilence({ isLeft, mayClose }: WireRequest): string | undefined {
  return isLeft || mayClose ? undefined : 'the server closed the connection without a response'
}

/** Returns what is wrong with a response, or undefined if nothing is. */
function faultOf({ method, codes }: WireRequest, { status, headers, body }: WireResponse): string | undefined {
  if (status < 400) return undefined
  const type = headers['content-type']
  if (type !== PROBLEM_CONTENT_TYPE) return `${status} has the content type ${type}`
  if (method === 'HEAD') return isFailure(status) ? `${status}` : undefined
  const { data: problem } = problemSchema.safeParse(parsed(body))
  if (problem === undefined) return `${status} is no problem: ${body}`
  const { code } = problem
  if (status !== ERRORS[code].status || status !== problem.status) return `${status} has the code ${code}: ${body}`
  const documented = codes === undefined || [...codes, ...OF_ANY_REQUEST].includes(code)
  if (!documented) return `${code} is not documented for this operation: ${body}`
  return isFailure(status) ? `${status}: ${body}` : undefined
}

/** 501 and 505 reject what the caller has sent, and 503 says that something that the request needs is not available. */
function isFailure(status: number): boolean {
  return status >= 500 && ![501, 503, 505].includes(status)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function shown(request: WireRequest): string {
  const bytes = bytesOf(request)
  const more = bytes.length > SHOWN_BYTES ? ` (${bytes.length} bytes in all)` : ''
  return `${JSON.stringify(bytes.subarray(0, SHOWN_BYTES).toString('latin1'))}${more}`
}
