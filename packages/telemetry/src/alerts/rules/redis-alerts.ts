// Defines the alerts about Redis: whether it is reachable, its memory, and the settings on which the tasks' safety depends.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, largest, rate, smallest, sum } from '../expressions.ts'

export const REDIS_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenRedisUnreachable',
    // Only API processes report the first metric. A connection may also be ready although Redis does not respond.
    expr: `${smallest('bullpen_redis_up')} == 0
or ${sum('bullpen_redis_connections{state="not_ready"}')} > 0`,
    for: '1m',
    severity: 'critical',
    summary: 'For a minute, at least one process has not been able to reach Redis, or to write to it',
    runbook: 'redis-unreachable.md',
  }),
  alert({
    name: 'BullpenRedisSlow',
    // The commands of all processes: if only one of them is slow, its event loop is busy.
    expr: `histogram_quantile(0.5, ${rate('bullpen_redis_command_duration_seconds_bucket', '5m', 'le')}) > 0.02
and ${growth('bullpen_redis_command_duration_seconds_count', '5m')} >= 5`,
    for: '5m',
    severity: 'warning',
    summary: 'For 5 minutes, half of the commands to Redis have taken more than 20 ms, so every queue is slow',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'redis-slow.md',
  }),
  alert({
    name: 'BullpenRedisMemoryHigh',
    expr: `${largest('bullpen_redis_memory_used_bytes / bullpen_redis_memory_limit_bytes')} > 0.7`,
    for: '5m',
    severity: 'warning',
    summary:
      'The API refuses tasks at 80% of the memory of Redis by default, and Redis has used more than 70% for 5 minutes',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'redis-full.md',
  }),
  alert({
    name: 'BullpenRedisRefusesTasks',
    expr: `${growth('bullpen_enqueues_refused_total{code=~"redis_full|idempotency_full|unsafe_redis"}', '5m', 'code')} > 0`,
    severity: 'critical',
    summary: 'The API has refused tasks within 5 minutes because of the state of Redis: {{ $labels.code }}',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'redis-full.md',
  }),
  alert({
    name: 'BullpenRedisLostTasks',
    expr: `${growth('bullpen_redis_lost_tasks_total', '30m', 'queue')} > 0`,
    severity: 'critical',
    summary: 'Redis has lost acknowledged tasks of queue {{ $labels.queue }} in the last 30 minutes',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'redis-lost-tasks.md',
  }),
  alert({
    name: 'BullpenRedisUnsafe',
    expr: `${largest('bullpen_redis_unsafe{check=~"persistence|eviction"}', 'check')} == 1`,
    for: '5m',
    severity: 'critical',
    summary: 'Redis may lose tasks, because its settings fail the check {{ $labels.check }}',
    runbook: 'redis-unsafe.md',
  }),
  alert({
    name: 'BullpenRedisWriteFailed',
    expr: `${largest('bullpen_redis_write_failed', 'write')} == 1`,
    for: '1m',
    severity: 'critical',
    summary: 'Redis could not write to its disk: {{ $labels.write }}',
    runbook: 'redis-unsafe.md',
  }),
]
