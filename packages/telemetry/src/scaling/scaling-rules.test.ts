// Tests with promtool what Prometheus records for autoscalers.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promtool } from '@bullpen/testing'
import { expect, it, onTestFinished } from 'vitest'
import { rulesFile } from '../alerts/index.ts'
import { RECORDED_METRICS, type RecordedName } from '../metrics/recorded-metrics.ts'
import { SCALING_RULES } from './scaling-rules.ts'

/** The values of each series, by its name and labels, with a sample every 15 s: `0+5x10` is 0, 5, 10, …, 50. */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly series: Series
  readonly at: `${number}m`
  /** The value of each recorded series of the queue, or of each queue and installation if there are several. */
  readonly recorded: Partial<Readonly<Record<RecordedName, number | Readonly<Record<string, number>>>>>
}

const waiting = (values: string, api = 'a1'): Series => ({
  [`bullpen_queue_tasks{queue="mail", status="waiting", instance="${api}"}`]: values,
  [`bullpen_queue_paused{queue="mail", instance="${api}"}`]: '0x400',
})
const worker = (name: string, slots: string, busy = '0x400'): Series => ({
  [`bullpen_pool_slots{queue="mail", instance="${name}"}`]: slots,
  [`bullpen_pool_slots_busy{queue="mail", instance="${name}"}`]: busy,
})
/** The attempts that a worker has run, and how many seconds they took together. */
const ran = (name: string, attempts: string, seconds: string, task = 'receipt.send'): Series => ({
  [`bullpen_attempt_duration_seconds_count{queue="mail", task="${task}", instance="${name}"}`]: attempts,
  [`bullpen_attempt_duration_seconds_sum{queue="mail", task="${task}", instance="${name}"}`]: seconds,
})
const expected = (task: string, seconds: number): Series => ({
  [`bullpen_task_expected_seconds{queue="mail", task="${task}", instance="a1"}`]: `${seconds}x400`,
})
const slo = (task: string, startWithin: number): Series => ({
  [`bullpen_slo_start_within_seconds{queue="mail", task="${task}", instance="a1"}`]: `${startWithin}x400`,
})
const state = (name: string, at: string, values: string): Series => ({
  [`bullpen_pool_state{queue="mail", state="${at}", instance="${name}"}`]: values,
})

/** Two workers with 10 slots each, whose attempts take 3 s each. */
const fleet = { ...worker('w1', '10x400'), ...worker('w2', '10x400'), ...ran('w1', '0+5x400', '0+15x400') }

