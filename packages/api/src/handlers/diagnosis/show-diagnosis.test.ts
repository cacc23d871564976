// Tests the diagnosis over HTTP: the facts that it is made from.
import { type Diagnosis, defineCatalogue, defineQueue, defineTask, VERSION } from '@bullpen/contract'
import { createTaskId, DIAGNOSIS_CHECKS } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { EMPTY_HEAD, NOW, PLATFORM, problemIn, testApi } from '../../api.fixture.ts'
import { P1 } from '../../fake-fleet.fixture.ts'

const SERVER = {
  ...{ node: '', settings: new Map(), memory: undefined, failedWrites: ['a snapshot'], connections: undefined },
  ...{ latencyMs: 0.1, refused: ['CONFIG GET'] },
}
const id = (n: number) => createTaskId('cpu', NOW, new Uint8Array(10).fill(n))

it('a healthy platform passes every check that could be carried out', async () => {
  const { get, fleet } = await testApi({ platform: PLATFORM })
  fleet.put({ version: VERSION })
  const { findings, passed } = (await get('/v1/diagnosis')).json<Diagnosis>()
  expect({ findings, passed }).toEqual({ findings: [], passed: DIAGNOSIS_CHECKS })
})

it('the findings come from Redis, the fleet, the queues and the schedules', async () => {
  const platform = {
    ...PLATFORM,
    clockSkewMs: () => 2_000,
    servers: async () => [SERVER],
    leadership: async () => ({ isLed: false, changes: 0, overMs: 0 }),
    head: async (queue: string) => (queue === 'cpu' ? { ...EMPTY_HEAD, nextReadyAt: NOW - 120_000 } : EMPTY_HEAD),
  }
  const { get, fleet, broker } = await testApi({ platform })
  fleet.put({ version: '0.0.1' })
  fleet.set('mail', { paused: true, maxTasks: 1 })
  broker.put({ id: id(1), status: 'waiting' })
  broker.put({ id: id(2), status: 'active', startedAt: NOW - 90_000 })
  broker.put({ id: createTaskId('mail', NOW, new Uint8Array(10)), queue: 'mail', status: 'waiting' })
  const kind = { fingerprint: 'f', state: 'DONE_ERROR', code: 'unknown_task', message: '', count: 3 } as const
  broker.fingerprints.set('cpu', [{ ...kind, oldestAt: 1, newestAt: 2, newestId: id(3) }])
  const { findings, skipped } = (await get('/v1/diagnosis')).json<Diagnosis>()
  const found = findings.map(({ check, queue }) => [check, queue].filter(Boolean).join(' '))
  expect(found.sort()).toEqual(
    [
      ...[
        'redis_writes',
        'redis_permissions',
        'clocks',
        'versions',
        'leader',
        'catalogues cpu',
        'unserved_queues mail',
      ],
      ...['stalled_queues cpu', 'full_queues mail', 'paused_queues mail', 'lost_tasks cpu'],
    ].sort(),
  )
  expect(skipped).toContain('redis_eviction')
})

it('limits of the catalogue that Redis does not have are named', async () => {
  const limited = defineQueue({
    ...{ name: 'cpu', breakers: { smtp: {} } },
    limits: { permits: { db: 2 }, perConcurrencyKey: { concurrency: 1 } },
  })
  const catalogue = defineCatalogue(
    defineTask({ name: 'cpu.a', queue: limited, input: z.object({}), output: z.object({}) }),
  )
  const { get, fleet, broker } = await testApi({ platform: PLATFORM, catalogue })
  const missing = async () => {
    const { findings } = (await get('/v1/diagnosis')).json<Diagnosis>()
    return findings.filter(({ check }) => check === 'missing_limits').map(({ problem }) => problem)
  }
  expect(await missing()).toEqual([])
  broker.put({ id: id(1), status: 'completed' })
  fleet.set('cpu', { limiters: [{ kind: 'permits', name: 'db', capacity: 1, inUse: 0 }] })
  expect(await missing()).toEqual([
    expect.stringMatching(/does not have: the concurrency of each concurrency key, the circuit breaker smtp$/),
  ])
})

/** The head of the queue cpu, with two blocked tasks. The older one has been ready for two minutes. */
const blockedHead = async (queue: string) =>
  queue === 'cpu'
    ? { ...EMPTY_HEAD, oldestBlocked: { id: id(1), readyAt: NOW - 120_000 }, blockedTasks: 2 }
    : EMPTY_HEAD

it('what the oldest blocked task waits for is named', async () => {
  const { get, fleet, broker } = await testApi({ platform: { ...PLATFORM, head: blockedHead } })
  fleet.put({ version: VERSION })
  broker.put({ id: id(1), concurrencyKey: 'acme', waitsFor: { kind: 'concurrency', ahead: 0 } })
  const { findings } = (await get('/v1/diagnosis')).json<Diagnosis>()
  expect(findings.map(({ check, problem }) => [check, problem])).toEqual([
    [
      'limited_queues',
      expect.stringMatching(/has waited for 120 s.*concurrency key acme.*2 waiting tasks are blocked/),
    ],
  ])
})

