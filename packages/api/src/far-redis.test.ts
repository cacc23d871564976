// The whole API, with a Redis from which every reply takes 200 ms. A call that needs several round trips succeeds.
import { randomUUID } from 'node:crypto'
import { createGroupId, createRunId, createTaskId } from '@bullpen/contract/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { catalogue } from './api.fixture.ts'
import { createApi } from './create-api.ts'

const KEY = 'far-redis-key-0123456789'
const ONE_WAY_MS = 100

async function startFarApi() {
  const proxy = await faultProxy(inject('redisUrl'))
  proxy.delay(ONE_WAY_MS)
  const api = await createApi({
    catalogue,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    config: {
      ...{ redisUrl: proxy.url, namespace: `t-${randomUUID().slice(0, 8)}`, keys: [`far:${KEY}`] },
      ...{ port: 0, metricsPort: 0 },
    },
  })
  onTestFinished(async () => {
    await api.close()
    await proxy.close()
  })
  const { url } = await api.listen()
  return url
}

const now = Date.now()
const bytes = new Uint8Array(10)
const TASK = createTaskId('cpu', now, bytes)
const GROUP = createGroupId(now, bytes)
const RUN = createRunId(now, bytes)
const SQUARE = { task: 'math.square', input: { n: 4 } }

/** A request for each route, by its method and its path in the OpenAPI document. */
const REQUESTS: Readonly<Record<string, { readonly path?: string; readonly body?: object }>> = {
  'POST /v1/tasks': { body: SQUARE },
  'POST /v1/tasks/bulk': { body: { tasks: [SQUARE, SQUARE] } },
  'GET /v1/tasks': { path: '/v1/tasks?queue=cpu&status=waiting' },
  'GET /v1/tasks/{id}': { path: `/v1/tasks/${TASK}` },
  'GET /v1/tasks/{id}/events': { path: `/v1/tasks/${TASK}/events` },
  'POST /v1/tasks/{id}/cancel': { path: `/v1/tasks/${TASK}/cancel`, body: {} },
  'POST /v1/tasks/{id}/retry': { path: `/v1/tasks/${TASK}/retry`, body: {} },
  'DELETE /v1/tasks/{id}': { path: `/v1/tasks/${TASK}` },
  'POST /v1/tasks/cancel': { body: { queue: 'cpu', tag: 'none' } },
  'GET /v1/cancels/{id}': { path: `/v1/cancels/${TASK}` },
  'GET /v1/queues/{queue}/events': { path: '/v1/queues/mail/events' },
  'GET /v1/events': {},
  'GET /v1/dead-tasks': { path: '/v1/dead-tasks?queue=cpu' },
  'GET /v1/dead-tasks/fingerprints': { path: '/v1/dead-tasks/fingerprints?queue=cpu' },
  'POST /v1/dead-tasks/retry': { body: { queue: 'cpu' } },
  'POST /v1/dead-tasks/delete': { body: { queue: 'cpu' } },
  'GET /v1/dead-tasks/requests': { path: '/v1/dead-tasks/requests?queue=cpu' },
  'GET /v1/dead-tasks/requests/{id}': { path: `/v1/dead-tasks/requests/${TASK}` },
  'POST /v1/dead-tasks/requests/{id}/stop': { path: `/v1/dead-tasks/requests/${TASK}/stop`, body: {} },
  'POST /v1/groups': { body: { id: GROUP, tasks: [SQUARE] } },
  'GET /v1/groups': {},
  'GET /v1/groups/{id}': { path: `/v1/groups/${GROUP}?wait=1` },
  'GET /v1/groups/{id}/events': { path: `/v1/groups/${GROUP}/events` },
  'POST /v1/groups/{id}/tasks': { path: `/v1/groups/${GROUP}/tasks`, body: { tasks: [SQUARE] } },
  'POST /v1/groups/{id}/seal': { path: `/v1/groups/${GROUP}/seal`, body: {} },
  'POST /v1/groups/{id}/cancel': { path: `/v1/groups/${GROUP}/cancel`, body: {} },
  'GET /v1/groups/{id}/results': { path: `/v1/groups/${GROUP}/results` },
  'POST /v1/runs': { body: { pipeline: 'none' } },
  'GET /v1/runs': {},
  'GET /v1/runs/{id}': { path: `/v1/runs/${RUN}?wait=1` },
  'GET /v1/runs/{id}/errors': { path: `/v1/runs/${RUN}/errors` },
  'POST /v1/runs/{id}/cancel': { path: `/v1/runs/${RUN}/cancel`, body: {} },
  'DELETE /v1/runs/{id}': { path: `/v1/runs/${RUN}` },
  'GET /v1/schedules': {},
  'POST /v1/schedules': { body: { name: 'squares', ...SQUARE, every: '1h' } },
  'POST /v1/schedules/sync': { body: { schedules: [{ name: 'squares', ...SQUARE, every: '1h' }] } },
  'GET /v1/schedules/{name}': { path: '/v1/schedules/squares' },
  'POST /v1/schedules/{name}/pause': { path: '/v1/schedules/squares/pause', body: {} },
  'POST /v1/schedules/{name}/resume': { path: '/v1/schedules/squares/resume', body: {} },
  'POST /v1/schedules/{name}/run': { path: '/v1/schedules/squares/run', body: {} },
  'DELETE /v1/schedules/{name}': { path: '/v1/schedules/squares' },
  'GET /v1/fleet': {},
  'GET /v1/queues': {},
  'GET /v1/queues/{queue}/limits': { path: '/v1/queues/cpu/limits' },
  'GET /v1/pools': {},
  'GET /v1/slots': {},
  'POST /v1/commands': { body: { action: 'limit', queue: 'cpu', maxTasks: 100 } },
  'GET /v1/commands': {},
  'GET /v1/commands/{id}': { path: '/v1/commands/none' },
  'GET /v1/diagnosis': {},
  'GET /v1/orphans': {},
  'POST /v1/orphans/delete': { body: { orphans: [{ key: 'none' }] } },
  'GET /livez': {},
  'GET /readyz': {},
}

