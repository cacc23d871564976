// Drill `full`: producers and callers of an API store tasks as fast as they can in a Redis with little memory. Once they reach the
// watermark, another client uses up the remaining memory, and later frees it.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Drill } from '../../drill.ts'
import { startApi } from '../../environment/drill-api.ts'
import { type DrillRedis, openRedis, withDrillSetup } from '../../environment/drill-setup.ts'
import type { System } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { type LoadInProgress, startLoad } from '../../full/load.ts'
import { work } from '../../programs/catalogue.ts'
import type { Scale } from '../../report.ts'

/** `callers`: how many tasks each producer, and the API, are asked to store at once. `fullMs`: how long Redis stays full. */
const PLANS = {
  small: { maxMemoryMb: 40, producers: 2, callers: 8, processes: 2, concurrency: 10, fullMs: 5_000 },
  full: { maxMemoryMb: 100, producers: 4, callers: 16, processes: 2, concurrency: 20, fullMs: 8_000 },
} as const
type Plan = (typeof PLANS)[Scale]

/** How long the load continues after the first refusals, in ms. */
const REFUSED_MS = 2_000
const FIRST_REFUSAL_WITHIN_MS = 60_000
const SAMPLE_MS = 20
const FILLER_BYTES = 262_144

const MOST_PERCENT = 85
const DONE_WITHIN_MS = 10_000
const IDLE_WITHIN_MS = 120_000

export const full: Drill = {
  name: 'full',
  target: () => ({
    text: `tasks are refused, over HTTP with 503, at no more than ${MOST_PERCENT}% of maxmemory, Redis refuses none of Bullpen's commands, 0 lost, 0 restarted, 0 attempts used up, metrics equal the ledger, and all accepted tasks are done <= 10 s after memory is freed`,
    atMost: {
      memoryPercent: MOST_PERCENT,
      refusedByRedis: 0,
      doneAfterRoomMs: DONE_WITHIN_MS,
      restarted: 0,
      effectsRepeated: 0,
      attemptsUsed: 0,
      miscounted: 0,
    },
  }),
  known: { doneWhileFull: 0, errorsIn8s: 18_000 },
  comparable: false, // it has no admission
  run: (scale, _seed, system) => fillUp(PLANS[scale], system),
}

async function fillUp(plan: Plan, system: System): Promise<Figures> {
  const { maxMemoryMb, processes, concurrency, fullMs } = plan
  const config = { pools: { [work.queue]: concurrency } }
  const open = () => openLimited(maxMemoryMb)
  return withDrillSetup(
    system,
    config,
    async ({ redisUrl, namespace, fleet, untilIdle, records }) => {
      await Promise.all(Array.from({ length: processes }, () => fleet.start()))
      const other = new Redis(redisUrl)
      // The only queue may fill Redis up to the watermark. By default, a queue is refused more than half of the memory.
      const store = { redisUrl, namespace, queueMemoryShare: 100 }
      const api = await startApi(store)
      const load = startLoad({ ...plan, ...store, api })
      try {
        const memoryPercent = await highestUntilRefused(other, load)
        const refusedToFiller = await fill(other, fullMs)
        const accepted = await load.stop()
        const refused = (await refusedByRedis(other)) - refusedToFiller
        await makeRoom(other)
        const roomAt = performance.now()
        await untilIdle(IDLE_WITHIN_MS)
        const doneAfterRoomMs = Math.round(performance.now() - roomAt)
        const ledger = await records(accepted)
        return {
          ...figuresOf({ accepted, ...ledger, interruptions: [], exits: [] }),
          memoryPercent,
          refusedOverHttp: load.refused().overHttp,
          refusedByRedis: refused,
          doneAfterRoomMs,
        }
      } finally {
        await load.stop()
        await api.close()
        other.disconnect()
      }
    },
    open,
  )
}

async function openLimited(maxMemoryMb: number): Promise<DrillRedis> {
  const redis = await openRedis()
  const connection = new Redis(redis.url)
  await connection.config('SET', 'maxmemory', `${maxMemoryMb}mb`)
  connection.disconnect()
  return redis
}

/**
 * Resolves some time after both the producers and the API have refused a task, with the largest share of its memory that Redis has used,
 * in percent.
 *
 * @throws Error if one of them does not refuse a task in time.
 */
async function highestUntilRefused(redis: Redis, load: LoadInProgress): Promise<number> {
  const deadline = performance.now() + FIRST_REFUSAL_WITHIN_MS
  let endsAt = Number.POSITIVE_INFINITY
  let highest = 0
  while (performance.now() < endsAt) {
    const info = await redis.info('memory')
    highest = Math.max(highest, (100 * numberIn(info, 'used_memory')) / numberIn(info, 'maxmemory'))
    const { byProducers, overHttp } = load.refused()
    if (byProducers > 0 && overHttp > 0) endsAt = Math.min(endsAt, performance.now() + REFUSED_MS)
    else if (performance.now() > deadline)
      throw new Error(
        `refused in ${FIRST_REFUSAL_WITHIN_MS} ms: ${byProducers} tasks by producers, ${overHttp} by the API`,
      )
    await sleep(SAMPLE_MS)
  }
  return Math.round(highest * 10) / 10
}

/** Uses up Redis's memory for this long. Returns how many of this function's own commands Redis has refused. */
async function fill(redis: Redis, forMs: number): Promise<number> {
  const until = performance.now() + forMs
  let refused = 0
  for (let n = 0; performance.now() < until; n++) {
    const isStored = await redis.set(`filler:${n}`, 'x'.repeat(FILLER_BYTES)).then(
      () => true,
      () => false,
    )
    if (isStored) continue
    refused++
    await sleep(SAMPLE_MS)
  }
  if (refused === 0) throw new Error('Redis was never full')
  return refused
}

async function makeRoom(redis: Redis): Promise<void> {
  await redis.del(await redis.keys('filler:*'))
}

/** Returns how many commands from any client Redis has refused because it was full. */
async function refusedByRedis(redis: Redis): Promise<number> {
  const [, count = '0'] = /^errorstat_OOM:count=(\d+)/m.exec(await redis.info('errorstats')) ?? []
  return Number(count)
}

function numberIn(info: string, field: string): number {
  return Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1])
}
