// What the random operations of the index's model act on: a broker, a team's own Queue, Flow and Workers, and the jobs they hold.
import type { AttemptRecord, TaskId } from '@bullpen/contract'
import type { AttemptResult, Retention, Verdict } from '@bullpen/engine/internal'
import { FlowProducer, Job, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { BrokerOptions } from '../../broker/broker-options.ts'
import { openPatientBroker } from '../../broker/patient-broker.fixture.ts'
import { workersEvents } from '../../events/workers-events.ts'
import { prefixOf, queueKeys } from '../../keys.ts'
import { unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { type CommitHost, commit, deathOf, postpone, release, settleRefusedStart } from '../../processor.ts'
import { createAttemptCounts } from '../../retry-budget/attempt-counts.ts'
import { silent } from '../../setup.fixture.ts'
import { backendFactory } from '../../store/backend.ts'
import { bullpenBackend } from '../../store/bullpen-backend.ts'
import { QUEUE } from './worker.fixture.ts'

/** Short, so that each end removes old tasks. */
export const RETENTION: Retention = {
  completed: { ageMs: 300 },
  dead: { ageMs: 2_000, count: 5 },
  cancelled: { count: 5 },
  expired: { ageMs: 300 },
}

/** A job that a worker of the model has fetched. */
export interface Held {
  readonly job: Job
  readonly token: string
  readonly worker: Worker
}

export type ModelVerdict = Verdict | 'released' | 'postponed'

/** How an attempt ends: with its verdict or, if a plain worker runs it, with what `plain` does. */
type Ending = [
  verdict: (job: Job) => ModelVerdict,
  plain: (job: Job, token: string) => Promise<unknown>,
  /** Called before the verdict is sent. */
  before?: ((id: string) => unknown) | undefined,
  /** What the attempt shows besides its verdict. */
  more?: Partial<AttemptResult>,
]

export type World = Awaited<ReturnType<typeof openWorld>>

/** How long a task waits for a place in quarantine, in ms. */
const POSTPONED_MS = 60_000

/** The options are those of the broker, which may lead by default, and of how long ended tasks are kept. */
export async function openWorld(
  redisUrl: string,
  namespace: string,
  { retention: kept = RETENTION, ...options }: Partial<BrokerOptions> & { readonly retention?: Retention } = {},
) {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  redis.on('error', () => {})
  const broker = openPatientBroker({
    ...{ redisUrl, namespace, queues: [QUEUE], sizeLimit: 10_000, log: silent },
    ...options,
  })
  const [queue] = broker.boardQueues
  if (queue === undefined) throw new Error('the broker has no queue')
  const keys = queueKeys(namespace, QUEUE)
  const connected = { connection: redis, prefix: prefixOf(namespace, QUEUE) }
  const own = { now: Date.now, retention: kept, commands: redis }
  let wanted: readonly TaskId[] = []
  const candidates = { next: () => wanted, fetched() {}, returned() {}, noneWaits: async () => true, stop() {} }
  const flows = new FlowProducer(connected, bullpenBackend())
  /** What each job does that is run. */
  const runs = new Map<string, (job: Job) => Promise<unknown>>()
  const process = async (job: Job): Promise<unknown> => runs.get(job.id ?? '')?.(job)
  const common = {
    ...connected,
    autorun: false,
    skipLockRenewal: true,
    skipStalledCheck: true,
  }
  const retention = { removeOnComplete: { count: 3 }, removeOnFail: { age: 0, count: 2 } }
  const workers = {
    bullpen: new Worker(QUEUE, process, { ...common, name: 'model' }, backendFactory(own)),
    'with candidates': new Worker(QUEUE, process, { ...common, name: 'some' }, backendFactory({ ...own, candidates })),
    plain: new Worker(QUEUE, process, common, bullpenBackend()),
    'plain with retention': new Worker(QUEUE, process, { ...common, ...retention }, bullpenBackend()),
  }
  for (const worker of Object.values(workers)) worker.on('error', () => {})
  await Promise.all(Object.values(workers).map((worker) => worker.waitUntilReady()))
  /** The jobs that the workers hold. */
  const held: Held[] = []
  /** How the commits were settled, in order: 'confirmed', or the reason of the refusal. */
  const settled: string[] = []
  const commitHost: CommitHost = {
    settled: (_, refusal) => settled.push(refusal ?? 'confirmed'),
    codec: undefined,
    attempts: createAttemptCounts(() => performance.now()),
    events: workersEvents(),
  }
  /** Jobs that a plain processor has delayed. */
  const delayedByPlain = new Set<string>()
  let tokens = 0

  const hold = (job: unknown, token: string, worker: Worker): boolean => {
    if (job instanceof Job) held.push({ job, token, worker })
    return job instanceof Job
  }
  const take = (pick: number): Held | undefined => held.splice(pick % Math.max(1, held.length), 1)[0]

  /** An attempt is lost if two checks in a row find its task without a lock. */
  const checkForLost = async (by: keyof typeof workers = 'bullpen'): Promise<void> => {
    for (let twice = 0; twice < 2; twice++) {
      await redis.del(`${keys.base}stalled-check`, `${keys.base}attached-check`)
      await workers[by].getBackend().moveStalledJobsToWait()
    }
  }

  async function end({ job, token, worker }: Held, fetches: boolean, ...how: Ending): Promise<boolean> {
    const [verdict, plain, before, more] = how
    const isOwn = worker === workers.bullpen || worker === workers['with candidates']
    const { id = '' } = job
    runs.set(id, async () => {
      await before?.(id)
      if (!isOwn) return plain(job, token)
      const decided = verdict(job)
      if (decided === 'released') return release(job, token, () => {})
      if (decided === 'postponed') return postpone(job, token, POSTPONED_MS, () => {})
      return commit({ ...resultOf(job, decided), ...more }, job, token, commitHost)
    })
    // BullMQ fails such a job without running it.
    if (isOwn && job.deferredFailure !== undefined)
      settleRefusedStart(job, commitHost.events.death(job, deathOf(job)), (refusal) =>
        settled.push(refusal ?? 'confirmed'),
      )
    hold(await worker.processJob(job, token, () => fetches), token, worker)
    runs.delete(id)
    return true
  }

  /** Fetches a job with one of the workers, and holds it. */
  const fetch = async (by: keyof typeof workers): Promise<boolean> => {
    const token = `model-${tokens++}`
    return hold(await workers[by].getNextJob(token, { block: false }), token, workers[by])
  }

  return {
    ...{ namespace, redis, keys, broker, queue, flows, delayedByPlain, settled, held, fetch },
    /** Fetches one of these tasks, as a worker does that runs only these, and holds it. */
    fetchOneOf(ids: readonly TaskId[]): Promise<boolean> {
      wanted = ids
      return fetch('with candidates')
    },
    /** Runs the processor of a job that is held, and holds the job that its end has fetched. Several may run at a time. */
    async end(pick: number, ...how: Ending): Promise<boolean> {
      const found = take(pick)
      return found !== undefined && end(found, pick % 2 === 0, ...how)
    },
    /** Does the same for a job that is not held any more, because its worker has lost it. */
    endLate: (late: Held, ...how: Ending) => end(late, false, ...how),
    /** Forgets a job that is held, as if its worker had died, and looks for lost attempts. */
    async lose(pick: number): Promise<boolean> {
      const found = take(pick)
      if (found === undefined) return false
      await unlockTasks(redis, keys, found.job.id ?? '')
      await checkForLost(pick % 2 === 0 ? 'bullpen' : 'plain')
      return true
    },
    checkForLost,
    async close(): Promise<void> {
      await Promise.allSettled([...Object.values(workers).map((worker) => worker.close(true)), flows.close()])
      await broker.close()
      redis.disconnect()
    },
  }
}

/** So tight that some retries are held, and released when others have ended. */
const TIGHT_BUDGET = { ratio: 0.1, minRetriesPerSecond: 0.1 }

/** Returns the result of an attempt with this verdict. */
export function resultOf(
  job: Pick<Job, 'id' | 'name' | 'attemptsStarted' | 'attemptsMade'>,
  verdict: Verdict,
): AttemptResult {
  const now = Date.now()
  const reason = {
    completed: undefined,
    retrying: undefined,
    dead: undefined,
    cancelled: 'cancelled',
    expired: 'queue_timeout',
    requeued: 'drain',
    snoozed: 'snoozed',
    lost: 'lock_lost',
  } as const satisfies Record<Verdict['kind'], AttemptRecord['reason']>
  const state = {
    completed: 'DONE_SUCCESS',
    retrying: 'DONE_ERROR',
    dead: 'DONE_ERROR',
    cancelled: 'TERMINATED_STOP_SIGNAL',
    expired: 'TERMINATED_TIMEOUT',
    requeued: 'TERMINATED_CTX_CLOSED',
    snoozed: 'TERMINATED_CTX_CLOSED',
    lost: 'TERMINATED_CTX_CLOSED',
  } as const satisfies Record<Verdict['kind'], AttemptRecord['state']>
  const record = {
    fencingToken: job.attemptsStarted,
    attempt: job.attemptsMade + 1,
    counted: verdict.kind !== 'requeued' && verdict.kind !== 'snoozed',
    state: state[verdict.kind],
    ...(reason[verdict.kind] !== undefined && { reason: reason[verdict.kind] }),
    worker: 'model',
    startedAt: now,
    endedAt: now,
  } as AttemptRecord
  const fields = {
    queue: QUEUE,
    task: job.name,
    id: job.id as TaskId,
    kind: 'long',
    fencingToken: record.fencingToken,
    attempt: record.attempt,
    correlationId: undefined,
    state: record.state,
    reason: record.reason,
    code: undefined,
    error: undefined,
    durationMs: 0,
  } as const
  const event: AttemptResult['event'] =
    verdict.kind === 'lost'
      ? { ...fields, event: 'attempt.commit_refused', refusal: 'lock_lost', verdict: undefined }
      : { ...fields, event: 'attempt.ended', verdict: verdict.kind, delayMs: undefined }
  return { event, verdict, record, error: new Error('the attempt failed'), budget: TIGHT_BUDGET }
}
