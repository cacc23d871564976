// The panels of Redis: whether it is reachable, has room and keeps the tasks.
import { query, type Section } from '../panel.ts'
import { quantileOf, RATE } from './selectors.ts'

export const redisSection: Section = {
  title: 'Redis',
  panels: [
    {
      title: 'Connection to Redis',
      description: '1 if the process reached Redis during the scrape, 0 if it did not.',
      bad: '0. If one process is affected, look at its network. If all are, Redis is unreachable.',
      runbook: 'redis-unreachable.md',
      unit: 'short',
      max: 1,
      queries: [query('bullpen_redis_up', '{{instance}}')],
    },
    {
      title: 'Connections that are not ready',
      description: 'Connections for commands that a process is still trying to open.',
      bad: 'Any for longer than some seconds. If one process shows them, the fault is between it and Redis.',
      runbook: 'redis-unreachable.md',
      unit: 'short',
      queries: [query('bullpen_redis_connections{state="not_ready"}', '{{instance}}')],
    },
    {
      title: 'Redis commands, p99',
      description: "Time from a command's call to Redis's reply, as each process sees it.",
      bad: 'Long in one process: its event loop is busy. Long in all of them: Redis or the network is slow.',
      runbook: 'redis-slow.md',
      unit: 's',
      queries: [query(quantileOf(0.99, 'bullpen_redis_command_duration_seconds_bucket', 'instance'), '{{instance}}')],
    },
    {
      title: 'Redis memory',
      description: 'The share of its memory that Redis uses, and the share that idempotency keys take.',
      bad: 'New tasks are refused at the watermark, which is 80% by default, and tasks with a new idempotency key if such keys take 25%.',
      runbook: 'redis-full.md',
      unit: 'percentunit',
      thresholds: [
        { from: 0, colour: 'green' },
        { from: 0.7, colour: 'orange' },
        { from: 0.8, colour: 'red' },
      ],
      queries: [
        query('max(bullpen_redis_memory_used_bytes / bullpen_redis_memory_limit_bytes)', 'Redis'),
        query('max(bullpen_idempotency_records_bytes / bullpen_redis_memory_limit_bytes)', 'idempotency keys'),
      ],
    },
    {
      title: 'Unsafe settings of Redis',
      description: "1 for each check of Redis's settings that fails, otherwise 0.",
      bad: '1. If persistence or eviction fails, Redis may lose tasks.',
      runbook: 'redis-unsafe.md',
      unit: 'short',
      max: 1,
      queries: [query('max by (check) (bullpen_redis_unsafe)', '{{check}}')],
    },
    {
      title: 'Failed writes to disk',
      description:
        "1 if Redis's last write of its append-only file, a rewrite of it or a snapshot failed, otherwise 0.",
      bad: '1: a restart of Redis may lose tasks. If the append-only file fails or, by default, a snapshot, Redis refuses all writes.',
      runbook: 'redis-unsafe.md',
      unit: 'short',
      max: 1,
      queries: [query('max by (write) (bullpen_redis_write_failed)', '{{write}}')],
    },
    {
      title: 'Lost tasks',
      description: 'Acknowledged tasks that Redis has lost, per second, by queue.',
      bad: 'Above 0: Redis has lost its newest data, and these tasks never end.',
      runbook: 'redis-lost-tasks.md',
      unit: 'ops',
      ifEmpty: 'no task was lost',
      queries: [query(`sum by (queue) (rate(bullpen_redis_lost_tasks_total[${RATE}]))`, '{{queue}}')],
    },
    {
      title: 'Tasks refused because of Redis',
      description: 'Tasks per second that the API has refused because of the state of a queue or of Redis, by code.',
      bad: 'redis_full, idempotency_full or unsafe_redis: producers lose time or tasks.',
      runbook: 'redis-full.md',
      unit: 'ops',
      ifEmpty: 'no task was refused',
      queries: [query(`sum by (code) (rate(bullpen_enqueues_refused_total[${RATE}]))`, '{{code}}')],
    },
  ],
}
