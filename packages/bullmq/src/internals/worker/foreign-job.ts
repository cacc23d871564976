// Recognises jobs that were added with BullMQ's own `queue.add`, and reads them as tasks.

import { DEFAULT_RETRY } from '@bullpen/contract'
import { ENVELOPE_VERSION } from '@bullpen/contract/internal'
import type { PayloadCodec } from '@bullpen/engine'
import type { FetchedTask, Registry, RunnerHost } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { Job } from 'bullmq'
import { toFetchedTask } from '../../processor.ts'

/** The option of every job that Bullpen adds. BullMQ keeps options that it does not know. */
export const BULLPEN_OPTION = 'bullpen'

/** Returns whether Bullpen enqueued the job. The shape of the data would not be enough proof. */
export function isBullpenJob({ opts, data }: Job): boolean {
  return BULLPEN_OPTION in opts && typeof data === 'object' && data !== null && typeof data.v === 'number'
}

/** Reads the job as a task whose input is the job's data. Options that the job lacks are taken from the task definition. */
export function foreignTask(job: Job, token: string, codec: PayloadCodec | undefined, registry: Registry): FetchedTask {
  const definition = registry.get(job.name)?.definition
  return {
    ...toFetchedTask(job, token, codec),
    envelope: { v: ENVELOPE_VERSION, version: definition?.version ?? 1, input: job.data },
    // BullMQ stores 0 for a job that was added without `attempts`.
    maxAttempts: job.opts.attempts || (definition?.retry ?? DEFAULT_RETRY).maxAttempts,
  }
}

/**
 * Returns the hash function for the ids of a job's child tasks. BullMQ numbers each queue's jobs from 1, so these ids are also
 * derived from the queue and the time.
 */
export function foreignSha256({ queueQualifiedName, id, timestamp }: Job): RunnerHost['sha256'] {
  return (text) => sha256(JSON.stringify([queueQualifiedName, id, timestamp, text]))
}
