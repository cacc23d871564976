import { describe, expect, it } from 'vitest'
import {
  METRICS,
  type MetricRow,
  MISNAMED_PROCESS_METRICS,
  metricType,
  PROCESS_METRICS,
} from './metrics/metrics-table.ts'
import { createTelemetry } from './telemetry.ts'
import { about, attempt, ended, RECEIPT, REFUSED, textOf, usedTelemetry } from './used-telemetry.fixture.ts'

describe('the metrics table', () => {
  const rows = Object.entries<MetricRow>(METRICS)

  it.each(rows)('%s follows the naming rules of Prometheus', (name, row) => {
    expect(name).toMatch(/^bullpen_[a-z]+(_[a-z]+)*$/)
    expect(name).not.toMatch(/_(ms|milliseconds|minutes|kb|counter|gauge|histogram|sum|count|bucket)(_|$)/)
    if (row.unit === 'seconds') expect(name.replace(/_total$/, '')).toMatch(/_seconds$/)
    expect(row.help).toMatch(/^[A-Z1].*\.$/)
    expect(row.buckets).toEqual(row.buckets?.toSorted((a, b) => a - b))
    for (const label of row.labels) expect(label).toMatch(/^[a-z]+$/)
  })
})

describe('telemetry', () => {
  it('publishes every metric in the table with its help and type, as well as the process metrics', async () => {
    const text = await textOf(usedTelemetry())
    for (const [name, row] of Object.entries<MetricRow>(METRICS)) {
      expect(text).toContain(`# HELP ${name} ${row.help}`)
      expect(text).toContain(`# TYPE ${name} ${metricType(name, row)}`)
      expect(text).toMatch(new RegExp(`^${name}(_bucket)?(\\{| )`, 'm'))
    }
    for (const name of PROCESS_METRICS) expect(text).toMatch(new RegExp(`^${name} `, 'm'))
  })

  it('uses _total only in the names of counters, and publishes a help text for every metric', async () => {
    const text = await textOf(usedTelemetry())
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({ name, type }))
    expect(types.length).toBeGreaterThan(Object.keys(METRICS).length + 10)
    expect(types.filter(({ name, type }) => name.endsWith('_total') !== (type === 'counter'))).toEqual([])
    for (const { name } of types) expect(text).toMatch(new RegExp(`^# HELP ${name} .+`, 'm'))
    for (const name of MISNAMED_PROCESS_METRICS) expect(text).not.toContain(name)
  })

  it('omits a gauge that was not set at this scrape', async () => {
    const telemetry = createTelemetry({ role: 'api', version: '0.0.0' })
    let isUp = true
    telemetry.onScrape(() => {
      if (!isUp) return
      telemetry.set('bullpen_redis_up', {}, true)
      telemetry.set('bullpen_blocked_requests', { queue: 'mail' }, 3)
    })
    const set = async () => (await textOf(telemetry)).match(/^bullpen_(redis_up|blocked_requests).*/gm)
    expect(await set()).toEqual(['bullpen_blocked_requests{queue="mail"} 3', 'bullpen_redis_up 1'])
    isUp = false
    expect(await set()).toBeNull()
  })

  it('uses only labels that the table lists', async () => {
    for (const line of (await textOf(usedTelemetry())).split('\n')) {
      const [, series = '', labels = ''] = /^(bullpen_\w+)\{(.*)\} /.exec(line) ?? []
      if (series === '') continue
      const row = Object.entries<MetricRow>(METRICS).find(([name, { buckets }]) =>
        buckets !== undefined ? series.startsWith(`${name}_`) : series === name,
      )?.[1]
      const used = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le')
      expect(used.toSorted(), series).toEqual([...(row?.labels ?? [])].toSorted())
    }
  })

  it('counts attempts by state and verdict', async () => {
    const text = await textOf(usedTelemetry())
    const of = (state: string, verdict: string) =>
      `bullpen_attempts_ended_total{queue="mail",task="receipt.send",state="${state}",verdict="${verdict}"} 1`
    expect(text).toContain(of('DONE_SUCCESS', 'completed'))
    expect(text).toContain(of('DONE_ERROR', 'retrying'))
    expect(text).toContain(of('RECOVER_ERR', 'dead'))
    expect(text).toContain(of('TERMINATED_STOP_SIGNAL', 'cancelled'))
    expect(text).toContain('bullpen_isolates_replaced_total{isolation="process"} 1')
    expect(text).toContain('bullpen_event_loop_stalls_total{task="receipt.send"} 1')
    expect(text).toContain('bullpen_event_loop_stalls_total{task=""} 1')
    expect(text).toContain('bullpen_late_results_total{queue="mail",task="receipt.send"} 1')
    expect(text).toContain('bullpen_groups_ended_total{result="failed"} 1')
    expect(text).toContain('bullpen_housekeeping_failures_total{queue="mail",duty="expire"} 1')
    expect(text).toContain('bullpen_late_lock_renewals_total{queue="mail"} 3')
    expect(text).toContain('bullpen_lock_threads_restarted_total 1')
    expect(text).toContain('bullpen_redis_write_failed{write="aof"} 1')
  })

  it('counts a refused commit by reason, and neither as an end nor as a failure', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.sink(REFUSED)
    const text = await textOf(telemetry)
    expect(text).toContain('bullpen_commits_refused_total{queue="mail",task="receipt.send",reason="lock_taken"} 1')
    for (const name of ['attempts_ended_total', 'attempt_failures_total', 'attempt_duration_seconds_count']) {
      expect(text).not.toMatch(new RegExp(`^bullpen_${name}\\{.* [1-9]`, 'm'))
    }
  })

  it('counts every dead task, whether an attempt has failed or its workers died too often', async () => {
    const text = await textOf(usedTelemetry())
    expect(text).toContain('bullpen_tasks_dead_total{queue="mail",task="receipt.send"} 2')
    expect(text).toContain('bullpen_tasks_dead_by_code_total{queue="mail",code="unexpected_error"} 1')
    expect(text).toContain('bullpen_tasks_dead_by_code_total{queue="mail",code="process_lost"} 1')
  })

  it('counts dead tasks by at most 100 codes in each queue', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    const dead = { ...ended, state: 'DONE_ERROR', verdict: 'dead' } as const
    for (let n = 0; n < 150; n++) telemetry.sink({ ...dead, code: `code_${n}` })
    telemetry.sink({ ...dead, code: 'code_7' })
    const lines = (await textOf(telemetry))
      .split('\n')
      .filter((line) => line.startsWith('bullpen_tasks_dead_by_code_total{'))
    expect(lines).toHaveLength(101)
    expect(lines).toContain('bullpen_tasks_dead_by_code_total{queue="mail",code="code_7"} 2')
    expect(lines).toContain('bullpen_tasks_dead_by_code_total{queue="mail",code="other"} 50')
  })

  it('counts failures by reason, but does not count cancels and drains', async () => {
    const text = await textOf(usedTelemetry())
    const failures = text.split('\n').filter((line) => line.startsWith('bullpen_attempt_failures_total{'))
    expect(failures).toEqual([
      'bullpen_attempt_failures_total{queue="mail",task="receipt.send",reason="declared"} 1',
      'bullpen_attempt_failures_total{queue="mail",task="receipt.send",reason="unexpected_error"} 1',
    ])
  })

  it('does not count an attempt as failed if its worker could not run the task and leaves it to another one', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.sink({ ...ended, state: 'DONE_ERROR', code: 'unknown_task', verdict: 'snoozed', delayMs: 5_000 })
    const text = await textOf(telemetry)
    expect(text).not.toContain('bullpen_attempt_failures_total{')
    expect(text).toContain('state="DONE_ERROR",verdict="snoozed"} 1')
    // No worker has been able to run the task for so long that it is dead.
    telemetry.sink({ ...ended, state: 'DONE_ERROR', code: 'unknown_task', verdict: 'dead' })
    expect(await textOf(telemetry)).toContain(
      'bullpen_attempt_failures_total{queue="mail",task="receipt.send",reason="declared"} 1',
    )
  })

  it('sorts durations into cumulative buckets, in seconds', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    for (const durationMs of [0.2, 12, 700_000]) telemetry.sink({ ...ended, durationMs })
    const text = await textOf(telemetry)
    const bucket = (le: string) =>
      new RegExp(`^bullpen_attempt_duration_seconds_bucket\\{.*le="${le}".*\\} (\\d+)$`, 'm').exec(text)?.[1]
    expect([bucket('0.0005'), bucket('0.01'), bucket('0.025'), bucket('600'), bucket('\\+Inf')]).toEqual([
      '1',
      '1',
      '2',
      '2',
      '3',
    ])
    expect(text).toContain('bullpen_attempt_duration_seconds_sum{queue="mail",task="receipt.send"} 700.0122')
    expect(text).toContain('bullpen_attempt_duration_seconds_count{queue="mail",task="receipt.send"} 3')
  })

  it('counts requests by method, route and status, and times them by method and route', async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1.2.3' })
    const enqueue = { method: 'POST', route: '/v1/tasks' } as const
    telemetry.httpObserved({ ...enqueue, status: 202, seconds: 0.004 })
    telemetry.httpObserved({ ...enqueue, status: 202, seconds: 0.004 })
    telemetry.httpObserved({ ...enqueue, status: 422, seconds: 0.002 })
    telemetry.httpObserved({ ...enqueue, method: 'GET', status: 200, seconds: 30 })
    const lines = (await textOf(telemetry)).split('\n')
    expect(lines.filter((line) => /^bullpen_http_(requests_total|\w+_count)\{/.test(line)).toSorted()).toEqual([
      'bullpen_http_request_duration_seconds_count{method="GET",route="/v1/tasks"} 1',
      'bullpen_http_request_duration_seconds_count{method="POST",route="/v1/tasks"} 3',
      'bullpen_http_requests_total{method="GET",route="/v1/tasks",status="200"} 1',
      'bullpen_http_requests_total{method="POST",route="/v1/tasks",status="202"} 2',
      'bullpen_http_requests_total{method="POST",route="/v1/tasks",status="422"} 1',
    ])
  })

  it("shows the state of this process's connections to Redis, and how long commands wait for replies", async () => {
    const text = await textOf(usedTelemetry())
    expect(text).toContain('bullpen_redis_connections{state="ready"} 2')
    expect(text).toContain('bullpen_redis_connections{state="not_ready"} 1')
    expect(text).toContain('bullpen_redis_command_duration_seconds_bucket{le="0.0005"} 1')
    expect(text).toContain('bullpen_redis_command_duration_seconds_sum 0.0004')
  })

  it('times a task from its enqueueing to its end, and not at the end of an attempt that is retried', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.sink({ ...ended, state: 'DONE_ERROR', verdict: 'retrying', taskMs: undefined })
    telemetry.sink({ ...ended, taskMs: 61_500 })
    const text = await textOf(telemetry)
    expect(text).toContain('bullpen_task_duration_seconds_sum{queue="mail",task="receipt.send"} 61.5')
    expect(text).toContain('bullpen_task_duration_seconds_count{queue="mail",task="receipt.send"} 1')
  })

  it('counts a negative wait, which can result from two different clocks, as zero', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    for (const waitedMs of [-50, Number.NaN]) telemetry.sink({ ...attempt, event: 'attempt.started', waitedMs })
    expect(await textOf(telemetry)).toContain('bullpen_task_wait_seconds_sum{queue="mail",task="receipt.send"} 0')
  })

  it('bounds the number of series when foreign producers invent names', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    for (let name = 0; name < 2_000; name++) {
      telemetry.sink({ ...attempt, task: `made.up-${name}`, event: 'attempt.started', waitedMs: 1 })
    }
    const lines = (await textOf(telemetry)).split('\n').filter((line) => line.startsWith('bullpen_attempts_started'))
    expect(lines).toHaveLength(501)
    expect(lines).toContain('bullpen_attempts_started_total{queue="mail",task="other"} 1500')
  })

  it('publishes the counters that begin at 0 for every known task, and 19 series for each further task of a worker', async () => {
    const seriesOf = async (role: 'api' | 'worker', names: readonly `receipt.${string}`[]) => {
      const telemetry = createTelemetry({ role, version: '1' })
      telemetry.publishTasks(names.map((name) => ({ name, queue: 'mail' })))
      telemetry.watchObjectives([{ ...RECEIPT, slo: { startWithinMs: 30_000, objective: 0.99 } }])
      if (role === 'api') telemetry.publishRefusals(['mail'], ['redis_full'])
      return (await textOf(telemetry)).split('\n').filter((line) => /^bullpen_\w+_total\b/.test(line))
    }
    const [api, worker, more] = await Promise.all([
      seriesOf('api', ['receipt.send']),
      seriesOf('worker', ['receipt.send']),
      seriesOf('worker', ['receipt.send', 'receipt.print']),
    ])
    const all = [...api, ...worker]
    for (const line of all) expect(line).toMatch(/ 0$/)
    const published = new Set(all.map((line) => /^\w+/.exec(line)?.[0]))
    const rows: readonly [string, MetricRow][] = Object.entries(METRICS)
    expect([...published].sort()).toEqual(rows.flatMap(([name, row]) => (row.fromZero ? [name] : [])).sort())
    expect(more.length - worker.length).toBe(19)
    expect(worker).toContain(
      'bullpen_attempts_ended_total{queue="mail",task="receipt.send",state="DONE_ERROR",verdict="dead"} 0',
    )
    // The API does not run tasks.
    expect(api.join()).not.toContain('bullpen_attempts_')
  })

  it('continues the series that it has published at 0', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.publishTasks([RECEIPT])
    telemetry.sink(ended)
    telemetry.sink({ ...ended, state: 'DONE_ERROR', verdict: 'retrying' })
    const lines = (await textOf(telemetry))
      .split('\n')
      .filter((line) => line.startsWith('bullpen_attempts_ended_total{'))
    expect(lines).toHaveLength(9)
    expect(lines.filter((line) => line.endsWith(' 1'))).toEqual([
      expect.stringContaining('state="DONE_SUCCESS",verdict="completed"'),
      expect.stringContaining('state="DONE_ERROR",verdict="retrying"'),
    ])
  })

  it('publishes the objectives of definitions, and counts from the start which of their tasks are late', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    const slo = { startWithinMs: 30_000, objective: 0.99 }
    telemetry.watchObjectives([
      { ...RECEIPT, slo },
      { ...RECEIPT, name: 'receipt.print', slo: undefined },
    ])
    const published = async () => (await textOf(telemetry)).split('\n').filter((line) => /^bullpen_slo\w+\{/.test(line))
    const of = 'queue="mail",task="receipt.send"'
    const objective = [`bullpen_slo_start_within_seconds{${of}} 30`, `bullpen_slo_objective_ratio{${of}} 0.99`]
    expect(await published()).toEqual([
      ...objective,
      `bullpen_slo_tasks_total{${of}} 0`,
      `bullpen_slo_late_tasks_total{${of}} 0`,
    ])
    // Two start in time, one starts late, and two expire. The retries and requeues of started tasks do not count.
    for (const waitedMs of [3, 30_000, 30_001, undefined, undefined]) {
      telemetry.sink({ ...attempt, event: 'attempt.started', waitedMs })
    }
    telemetry.sink({ ...about, event: 'task.expired' })
    telemetry.sink({ ...ended, state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', verdict: 'expired' })
    telemetry.sink({ ...attempt, task: 'receipt.print', event: 'attempt.started', waitedMs: 60_000 })
    expect(await published()).toEqual([
      ...objective,
      `bullpen_slo_tasks_total{${of}} 5`,
      `bullpen_slo_late_tasks_total{${of}} 3`,
    ])
  })

  it('counts the tasks of a definition with an objective, however many names foreign producers have invented', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.watchObjectives([{ ...RECEIPT, slo: { startWithinMs: 30_000, objective: 0.99 } }])
    const started = { ...attempt, event: 'attempt.started', waitedMs: 1 } as const
    for (let name = 0; name < 1_000; name++) telemetry.sink({ ...started, task: `made.up-${name}` })
    telemetry.sink(started)
    expect(await textOf(telemetry)).toContain('bullpen_slo_tasks_total{queue="mail",task="receipt.send"} 1')
  })

  it('reads a watched pool at each scrape', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    let busy = 1
    let drainsUntil: number | undefined
    const unwatch = telemetry.watchPool({
      queue: 'mail',
      size: () => 4,
      busy: () => busy,
      stuckHandlers: () => 2,
      drainsUntil: () => drainsUntil,
      state: () => 'BG_RUNNING',
      slots: () => [{ state: 'IDLE' }, { state: 'WORKING' }, { state: 'WORKING' }],
      status: () => ({ paused: busy === 3 }),
    })
    const before = await textOf(telemetry)
    expect(before).toContain('bullpen_pool_slots_busy{queue="mail"} 1')
    expect(before).toContain('bullpen_pool_paused{queue="mail"} 0')
    expect(before).not.toContain('bullpen_drain_deadline_timestamp_seconds{')
    busy = 3
    drainsUntil = 1_700_000_030_500
    const text = await textOf(telemetry)
    expect(text).toContain('bullpen_drain_deadline_timestamp_seconds{queue="mail"} 1700000030.5')
    expect(text).toContain('bullpen_pool_slots{queue="mail"} 4')
    expect(text).toContain('bullpen_stuck_handlers{queue="mail"} 2')
    expect(text).toContain('bullpen_slot_state{queue="mail",state="WORKING"} 2')
    expect(text).toContain('bullpen_slot_state{queue="mail",state="TERMINATED"} 0')
    expect(text).toContain('bullpen_pool_slots_busy{queue="mail"} 3')
    expect(text).toContain('bullpen_pool_paused{queue="mail"} 1')
    expect(text).toContain('bullpen_pool_state{queue="mail",state="BG_RUNNING"} 1')
    expect(text).toContain('bullpen_pool_state{queue="mail",state="SHUTTING_DOWN"} 0')
    unwatch()
    expect(await textOf(telemetry)).not.toContain('bullpen_pool_slots_busy{')
  })

  it('omits a gauge that could not be read instead of repeating its last value', async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1' })
    let down = false
    telemetry.onScrape(async () => {
      if (down) throw new Error('connection refused')
      telemetry.queueTasks('mail', { waiting: 7 })
    })
    expect(await textOf(telemetry)).toContain('bullpen_queue_tasks{queue="mail",status="waiting"} 7')
    down = true
    const text = await textOf(telemetry)
    expect(text).not.toContain('bullpen_queue_tasks{')
    expect(text).toContain('bullpen_scrape_failures_total 1')
  })

  it('counts each of the reads that failed together', async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1' })
    telemetry.onScrape(() => {
      throw new AggregateError([new Error('connection refused'), new Error('timed out')])
    })
    expect(await textOf(telemetry)).toContain('bullpen_scrape_failures_total 2')
  })

  it("publishes the fleet's total of ended tasks, which never falls while the process lives", async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1' })
    const totals = { bytes: 0, recovered: 0, unaccounted: 0, drift: 0, outbox: { entries: 0, oldestAt: undefined } }
    let read: { readonly accepted: number; readonly ended: number } | undefined
    telemetry.onScrape(() => {
      if (read !== undefined) telemetry.queueTotals('mail', { ...totals, ...read }, 0)
    })
    const published = async (accepted?: number, ended = 0): Promise<number | undefined> => {
      read = accepted === undefined ? undefined : { accepted, ended }
      const [, value] = /^bullpen_queue_tasks_ended_total\{queue="mail"\} (.+)$/m.exec(await textOf(telemetry)) ?? []
      return value === undefined ? undefined : Number(value)
    }
    expect(await published(1_000, 900)).toBe(900)
    expect(await published()).toBeUndefined()
    expect(await published(1_010, 1_000)).toBe(1_000)
    // Plain BullMQ has added two tasks, which the leader counts a moment later.
    expect(await published(1_010, 998)).toBe(1_000)
    expect(await published(1_012, 1_001)).toBe(1_001)
    // A failover has lost 7 tasks, 4 of which had ended. Later, Redis has lost everything.
    expect(await published(1_005, 997)).toBe(1_001)
    expect(await published(1_006, 999)).toBe(1_003)
    expect(await published(0, 0)).toBe(1_003)
    expect(await published(5, 2)).toBe(1_005)
  })

  it("publishes the fleet's total of recovered tasks, which continues if Redis has lost data", async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1' })
    const totals = { bytes: 0, ended: 0, unaccounted: 0, drift: 0, outbox: { entries: 0, oldestAt: undefined } }
    let read = { accepted: 50, recovered: 3 }
    telemetry.onScrape(() => telemetry.queueTotals('mail', { ...totals, ...read }, 0))
    expect(await textOf(telemetry)).toContain('bullpen_queue_tasks_recovered_total{queue="mail"} 3')
    read = { accepted: 2, recovered: 1 }
    expect(await textOf(telemetry)).toContain('bullpen_queue_tasks_recovered_total{queue="mail"} 3')
    read = { accepted: 2, recovered: 2 }
    expect(await textOf(telemetry)).toContain('bullpen_queue_tasks_recovered_total{queue="mail"} 4')
  })

  it('escapes label values as Prometheus requires', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '1' })
    telemetry.sink({ ...about, queue: 'a"b\\c\nd', event: 'task.enqueued' })
    expect(await textOf(telemetry)).toContain(
      'bullpen_tasks_enqueued_total{queue="a\\"b\\\\c\\nd",task="receipt.send"} 1',
    )
  })

  it('shares one reading among concurrent scrapes', async () => {
    const telemetry = createTelemetry({ role: 'api', version: '1' })
    let reads = 0
    telemetry.onScrape(() => {
      reads++
    })
    const [first, second] = await Promise.all([telemetry.exposition(), telemetry.exposition()])
    expect(reads).toBe(1)
    expect(first).toBe(second)
    await telemetry.exposition()
    expect(reads).toBe(2)
  })
})
