// Tests each check of a diagnosis: what it finds, and that it finds nothing on a healthy platform.
import type { DiagnosisCheck } from '@bullpen/contract'
import { DIAGNOSIS_CHECKS } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import type { QueueSettings, RegisteredWorker } from '../ports/fleet.ts'
import type { PoolStatus } from '../ports/pool-status.ts'
import { diagnose, diagnoseWithoutStore } from './diagnose.ts'
import type { DiagnosisFacts, QueueFacts, ServerFacts } from './facts.ts'

const NOW = 1_700_000_000_000
const MiB = 2 ** 20

const pool: PoolStatus = {
  ...{
    queue: 'cpu',
    state: 'BG_RUNNING',
    paused: false,
    concurrency: 4,
    busy: 1,
    stuckHandlers: 0,
    notReady: undefined,
  },
  slots: [
    {
      ...{ slot: 1, state: 'WORKING', since: NOW - 90_000 },
      task: { id: 'cpu-1', task: 'math.square', fencingToken: 1 },
    },
  ],
}
const worker: RegisteredWorker = {
  ...{ worker: 'w1', host: 'h1', pid: 1, version: '1.0.0', startedAt: NOW - 600_000, seenAt: NOW - 1_000 },
  ...{ draining: false, skewMs: 3, catalogue: { cpu: 'd1' }, drainTimeoutMs: 20_000, graceMs: 5_000, pools: [pool] },
}
const settings: QueueSettings = {
  ...{ paused: false, drain: undefined, concurrency: undefined, rate: undefined },
  ...{ maxTasks: undefined, maxBytes: undefined, maxAgeMs: undefined },
}
const queue: QueueFacts = {
  queue: 'cpu',
  tasks: { scheduled: 3, waiting: 5, active: 1, retrying: 2, completed: 7, dead: 1, cancelled: 0, expired: 0 },
  settings,
  needs: [
    { task: 'math.square', needs: [{ limiter: 'permits:db', amount: 2 }] },
    { task: 'math.cube', needs: [{ limiter: 'permits:db', amount: 3 }] },
    { task: 'math.root', needs: [{ limiter: 'task:math.root', amount: 1 }] },
  ],
  catalogueLimits: { perConcurrencyKey: undefined, limiters: [], services: [] },
  ...{ maxTasks: 100, maxBytes: 1_000, bytes: 999, unknownTasks: 0, poison: undefined, retrying: [], heldRetries: 0 },
  outbox: { entries: 1, oldestAt: NOW - 1_000 },
  recentEnds: { dead: 9, completed: 0, kinds: [] },
  ...{ nextReadyAt: NOW - 59_000, blockedTasks: 0, oldestBlocked: undefined, lost: undefined },
  unattached: undefined,
  active: [{ id: 'cpu-1', startedAt: NOW - 90_000 }],
}
const ok = { isOk: true, found: 'x', expected: 'x' }
const server: ServerFacts = {
  node: '',
  settings: new Map(['version', 'persistence', 'eviction', 'maxmemory', 'listpack'].map((name) => [name, ok])),
  memory: { usedBytes: 71 * MiB, limitBytes: 100 * MiB },
  failedWrites: [],
  connections: { open: 10, max: 100 },
  latencyMs: 0.2,
  refused: [],
}
const HEALTHY: DiagnosisFacts = {
  now: NOW,
  api: {
    ...{ version: '1.0.0', isDevelopment: false, clockSkewMs: -2, memoryWatermark: 80 },
    ...{ queues: ['cpu'], tasks: ['math.square'], catalogue: { cpu: 'd1' } },
  },
  servers: [server],
  unreachable: [],
  leadership: { isLed: true, changes: 4, overMs: 600_000 },
  workers: [worker],
  queues: [queue],
  schedules: [{ name: 'nightly', queue: 'cpu', troubles: [] }],
  scheduleChanges: [{ name: 'nightly', queue: 'cpu', action: 'unchanged', fields: [] }],
}

