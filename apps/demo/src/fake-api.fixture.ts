// A small HTTP API that hashes the files itself.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Problem, TaskView } from '@bullpen/contract'

interface FakeTask {
  readonly id: string
  readonly path: string
  ended: boolean
}

interface Behaviour {
  /** A callback that is awaited before a task ends. */
  readonly before?: (path: string, index: number) => unknown
  /** Ends the task as dead with this code and message. */
  readonly fails?: (path: string) => { code: string; message: string } | undefined
  /** The ids in a listing of active tasks. Defaults to all tasks that have not ended. */
  readonly active?: () => readonly string[]
  readonly fencingToken?: (index: number) => number
  readonly worker?: (index: number) => string
  /** Rejects every enqueue with this problem. */
  readonly refuses?: Pick<Problem, 'status' | 'code'>
}

/** `maxInFlight` is the maximum number of tasks that were in flight at once. */
export interface FakeApi extends AsyncDisposable {
  readonly url: string
  readonly enqueued: FakeTask[]
  readonly maxInFlight: () => number
}

export const FAKE_KEY = 'fake-key'

const linksTo = (id: string): TaskView['links'] => ({ self: `/v1/tasks/${id}`, cancel: `/v1/tasks/${id}/cancel` })

/** Returns the view of a task that no worker has started. */
function viewOf({ id, path }: FakeTask, enqueuedAt: string): TaskView {
  return {
    id,
    task: 'files.digest',
    version: 1,
    queue: 'files',
    status: 'waiting',
    attemptsMade: 0,
    maxAttempts: 1,
    priority: 0,
    fencingToken: 0,
    input: { path },
    meta: {},
    tags: [],
    enqueuedAt,
    attempts: [],
    links: linksTo(id),
  }
}

export async function fakeApi(behaviour: Behaviour = {}): Promise<FakeApi> {
  const tasks = new Map<string, FakeTask>()
  let maxInFlight = 0

  async function enqueue(request: IncomingMessage): Promise<[number, object]> {
    const { input } = (await json(request)) as { input: { path: string } }
    if (behaviour.refuses !== undefined) return [behaviour.refuses.status, { ...behaviour.refuses, title: '' }]
    const id = `files-${String(tasks.size).padStart(26, '0')}`
    tasks.set(id, { id, path: input.path, ended: false })
    maxInFlight = Math.max(maxInFlight, open().length)
    return [202, { id, action: 'created', status: 'waiting', links: linksTo(id) }]
  }

  async function result(id: string): Promise<[number, object]> {
    const task = tasks.get(id)
    if (task === undefined) return [404, { status: 404, code: 'task_not_found', title: '' }]
    const index = Number(id.slice('files-'.length))
    await behaviour.before?.(task.path, index)
    const error = behaviour.fails?.(task.path)
    const content = error === undefined ? await readFile(task.path) : Buffer.alloc(0)
    const md5 = createHash('md5').update(content).digest('hex')
    task.ended = true
    const worker = behaviour.worker?.(index) ?? `host:${1_000_000_000 + (index % 2)}:x`
    const time = new Date().toISOString()
    const view: TaskView = {
      ...viewOf(task, time),
      attemptsMade: 1,
      fencingToken: behaviour.fencingToken?.(index) ?? 1,
      attempts: [
        {
          fencingToken: 1,
          attempt: 1,
          counted: true,
          outcome: 'succeeded',
          state: 'DONE_SUCCESS',
          worker,
          startedAt: time,
          endedAt: time,
        },
      ],
      ...(error === undefined
        ? { status: 'completed', output: { md5, bytes: content.length } }
        : { status: 'dead', error }),
    }
    return [200, view]
  }

  const open = () => [...tasks.values()].filter((task) => !task.ended)
  const listed = () => behaviour.active?.().map((id) => tasks.get(id) ?? { id, path: '', ended: false }) ?? open()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://api')
    const unauthorized = request.headers.authorization !== `Bearer ${FAKE_KEY}`
    const [status, body] = unauthorized
      ? [401, { status: 401, code: 'unauthorized', title: '' }]
      : request.method === 'POST'
        ? await enqueue(request)
        : pathname === '/v1/tasks'
          ? [200, { tasks: listed().map((task) => ({ ...viewOf(task, new Date().toISOString()), status: 'active' })) }]
          : await result(pathname.slice('/v1/tasks/'.length))
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get enqueued() {
      return [...tasks.values()]
    },
    maxInFlight: () => maxInFlight,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