test('every route responds if a round trip to Redis takes 200 ms, and the diagnosis examines everything', async () => {
  const url = await startFarApi()
  const ask = async (route: string): Promise<Response> => {
    const [method = '', path = ''] = route.split(' ')
    const { path: own = path, body } = REQUESTS[route] ?? {}
    return fetch(`${url}${own}`, {
      method,
      headers: { authorization: `Bearer ${KEY}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
  }
  const { paths } = (await (await ask('GET /openapi.json')).json()) as { paths: Record<string, object> }
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(routes.toSorted()).toEqual(Object.keys(REQUESTS).toSorted())

  // A busy machine may take longer than the limit for a single reply. A call that took too many round trips would fail every time.
  const responds = (route: string): Promise<string> =>
    eventually(async () => {
      const response = await ask(route)
      // The streams of events do not end.
      const text = response.headers.get('content-type')?.startsWith('text/event-stream') ? '' : await response.text()
      await response.body?.cancel().catch(() => {})
      if (response.status >= 500 || text.includes('"check":"redis_connection"')) throw new Error(`${route}: ${text}`)
      return text || route
    })
  const first = ['POST /v1/groups', 'POST /v1/schedules', 'POST /v1/commands']
  await Promise.all(first.map(responds))
  const [diagnosis] = await Promise.all([
    responds('GET /v1/diagnosis'),
    ...routes.filter((route) => !first.includes(route)).map(responds),
  ])
  const { findings, skipped } = JSON.parse(diagnosis) as { findings: { check: string }[]; skipped: string[] }
  expect(skipped).toEqual([])
  expect(findings.map(({ check }) => check)).toContain('redis_latency')
})