const onServer = (more: Partial<ServerFacts>): DiagnosisFacts => ({ ...HEALTHY, servers: [{ ...server, ...more }] })
const ofApi = (more: Partial<DiagnosisFacts['api']>): DiagnosisFacts => ({
  ...HEALTHY,
  api: { ...HEALTHY.api, ...more },
})
const onQueue = (more: Partial<QueueFacts>): DiagnosisFacts => ({ ...HEALTHY, queues: [{ ...queue, ...more }] })
/** All tasks of the queue are blocked. */
const held = { nextReadyAt: undefined, blockedTasks: 5, oldestBlocked: { id: 'cpu-2', readyAt: NOW - 60_000 } }
const blockedBy = (what: Partial<QueueFacts['oldestBlocked']>): DiagnosisFacts =>
  onQueue({ ...held, oldestBlocked: { ...held.oldestBlocked, concurrencyKey: 'acme', ...what } })
const withSettings = (more: Partial<QueueSettings>): DiagnosisFacts => onQueue({ settings: { ...settings, ...more } })
const withPool = (more: Partial<PoolStatus>, alsoWorker: Partial<RegisteredWorker> = {}): DiagnosisFacts => ({
  ...HEALTHY,
  workers: [{ ...worker, pools: [{ ...pool, ...more }], ...alsoWorker }],
})
const withWorkers = (...workers: readonly Partial<RegisteredWorker>[]): DiagnosisFacts => ({
  ...HEALTHY,
  workers: workers.map((more) => ({ ...worker, ...more })),
})
const withSetting = (name: string, found: string, expected: string): DiagnosisFacts =>
  onServer({ settings: new Map([...server.settings, [name, { isOk: false, found, expected }]]) })
const failure = (error: string) => ({ task: 'math.square', error })
const kind = (count: number) => ({ fingerprint: `f${count}`, code: 'gone', message: 'no customer #', count })
const poison = { tasks: 2, newestAt: NOW - 5_000, newestId: 'cpu-9', newestTask: 'math.square' }
const breaker = {
  ...({ service: 'smtp', state: 'half_open', mode: 'auto', since: NOW - 30_000, startsAt: undefined } as const),
  ...{ calls: 0, failures: 0, slow: 0, setBy: undefined },
}
const drain = { mode: 'soft', timeoutMs: undefined, since: NOW, command: 'c' } as const

const limits: QueueFacts['catalogueLimits'] = {
  perConcurrencyKey: { concurrency: 2, rate: { max: 1, perMs: 1_000, burst: 1 }, keys: { acme: { concurrency: 1 } } },
  limiters: ['permits:db', 'task:math.root'],
  services: ['smtp'],
}

type Case = readonly [facts: DiagnosisFacts, severity: 'error' | 'warning', problem: string]

