// Watches the schedules of any queue for the leader: reports when a schedule gets into trouble and when the trouble is over, and stores
// which schedules are in trouble, so that every process can count them.
import type { ScheduleTrouble } from '@bullpen/contract'
import { SCHEDULE_TROUBLES } from '@bullpen/contract/internal'
import type { PayloadCodec } from '@bullpen/engine'
import {
  countTroubles,
  type ReportedTrouble,
  type ScheduleRecord,
  type Trouble,
  type TroubleCounts,
  troubleChanges,
  troublesOf,
} from '@bullpen/engine/internal'
import { z } from 'zod'
import type { Term } from '../cancel/bulk-canceller.ts'
import { parseJson } from '../codec.ts'
import { type QueueKeys, queueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { reportTroublesScript } from '../store/scripts.ts'
import { lastStatuses } from './run-statuses.ts'
import { parseStored } from './stored-record.ts'

export interface TroubleWatchOptions {
  readonly redis: Commander
  readonly namespace: string
  /** Decodes the schedules' inputs. A schedule whose input cannot be decoded is in trouble. */
  readonly codec: PayloadCodec | undefined
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** How often the schedules of a queue are examined, in ms. Defaults to 30,000. */
  readonly everyMs?: number | undefined
  /** Called when a schedule gets into trouble. The callback must not throw or block. */
  readonly onBegun: (queue: string, schedule: string, trouble: Trouble) => void
  /** Called when the trouble is over, or the schedule was deleted. The callback must not throw or block. */
  readonly onEnded: (queue: string, schedule: string, trouble: ReportedTrouble) => void
}

const WATCH_EVERY_MS = 30_000

/** About how many schedules are read at a time. */
const PAGE_SIZE = 100

const reportedSchema = z.array(z.object({ kind: z.enum(SCHEDULE_TROUBLES), since: z.number() }))

/**
 * Returns the function that the leader calls for each queue that has schedules. It examines the schedules if that is due, which takes
 * three round trips for every 100 schedules. A trouble is stored only after it was reported, so if this process dies in between, the
 * next leader reports the trouble again.
 */
export function createTroubleWatch(options: TroubleWatchOptions): (queue: string, term: Term) => Promise<void> {
  const { redis, namespace, codec, now, everyMs = WATCH_EVERY_MS, onBegun, onEnded } = options
  const examinedAt = new Map<string, number>()

  const report = async (
    keys: QueueKeys,
    { queue, name, fencing }: { readonly queue: string; readonly name: string; readonly fencing: number },
    troubles: readonly Trouble[],
    before: readonly ReportedTrouble[],
  ): Promise<void> => {
    const { begun, ended, reported } = troubleChanges(troubles, before)
    if (begun.length === 0 && ended.length === 0) return
    for (const each of begun) onBegun(queue, name, each)
    for (const each of ended) onEnded(queue, name, each)
    const stored = reported.length === 0 ? '' : JSON.stringify(reported)
    await runScript(redis, reportTroublesScript, keys, { fencing, name, troubles: stored })
  }

  return async (queue, { fencing, isOver }) => {
    const startedAt = performance.now()
    if (startedAt - (examinedAt.get(queue) ?? Number.NEGATIVE_INFINITY) < everyMs) return
    const keys = queueKeys(namespace, queue)
    const left = await readReported(redis, keys)
    const seen = new Set<string>()
    for await (const records of pagesOf(redis, keys, codec)) {
      const statuses = await lastStatuses(redis, keys, records)
      for (const record of records) {
        if (isOver()) return
        const { name, lastRun } = record
        // A scan may return a schedule twice.
        if (seen.has(name)) continue
        seen.add(name)
        const troubles = troublesOf({ record, lastStatus: statuses.get(lastRun?.id ?? ''), now: now() })
        await report(keys, { queue, name, fencing }, troubles, left.get(name) ?? [])
      }
    }
    for (const [name, before] of left) {
      if (isOver()) return
      if (!seen.has(name)) await report(keys, { queue, name, fencing }, [], before)
    }
    examinedAt.set(queue, startedAt)
  }
}

/** Returns how many of a queue's schedules were in each kind of trouble when the leader last examined them. Takes one round trip. */
export async function readTroubleCounts(redis: Commander, keys: QueueKeys): Promise<TroubleCounts> {
  return countTroubles([...(await readReported(redis, keys)).values()].flat())
}

async function readReported(redis: Commander, keys: QueueKeys): Promise<Map<string, readonly ReportedTrouble[]>> {
  const stored = Object.entries(await redis.hgetall(keys.scheduleTroubles))
  return new Map(
    stored.map(([name, text]): [string, readonly { kind: ScheduleTrouble; since: number }[]] => {
      const parsed = reportedSchema.safeParse(parseJson(text))
      return [name, parsed.success ? parsed.data : []]
    }),
  )
}

async function* pagesOf(
  redis: Commander,
  keys: QueueKeys,
  codec: PayloadCodec | undefined,
): AsyncGenerator<readonly ScheduleRecord[]> {
  let cursor = '0'
  do {
    const [next, entries] = await redis.hscan(keys.schedules, cursor, 'COUNT', PAGE_SIZE)
    // The names and the values alternate.
    yield entries.flatMap((text, i) => (i % 2 === 1 ? (parseStored(text, codec) ?? []) : []))
    cursor = next
  } while (cursor !== '0')
}
