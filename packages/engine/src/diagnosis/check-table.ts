// Lists the checks of a diagnosis: what each one finds, why its findings matter, and what to do about them.
import type { DiagnosisCheck } from '@bullpen/contract'
import { deadTasks } from './dead-tasks.ts'
import type { Examine } from './facts.ts'
import { catalogues, clocks, configuration, eventLoops, leader, versions, workers } from './fleet-checks.ts'
import { fullQueues } from './full-queues.ts'
import {
  differentSchedules,
  failingTasks,
  limitedQueues,
  limitedTasks,
  lostTasks,
  missingLimits,
  openBreakers,
  outboxes,
  pausedQueues,
  poisonTasks,
  schedules,
  stalledQueues,
  storeLosses,
  unattachedWorkers,
  unservedQueues,
} from './queue-checks.ts'
import { connections, failedWrites, latency, memory, permissions, setting, unreachableNodes } from './server-checks.ts'

export interface Check {
  readonly examine: Examine
  /** When the check finds something. */
  readonly finds: string
  /** Why that matters. */
  readonly reason: string
  /** What to do, unless a finding says it more precisely. */
  readonly advice: string
  /** The title of the runbook page, if there is one, unless a finding names another one. */
  readonly runbook?: string
}

export const CHECKS = {
  redis_connection: {
    finds:
      'the API cannot use Redis, for example because Redis is not reachable, refuses the password, a command or writes, or is a read-only replica. No other check is then carried out. If a node of a Redis Cluster is not reachable, the finding names it and its queues, and the queues of the other nodes are examined',
    // If the API cannot use Redis at all, there are no facts.
    examine: unreachableNodes,
    reason: 'no task is accepted or started, and the ends of running tasks cannot be stored',
    advice:
      'check that Redis is running, and that the REDIS_URL of the API has its address, its user and its password, and leads to the primary; if Redis refuses writes, do what the problem says; if it rejects a command, give the Redis user the permissions on the page "Configure Redis", and look in ACL LOG for the command',
    runbook: 'Redis is unreachable',
  },
  redis_version: {
    finds: 'Redis is older than version 7',
    examine: setting('version', 'version', 'error'),
    reason: "older versions do not support the flags of Bullpen's scripts",
    advice: 'upgrade the server',
  },
  redis_persistence: {
    finds: 'Redis has no append-only file',
    examine: setting('persistence', 'appendonly', 'error'),
    reason: 'if Redis restarts, it loses every task, or every task since the last snapshot',
    advice: 'set appendonly yes; if the service persists data in another way, ignore this',
    runbook: 'Redis may lose tasks',
  },
  redis_writes: {
    finds: 'the last write of the append-only file, its last rewrite or the last snapshot has failed',
    examine: failedWrites,
    reason: 'tasks are lost if Redis restarts, and Redis may refuse to store new ones',
    advice: "look at the log of Redis, and at its disk's free space",
    runbook: 'Redis may lose tasks',
  },
  redis_lost_tasks: {
    finds: 'within the last day, Redis has lost tasks that it had stored and that Bullpen had acknowledged',
    examine: storeLosses,
    reason:
      'these tasks never end, and their callers do not know; other writes of the same period, such as results, cancels and commands, are lost, too',
    advice:
      'let the callers enqueue the tasks again, with their idempotency keys; then find out why Redis has lost its newest data',
    runbook: 'Redis has lost tasks',
  },
  redis_eviction: {
    finds: 'Redis may evict keys',
    examine: setting('eviction', 'maxmemory-policy', 'error'),
    reason: 'when its memory is full, Redis deletes tasks, locks and records',
    advice: 'set maxmemory-policy noeviction',
    runbook: 'Redis may lose tasks',
  },
  redis_memory_limit: {
    finds: 'Redis has no memory limit',
    examine: setting('maxmemory', 'maxmemory', 'warning'),
    reason: 'the operating system may kill Redis before Redis or the watermark limits its memory',
    advice: "set maxmemory to at most three quarters of the machine's memory",
    runbook: 'Redis is full',
  },
  redis_memory: {
    finds: "Redis's memory has reached 90% of the watermark (a warning), or the watermark (an error)",
    examine: memory,
    reason:
      'at the watermark, the API refuses new tasks, and at 100%, Redis refuses every command that stores something new',
    advice: 'find out what uses the memory before you raise maxmemory',
    runbook: 'Redis is full',
  },
  redis_encoding: {
    finds: 'Redis does not store most tasks in the compact encoding of small hashes',
    examine: setting('listpack', 'hash-max-listpack-value', 'warning'),
    reason: 'a waiting task takes about twice the memory',
    advice: 'set hash-max-listpack-value 1024',
  },
  redis_permissions: {
    finds: 'Redis does not permit INFO or CONFIG GET',
    examine: permissions,
    reason: 'without INFO, the watermark has no effect, and without INFO or CONFIG GET, settings are not checked',
    advice: 'let the Redis user run the command; see the page "Configure Redis"',
  },
  redis_connections: {
    finds: 'at least 90% of the connections that Redis permits are open',
    examine: connections,
    reason: 'at the limit, Redis refuses new connections, so workers and API processes cannot start',
    advice: 'raise maxclients, or look in CLIENT LIST for a program that does not close its connections',
  },
  redis_latency: {
    finds: 'half of nine round trips from the API to Redis take at least 10 ms',
    examine: latency,
    reason: 'every task needs several round trips, one after another',
    advice:
      'run the API and the workers near Redis; look at the load of Redis and at SLOWLOG; the alert BullpenRedisSlow says whether Redis is slow for all processes',
    runbook: 'Redis is slow',
  },
  clocks: {
    finds: "the clock of an API's or a worker's machine differs from Redis's clock by at least 0.5 s",
    examine: clocks,
    reason: "Bullpen uses Redis's clock, so the times in this machine's logs do not match those of its tasks",
    advice: 'synchronise the clocks, for example with NTP',
    runbook: 'A clock is wrong',
  },
  configuration: {
    finds:
      'workers of one queue have different drain timeouts or grace periods, or the API runs in development mode although workers run on several machines',
    examine: configuration,
    reason:
      'the same drain takes longer on some workers than on others; in development mode, the API also uses a Redis that may evict keys',
    advice: 'give all processes the same settings',
  },
  versions: {
    finds: 'a worker runs another version of Bullpen than the API',
    examine: versions,
    reason: 'during a deploy this is normal; otherwise, some processes lack the fixes of the others',
    advice: 'finish the deploy, so that all processes run the same version',
  },
  catalogues: {
    finds:
      "workers have other definitions of a queue than the API (the names, versions and kinds of its tasks, what they need to start, its permits and circuit breakers, and the turns and limits of its concurrency keys), serve queues or run tasks that are not in the API's catalogue, or did not know tasks that are now dead",
    examine: catalogues,
    reason:
      'an API does not show tasks that are not in its catalogue, and a worker cannot run them; the weights of concurrency keys are those of the process that enqueues, and all limits are those of the worker that was the last to connect',
    advice: 'deploy the API and the workers with the same catalogue',
  },
  workers: {
    finds: 'a worker sends no heartbeats, has stuck handlers, or does not accept tasks',
    examine: workers,
    reason: 'the slots of this worker do not run tasks, or a handler uses its memory and CPU time for nothing',
    advice: 'look at the log of the worker',
    runbook: 'A worker is not ready',
  },
  event_loops: {
    finds: 'the event loop of a worker was blocked for at least 10 s within the last minute',
    examine: eventLoops,
    reason:
      'while a handler blocks the event loop, the other slots of its worker do not run, and timeouts and probes are late',
    advice: 'look for the log lines with stalledMs, which name the code',
    runbook: 'An event loop is stalled',
  },
  leader: {
    finds:
      'no process leads the namespace (an error), or the leader has changed five times within ten minutes (a warning)',
    examine: leader,
    reason:
      'the leader recovers the tasks of lost workers, runs schedules, expires waiting tasks and removes old ones; while the leader changes, this work is late',
    advice: 'start one more API process or worker, and look for warnings about the lease in the logs',
    runbook: 'No leader',
  },
  unserved_queues: {
    finds: 'tasks wait in a queue that no live worker serves',
    examine: unservedQueues,
    reason: 'these tasks do not start',
    advice: 'start workers for the queue; if your own BullMQ Workers serve the queue, ignore this',
    runbook: 'Nothing is running',
  },
  stalled_queues: {
    finds:
      'a task of a queue that could start has waited for a minute although slots are free. Queues that are paused or draining, or whose starts a command limits, are not examined',
    examine: stalledQueues,
    reason:
      'no limit, throttle or permit keeps the task from starting, so the workers do: one is blocked, or all are too old for tasks that take turns',
    advice: "look for event-loop stalls and errors in the logs of the workers, and for old versions in 'bullpen fleet'",
    runbook: 'Nothing is running',
  },
  limited_queues: {
    finds:
      'a task of a queue has waited for a minute although slots are free, because of a limit that a command has set, a limit of its concurrency key, permits, or a throttle',
    examine: limitedQueues,
    reason: 'the limit is lower than what the workers could run, or a task that hangs has used it up',
    advice: "raise or remove the limit with 'bullpen limit'",
    runbook: 'Nothing is running',
  },
  limited_tasks: {
    finds: 'tasks of a queue wait, and a definition needs more permits than its queue has, or its concurrency is 0',
    examine: limitedTasks,
    reason: 'its tasks wait until the number is raised',
    advice: "raise the limit with 'bullpen limit'",
    runbook: 'Nothing is running',
  },
  missing_limits: {
    finds:
      "tasks of a queue have started, but Redis does not have a limit of concurrency keys, permits, a definition's concurrency or a circuit breaker that the API's catalogue has",
    examine: missingLimits,
    reason: 'only limits that a worker has stored in Redis apply, so the tasks start without this one',
    advice:
      'deploy the workers with the catalogue of the API, and pass it to `bullpenBackend` if your own BullMQ Workers serve the queue; a worker stores the limits when it starts, and within a minute after Redis has lost them',
  },
  full_queues: {
    finds:
      'a queue has reached its limit of tasks or bytes. The finding says whether all slots are busy, a limit holds the starts, or most of its tasks are not due yet',
    examine: fullQueues,
    reason: 'the queue refuses new tasks',
    advice:
      "wait until the workers have made room, or raise the limit with 'bullpen limit'; 'bullpen audit' shows whether a command has lowered it",
    runbook: 'Producers are slowed down',
  },
  paused_queues: {
    finds: 'a queue is paused or draining, or each of its pools is paused',
    examine: pausedQueues,
    reason: 'tasks of the queue do not start',
    advice: "to continue, run 'bullpen resume'",
    runbook: 'Nothing is running',
  },
  open_breakers: {
    finds: 'a circuit breaker of a queue is open or half-open',
    examine: openBreakers,
    reason: 'the tasks that depend on its service wait',
    advice: 'check the service; the breaker closes by itself once probes succeed',
    runbook: 'Attempts fail',
  },
  unattached_workers: {
    finds:
      "a BullMQ Worker without Bullpen's backend uses a queue. The finding names its connections and some tasks that it has held",
    examine: unattachedWorkers,
    reason:
      "the Worker runs BullMQ's own scripts: what it ends has no follow-ups, ends no member of a group or run, obeys no limits, timeouts or cancels, and counts only once the leader has compared the queue; if it dies, its tasks wait until its locks expire",
    advice: "stop the Worker, or create it with 'bullpenBackend'",
    runbook: 'Tasks are unaccounted for',
  },
  lost_tasks: {
    finds:
      'a task has been active for a minute, but no live worker runs it. The check examines the 200 tasks of each queue that started first',
    examine: lostTasks,
    reason: 'tasks of a lost worker should run again within seconds, but these do not',
    advice:
      'if your own BullMQ Workers serve the queue, ignore this; otherwise, start a worker, which recovers the tasks',
    runbook: 'No leader',
  },
  failing_tasks: {
    finds: 'at least 10 tasks of a queue wait for a retry, which is more than are waiting or running',
    examine: failingTasks,
    reason: 'most of the tasks fail, usually because a service that they call is down, so the queue makes no progress',
    advice: 'look at the errors of the attempts',
    runbook: 'Attempts fail',
  },
  dead_tasks: {
    finds:
      'at least 10 tasks of a queue, and at least 1% of those that ended, have died within the last 10 minutes. The finding names the most frequent kinds of errors',
    examine: deadTasks,
    reason: 'a dead task does not run again until it is retried by request, and more tasks will die of the same cause',
    advice: 'look at the errors, and fix the cause before you retry the tasks',
    runbook: 'Dead tasks',
  },
  poison_tasks: {
    finds: 'a task became dead within the last hour because its process died too often',
    examine: poisonTasks,
    reason:
      'each of its attempts killed a process, and its first ones also interrupted the other tasks of their worker',
    advice: 'fix the handler',
    runbook: 'A poison task',
  },
  outboxes: {
    finds: 'an outbox is full, has at least 5,000 entries, or has an entry that is at least a minute old',
    examine: outboxes,
    reason:
      'follow-up tasks, groups and pipelines are late; while an outbox is full, workers fetch no tasks of its queue',
    advice: 'look for the cause, and do not delete the outbox',
    runbook: 'An outbox grows',
  },
  schedules: {
    finds: 'a schedule is in trouble: failing, overlapping, missed or unreadable',
    examine: schedules,
    reason: 'some runs of the schedule fail or do not happen',
    advice: "'bullpen schedules list --trouble' shows them",
    runbook: 'A schedule is in trouble',
  },
  different_schedules: {
    finds: 'a stored schedule differs from the catalogue of the API, is missing, or is no longer in the catalogue',
    examine: differentSchedules,
    reason:
      'processes store each definition only once: a command has changed or deleted the schedule since, a newer process declares another definition, or no process declares the schedule any more',
    advice:
      "if a command has changed the schedule on purpose or a deploy is in progress, ignore this; otherwise, 'bullpen schedules sync' makes the stored schedules match",
  },
} as const satisfies Readonly<Record<DiagnosisCheck, Check>>
