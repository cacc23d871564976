// Encodes a job that a team's own Queue or FlowProducer adds as the arguments that the scripts read (lua/includes/bullmq/own-adds.lua).
import { type JobJson, type JobsOptions, optsEncodeMap, type ParentKeyOpts } from 'bullmq'
import { RESERVED_IDS } from '../keys.ts'

/** BullMQ passes no id if the job is to get the next number. */
interface OwnJob {
  readonly job: JobJson
  readonly jobId: string | undefined
  readonly parentKeyOpts?: ParentKeyOpts
}

/**
 * `base` is the prefix of the keys of the job's queue.
 * @throws {Error} if the job can't be stored
 */
export function ownJobArguments(base: string, { job, jobId, parentKeyOpts = {} }: OwnJob): readonly string[] {
  const { delay, priority, lifo, deduplication } = job.opts
  if (jobId && RESERVED_IDS.includes(` ${jobId} `)) {
    throw new Error(`the job id '${jobId}' is the name of one of the queue's keys; use another id`)
  }
  if (!Number.isFinite(Number(delay ?? 0))) throw new Error(`the delay of job '${job.name}' is not finite`)
  const fields: string[] = []
  const add = (name: string, value: string | number | undefined): void => {
    if (value) fields.push(name, `${value}`)
  }
  add('delay', delay)
  add('priority', priority)
  if (lifo) add('lifo', '1')
  if (parentKeyOpts.addToWaitingChildren) add('hasChildren', '1')
  if (deduplication) add('deduplication', stored(deduplication))
  add('repeatKey', job.repeatJobKey)
  if (job.parentKey) {
    add('parentKey', job.parentKey)
    add('parent', stored(job.parent ?? {}))
  }
  add('siblings', parentKeyOpts.parentDependenciesKey)
  const more = [`${fields.length / 2}`, ...fields]
  // BullMQ has the time from the machine's clock, unless it is an option of the job.
  const createdAt = job.opts.timestamp ? `${job.timestamp}` : ''
  return [base, jobId ?? '', job.name, job.data, storedOptions(job.opts), createdAt, ...more]
}

/** Returns the options as BullMQ stores them, which has shorter names for some of them. */
export function storedOptions({ telemetry, ...opts }: JobsOptions): string {
  const names: Readonly<Record<string, string>> = optsEncodeMap
  const renamed = Object.entries(opts).map(([name, value]) => [names[name] ?? name, value] as const)
  return stored({ ...Object.fromEntries(renamed), tm: telemetry?.metadata, omc: telemetry?.omitContext })
}

/** As in BullMQ, what is null is not stored. */
export function stored(value: object): string {
  return JSON.stringify(value, (_, each: unknown) => each ?? undefined)
}