/** For each check, platforms on which it finds something, and what it says. */
const FOUND: Readonly<Record<Exclude<DiagnosisCheck, 'redis_connection'>, readonly Case[]>> = {
  redis_version: [[withSetting('version', '6.2.1', 'Redis 7'), 'error', 'version 6.2.1; expected Redis 7']],
  redis_persistence: [[withSetting('persistence', 'no', 'yes'), 'error', 'appendonly no; expected yes']],
  redis_eviction: [[withSetting('eviction', 'allkeys-lru', 'noeviction'), 'error', 'maxmemory-policy allkeys-lru']],
  redis_memory_limit: [[withSetting('maxmemory', '0', 'a limit'), 'warning', 'maxmemory 0; expected a limit']],
  redis_encoding: [[withSetting('listpack', '64', '1024'), 'warning', 'hash-max-listpack-value 64; expected 1024']],
  redis_writes: [[onServer({ failedWrites: ['a snapshot'] }), 'error', 'could not write a snapshot']],
  redis_lost_tasks: [
    [
      onQueue({ lost: { tasks: 17, newestId: 'cpu-7', noticedAt: NOW - 90_000 } }),
      'error',
      'Redis has lost 17 acknowledged tasks of cpu, such as cpu-7, noticed 90 s ago',
    ],
  ],
  redis_memory: [
    [
      onServer({ memory: { usedBytes: 72 * MiB, limitBytes: 100 * MiB } }),
      'warning',
      '72% of its memory (72 of 100 MiB)',
    ],
    [onServer({ memory: { usedBytes: 80 * MiB, limitBytes: 100 * MiB } }), 'error', 'stops accepting tasks at 80%'],
  ],
  redis_permissions: [[onServer({ refused: ['CONFIG GET'] }), 'warning', 'does not permit CONFIG GET']],
  redis_connections: [[onServer({ connections: { open: 90, max: 100 } }), 'warning', '90 of the 100 connections']],
  redis_latency: [[onServer({ latencyMs: 10 }), 'warning', 'took 10.0 ms or longer']],
  clocks: [
    [ofApi({ clockSkewMs: 1_500 }), 'warning', 'the clock of the API is 1.5 s ahead of the clock of Redis'],
    [withWorkers({ skewMs: -500 }), 'warning', 'the clock of h1 is 0.5 s behind'],
  ],
  leader: [
    [{ ...HEALTHY, leadership: { isLed: false, changes: 0, overMs: 0 } }, 'error', 'no process leads'],
    [
      { ...HEALTHY, leadership: { isLed: true, changes: 5, overMs: 290_000 } },
      'warning',
      'changed 5 times within 5 min',
    ],
  ],
  configuration: [
    [
      { ...withWorkers({}, { worker: 'w2', host: 'h2' }), api: { ...HEALTHY.api, isDevelopment: true } },
      'warning',
      'development mode, although workers run on 2 machines',
    ],
    [withWorkers({}, {}, { worker: 'w2', drainTimeoutMs: 60_000 }), 'warning', '20s and 5s (2), 1m and 5s (1)'],
  ],
  versions: [
    [
      withWorkers({}, { version: '0.9.0' }),
      'warning',
      'the API runs Bullpen 1.0.0, and the workers run 1.0.0 (1), 0.9.0 (1)',
    ],
    [withWorkers({ version: '1.1.0' }), 'warning', 'run 1.1.0 (1)'],
  ],
  catalogues: [
    [ofApi({ queues: [] }), 'warning', "the queue cpu, which is not in the API's catalogue"],
    [ofApi({ tasks: [] }), 'warning', "the task math.square, which is not in the API's catalogue"],
    [
      withWorkers({}, { catalogue: { cpu: 'd2' } }, { catalogue: { mail: 'd3' } }),
      'warning',
      'the definitions of cpu or its tasks differ between the API and 1 of 2 workers',
    ],
    [onQueue({ unknownTasks: 2 }), 'error', 'cpu has 2 dead tasks with the code unknown_task'],
  ],
  workers: [
    [withWorkers({}, { worker: 'w2', seenAt: NOW - 20_000 }), 'error', 'w2 has sent no heartbeat for 20 s'],
    [withPool({ stuckHandlers: 1 }), 'warning', 'w1 has 1 stuck handler,'],
    [
      withPool({ notReady: 'Redis is unreachable' }),
      'warning',
      'w1 does not accept tasks of cpu: Redis is unreachable',
    ],
  ],
  event_loops: [
    [
      withWorkers({ stalls: { count: 3, stalledMs: 10_400, lastTask: 'math.square' } }),
      'warning',
      'of w1 was blocked 3 times within the last minute, for 10 s in all, last by math.square',
    ],
  ],
  unserved_queues: [
    [{ ...HEALTHY, workers: [] }, 'error', 'no worker is running, and cpu has 5 waiting tasks'],
    [withWorkers({ seenAt: NOW - 20_000 }), 'error', 'no worker is running'],
    [withPool({ state: 'SHUTDOWN' }), 'error', '1 worker is running, but it does not serve cpu, which has 5 waiting'],
    [withWorkers({ pools: [] }, { pools: [] }), 'error', '2 workers are running, but none serves cpu'],
    [{ ...withSettings({ drain }), workers: [] }, 'error', 'no worker is running, and cpu has 5 waiting tasks'],
  ],
  stalled_queues: [
    [onQueue({ nextReadyAt: NOW - 60_000 }), 'warning', 'has waited for 60 s, although the workers have 3 free slots'],
  ],
  limited_queues: [
    [
      onQueue({ ...held, settings: { ...settings, concurrency: 1, rate: { max: 2, perMs: 60_000 } } }),
      'warning',
      'have 3 free slots: a command limits its starts to 1 at once and 2 per 1m',
    ],
    [
      blockedBy({ waitsFor: { kind: 'concurrency', ahead: 0 } }),
      'warning',
      'the oldest blocked task of cpu has waited for 60 s, although the workers have 3 free slots: its concurrency key acme has as many running tasks as it may have; 5 waiting tasks are blocked',
    ],
    [
      blockedBy({ waitsFor: { kind: 'rate', until: NOW + 7_000, ahead: 0 } }),
      'warning',
      'its concurrency key acme may start no task for 7 s',
    ],
    [blockedBy({ waitsFor: { kind: 'permits', limiter: 'db', ahead: 0 } }), 'warning', 'it waits for db permits'],
    [
      blockedBy({ waitsFor: { kind: 'definition', limiter: 'math.root', ahead: 0 } }),
      'warning',
      'as many tasks of math.root are running as may run at once',
    ],
    [blockedBy({}), 'warning', 'a handler has throttled the queue'],
  ],
  full_queues: [
    [onQueue({ maxTasks: 10 }), 'error', 'cpu is full: it has 10 of at most 10 tasks'],
    [onQueue({ bytes: 1_000 }), 'error', 'it has 1000 of at most 1000 bytes'],
  ],
  paused_queues: [
    [withSettings({ paused: true }), 'warning', 'cpu is paused, with 5 waiting tasks'],
    [withSettings({ drain }), 'warning', 'cpu is draining (soft), with 5 waiting tasks'],
    [withPool({ paused: true }), 'warning', 'every pool of cpu is paused, with 5 waiting tasks'],
  ],
  limited_tasks: [
    [
      withSettings({ limiters: [{ kind: 'permits', name: 'db', capacity: 1, inUse: 0 }] }),
      'warning',
      'no task of math.square (and 1 more) starts: it needs 2 db permits, and cpu has 1',
    ],
    [
      withSettings({ limiters: [{ kind: 'definition', name: 'math.root', capacity: 0, inUse: 0 }] }),
      'warning',
      'no task of math.root starts: its concurrency is 0',
    ],
  ],
  missing_limits: [
    [
      onQueue({ catalogueLimits: limits }),
      'warning',
      "tasks of cpu start without limits of the API's catalogue that Redis does not have: the concurrency of each concurrency key, the rate of each concurrency key, the limits of single concurrency keys, the permits db, the concurrency of math.root, the circuit breaker smtp",
    ],
    [
      onQueue({
        catalogueLimits: limits,
        settings: {
          ...settings,
          perConcurrencyKey: { concurrency: 5, ofSingleKeys: 1 },
          limiters: [{ kind: 'permits', name: 'db', capacity: 3, inUse: 0 }],
          breakers: [{ ...breaker, state: 'closed' }],
        },
      }),
      'warning',
      'Redis does not have: the rate of each concurrency key, the concurrency of math.root',
    ],
  ],
  unattached_workers: [
    [
      onQueue({
        unattached: { since: NOW, seenAt: NOW, workers: ['old at 10.0.0.7:4242', '10.0.0.8:5'], tasks: 0, ids: [] },
      }),
      'warning',
      "a BullMQ Worker without Bullpen's backend uses cpu (old at 10.0.0.7:4242, 10.0.0.8:5)",
    ],
    [
      onQueue({ unattached: { since: NOW, seenAt: NOW, workers: [], tasks: 5, ids: ['cpu-1', 'cpu-2'] } }),
      'warning',
      'uses cpu (its address is not known); it has held 5 tasks, such as cpu-1',
    ],
  ],
  open_breakers: [
    [withSettings({ breakers: [breaker] }), 'warning', 'the circuit breaker smtp of cpu has been half-open for 30 s'],
    [
      withSettings({ breakers: [{ ...breaker, state: 'open', mode: 'open', setBy: { by: 'ann', at: NOW } }] }),
      'warning',
      'open for 30 s, set by ann',
    ],
  ],
  lost_tasks: [
    [onQueue({ active: [{ id: 'cpu-2', startedAt: NOW - 60_000 }] }), 'error', 'such as cpu-2, active for 60 s'],
    [withWorkers({ seenAt: NOW - 20_000 }), 'error', 'cpu-1, active for 90 s'],
  ],
  failing_tasks: [
    [
      onQueue({ tasks: { ...queue.tasks, retrying: 10 }, heldRetries: 4 }),
      'warning',
      '10 tasks of cpu have failed and wait for their retry (retry budgets hold 4 of them)',
    ],
    [
      onQueue({ tasks: { ...queue.tasks, retrying: 10 }, retrying: [failure('a'), failure('b'), failure('b')] }),
      'warning',
      'than are waiting or running; 2 of the next 3 are math.square with the error b',
    ],
  ],
  dead_tasks: [
    [
      onQueue({
        recentEnds: { dead: 3_000, completed: 20, kinds: [kind(10), kind(2_900), kind(0), kind(80), kind(5)] },
      }),
      'warning',
      '3000 tasks of cpu have died within the last 10m, and 20 have completed; 2900 with gone (f2900) no customer #, 80 with gone (f80) no customer #, 10 with gone (f10) no customer #, 1 more kind of errors',
    ],
    [onQueue({ recentEnds: { dead: 10, completed: 990, kinds: [] } }), 'warning', '10 tasks of cpu have died'],
  ],
  poison_tasks: [
    [
      onQueue({ poison }),
      'warning',
      '2 dead tasks of cpu killed their processes; the last one, cpu-9 (math.square), became dead 5 s ago',
    ],
    [
      onQueue({ poison: { ...poison, tasks: 1, newestTask: undefined } }),
      'warning',
      '1 dead task of cpu killed its processes; the last one, cpu-9, became dead',
    ],
  ],
  outboxes: [
    [onQueue({ outbox: { entries: 1, oldestAt: NOW - 60_000 } }), 'warning', 'has 1 entry, and the oldest is 60 s old'],
    [onQueue({ outbox: { entries: 5_000, oldestAt: NOW } }), 'warning', 'has 5000 entries'],
    [withSettings({ outboxFull: true }), 'error', 'the outbox of cpu is full'],
  ],
  schedules: [
    [
      {
        ...HEALTHY,
        schedules: [
          { name: 'nightly', queue: 'cpu', troubles: [{ kind: 'missed', since: 1, detail: 'a tick was missed' }] },
        ],
      },
      'warning',
      'the schedule nightly is in trouble (missed): a tick was missed',
    ],
  ],
  different_schedules: [
    [
      { ...HEALTHY, scheduleChanges: [{ name: 'nightly', queue: 'cpu', action: 'created', fields: [] }] },
      'warning',
      'the schedule nightly of cpu is in the catalogue of the API, but is not stored',
    ],
    [
      {
        ...HEALTHY,
        scheduleChanges: [
          {
            name: 'nightly',
            queue: 'cpu',
            action: 'changed',
            fields: [{ field: 'cron', from: '0 1 * * *', to: '0 3 * * *' }],
          },
        ],
      },
      'warning',
      'the schedule nightly of cpu differs between Redis and the catalogue of the API in: cron',
    ],
    [
      { ...HEALTHY, scheduleChanges: [{ name: 'nightly', queue: 'cpu', action: 'deleted', fields: [] }] },
      'warning',
      'the schedule nightly of cpu was stored from a catalogue, but is not in the catalogue of the API',
    ],
  ],
}

