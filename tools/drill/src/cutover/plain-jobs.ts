// The jobs of a plain BullMQ queue that is cut over, what should become of each, and what has become of it according to Redis.
import type { JobsOptions } from 'bullmq'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { z } from 'zod'
import { type Work, work } from '../programs/catalogue.ts'

export interface PlainJob {
  readonly input: z.input<Work['input']>
  readonly options: JobsOptions
  /** Whether its first attempt fails. */
  readonly fails: boolean
  /** Where the job is in the end. A removed one is nowhere. */
  readonly outcome: Outcome
}

export type Outcome = 'completed' | 'failed' | 'removed'

/** A job that fails in its first attempt, and in no other. */
const AGAIN = { again: { by: 'retry', afterMs: 500 } } as const
const RETRY: JobsOptions = { attempts: 3, backoff: { type: 'fixed', delay: AGAIN.again.afterMs } }

/** Every tenth job is of the same kind. */
const KINDS: readonly ((
  n: number,
  delayMs: number,
) => Omit<PlainJob, 'input' | 'fails'> & { readonly fails?: true })[] = [
  () => ({ options: { attempts: 1 }, fails: true, outcome: 'failed' }),
  () => ({ options: RETRY, fails: true, outcome: 'completed' }),
  (n, delayMs) => ({ options: { delay: 1 + ((n * 7_919) % delayMs) }, outcome: 'completed' }),
  (n) => ({ options: { ...RETRY, priority: 1 + (n % 7) }, outcome: 'completed' }),
  () => ({ options: { removeOnComplete: true }, outcome: 'removed' }),
  () => ({ options: { attempts: 1, removeOnFail: true }, fails: true, outcome: 'removed' }),
  (n, delayMs) => ({ options: { ...RETRY, delay: 1 + ((n * 104_729) % delayMs) }, fails: true, outcome: 'completed' }),
]
const USUAL: (typeof KINDS)[number] = () => ({ options: {}, outcome: 'completed' })

/** Returns the n-th job, which runs for `ms`. A delayed one is delayed by up to `delayMs`. */
export function plainJob(n: number, { ms, delayMs }: { readonly ms: number; readonly delayMs: number }): PlainJob {
  const { options, fails = false, outcome } = (KINDS[n % 10] ?? USUAL)(n, delayMs)
  return { input: { ms, listens: false, ...(fails && AGAIN) }, options, fails, outcome }
}

const ADDED_AT_ONCE = 1_000

/** Adds the jobs with BullMQ's own scripts, in a queue with the prefix of a namespace. Resolves with the ids, in the order of the jobs. */
export async function addPlainJobs(
  redisUrl: string,
  prefix: string,
  jobs: readonly PlainJob[],
): Promise<readonly string[]> {
  const { hostname, port } = new URL(redisUrl)
  const queue = new Queue(work.queue, { connection: { host: hostname, port: Number(port) }, prefix })
  const ids: string[] = []
  for (let from = 0; from < jobs.length; from += ADDED_AT_ONCE) {
    const some = jobs.slice(from, from + ADDED_AT_ONCE)
    const added = await queue.addBulk(
      some.map(({ input, options }) => ({ name: work.name, data: input, opts: options })),
    )
    ids.push(...added.map(({ id = '' }) => id))
  }
  await queue.close()
  return ids
}

export interface JobEnd {
  readonly outcome: Outcome | 'unfinished'
  readonly attemptsMade: number
}

/** Reads where the jobs are from BullMQ's own keys, which begin with `base`. */
export async function readJobEnds(
  redis: Redis,
  base: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, JobEnd>> {
  const ends = new Map<string, JobEnd>()
  for (let from = 0; from < ids.length; from += ADDED_AT_ONCE) {
    const some = ids.slice(from, from + ADDED_AT_ONCE)
    const read = redis.pipeline()
    for (const id of some) {
      read.zscore(`${base}completed`, id).zscore(`${base}failed`, id).exists(`${base}${id}`).hget(`${base}${id}`, 'atm')
    }
    const replies = ((await read.exec()) ?? []).map(([, reply]) => reply)
    for (const [i, id] of some.entries()) {
      const [completed, failed, exists, attempts] = replies.slice(4 * i, 4 * i + 4)
      const ended = completed !== null ? 'completed' : failed !== null ? 'failed' : undefined
      ends.set(id, { outcome: ended ?? (exists === 1 ? 'unfinished' : 'removed'), attemptsMade: Number(attempts ?? 1) })
    }
  }
  return ends
}
