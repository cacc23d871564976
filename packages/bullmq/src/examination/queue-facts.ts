// Reads the facts about one queue of plain BullMQ. Every command only reads, and takes the same time however many jobs the queue has.
import { answersOf } from '../queries/read-together.ts'
import type { Server } from '../redis/server/server-description.ts'
import { type JobFacts, PLACES, type Place, type QueueFacts } from './facts.ts'
import type { FoundQueue } from './queue-search.ts'

/** How many jobs are sampled at each end of each place. */
const SAMPLED = 20
/** How many active jobs are sampled, beginning with those that started first. */
const SAMPLED_ACTIVE = 100
/** BullMQ multiplies the time at which a delayed job is due by this number, and adds a counter. */
const DELAY_STEP = 0x1000
/** Delayed jobs are a little late in a healthy queue as well. */
export const OVERDUE_MS = 60_000
const DEFAULT_MAX_EVENTS = 10_000

/** The key of each place, and its type. BullMQ before version 5 moves the waiting jobs of a paused queue to `paused`. */
const STRUCTURES = {
  waiting: { key: 'wait', isList: true },
  prioritized: { key: 'prioritized', isList: false },
  active: { key: 'active', isList: true },
  delayed: { key: 'delayed', isList: false },
  waitingChildren: { key: 'waiting-children', isList: false },
  completed: { key: 'completed', isList: false },
  failed: { key: 'failed', isList: false },
} as const satisfies Readonly<Record<Place, { readonly key: string; readonly isList: boolean }>>

/** Takes two round trips. `workers` is how many connections of workers the queue has. `now` is the server's time. */
export async function readQueueFacts(
  server: Server,
  { prefix, name }: FoundQueue,
  now: number,
  workers: number | undefined,
): Promise<QueueFacts> {
  const key = (suffix: string): string => `${prefix}:${name}:${suffix}`
  const read = server.pipeline()
  for (const place of PLACES) {
    const { key: suffix, isList } = STRUCTURES[place]
    if (isList) read.llen(key(suffix))
    else read.zcard(key(suffix))
  }
  read.llen(key('paused')).hmget(key('meta'), 'paused', 'opts.maxLenEvents').exists(key('marker')).xlen(key('events'))
  read.zcount(key('delayed'), '-inf', (now - OVERDUE_MS) * DELAY_STEP)
  read.zrange(key('delayed'), '0', '0', 'WITHSCORES').zrange(key('repeat'), '0', '0', 'WITHSCORES')
  for (const { key: suffix, isList } of Object.values(STRUCTURES)) {
    const most = suffix === 'active' ? SAMPLED_ACTIVE : SAMPLED
    // The oldest job of a list is its last one, and that of a set is its first one.
    if (isList) read.lrange(key(suffix), 0, SAMPLED - 1).lrange(key(suffix), -most, -1)
    else read.zrange(key(suffix), '0', `${SAMPLED - 1}`).zrange(key(suffix), `${-SAMPLED}`, '-1')
  }
  const answers = answersOf(await read.exec())
  const lengths = answers.splice(0, PLACES.length) as number[]
  const [paused, meta, marker, events, overdue, firstDelayed, nextScheduled] = answers.splice(0, 7)
  const counts = Object.fromEntries(PLACES.map((place, i) => [place, lengths[i] ?? 0])) as Record<Place, number>
  const [isPaused, maxEvents] = meta as (string | null)[]
  const ids = PLACES.flatMap((place, i) => {
    const sampled = new Set([...(answers[2 * i] as string[]), ...(answers[2 * i + 1] as string[])])
    // Older versions keep their marker in the list of waiting jobs.
    return [...sampled].filter((id) => !id.startsWith('0:')).map((id) => ({ place, id }))
  })
  const firstDue = scoreOf(firstDelayed)
  return {
    prefix,
    name,
    counts: { ...counts, waiting: counts.waiting + (paused as number) },
    isPaused: isPaused != null,
    hasMarker: marker === 1,
    events: { length: events as number, max: Number(maxEvents ?? DEFAULT_MAX_EVENTS) },
    overdue: {
      jobs: overdue as number,
      firstDueAt: firstDue === undefined ? undefined : Math.floor(firstDue / DELAY_STEP),
    },
    nextScheduledAt: scoreOf(nextScheduled),
    workers,
    sample: await readJobs(server, key, ids, now),
  }
}

/** Returns the score of the first entry of a sorted set, or undefined if the set is empty. */
function scoreOf(answer: unknown): number | undefined {
  const [, score] = answer as string[]
  return score === undefined ? undefined : Number(score)
}

/** Takes one round trip. Jobs that no longer exist are left out. */
async function readJobs(
  server: Server,
  key: (suffix: string) => string,
  ids: readonly { readonly place: Place; readonly id: string }[],
  now: number,
): Promise<readonly JobFacts[]> {
  const read = server.pipeline()
  for (const { id } of ids) {
    const job = key(id)
    read.hmget(job, 'timestamp', 'processedOn', 'finishedOn', 'opts', 'failedReason', 'lock')
    read
      .hstrlen(job, 'data')
      .hstrlen(job, 'returnvalue')
      .exists(key(`${id}:lock`))
      .memory('USAGE', job)
  }
  const replies = ids.length === 0 ? [] : ((await read.exec()) ?? [])
  return ids.flatMap(({ place }, i) => {
    const [fields, data, result, lock, memory] = replies.slice(5 * i, 5 * i + 5)
    const [enqueuedAt, startedAt, finishedAt, opts, failedReason, ownLock] = (fields?.[1] ?? []) as (string | null)[]
    if (enqueuedAt == null) return []
    const options = optionsOf(opts)
    const removal = place === 'failed' ? options['removeOnFail'] : options['removeOnComplete']
    return [
      {
        place,
        readyAt: Math.max(Number(enqueuedAt) + (Number(options['delay']) || 0), Number(startedAt ?? 0)),
        startedAt: startedAt == null ? undefined : Number(startedAt),
        finishedAt: finishedAt == null ? undefined : Number(finishedAt),
        maxAttempts: Number(options['attempts'] ?? 1) || 1,
        isRemoved: removal !== undefined && removal !== false,
        // Bullpen stores a lock in the job's hash, with the time when it expires first.
        isLocked: place === 'active' ? lock?.[1] === 1 || Number.parseInt(ownLock ?? '', 10) > now : undefined,
        dataBytes: Number(data?.[1] ?? 0),
        resultBytes: Number(result?.[1] ?? 0),
        // The server may not permit this command.
        memoryBytes: typeof memory?.[1] === 'number' ? memory[1] : undefined,
        failedReason: failedReason ?? undefined,
      },
    ]
  })
}

function optionsOf(text: string | null | undefined): Readonly<Record<string, unknown>> {
  try {
    const options: unknown = JSON.parse(text ?? '{}')
    return typeof options === 'object' && options !== null ? (options as Readonly<Record<string, unknown>>) : {}
  } catch {
    return {}
  }
}
