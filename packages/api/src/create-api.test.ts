// Tests the whole API on a real Redis: over HTTP, while Redis is down, and its lifecycle.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { blockingConnection, openFleet } from '@bullpen/bullmq/internal'
import type { ApiConfig } from '@bullpen/config'
import type {
  Accepted,
  CommandPage,
  CommandView,
  Diagnosis,
  FleetView,
  Problem,
  TaskPage,
  TaskView,
} from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { catalogue } from './api.fixture.ts'
import { createApi } from './create-api.ts'

const KEY = 'integration-key-0123456789'
const WITHIN = { timeout: 120_000, interval: 20 }
const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const SQUARE = { task: 'math.square', input: { n: 4 } }
const silent = { debug() {}, info() {}, warn() {}, error() {} }

async function startApi(redisUrl: string, config: ApiConfig = {}) {
  const api = await createApi({
    catalogue,
    log: silent,
    config: { redisUrl, keys: [KEY], port: 0, metricsPort: 0, namespace: `t-${randomUUID().slice(0, 8)}`, ...config },
  })
  onTestFinished(() => api.close())
  const { url, metricsUrl, boardUrl } = await api.listen()
  return {
    api,
    url,
    metricsUrl,
    boardUrl,
    get: (path: string) => timed(`${url}${path}`, { headers: HEADERS }),
    post: (body: object, path = '/v1/tasks') =>
      timed(`${url}${path}`, { method: 'POST', headers: HEADERS, body: JSON.stringify(body) }),
  }
}

const workingProcess = {
  ...{ worker: 'pod-1:7:ab12cd34', host: 'pod-1', pid: 7, version: '1.2.3', draining: false, skewMs: 90_000 },
  ...{ drainTimeoutMs: 20_000, graceMs: 5_000 },
  pools: [
    {
      ...({ queue: 'cpu', state: 'BG_RUNNING', paused: false, concurrency: 2, busy: 1, stuckHandlers: 0 } as const),
      ...{ notReady: undefined, slots: [] },
    },
  ],
}

async function timed(url: string, init: RequestInit) {
  const began = performance.now()
  const response = await fetch(url, init)
  const body: unknown = await response.json()
  return { status: response.status, body, ms: performance.now() - began }
}

