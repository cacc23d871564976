// The task that the benchmark enqueues, and the requests that enqueue it. Both sides get the same bytes.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

/** The API key that every request sends. The peer ignores it. */
export const API_KEY = 'bench-key-0123456789abcdef'

/** The maximum size of one task's data, in bytes, which both sides check. */
export const SIZE_LIMIT = 65_536

/** The maximum size of the body of a bulk request, in bytes. Bullpen's API has the same limit. */
export const BODY_LIMIT = 4_194_304

export const welcome = defineTask({
  name: 'bench.welcome',
  queue: 'bench',
  kind: 'short',
  input: z.object({ to: z.string(), name: z.string(), order: z.int() }),
  output: z.object({}),
})

export const catalogue = defineCatalogue(welcome)

/** About 100 bytes as JSON. */
export const INPUT = {
  to: 'a.customer@mail.example.com',
  name: 'A customer whose name is not short',
  order: 12_345_678,
}

/** A request that enqueues tasks. */
export interface LoadRequest {
  /** Returns the request with this number, counted from 0. */
  readonly text: (number: number) => string
  readonly tasks: number
  /** Returns whether this response to the request, or to the one that follows it, is the one that is expected. */
  readonly isAccepted: (response: string) => boolean
  /** Returns the request that follows this one after its response, if there is one. */
  readonly followedBy?: (response: string) => string
}

const BODY = JSON.stringify({ task: welcome.name, input: INPUT })
const BULK_TASKS = 1_000
const BULK_BODY = `{"tasks":[${Array.from({ length: BULK_TASKS }, () => BODY).join(',')}]}`

const isStored = (response: string): boolean => response.startsWith('HTTP/1.1 202 ')
const isOk = (response: string): boolean => response.startsWith('HTTP/1.1 200 ')
const isCompleted = (response: string): boolean => isOk(response) && response.includes('"status":"completed"')
/** The longest that a request waits for a result, in seconds. */
const WAIT = 30

/** The requests of each case that uses HTTP. */
export const REQUESTS = {
  single: { text: () => post('/v1/tasks', BODY), tasks: 1, isAccepted: isStored },
  idempotent: {
    text: (number) => post('/v1/tasks', BODY, `idempotency-key: "bench-${String(number).padStart(12, '0')}"\r\n`),
    tasks: 1,
    isAccepted: isStored,
  },
  bulk: {
    text: () => post('/v1/tasks/bulk', BULK_BODY),
    tasks: BULK_TASKS,
    isAccepted: (response) => isOk(response) && response.includes('"failed":0'),
  },
  'enqueue-and-wait': { text: () => post(`/v1/tasks?wait=${WAIT}`, BODY), tasks: 1, isAccepted: isCompleted },
  'enqueue-then-wait': {
    text: () => post('/v1/tasks', BODY),
    tasks: 1,
    isAccepted: (response) => isStored(response) || isCompleted(response),
    followedBy: (response) => get(`/v1/tasks/${/"id":"([^"]+)"/.exec(response)?.[1]}?wait=${WAIT}`),
  },
} as const satisfies Record<string, LoadRequest>
export type RequestName = keyof typeof REQUESTS

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${API_KEY}\r\n\r\n`
}

function post(path: string, body: string, moreHeaders = ''): string {
  return [
    `POST ${path} HTTP/1.1\r\n`,
    'host: 127.0.0.1\r\n',
    `authorization: Bearer ${API_KEY}\r\n`,
    'content-type: application/json\r\n',
    `content-length: ${body.length}\r\n`,
    `${moreHeaders}\r\n`,
    body,
  ].join('')
}