it('a healthy platform passes every check', () => {
  expect(diagnose(HEALTHY)).toEqual({
    now: new Date(NOW).toISOString(),
    findings: [],
    passed: DIAGNOSIS_CHECKS,
    skipped: [],
  })
})

describe.each(Object.entries(FOUND))('%s', (check, cases) => {
  it.each(cases)('finds the problem (%#)', (facts, severity, problem) => {
    const { findings, passed, skipped } = diagnose(facts)
    const own = findings.filter((finding) => finding.check === check)
    expect(own).toEqual([expect.objectContaining({ severity, problem: expect.stringContaining(problem) })])
    expect(own[0]?.reason).not.toBe('')
    expect(own[0]?.advice).not.toBe('')
    expect([...passed, ...skipped]).not.toContain(check)
  })
})

it('if the store cannot be read, that is the only finding, and no other check is carried out', () => {
  const problem = 'Redis is not reachable at redis://127.0.0.1:6379'
  expect(diagnoseWithoutStore(problem, NOW)).toEqual({
    now: new Date(NOW).toISOString(),
    findings: [
      {
        ...{ check: 'redis_connection', severity: 'error', problem },
        reason: expect.stringContaining('no task is accepted'),
        advice: expect.stringMatching(/REDIS_URL.*see the runbook "Redis is unreachable"$/),
      },
    ],
    passed: [],
    skipped: DIAGNOSIS_CHECKS.slice(1),
  })
})