describe('on Redis', () => {
  test('a task is stored, looked up, listed, and counted', async () => {
    const { get, post, metricsUrl } = await startApi(inject('redisUrl'))
    const stored = await post({ ...SQUARE, meta: { tenant: 'acme' } })
    expect(stored.status).toBe(202)
    const { id, links } = stored.body as Accepted
    const shown = (await get(links.self)).body as TaskView
    expect(shown).toMatchObject({ id, status: 'waiting', input: { n: 4 }, meta: { tenant: 'acme' } })
    const listed = (await get('/v1/tasks?queue=cpu&status=waiting')).body as TaskPage
    // A list does not say what its tasks wait for.
    const { waitsFor, ...withoutReason } = shown
    expect(waitsFor).toMatchObject({ kind: 'no_worker' })
    expect(listed.tasks).toEqual([withoutReason])
    const scrape = await fetch(metricsUrl)
    const metrics = await scrape.text()
    const head = await fetch(metricsUrl, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, scrape.headers.get('content-type')])
    const refused = await fetch(metricsUrl, { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(metrics).toContain('bullpen_queue_tasks{queue="cpu",status="waiting"} 1')
    expect(metrics).toContain('bullpen_tasks_enqueued_total{queue="cpu",task="math.square"} 1')
    expect(metrics).toContain('bullpen_enqueue_duration_seconds_count{queue="cpu"} 1')
    expect(metrics).toMatch(/bullpen_queue_oldest_seconds\{queue="cpu"\} \d+\.\d+/)
    expect(metrics).toContain('bullpen_queue_oldest_seconds{queue="mail"} 0')
    expect(metrics).toContain('bullpen_queue_oldest_blocked_seconds{queue="cpu"} 0')
    expect(metrics).toContain('bullpen_queue_paused{queue="cpu"} 0')
    expect(metrics).toMatch(/bullpen_queue_limit_bytes\{queue="cpu"\} \d+/)
    expect(metrics).toMatch(/bullpen_http_requests_total\{method="POST",route="\/v1\/tasks",status="202"\} 1/)
    expect(metrics).toContain('bullpen_redis_up 1')
    expect(metrics).toContain('bullpen_redis_write_failed{write="snapshot"} 0')
    expect(metrics).toMatch(/bullpen_redis_command_duration_seconds_count [1-9]/)
  })

  test('a worker is shown and controlled, and the audit log has the command', async () => {
    const namespace = `t-${randomUUID().slice(0, 8)}`
    const redisUrl = inject('redisUrl')
    const { get, post } = await startApi(redisUrl, { namespace })
    const member = openFleet({ redisUrl, namespace, queues: catalogue.queues, commandTimeoutMs: 30_000, log: silent })
    onTestFinished(() => member.close())
    const { worker } = workingProcess
    const obey = async () => {
      const { commands } = await member.heartbeat({ ...workingProcess, startedAt: Date.now() })
      for (const { id } of commands) await member.respond(id, { worker, outcome: 'done', detail: 'paused', at: 1 })
    }
    await expect
      .poll(
        () =>
          obey().then(
            () => true,
            () => false,
          ),
        WITHIN,
      )
      .toBe(true)
    onTestFinished(member.listen(worker, () => void obey()))

    const fleet = (await get('/v1/fleet?queue=cpu')).body as FleetView
    expect(fleet.workers).toMatchObject([{ worker, alive: true, pools: [{ queue: 'cpu', busy: 1 }] }])
    expect(Math.abs(Date.parse(fleet.workers[0]?.startedAt ?? '') - Date.parse(fleet.now))).toBeLessThan(60_000)
    const sent = await post({ action: 'pause', worker, by: 'ann' }, '/v1/commands?wait=10')
    expect(sent).toMatchObject({ status: 200, body: { outcome: 'done', responses: [{ worker, detail: 'paused' }] } })
    const { id, by } = sent.body as CommandView
    expect(by).toMatch(/^ann \(key [0-9a-f]{8}\)$/)
    expect((await get(`/v1/commands/${id}`)).body).toEqual(sent.body)
    expect(((await get('/v1/commands')).body as CommandPage).commands).toEqual([sent.body])

    await member.leave(worker)
    expect(await post({ action: 'resume', worker }, '/v1/commands')).toMatchObject({
      status: 404,
      body: { code: 'worker_not_found' },
    })
  })

  test('a draining queue rejects tasks until it is resumed, and other queues accept them', async () => {
    const { get, post } = await startApi(inject('redisUrl'))
    const id = `once-${randomUUID()}`
    const drained = await post({ action: 'drain', queue: 'cpu', mode: 'light', id }, '/v1/commands')
    expect(drained.body).toMatchObject({ outcome: 'done', responses: [] })
    expect((await post({ action: 'drain', queue: 'cpu', mode: 'light', id }, '/v1/commands')).body).toEqual(
      drained.body,
    )
    expect(await post({ action: 'drain', queue: 'cpu', id }, '/v1/commands')).toMatchObject({
      status: 422,
      body: { code: 'command_id_reused' },
    })
    await expect.poll(() => post(SQUARE), WITHIN).toMatchObject({ status: 503, body: { code: 'queue_draining' } })
    expect(((await get('/v1/fleet?queue=cpu')).body as FleetView).queues).toMatchObject([
      { queue: 'cpu', admission: 'closed', drain: { mode: 'light', command: id } },
    ])
    expect(await post({ task: 'email.welcome', input: { to: 'a@example.com' } })).toMatchObject({ status: 202 })
    await post({ action: 'resume', queue: 'cpu' }, '/v1/commands')
    await expect.poll(() => post(SQUARE), WITHIN).toMatchObject({ status: 202 })
  })

  test('a drain cancels the waiting tasks of a queue that is defined so, and answers their callers', async () => {
    const { get, post } = await startApi(inject('redisUrl'))
    const { links } = (await post({ task: 'email.welcome', input: { to: 'a@example.com' } })).body as Accepted
    const waiting = get(`${links.self}?wait=30`)
    await post({ action: 'drain', queue: 'mail', by: 'ann' }, '/v1/commands')
    const { status, attempts } = (await waiting).body as TaskView
    expect(status).toBe('cancelled')
    expect(attempts).toMatchObject([{ error: { code: 'queue_shutdown' }, by: expect.stringMatching(/^ann \(key/) }])
  })

  test.each([3_600_000, -3_600_000])(
    'tasks are dated by the clock of Redis when that of the machine is %i ms ahead',
    async (aheadMs) => {
      const machineNow = Date.now
      vi.spyOn(Date, 'now').mockImplementation(() => machineNow() + aheadMs)
      onTestFinished(() => void vi.restoreAllMocks())
      const { get, post, metricsUrl } = await startApi(inject('redisUrl'))
      const { links } = (await post({ ...SQUARE, delay: '1h' })).body as Accepted
      const { enqueuedAt } = (await get(links.self)).body as TaskView
      expect(Math.abs(Date.parse(enqueuedAt) - machineNow())).toBeLessThan(60_000)
      const [, skew] = /^bullpen_clock_skew_seconds (\S+)$/m.exec(await (await fetch(metricsUrl)).text()) ?? []
      expect(Math.abs(Number(skew) - aheadMs / 1_000)).toBeLessThan(60)
    },
  )

  test('a wait for a task that does not end is answered when the time is up', async () => {
    const { get, post } = await startApi(inject('redisUrl'))
    const { links } = (await post(SQUARE)).body as Accepted
    const answer = await get(`${links.self}?wait=0.3`)
    expect(answer.body).toMatchObject({ status: 'waiting' })
    expect(answer.ms).toBeGreaterThan(290)
  })

  test('the board shows queues after a login but cannot change anything', async () => {
    const { url, post } = await startApi(inject('redisUrl'))
    const { id } = (await post(SQUARE)).body as Accepted
    expect((await fetch(`${url}/board/`)).status).toBe(401)
    const login = await fetch(`${url}/board/login`, {
      method: 'POST',
      body: new URLSearchParams({ key: KEY }),
      redirect: 'manual',
    })
    const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const headers = { cookie, 'content-type': 'application/json' }
    const page = await fetch(`${url}/board/`, { headers })
    expect(await page.text()).not.toContain('googleapis')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    const queues = await (await fetch(`${url}/board/api/queues?activeQueue=cpu`, { headers })).json()
    expect(queues).toMatchObject({
      queues: [
        { name: 'cpu', readOnlyMode: true, counts: { waiting: 1 }, jobs: [{ id, data: { input: { n: 4 } } }] },
        { name: 'mail' },
      ],
    })
    for (const [method, path] of [
      ['PUT', '/board/api/queues/cpu/pause'],
      ['PUT', '/board/api/queues/cpu/empty'],
      ['POST', '/board/api/queues/cpu/add'],
    ] as const) {
      const refused = await fetch(`${url}${path}`, { method, headers: { ...headers, ...HEADERS }, body: '{}' })
      expect(refused.status).toBe(403)
    }
  })
})

/** Repeats a call that gets 503, as a client does. On a busy machine, Redis may take too long for the first call after its return. */
const untilAvailable = <T extends { readonly status: number }>(call: () => Promise<T>): Promise<T> =>
  vi.waitUntil(async () => {
    const answer = await call()
    return answer.status === 503 ? undefined : answer
  }, WITHIN) as Promise<T>

/** Sends Redis an inline command, and resolves once Redis has executed it. */
async function send(redisUrl: string, command: string): Promise<void> {
  const socket = connect(Number(new URL(redisUrl).port), '127.0.0.1')
  socket.write(`${command}\r\n`)
  await once(socket, 'data')
  socket.destroy()
}

test.each([
  ['is a read-only replica', /replica; connect to/, 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'],
  [
    'lacks replicas',
    /min-replicas-to-write requires \(NOREPLICAS\); bring/,
    'CONFIG SET min-replicas-to-write 1',
    'CONFIG SET min-replicas-to-write 0',
  ],
])('if Redis %s, the API says so everywhere, and is ready again afterwards', async (_, text, begin, end) => {
  const redis = await privateRedis()
  await redis.start()
  await send(redis.url, begin)
  const { get, post, metricsUrl } = await startApi(redis.url)
  const why = expect.stringMatching(text)
  const away = { status: 503, body: { code: 'redis_unavailable', detail: why } }
  await vi.waitUntil(async () => text.test(JSON.stringify((await get('/readyz')).body)), WITHIN)
  expect(await get('/readyz')).toMatchObject(away)
  const enqueued = await post(SQUARE)
  expect(enqueued).toMatchObject(away)
  expect(enqueued.body).toMatchObject({ outcome: 'refused' })
  expect(enqueued.body).not.toHaveProperty('taskId')
  const { findings } = (await get('/v1/diagnosis')).body as Diagnosis
  expect(findings).toMatchObject([{ check: 'redis_connection', severity: 'error', problem: why }])
  expect(await (await fetch(metricsUrl)).text()).toContain('bullpen_redis_up 0')
  await send(redis.url, end)
  await vi.waitUntil(async () => (await get('/readyz')).status === 200, WITHIN)
  expect((await untilAvailable(() => post(SQUARE))).status).toBe(202)
})

describe('while Redis is down', () => {
  test.each(['freeze', 'crash'] as const)(
    'after a %s every request is answered while Redis is unreachable, the API recovers, and no task is lost',
    async (how) => {
      const redis = await privateRedis()
      await redis.start()
      const { get, post, metricsUrl } = await startApi(redis.url)
      const stored = await Promise.all(Array.from({ length: 50 }, () => untilAvailable(() => post(SQUARE))))
      expect(stored.every(({ status }) => status === 202)).toBe(true)
      const ids = stored.map(({ body }) => (body as Accepted).id)
      const waiting = get(`/v1/tasks/${ids[0]}?wait=30`)

      await redis[how]()
      const answers = await Promise.all([
        post(SQUARE),
        get(`/v1/tasks/${ids[0]}`),
        get(`/v1/tasks/${ids[0]}?wait=10`),
        get('/v1/tasks?queue=cpu&status=waiting'),
        get('/v1/fleet'),
        post({ action: 'pause', queue: 'mail', id: 'once-1' }, '/v1/commands'),
        get('/readyz'),
      ])
      expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(503))
      for (const { body } of answers) expect(body).toMatchObject({ code: 'redis_unavailable' })
      expect((await get('/livez')).status).toBe(200)
      expect(await (await fetch(metricsUrl)).text()).toContain('bullpen_redis_up 0')
      expect((await waiting).status).toBe(503)

      if (how === 'crash') await redis.start()
      else redis.thaw()
      await vi.waitUntil(async () => (await get('/readyz')).status === 200, WITHIN)
      const later = await untilAvailable(() => post(SQUARE))
      expect(later.status).toBe(202)
      const pause = { action: 'pause', queue: 'mail', id: 'once-1' }
      const again = await untilAvailable(() => post(pause, '/v1/commands'))
      expect(again).toMatchObject({ status: 200, body: { id: 'once-1', outcome: 'done' } })
      // A rejected task may have been stored.
      const { taskId } = answers[0].body as Problem
      for (const id of [...ids, (later.body as Accepted).id]) {
        expect((await untilAvailable(() => get(`/v1/tasks/${id}`))).body).toMatchObject({ id, status: 'waiting' })
      }
      expect([200, 404]).toContain((await untilAvailable(() => get(`/v1/tasks/${taskId}`))).status)
      const unfinished = await untilAvailable(() => get(`/v1/tasks/${ids[0]}?wait=0.1`))
      expect(unfinished.body).toMatchObject({ status: 'waiting' })
    },
  )

  test('the API starts, and is ready once Redis is up', async () => {
    const redis = await privateRedis()
    const { get, post } = await startApi(redis.url)
    expect((await get('/livez')).status).toBe(200)
    expect((await get('/readyz')).status).toBe(503)
    expect((await post(SQUARE)).body).toMatchObject({ code: 'redis_unavailable', outcome: 'refused' })
    const { findings } = (await get('/v1/diagnosis')).body as Diagnosis
    expect(findings).toMatchObject([
      { check: 'redis_connection', problem: `Redis is not reachable at ${redis.url}`, advice: expect.any(String) },
    ])
    await redis.start()
    await vi.waitUntil(async () => (await get('/readyz')).status === 200, WITHIN)
    expect((await post(SQUARE)).status).toBe(202)
  })
})

test('the gauges of a queue that cannot be read are missing, and those of other queues are not', async () => {
  const redis = blockingConnection(inject('redisUrl'), silent)
  onTestFinished(() => redis.disconnect())
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const { metricsUrl } = await startApi(inject('redisUrl'), { namespace })
  await redis.set(`{${namespace}.cpu}:cpu:wait`, 'no list')
  const text = await (await fetch(metricsUrl)).text()
  for (const gauge of ['bullpen_queue_tasks', 'bullpen_queue_bytes', 'bullpen_queue_oldest_seconds']) {
    expect(text).toContain(`${gauge}{queue="mail"`)
    expect(text).not.toContain(`${gauge}{queue="cpu"`)
  }
  expect(text).toContain('bullpen_queue_paused{queue="mail"} 0')
  // The reads of the counts, of the totals and of the head of the queue.
  expect(text).toContain('bullpen_scrape_failures_total 3')
})

describe('the memory of Redis', () => {
  async function limitedRedis(...settings: readonly (readonly [string, string])[]) {
    const server = await privateRedis()
    await server.start()
    const redis = blockingConnection(server.url, silent)
    onTestFinished(() => redis.disconnect())
    for (const [name, value] of settings) await redis.config('SET', name, value)
    return { redis, url: server.url }
  }

  test('at the watermark, a task is refused with 503 and Retry-After, and the API stays ready', async () => {
    const { redis, url: redisUrl } = await limitedRedis(['maxmemory', '100mb'])
    await redis.setrange('other', 86_000_000, 'end')
    const { url, get, metricsUrl } = await startApi(redisUrl)
    const post = () => fetch(`${url}/v1/tasks`, { method: 'POST', headers: HEADERS, body: JSON.stringify(SQUARE) })
    const response = await post()
    expect({ status: response.status, retryAfter: response.headers.get('retry-after') }).toEqual({
      status: 503,
      retryAfter: '1',
    })
    const problem = (await response.json()) as Problem
    expect(problem).toMatchObject({
      code: 'redis_full',
      detail: expect.stringContaining('the limit for new tasks is 80%'),
    })
    expect(problem.taskId).toBeUndefined()
    expect((await get('/readyz')).status).toBe(200)
    const metrics = await (await fetch(metricsUrl)).text()
    expect(metrics).toContain('bullpen_enqueues_refused_total{queue="cpu",code="redis_full"} 1')
    expect(metrics).toContain(`bullpen_redis_memory_limit_bytes ${100 * 2 ** 20}`)
    await redis.del('other')
    await vi.waitUntil(async () => (await post()).status === 202, WITHIN)
  })

  test('a queue without limits is refused more than its share, until a command sets a limit of its own', async () => {
    const { url: redisUrl } = await limitedRedis(['maxmemory', '10mb'])
    const { get, post, metricsUrl } = await startApi(redisUrl, { queueMemoryShare: 1 })
    await post({ tasks: Array.from({ length: 250 }, () => SQUARE) }, '/v1/tasks/bulk')
    const problem = await post(SQUARE)
    expect(problem).toMatchObject({
      status: 429,
      body: { code: 'queue_full', detail: expect.stringContaining('maxBytes, which is 104857 bytes') },
    })
    const metrics = await (await fetch(metricsUrl)).text()
    expect(metrics).toContain('bullpen_held_retries{queue="cpu",task="math.square"} 0')
    const [, bytes] = /^bullpen_queue_bytes\{queue="cpu"\} (\d+)$/m.exec(metrics) ?? []
    expect(Number(bytes)).toBeGreaterThan(104_857 - 600)
    expect(Number(bytes)).toBeLessThanOrEqual(104_857)
    await post({ action: 'limit', queue: 'cpu', maxBytes: '1MiB', maxAge: '10m' }, '/v1/commands')
    await vi.waitUntil(async () => (await post(SQUARE)).status === 202, WITHIN)
    const { queues } = (await get('/v1/fleet')).body as FleetView
    expect(queues.find(({ queue }) => queue === 'cpu')).toMatchObject({ maxBytes: 2 ** 20, maxAgeMs: 600_000 })
  })

  test('in production, an API does not start on a Redis that may delete tasks, unless a setting allows it', async () => {
    const { url } = await limitedRedis(['maxmemory-policy', 'allkeys-lru'])
    await expect(startApi(url)).rejects.toMatchObject({ code: 'unsafe_redis' })
    const allowed = await startApi(url, { allowEviction: true })
    expect((await allowed.post(SQUARE)).status).toBe(202)
    const development = await startApi(url, { environment: 'development' })
    expect((await development.post(SQUARE)).status).toBe(202)
    expect(await (await fetch(allowed.metricsUrl)).text()).toContain('bullpen_redis_unsafe{check="eviction"} 1')
  })
})

describe('connections', () => {
  test('that send their headers too slowly are closed with a problem that asks to send the request again', async () => {
    const { url } = await startApi(inject('redisUrl'))
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let answer = ''
    socket.setEncoding('utf8').on('data', (text) => {
      answer += String(text)
    })
    socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    const drip = setInterval(() => socket.write('a'), 200)
    socket.on('error', () => {}) // a drip may meet the end
    await once(socket, 'close')
    clearInterval(drip)
    expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\ncontent-type: application\/problem\+json\r\n/)
    expect(answer).toContain('"code":"request_timeout"')
  })
})

describe('closing', () => {
  test('answers long polls at once, then closes the ports', async () => {
    const { api, get, post, url, metricsUrl } = await startApi(inject('redisUrl'))
    const { links } = (await post(SQUARE)).body as Accepted
    const waiting = get(`${links.self}?wait=30`)
    await get(links.self) // by now the long poll has arrived
    await Promise.all([api.close(), api.close()])
    expect((await waiting).body).toMatchObject({ status: 'waiting' })
    await expect(fetch(`${url}/livez`)).rejects.toThrow()
    await expect(fetch(metricsUrl)).rejects.toThrow()
  })

  test('closes connections whose request stays incomplete', async () => {
    const { api, url } = await startApi(inject('redisUrl'))
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    const ended = once(socket, 'close')
    socket.write('POST /v1/tasks HTTP/1.1\r\nHost: x\r\n')
    await (await fetch(`${url}/livez`)).text()
    expect(await Promise.all([api.close(), ended])).toHaveLength(2)
  })

  test('works without listening', async () => {
    const api = await createApi({ catalogue, log: silent, config: { redisUrl: inject('redisUrl'), keys: [KEY] } })
    expect(await api.close()).toBeUndefined()
  })
})

describe('listening', () => {
  test('is rejected the second time and after closing', async () => {
    const { api } = await startApi(inject('redisUrl'))
    await expect(api.listen()).rejects.toMatchObject({ code: 'wrong_state' })
    await api.close()
    await expect(api.listen()).rejects.toThrow('listen() can be called only once, on a new API; this API is closed')
  })

  test('on a port in use names the setting, and closes the API', async () => {
    const { url } = await startApi(inject('redisUrl'))
    const port = Number(new URL(url).port)
    const api = await createApi({
      catalogue,
      log: silent,
      config: { redisUrl: inject('redisUrl'), keys: [KEY], port, metricsPort: 0 },
    })
    await expect(api.listen()).rejects.toMatchObject({
      code: 'invalid_configuration',
      message: `cannot listen on 127.0.0.1:${port}: the port is already in use; set config.port or BULLPEN_API_PORT to another port, or to 0 to pick any free port`,
    })
    await expect(api.listen()).rejects.toThrow('this API is closed')
  })

  test('ends when the API is closed while its ports open, and leaves none of them open', async () => {
    const config = { redisUrl: inject('redisUrl'), keys: [KEY], port: 0, metricsPort: 0 }
    const api = await createApi({ catalogue, log: silent, config })
    api.app.addHook('onListen', async () => void api.close())
    await expect(api.listen()).rejects.toMatchObject({ code: 'shutting_down' })
    await api.close()
    expect(api.app.server.listening).toBe(false)
  })

  test('ends when the API is closed before Redis has answered', async () => {
    const redis = await privateRedis()
    const api = await createApi({
      catalogue,
      log: silent,
      config: { redisUrl: redis.url, keys: [KEY], port: 0, metricsPort: 0 },
    })
    const refused = expect(api.listen()).rejects.toMatchObject({ code: 'shutting_down' })
    await api.close()
    await refused
    expect(api.app.server.listening).toBe(false)
  })
})

describe('configuration', () => {
  test('that is invalid is rejected before anything is opened', async () => {
    await expect(createApi({ catalogue, config: {} })).rejects.toMatchObject({ code: 'invalid_configuration' })
    const misspelt = { keys: [KEY], prot: 1 } as ApiConfig
    await expect(createApi({ catalogue, config: misspelt })).rejects.toThrow(
      'prot is not a setting; did you mean port?',
    )
  })

  test('for development generates a key for the login link', async () => {
    const { boardUrl, url } = await startApi(inject('redisUrl'), { environment: 'development', keys: [] })
    expect(boardUrl).toMatch(/\/board\/login\?key=[\w-]{32}$/)
    const login = await fetch(boardUrl, { redirect: 'manual' })
    expect(login.status).toBe(303)
    expect(login.headers.get('location')).toBe('/board/')
    const key = new URL(boardUrl).searchParams.get('key')
    const document = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${key}` } })
    expect(document.status).toBe(200)
    // The connection stays open until the whole body has been read.
    await document.text()
  })
})

describe('a namespace that Bullpen 0.1.0 wrote', () => {
  /** `write` stores data that only 0.1.0 stored. */
  async function legacyNamespace(redisUrl: string): Promise<string> {
    const namespace = `t-${randomUUID().slice(0, 8)}`
    const { hostname, port } = new URL(redisUrl)
    const socket = connect(Number(port), hostname)
    socket.write(`ZADD {${namespace}}:fleet:beats 1 w\r\n`)
    await once(socket, 'data')
    socket.destroy()
    return namespace
  }

  test('is rejected, and the API does not start', async () => {
    const redisUrl = inject('redisUrl')
    const api = await createApi({
      catalogue,
      log: silent,
      config: { redisUrl, keys: [KEY], port: 0, metricsPort: 0, namespace: await legacyNamespace(redisUrl) },
    })
    onTestFinished(() => api.close())
    await expect(api.listen()).rejects.toMatchObject({
      code: 'incompatible_schema',
      message: expect.stringContaining('was written by Bullpen 0.1.0'),
    })
  })
})