it('a blocked task that has started or was deleted since the head was read is no finding', async () => {
  const { get, fleet, broker } = await testApi({ platform: { ...PLATFORM, head: blockedHead } })
  fleet.put({ version: VERSION })
  const findings = async () => (await get('/v1/diagnosis')).json<Diagnosis>().findings
  expect(await findings()).toEqual([])
  broker.put({ id: id(1), status: 'completed' })
  expect(await findings()).toEqual([])
  broker.put({ id: id(1), status: 'waiting' })
  expect(await findings()).toMatchObject([{ problem: expect.stringContaining('a handler has throttled the queue') }])
})

it('the definitions of tasks that fail or killed their processes are named', async () => {
  const { get, fleet, broker } = await testApi({ platform: PLATFORM })
  fleet.put({ version: VERSION })
  const attempt = { fencingToken: 1, attempt: 1, counted: true, worker: P1, startedAt: NOW, endedAt: NOW } as const
  for (let n = 10; n < 20; n++) {
    broker.put({ id: id(n), status: 'retrying', attempts: [{ ...attempt, state: 'DONE_ERROR', code: 'http_503' }] })
  }
  broker.put({ id: id(3), status: 'dead' })
  const kind = { fingerprint: 'f', state: 'RECOVER_ERR', message: '', count: 1, oldestAt: NOW } as const
  broker.fingerprints.set('cpu', [
    { ...kind, code: 'process_lost', newestAt: NOW - 2, newestId: id(4) },
    { ...kind, code: 'poison', newestAt: NOW - 1, newestId: id(3) },
  ])
  const { findings } = (await get('/v1/diagnosis')).json<Diagnosis>()
  expect(findings.map(({ check, problem }) => [check, problem])).toEqual([
    ['failing_tasks', expect.stringContaining('10 of the next 10 are math.square with the error http_503')],
    ['poison_tasks', expect.stringContaining(`the last one, ${id(3)} (math.square), became dead`)],
  ])
})

it('the kinds of errors of which tasks died within the last ten minutes are counted', async () => {
  const asked: unknown[] = []
  const recentEnds = async (...args: readonly unknown[]) => {
    asked.push(args)
    return { dead: 12, completed: 3, ofFingerprints: [12] }
  }
  const { get, fleet, broker } = await testApi({ platform: { ...PLATFORM, recentEnds } })
  fleet.put({ version: VERSION })
  const kind = { state: 'DONE_ERROR', code: 'gone', message: 'no customer #', count: 40, oldestAt: 1 } as const
  broker.fingerprints.set('cpu', [
    { ...kind, fingerprint: 'old', newestAt: NOW - 600_000, newestId: id(3) },
    { ...kind, fingerprint: 'new', newestAt: NOW - 599_999, newestId: id(4) },
  ])
  const { findings } = (await get('/v1/diagnosis')).json<Diagnosis>()
  expect(asked).toContainEqual(['cpu', NOW - 600_000, ['new']])
  expect(findings.filter(({ queue }) => queue === 'cpu')).toMatchObject([
    {
      check: 'dead_tasks',
      problem: expect.stringContaining(
        '12 tasks of cpu have died within the last 10m, and 3 have completed; 12 with gone',
      ),
      advice: expect.stringMatching(/dead list --queue cpu --fingerprint new'.*see the runbook "Dead tasks"$/),
    },
  ])
})

it('a task in the slot of a live worker is not lost', async () => {
  const { get, fleet, broker } = await testApi({ platform: PLATFORM })
  const [pool] = fleet.put({ worker: P1, version: VERSION }).pools
  if (pool === undefined) throw new Error('the worker has no pool')
  const task = { id: id(2), task: 'math.square', fencingToken: 1 }
  const slots = [{ slot: 1, state: 'WORKING' as const, since: NOW - 90_000, task }]
  fleet.put({ worker: P1, version: VERSION, pools: [{ ...pool, slots }] })
  broker.put({ id: id(2), status: 'active', startedAt: NOW - 90_000 })
  expect((await get('/v1/diagnosis')).json<Diagnosis>().findings).toEqual([])
})

it('without Redis, the only finding is why Redis cannot be used', async () => {
  const { get, broker, app } = await testApi({ platform: PLATFORM })
  broker.trouble = 'down'
  const { findings, passed, skipped } = (await get('/v1/diagnosis')).json<Diagnosis>()
  expect(findings).toMatchObject([
    { check: 'redis_connection', severity: 'error', problem: 'Redis did not respond: ECONNREFUSED' },
  ])
  expect([...passed, ...skipped]).toEqual(DIAGNOSIS_CHECKS.slice(1))
  expect(problemIn(await app.inject({ url: '/v1/diagnosis' }))).toMatchObject({ status: 401 })
})
