// Lists the checks of an examination of plain BullMQ: what each one finds, why it matters, and what to do.
import type { BullmqServerFacts, QueueFacts } from './facts.ts'
import {
  expiredLocks,
  keptCompleted,
  keptFailed,
  largePayloads,
  lateSchedulers,
  longEvents,
  longRuns,
  longWait,
  noRetries,
  noWorkers,
  overdueJobs,
  paused,
  stalledJobs,
} from './queue-risks.ts'
import type { Risk } from './risk.ts'
import { connections, eviction, failedWrites, hashTags, memory, persistence, version } from './server-risks.ts'

interface Text {
  readonly finds: string
  readonly reason: string
  readonly advice: string
}

/** A check returns undefined if the server does not permit a command that it needs. */
type ServerCheck = Text & { readonly server: (facts: BullmqServerFacts) => readonly Risk[] | undefined }
type QueueCheck = Text & { readonly queue: (facts: QueueFacts, now: number) => readonly Risk[] | undefined }

export const BULLMQ_CHECKS = {
  redis_version: {
    server: version,
    finds: 'Redis is older than version 6.2 (a warning) or 5.0 (an error)',
    reason: 'BullMQ recommends 6.2 or later, and does not start before 5.0; Bullpen needs 7 or later',
    advice: 'upgrade the server',
  },
  redis_eviction: {
    server: eviction,
    finds: 'Redis may evict keys',
    reason: 'when its memory is full, Redis deletes jobs, locks and whole queues',
    advice: 'set maxmemory-policy noeviction',
  },
  redis_persistence: {
    server: persistence,
    finds: 'Redis has no append-only file (a warning), or neither an append-only file nor snapshots (an error)',
    reason: 'if Redis restarts, it loses every job since the last snapshot, or all jobs',
    advice: 'set appendonly yes; if the service persists data in another way, ignore this',
  },
  redis_writes: {
    server: failedWrites,
    finds: 'the last write of the append-only file, its last rewrite or the last snapshot has failed',
    reason: 'jobs are lost if Redis restarts, and Redis may refuse to store new ones',
    advice: "look at the log of Redis, and at its disk's free space",
  },
  hash_tags: {
    server: hashTags,
    finds: 'in a Redis Cluster, the prefix of a queue has no hash tag; nothing else is examined of the queue',
    reason: "BullMQ's scripts use several keys of a queue at once, which a cluster refuses with CROSSSLOT",
    advice: 'give every Queue, Worker and QueueEvents of the queue a prefix with braces, such as {bull}',
  },
  redis_memory: {
    server: memory,
    finds: 'Redis has no memory limit (a warning), or uses at least 80% of it (an error)',
    reason: 'when the memory is full, jobs can neither be added nor completed, and their locks are not renewed',
    advice: "set maxmemory to at most three quarters of the machine's memory, and remove ended jobs sooner",
  },
  redis_connections: {
    server: connections,
    finds: 'at least 80% of the connections that Redis permits are open',
    reason: 'at the limit, workers and producers cannot connect; each Worker opens two connections',
    advice:
      'share connections between Queues, raise maxclients, or look in CLIENT LIST for a program that leaks connections',
  },
  no_workers: {
    queue: noWorkers,
    finds: 'jobs wait, or delayed jobs are due, but no worker of the queue is connected',
    reason: 'these jobs do not start',
    advice: 'start workers with the same name and prefix; if a proxy hides the names of connections, ignore this',
  },
  long_wait: {
    queue: longWait,
    finds: 'a job has waited for 5 minutes although workers are connected and the queue is not paused',
    reason: 'the workers do not keep up, are blocked, or are held by a rate limit or a global concurrency limit',
    advice: "add workers or concurrency; look at the handlers' durations and at the queue's limits",
  },
  paused: {
    queue: paused,
    finds: 'the queue is paused, and jobs wait',
    reason: 'no job of the queue starts until it is resumed',
    advice: 'call queue.resume()',
  },
  expired_locks: {
    queue: expiredLocks,
    finds: 'an active job has had no lock for a minute',
    reason:
      'its worker has died or its event loop is blocked, and no other worker has taken the job over; if the first worker is still running it, the job will run twice',
    advice: 'start a worker, which looks for stalled jobs every 30 s; move CPU-heavy code out of the event loop',
  },
  long_runs: {
    queue: longRuns,
    finds: 'a job has been active for an hour',
    reason: 'BullMQ has no timeouts, so a handler that hangs keeps its slot until its process ends',
    advice: 'give the handler a timeout of its own; in Bullpen, set timeout in the definition',
  },
  overdue_jobs: {
    queue: overdueJobs,
    finds: 'a delayed job should have started more than a minute ago',
    reason: 'only a worker that fetches jobs starts delayed ones; none does, or all are busy',
    advice: 'start workers or add concurrency; compare the clocks of the workers',
  },
  late_schedulers: {
    queue: lateSchedulers,
    finds: 'the next run of a job scheduler is more than a minute late',
    reason: 'a scheduler adds its next job when the previous one starts, so it adds none while no job starts',
    advice: 'start workers; if the job of the scheduler was removed, upsert the scheduler again',
  },
  kept_completed: {
    queue: keptCompleted,
    finds:
      'the queue keeps at least 1,000 completed jobs whose own options do not remove them; an error if they take 256 MiB',
    reason: 'BullMQ keeps completed jobs forever by default, until the memory of Redis is full',
    advice:
      'set removeOnComplete: { age, count } on the workers, and remove the old jobs with queue.clean(); if the workers already remove jobs, which is not stored in Redis, ignore this',
  },
  kept_failed: {
    queue: keptFailed,
    finds:
      'the queue keeps at least 1,000 failed jobs whose own options do not remove them; an error if they take 256 MiB',
    reason: 'BullMQ keeps failed jobs forever by default, until the memory of Redis is full',
    advice:
      'set removeOnFail: { age, count } on the workers; retry or clean the jobs that have failed; if the workers already remove jobs, ignore this',
  },
  no_retries: {
    queue: noRetries,
    finds: 'at least 10% of the sampled failed jobs had a single attempt',
    reason: 'attempts is 1 by default, so a short outage of a dependency fails jobs for good',
    advice: 'set attempts and backoff in defaultJobOptions, and throw UnrecoverableError for permanent errors',
  },
  stalled_jobs: {
    queue: stalledJobs,
    finds: 'sampled failed jobs failed because they had stalled too often',
    reason:
      'their processes died, or blocked the event loop for longer than the lock; the handler was not called again',
    advice:
      'look for crashes, memory limits and CPU-heavy code; set maxStalledCount above 1, and lockDuration above the longest block',
  },
  large_payloads: {
    queue: largePayloads,
    finds: 'a sampled job has data or a result of 100 kB or more',
    reason: 'Redis keeps payloads in memory, and sends them with every fetch of the job',
    advice: 'store the data elsewhere and put a reference into the job; set sizeLimit when adding jobs',
  },
  long_events: {
    queue: longEvents,
    finds: 'the stream of events has 50,000 entries, or twice as many as it may have',
    reason: 'each entry takes about 100 bytes, and those of completed jobs contain the results',
    advice: 'set streams: { events: { maxLen } } on the Queue, or call queue.trimEvents()',
  },
} as const satisfies Readonly<Record<string, ServerCheck | QueueCheck>>

export type BullmqCheck = keyof typeof BULLMQ_CHECKS