describe('nothing is found', () => {
  const limited = { ...settings, concurrency: 1 }
  const withPermits = (capacity: number) =>
    withSettings({ limiters: [{ kind: 'permits', name: 'db', capacity, inUse: capacity }] })
  const drained = withPool({ state: 'SHUTDOWN', notReady: 'the whole queue is draining' })
  const shortStalls = { count: 9, stalledMs: 9_999, lastTask: undefined }
  it.each([
    ['stalled_queues', 'if the queue is paused', withSettings({ paused: true }), { nextReadyAt: 0 }],
    ['limited_queues', 'if every slot is busy', withPool({ busy: 4 }), { nextReadyAt: 0, settings: limited }],
    ['failing_tasks', 'if more tasks are waiting', HEALTHY, { tasks: { ...queue.tasks, waiting: 10, retrying: 10 } }],
    ['failing_tasks', 'if only a few are retrying', HEALTHY, { tasks: { ...queue.tasks, waiting: 0, retrying: 9 } }],
    ['dead_tasks', 'if only a few have died', HEALTHY, { recentEnds: { dead: 9, completed: 0, kinds: [kind(9)] } }],
    [
      'dead_tasks',
      'if many more have completed',
      HEALTHY,
      { recentEnds: { dead: 10, completed: 991, kinds: [kind(10)] } },
    ],
    ['dead_tasks', 'if they died long ago', HEALTHY, { tasks: { ...queue.tasks, dead: 3_000 } }],
    ['poison_tasks', 'if it is long ago', HEALTHY, { poison: { ...poison, newestAt: NOW - 3_600_000 } }],
    ['event_loops', 'if the stalls were short', withWorkers({ stalls: shortStalls }), {}],
    ['stalled_queues', 'if the starts are limited', withSettings({ rate: { max: 1, perMs: 1 } }), { nextReadyAt: 0 }],
    ['stalled_queues', 'if every waiting task is blocked', HEALTHY, held],
    [
      'limited_queues',
      'if a breaker blocks the tasks',
      blockedBy({ waitsFor: { kind: 'breaker', service: 'smtp', ahead: 0 } }),
      {},
    ],
    [
      'limited_queues',
      'if tasks have just been blocked',
      HEALTHY,
      { ...held, oldestBlocked: { id: 'cpu-2', readyAt: NOW - 59_999 } },
    ],
    ['limited_queues', 'if the queue is paused', withSettings({ paused: true }), held],
    ['stalled_queues', 'if every slot is busy', withPool({ busy: 4 }), { nextReadyAt: 0 }],
    ['stalled_queues', 'if no task waits', HEALTHY, { nextReadyAt: undefined }],
    ['unserved_queues', 'if a drain of the queue has stopped its pools', drained, { settings: { ...settings, drain } }],
    ['workers', 'if a drain of the queue has stopped its pools', drained, { settings: { ...settings, drain } }],
    ['unserved_queues', 'if no task waits', { ...HEALTHY, workers: [] }, { tasks: { ...queue.tasks, waiting: 0 } }],
    ['lost_tasks', 'if the task has just started', HEALTHY, { active: [{ id: 'cpu-2', startedAt: NOW - 59_999 }] }],
    ['limited_tasks', 'if no task waits', withPermits(0), { tasks: { ...queue.tasks, waiting: 0 } }],
    ['limited_tasks', 'if there are as many permits as one task needs', withPermits(3), {}],
    [
      'missing_limits',
      'if no task has started',
      HEALTHY,
      { catalogueLimits: limits, tasks: { ...queue.tasks, active: 0, retrying: 0, completed: 0, dead: 0 } },
    ],
    ['full_queues', 'without limits', HEALTHY, { maxTasks: undefined, maxBytes: undefined }],
  ] as const)('by %s %s', (check, _when, facts, more) => {
    const [only = queue] = facts.queues
    expect(diagnose({ ...facts, queues: [{ ...only, ...more }] }).passed).toContain(check)
  })

  it('by configuration in development with one machine, and by clocks if the clock could not be measured', () => {
    const { passed } = diagnose(ofApi({ isDevelopment: true, clockSkewMs: undefined }))
    expect(passed).toEqual(expect.arrayContaining(['configuration', 'clocks']))
  })
})

