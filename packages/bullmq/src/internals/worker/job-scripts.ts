// Writes to a job or its queue what BullMQ's own transitions do not write, over the connection that fetched the job.
import { BullpenError } from '@bullpen/contract'
import { FOLLOW_UP_LETTERS, MAX_FOLLOW_UP_BYTES, MAX_FOLLOW_UPS, NEXT_LETTER } from '@bullpen/contract/internal'
import type { PayloadCodec } from '@bullpen/engine'
import { decodeStep, encodeStep, type RegisteredKind, type StoredSteps } from '@bullpen/engine/internal'
import type { IQueueBackend, Job, RedisClient, Worker } from 'bullmq'
import { runScriptOnClient } from '../../scripts/script.ts'
import { type BullpenBackend, isBullpenBackend } from '../../store/backend.ts'
import {
  keepStepScript,
  readStepsScript,
  registerTaskScript,
  throttleKeyScript,
  throttleScript,
  unthrottleScript,
} from '../../store/scripts.ts'
import { THROTTLE_MARK } from '../throttle.ts'

/** The prefix of a finished step's field in the job's hash. The field holds the step's result as JSON. */
export const STEP_FIELD = 'once:'

/** The first letter of a registration's line. Lines of compensations have a field of their own, and no letter. */
const REGISTERED_LETTERS = {
  compensation: '',
  failure: FOLLOW_UP_LETTERS.failure,
  end: FOLLOW_UP_LETTERS.end,
} as const satisfies Record<RegisteredKind, string>

/** How long after the end of a throttle its placeholder rate is removed, in ms. */
const UNTHROTTLE_AFTER_MS = 100
/** The longest delay that a Node timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Returns access to the results of the job's finished steps. The results are fields of the job's own hash, so that they are
 * removed with the job.
 */
export function stepsOf(job: Job, token: string, codec: PayloadCodec | undefined): StoredSteps {
  const key = `${job.queueQualifiedName}:${job.id}`
  return {
    async read() {
      const stored = await runScriptOnClient(await redisOf(job), readStepsScript, { job: key }, { prefix: STEP_FIELD })
      return new Map(
        Array.from({ length: stored.length / 2 }, (_, i) => [
          stored[2 * i] ?? '',
          decodeStep(stored[2 * i + 1] ?? '', codec),
        ]),
      )
    },
    async keep(step, result) {
      const text = encodeStep(result, codec)
      const args = { token, fencingToken: job.attemptsStarted, field: STEP_FIELD + step, result: text }
      const kept = await runScriptOnClient(await redisOf(job), keepStepScript, { job: key }, args)
      return kept === null ? undefined : decodeStep(kept, codec)
    },
    async register(kind, identity, template) {
      const keys = { job: key, totals: `${job.queueQualifiedName}:totals` }
      const given = { token, fencingToken: job.attemptsStarted, letter: REGISTERED_LETTERS[kind], identity, template }
      const limits = { maxLines: MAX_FOLLOW_UPS, maxBytes: MAX_FOLLOW_UP_BYTES }
      const args = { ...given, ...limits, nextLetter: NEXT_LETTER, mark: '+' }
      return runScriptOnClient(await redisOf(job), registerTaskScript, keys, args)
    },
  }
}

/**
 * Throttles the job's queue: once the returned promise resolves, none of the queue's tasks is started for `ms`. A longer throttle
 * extends a shorter one. Does nothing on a backend other than Redis.
 */
export async function throttleQueue(job: Job, ms: number): Promise<void> {
  const client = await clientOf(job)
  if (client === undefined) return
  const keys = { limiter: `${job.queueQualifiedName}:limiter`, meta: `${job.queueQualifiedName}:meta` }
  const args = { duration: ms, mark: THROTTLE_MARK, hasOwnRate: hasOwnRate(job) ? '1' : '' }
  await runScriptOnClient(client, throttleScript, keys, args)
  const release = (): void => {
    // If the worker has closed by then, the leader removes the placeholder.
    runScriptOnClient(client, unthrottleScript, keys, { mark: THROTTLE_MARK }).catch(() => {})
  }
  setTimeout(release, Math.min(ms + UNTHROTTLE_AFTER_MS, MAX_TIMER_MS)).unref()
}

/**
 * Throttles the job's concurrency key: once the returned promise resolves, none of the key's tasks is started for `ms`. A longer throttle
 * extends a shorter one. If the job takes no turns, throttles its queue.
 */
export async function throttleKeyOf(job: Job, ms: number): Promise<void> {
  const client = await clientOf(job)
  if (client === undefined) return
  const base = `${job.queueQualifiedName}:`
  const isThrottled = await runScriptOnClient(client, throttleKeyScript, { job: base + job.id }, { base, duration: ms })
  if (isThrottled === 0) await throttleQueue(job, ms)
}

/** @throws BullpenError `invalid_configuration` if the backend of the job's queue is not Redis. */
async function redisOf(job: Job): Promise<RedisClient> {
  const client = await clientOf(job)
  if (client !== undefined) return client
  throw new BullpenError(
    'invalid_configuration',
    `ctx.once, ctx.compensate, ctx.onFailure and ctx.onEnd need Redis, but the backend of queue '${job.queueName}' is not Redis`,
  )
}

/**
 * Returns the job's backend. The property `backend` is protected in BullMQ's types. BullMQ's own scripts also get their client
 * from this backend.
 */
export function backendOf(job: Job): IQueueBackend {
  return (job as unknown as { backend: IQueueBackend }).backend
}

/** Returns the job's backend, if it is Bullpen's. */
export function bullpenBackendOf(job: Job): BullpenBackend | undefined {
  const backend = backendOf(job)
  return isBullpenBackend(backend) ? backend : undefined
}

export function clientOf(job: Job): Promise<RedisClient> | undefined {
  return (backendOf(job) as { client?: Promise<RedisClient> }).client
}

/** Returns the Worker that fetched the job. The property that holds the Worker, `queue`, is protected in BullMQ's types. */
export function workerOf(job: Job): Worker {
  return (job as unknown as { queue: Worker }).queue
}

/** Returns whether the Worker has a `limiter` option. That option uses the same counter, and a rate in `meta` would override it. */
function hasOwnRate(job: Job): boolean {
  return workerOf(job).opts.limiter !== undefined
}
