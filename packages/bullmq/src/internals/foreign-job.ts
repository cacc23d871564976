// Jobs that somebody else than Bullpen has added: how they are told apart, and read as tasks.

import { DEFAULT_RETRY } from '@bullpen/contract'
import { ENVELOPE_VERSION } from '@bullpen/contract/internal'
import type { FetchedTask, Registry, RunnerHost } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { Job } from 'bullmq'
import { taken } from '../processor.ts'
import { BACKOFF_TYPE } from './backoff-strategy.ts'

/** Every task that Bullpen enqueues asks for its backoff; data alone may come from anybody. */
export function isOwnJob({ opts, data }: Job): boolean {
  const { backoff } = opts
  const isMarked = typeof backoff === 'object' && backoff.type === BACKOFF_TYPE
  return isMarked && typeof data === 'object' && data !== null && typeof data.v === 'number'
}

/** A job that somebody else has added: its data is the input, and what it does not say, its task's definition does. */
export function fetchedForeignJob(job: Job, token: string, registry: Registry): FetchedTask {
  const definition = registry.get(job.name)?.definition
  return {
    ...taken(job, token),
    envelope: { v: ENVELOPE_VERSION, version: definition?.version ?? 1, input: job.data },
    // BullMQ stores 0 for a job that was added without.
    maxAttempts: job.opts.attempts || (definition?.retry ?? DEFAULT_RETRY).maxAttempts,
  }
}

/** BullMQ numbers the jobs of each queue from 1: their children are told apart by more than that number. */
export function saltedBy({ queueQualifiedName, id, timestamp }: Job): RunnerHost['sha256'] {
  return (text) => sha256(JSON.stringify([queueQualifiedName, id, timestamp, text]))
}