it('a finding names the page of the runbook that fits best', () => {
  const silent = withWorkers({ seenAt: NOW - 20_000 })
  const adviceOf = (check: DiagnosisCheck, facts: DiagnosisFacts) =>
    diagnose(facts).findings.find((finding) => finding.check === check)?.advice
  expect(adviceOf('paused_queues', withSettings({ paused: true }))).toMatch(/; see the runbook "Nothing is running"$/)
  expect(adviceOf('versions', withWorkers({ version: '0.9.0' }))).not.toContain('runbook')
  expect(adviceOf('workers', silent)).toMatch(/^look at its log.*"A worker is not ready"$/)
  expect(adviceOf('workers', { ...silent, queues: [{ ...queue, poison }] })).toMatch(
    /^the task that poison_tasks finds.*"A poison task"$/,
  )
  expect(adviceOf('lost_tasks', silent)).toContain('"Housekeeping fails"')
  expect(adviceOf('lost_tasks', { ...silent, leadership: { isLed: false, changes: 0, overMs: 0 } })).toContain(
    '"No leader"',
  )
})

describe('a full queue', () => {
  const full = { maxTasks: 60, tasks: { ...queue.tasks, waiting: 60, scheduled: 0, retrying: 0 } }
  const limited = { ...settings, rate: { max: 3, perMs: 1_000 } }
  const withBusy = (busy: number, more: Partial<QueueFacts> = {}): DiagnosisFacts => ({
    ...withPool({ busy }),
    queues: [{ ...queue, ...full, ...more }],
  })
  it.each<[cause: string, facts: DiagnosisFacts, problem: string, advice: RegExp]>([
    ['busy slots', withBusy(4, { settings: limited }), 'all 4 slots of its workers are busy', /^add workers or slots/],
    [
      'a rate',
      withBusy(0, { settings: limited, ...held, blockedTasks: 60 }),
      'a command limits its starts to 3 per 1s, although 4 of its 4 slots are free',
      /^raise the limit with 'bullpen limit --queue cpu', or let the producers enqueue less; more workers do not help/,
    ],
    [
      'a limit of its concurrency keys',
      withBusy(2, {
        ...{ ...held, blockedTasks: 60 },
        oldestBlocked: { ...held.oldestBlocked, concurrencyKey: 'acme', waitsFor: { kind: 'concurrency', ahead: 0 } },
      }),
      'its concurrency key acme has as many running tasks as it may have, although 2 of its 4 slots are free',
      /^'bullpen show cpu-2' and 'bullpen limits --queue cpu'.*more workers do not help/,
    ],
    ['a pause', withBusy(0, { settings: { ...settings, paused: true } }), 'it is paused', /more workers do not help/],
    ['a lack of workers', { ...withBusy(0), workers: [] }, 'no worker serves it', /^start workers/],
    [
      'tasks that are not due',
      withBusy(0, { tasks: { ...full.tasks, waiting: 1, retrying: 40, scheduled: 30 } }),
      'most of its tasks are not due yet',
      /^'bullpen list --queue cpu --status retrying'/,
    ],
  ])('because of %s is reported with this cause, and with advice that helps', (_cause, facts, problem, advice) => {
    const found = diagnose(facts).findings.find(({ check }) => check === 'full_queues')
    expect(found).toMatchObject({ problem: expect.stringContaining(problem), advice: expect.stringMatching(advice) })
  })
})

