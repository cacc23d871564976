// Describes the keys of a queue that BullMQ defines.
import type { QueueKeys } from '../../keys.ts'
import { exists, expires, type KeyRow, laned, listed, points, scored } from './key-row.ts'

type Row = KeyRow<QueueKeys>

const taskExists: NonNullable<Row['entryOwned']> = ({ job }, { name }) => [exists(job(name))]
const ownedByTask: NonNullable<Row['owned']> = ({ job }, id) => [exists(job(id))]

/** What all structures have in common that hold the ids of tasks. */
const place = { ends: 'empty when it holds no task', entryOwned: taskExists } as const

/** What all keys have in common that belong to a job with children. */
const ofParent = {
  parts: ['task'],
  owner: 'task',
  ends: 'deleted with the task',
  owned: ownedByTask,
} as const

export const BULLMQ_ROWS = {
  job: {
    type: 'hash',
    parts: ['task'],
    holds: 'a task: its envelope, its result, its attempts and its steps',
    owner: 'task',
    ends: 'deleted by retention, by a request, or when another task replaces it',
    owned: (keys, id) => [
      scored(keys.prioritized, id),
      scored(keys.delayed, id),
      scored(keys.completed, id),
      scored(keys.failed, id),
      scored(keys.waitingChildren, id),
      listed(keys.active, id),
      listed(keys.wait, id),
      laned(keys.base, id),
    ],
    deletedWith: (keys, id) => [
      keys.logs(id),
      keys.dependencies(id),
      keys.processed(id),
      keys.ignoredFailures(id),
      keys.unsuccessful(id),
    ],
  },
  lock: {
    type: 'string',
    parts: ['task'],
    holds: "the lock of a task that a Worker without Bullpen's backend runs",
    owner: 'task',
    ends: "deleted at the attempt's end; expires if its worker does not renew it",
    expires: true,
    owned: ({ active }, id) => [listed(active, id)],
  },
  logs: { ...ofParent, type: 'list', holds: 'the log lines of a task' },
  dependencies: { ...ofParent, type: 'set', holds: "a flow's children that have not ended" },
  processed: { ...ofParent, type: 'hash', holds: "the results of a flow's completed children" },
  ignoredFailures: { ...ofParent, type: 'hash', holds: "the errors of a flow's children whose failure is ignored" },
  unsuccessful: { ...ofParent, type: 'sorted set', holds: "a flow's children whose failure fails their parent" },

  wait: { ...place, type: 'list', holds: 'waiting tasks' },
  active: { ...place, type: 'list', holds: 'fetched tasks' },
  paused: { ...place, type: 'list', holds: 'nothing since BullMQ 6' },
  prioritized: { ...place, type: 'sorted set', holds: 'waiting tasks with a priority' },
  delayed: { ...place, type: 'sorted set', holds: 'scheduled, snoozed and retrying tasks, by due time' },
  waitingChildren: { ...place, type: 'sorted set', holds: 'tasks of flows that wait for their children' },
  completed: { ...place, type: 'sorted set', holds: 'completed tasks', ends: 'trimmed by retention' },
  failed: { ...place, type: 'sorted set', holds: 'dead, cancelled and expired tasks', ends: 'trimmed by retention' },
  stalled: {
    ...place,
    type: 'set',
    holds: "the marks of the check for lost jobs of a Worker without Bullpen's backend",
    ends: "deleted by Bullpen's check for lost tasks",
  },

  events: { type: 'stream', holds: "BullMQ's events", ends: 'trimmed to about 10,000 entries' },
  meta: {
    type: 'hash',
    holds: "the queue's pause, concurrency and rate, BullMQ's version, and until when it has all of BullMQ's events",
    ends: 'kept; a fixed number of fields',
  },
  marker: {
    type: 'sorted set',
    holds: 'the markers that wake workers',
    ends: 'at most two members, which workers remove',
  },
  limiter: {
    type: 'string',
    holds: "the starts in the current window of the queue's rate, or the mark of a throttle",
    ends: 'expires at the end of the window',
    expires: true,
  },
  id: {
    type: 'string',
    holds: "how many jobs a team's own Queue has added; a job without an id gets this number",
    ends: 'kept; a number',
  },
  pc: {
    type: 'string',
    holds: 'the counter that orders tasks of one priority',
    ends: 'deleted when a worker finds no task with a priority',
  },
  stalledCheck: {
    type: 'string',
    holds: "the mark of the check for lost jobs of a Worker without Bullpen's backend",
    ends: 'expires after one interval of the check',
    expires: true,
  },
  repeat: {
    type: 'sorted set',
    holds: "job schedulers of a team's own queue, by next run",
    ends: 'a member is deleted with its job scheduler',
    entryOwned: ({ scheduler }, { name }) => [exists(scheduler(name))],
  },
  scheduler: {
    type: 'hash',
    parts: ['scheduler'],
    holds: "a job scheduler of a team's own queue",
    owner: 'job scheduler',
    ends: 'deleted with the job scheduler',
    owned: ({ repeat }, name) => [scored(repeat, name)],
  },
  deduplication: {
    type: 'string',
    parts: ['deduplication id'],
    holds: "the job that has one of BullMQ's deduplication ids",
    owner: 'deduplication id',
    ends: "deleted at the job's end, or expires",
    owned: ({ base, deduplication }, id) => [expires(deduplication(id)), points(deduplication(id), base)],
  },
  deduplicationNext: {
    type: 'hash',
    parts: ['deduplication id'],
    holds: 'the job to add when the job with the same deduplication id ends',
    owner: 'deduplication id',
    ends: 'deleted when that job ends',
    owned: ({ deduplication }, id) => [exists(deduplication(id))],
  },
  metricsCompleted: {
    type: 'hash',
    holds: "BullMQ's count of completed jobs, if a Worker's option `metrics` is set",
    ends: 'kept; a fixed number of fields',
  },
  metricsCompletedData: {
    type: 'list',
    holds: "BullMQ's counts of completed jobs by minute",
    ends: "trimmed to the Worker's `maxDataPoints`",
  },
  metricsFailed: {
    type: 'hash',
    holds: "BullMQ's count of failed jobs, if a Worker's option `metrics` is set",
    ends: 'kept; a fixed number of fields',
  },
  metricsFailedData: {
    type: 'list',
    holds: "BullMQ's counts of failed jobs by minute",
    ends: "trimmed to the Worker's `maxDataPoints`",
  },
} as const satisfies Partial<Record<keyof QueueKeys, Row>>