const CASES: Readonly<Record<string, Case>> = {
  'the backlog is the number of waiting tasks, times the mean run time, divided by the slots of a worker': {
    series: { ...waiting('200x400'), ...fleet },
    at: '5m',
    recorded: {
      'bullpen:queue_run_seconds': 3,
      'bullpen:queue_slots_per_worker': 10,
      'bullpen:queue_backlog_seconds': 60,
    },
  },
  'each task counts once, although every API process reports it': {
    series: { ...waiting('200x400'), ...waiting('200x400', 'a2'), ...fleet },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 60 },
  },
  'the number of workers does not change the backlog': {
    series: { ...waiting('200x400'), ...fleet, ...worker('w3', '10x400'), ...worker('w4', '10x400') },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 60 },
  },
  'an empty queue has no backlog': {
    series: { ...waiting('0x400'), ...fleet },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 0 },
  },
  'a paused queue has no backlog, because workers would not run its tasks': {
    series: { ...waiting('200x400'), ...fleet, 'bullpen_queue_paused{queue="mail", instance="a1"}': '1x400' },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 0 },
  },
  'blocked tasks are no backlog, because a new worker could not start them': {
    series: { ...waiting('200x400'), ...fleet, 'bullpen_queue_blocked_tasks{queue="mail", instance="a1"}': '150x400' },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 15 },
  },
  'if more tasks are blocked than were waiting a moment before, there is no backlog': {
    series: { ...waiting('200x400'), ...fleet, 'bullpen_queue_blocked_tasks{queue="mail", instance="a1"}': '201x400' },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 0 },
  },
  'a drained queue has no backlog either': {
    series: {
      ...waiting('200x400'),
      ...fleet,
      ...state('w1', 'BG_RUNNING', '0x400'),
      ...state('w1', 'SHUTDOWN', '1x400'),
    },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 0 },
  },
  'a queue that a command has drained has no backlog after its workers were removed': {
    series: { ...waiting('200x400'), 'bullpen_queue_draining{queue="mail", instance="a1"}': '1x400' },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 0 },
  },
  'a queue of which one worker drains is not drained': {
    series: {
      ...waiting('200x400'),
      ...fleet,
      ...state('w1', 'BG_RUNNING', '0x400'),
      ...state('w2', 'BG_RUNNING', '1x400'),
    },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_seconds': 60 },
  },
  'if nothing has run and no worker was ever seen, a task is taken to last 1 s, and a worker to have one slot': {
    series: waiting('200x400'),
    at: '5m',
    recorded: {
      'bullpen:queue_run_seconds': 1,
      'bullpen:queue_slots_per_worker': 1,
      'bullpen:queue_backlog_seconds': 200,
      'bullpen:queue_busy_workers': 0,
    },
  },
  'if nothing has run, tasks are taken to last as long as their definitions say': {
    series: { ...waiting('200x400'), ...expected('receipt.send', 2), ...expected('receipt.print', 8) },
    at: '5m',
    recorded: { 'bullpen:queue_run_seconds': 5 },
  },
  'what workers have measured counts more than what definitions say': {
    series: { ...waiting('200x400'), ...fleet, ...expected('receipt.send', 20) },
    at: '5m',
    recorded: { 'bullpen:queue_run_seconds': 3 },
  },
  'a worker that has just run its first attempts is measured at once': {
    series: { ...waiting('200x400'), ...worker('w1', '10x400'), ...ran('w1', '_x19 4x400', '_x19 28x400') },
    at: '5m',
    recorded: { 'bullpen:queue_run_seconds': 7 },
  },
  'only the last 10 minutes count': {
    // 2 s each at first, and then 4 s
    series: { ...waiting('200x400'), ...fleet, ...ran('w1', '0+5x400', '0+10x80 820+20x300') },
    at: '60m',
    recorded: { 'bullpen:queue_run_seconds': 4 },
  },
  'if nothing has run for 10 minutes, everything counts that the workers have run': {
    series: { ...waiting('200x400'), ...fleet, ...ran('w1', '0+5x20 100x300', '0+30x20 600x300') },
    at: '60m',
    recorded: { 'bullpen:queue_run_seconds': 6 },
  },
  'tasks count by how often they run': {
    series: {
      ...waiting('200x400'),
      ...ran('w1', '0+9x400', '0+9x400'),
      ...ran('w2', '0+1x400', '0+11x400', 'receipt.print'),
    },
    at: '5m',
    recorded: { 'bullpen:queue_run_seconds': 2 },
  },
  'while there is no worker, the slots of the last ones count': {
    series: { ...waiting('200x400'), ...worker('w1', '10x20'), ...worker('w2', '30x20') },
    at: '40m',
    recorded: { 'bullpen:queue_slots_per_worker': 20 },
  },
  'a worker whose slots were stopped does not count': {
    series: { ...waiting('200x400'), ...worker('w1', '10x400'), ...worker('w2', '0x400') },
    at: '5m',
    recorded: { 'bullpen:queue_slots_per_worker': 10 },
  },
  'without an SLO, each worker may have 30 s of backlog': {
    series: { ...waiting('200x400'), ...fleet },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_target_seconds': 30, 'bullpen:queue_backlog_workers': 2 },
  },
  'with an SLO, each worker may have half of the shortest startWithin': {
    series: { ...waiting('200x400'), ...fleet, ...slo('receipt.send', 20), ...slo('receipt.print', 600) },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_target_seconds': 10, 'bullpen:queue_backlog_workers': 6 },
  },
  'tasks that may start late need fewer workers': {
    series: { ...waiting('200x400'), ...fleet, ...slo('receipt.send', 600) },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_target_seconds': 300, 'bullpen:queue_backlog_workers': 0.2 },
  },
  'each worker may have 5 s of backlog, however soon tasks should start': {
    series: { ...waiting('200x400'), ...fleet, ...slo('receipt.send', 1) },
    at: '5m',
    recorded: { 'bullpen:queue_backlog_target_seconds': 5, 'bullpen:queue_backlog_workers': 12 },
  },
  'the busy workers are those that the busy slots would fill, averaged over a minute': {
    series: { ...waiting('0x400'), ...worker('w1', '10x400', '5x16 3 5 7 5x400'), ...worker('w2', '10x400', '6x400') },
    at: '5m',
    recorded: { 'bullpen:queue_busy_workers': 1.1 },
  },
  'installations are kept apart': {
    series: {
      'bullpen_queue_tasks{queue="mail", status="waiting", namespace="live"}': '200x400',
      'bullpen_queue_paused{queue="mail", namespace="live"}': '0x400',
      'bullpen_slo_start_within_seconds{queue="mail", task="receipt.send", namespace="live"}': '120x400',
      'bullpen_queue_tasks{queue="mail", status="waiting", namespace="test"}': '10x400',
      'bullpen_queue_paused{queue="mail", namespace="test"}': '1x400',
    },
    at: '5m',
    recorded: {
      'bullpen:queue_backlog_seconds': {
        '{namespace="live", queue="mail"}': 200,
        '{namespace="test", queue="mail"}': 0,
      },
      'bullpen:queue_backlog_target_seconds': {
        '{namespace="live", queue="mail"}': 60,
        '{namespace="test", queue="mail"}': 30,
      },
    },
  },
}

it('Prometheus records how much work is waiting and how many workers are busy', async () => {
  const tests = Object.entries(CASES).map(([name, { series, at, recorded }]) => ({
    name,
    interval: '15s',
    input_series: Object.entries(series).map(([selector, values]) => ({ series: selector, values })),
    promql_expr_test: Object.entries(recorded).map(([record, values]) => ({
      expr: record,
      eval_time: at,
      exp_samples: Object.entries(typeof values === 'number' ? { '{queue="mail"}': values } : values).map(
        ([labels, value]) => ({ labels: `${record}${labels}`, value }),
      ),
    })),
  }))
  const rule_files = [file('rules.yaml', rulesFile({ alerts: [] }))]
  const { code, output } = await promtool([
    'test',
    'rules',
    file('tests.yaml', JSON.stringify({ rule_files, evaluation_interval: '15s', tests })),
  ])
  expect(code, output).toBe(0)
})

it('every recorded series is described, and has a case', () => {
  const names = SCALING_RULES.map(({ record }) => record)
  expect(names).toEqual(Object.keys(RECORDED_METRICS))
  expect(new Set(Object.values(CASES).flatMap(({ recorded }) => Object.keys(recorded)))).toEqual(new Set(names))
})

/** Writes a file that is deleted after the test, and returns its path. */
function file(name: string, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-scaling-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