describe('a node of a cluster that is not reachable', () => {
  const unreachable = [{ node: 'a:7001', queues: ['mail', 'video'], hasShared: false }]
  const problem = 'a node of the Redis Cluster is not reachable; its queues were not examined: mail, video'
  const finding = { check: 'redis_connection', severity: 'error', node: 'a:7001', problem }

  it('is named with its queues, and everything else is examined but schedules', () => {
    const { findings, passed, skipped } = diagnose({
      ...{ ...HEALTHY, unreachable },
      ...{ schedules: undefined, scheduleChanges: undefined },
    })
    expect(findings).toMatchObject([finding])
    expect(skipped).toEqual(['schedules', 'different_schedules'])
    expect(passed).toHaveLength(DIAGNOSIS_CHECKS.length - 3)
  })

  it('is the finding if nothing could be examined, instead of the error of a command', () => {
    const shared = { node: 'a:7002', queues: [], hasShared: true }
    const { findings, skipped } = diagnoseWithoutStore('Redis is not reachable', NOW, [...unreachable, shared])
    expect(findings).toMatchObject([finding, { node: 'a:7002', problem: expect.stringContaining('nothing else') }])
    expect(skipped).toEqual(DIAGNOSIS_CHECKS.slice(1))
  })
})

it('a check whose facts are missing is skipped', () => {
  const silent = { settings: new Map(), memory: undefined, failedWrites: undefined, connections: undefined } as const
  const { skipped, passed } = diagnose(onServer(silent))
  expect(skipped).toEqual(
    DIAGNOSIS_CHECKS.filter(
      (check) => /^redis_/.test(check) && !/connection$|permissions|latency|lost_tasks/.test(check),
    ),
  )
  expect(passed).toHaveLength(DIAGNOSIS_CHECKS.length - skipped.length)
})

it('findings name the node of a cluster, and errors come before warnings', () => {
  const nodes = [server, { ...server, node: 'a:7001', latencyMs: 12 }]
  const { findings } = diagnose({ ...HEALTHY, servers: nodes, workers: [] })
  expect(findings.map(({ check, severity, node }) => [check, severity, node])).toEqual([
    ['unserved_queues', 'error', undefined],
    ['lost_tasks', 'error', undefined],
    ['redis_latency', 'warning', 'a:7001'],
  ])
})
