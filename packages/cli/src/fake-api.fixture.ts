// A small HTTP API whose responses each test defines, and functions that run the program or read its arguments in a separate
// process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { json, text } from 'node:stream/consumers'
import type { ErrorCode, TaskView } from '@bullpen/contract'
import { programEnv } from '@bullpen/testing'

export const FAKE_KEY = 'fake-key-that-must-stay-secret'
export const WRONG_KEY = 'the API key is wrong'
export const ID = 'cpu-01jd3v7n8q0000000000000000'
export const LINKS = { self: `/v1/tasks/${ID}`, cancel: `/v1/tasks/${ID}/cancel` }
export const ACCEPTED = { id: ID, action: 'created', status: 'waiting', links: LINKS } as const
export const MAIN = join(import.meta.dirname, 'main.ts')

export function view(more: Partial<TaskView> = {}): TaskView {
  return {
    ...{ id: ID, task: 'math.factorial', version: 1, queue: 'cpu', status: 'completed' },
    ...{
      fencingToken: 1,
      attemptsMade: 1,
      maxAttempts: 5,
      priority: 0,
      input: { n: 5 },
      output: { value: '120' },
      meta: {},
      tags: [],
    },
    ...{ enqueuedAt: '2026-01-01T00:00:00.000Z', attempts: [], links: LINKS },
    ...more,
  }
}

export function problem(code: ErrorCode, status: number, more: object = {}): Answer {
  return [status, { type: `/problems/${code}`, title: code, status, code, ...more }]
}

export type Answer =
  | readonly [status: number, body: unknown, headers?: Readonly<Record<string, string>>]
  | 'break'
  | 'silence'

interface Seen {
  readonly request: string
  readonly body: unknown
}

export interface FakeApi extends AsyncDisposable {
  readonly url: string
  readonly seen: Seen[]
  /** The Idempotency-Key header of each request that had one. */
  readonly idempotencyKeys: string[]
}

/**
 * Starts an API that responds to requests such as `GET /v1/tasks/x?wait=30` from the table. A function in the table is called with
 * the body of each request. Any other request gets a 404.
 */
export async function fakeApi(
  answers: Readonly<Record<string, Answer | ((body: unknown) => Answer)>> = {},
): Promise<FakeApi> {
  const seen: Seen[] = []
  const idempotencyKeys: string[] = []
  const server = createServer(async (incoming, response) => {
    const request = `${incoming.method} ${incoming.url}`
    const received = 'content-type' in incoming.headers ? await json(incoming) : undefined
    seen.push({ request, body: received })
    const key = incoming.headers['idempotency-key']
    if (typeof key === 'string') idempotencyKeys.push(key)
    const known = incoming.headers.authorization === `Bearer ${FAKE_KEY}`
    const entry = known
      ? (answers[request] ?? problem('task_not_found', 404))
      : problem('unauthorized', 401, { detail: WRONG_KEY })
    const answer = typeof entry === 'function' ? entry(received) : entry
    if (answer === 'break') incoming.socket.destroy()
    else if (answer !== 'silence') {
      const [status, body, headers] = answer
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    idempotencyKeys,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Run {
  readonly env?: NodeJS.ProcessEnv
  readonly stdin?: string | Uint8Array
}

/** Runs the program in a separate process, whose environment contains only the address and the key of the API. */
export function runBullpen(api: { readonly url: string }, args: readonly string[], run: Run = {}): Promise<Ended> {
  return runProcess(process.execPath, [MAIN, ...args], api, run)
}

/** Runs a line of shell script in which `bullpen` calls the program. */
export function runShell(api: { readonly url: string }, line: string, run: Run = {}): Promise<Ended> {
  const script = `bullpen() { '${process.execPath}' '${MAIN}' "$@"; }; ${line}`
  return runProcess('bash', ['--norc', '-o', 'pipefail', '-c', script], api, run)
}

/** Returns the arguments and the standard input with which a line of shell script calls `bullpen`, as the shell reads the line. */
export async function commandOfLine(line: string): Promise<[args: readonly string[], streams: { stdin: Readable }]> {
  const script = `bullpen() { printf '%s\\0' "$#" "$@"; cat; }; ${line}`
  const { out } = await runProcess('bash', ['--norc', '-c', script], { url: '' }, {})
  const [count, ...words] = out.split('\0')
  const args = words.slice(0, Number(count))
  return [args, { stdin: Readable.from([words.slice(args.length).join('\0')]) }]
}

async function runProcess(command: string, args: readonly string[], api: { url: string }, run: Run): Promise<Ended> {
  const env = programEnv({ BULLPEN_API: api.url, BULLPEN_KEY: FAKE_KEY, ...run.env })
  const child = spawn(command, args, { env, stdio: 'pipe' })
  child.stdin.on('error', () => {})
  child.stdin.end(run.stdin)
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, out, err }
}
