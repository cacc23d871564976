// What every drill stands on: a Redis of its own, a broker, a fleet of worker processes, and the ledger outside them.

import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import type { WorkerConfig } from '@bullpen/config'
import { isFinal, type Log, type TaskId } from '@bullpen/contract'
import { Redis } from 'ioredis'
import { type Effect, readEffects } from './ledger/effects.ts'
import type { End } from './ledger/figures.ts'
import { catalogue, work } from './programs/catalogue.ts'
import { type Fleet, makeFleet, type Side } from './programs/fleet.ts'
import { followQueue, type HandBack } from './programs/queue-events.ts'

export interface Stage {
  readonly redisUrl: string
  readonly broker: BullmqBroker
  readonly fleet: Fleet
  /** Resolves at the next start in this process; also after 5 s without one. */
  nextStart(process: string): Promise<void>
  /** Resolves when no task waits or runs any more; also after `withinMs`, for the judge to find what is missing. */
  quiet(withinMs: number): Promise<void>
  /** The ledger as it stands. */
  effects(): readonly Effect[]
  /** What the processes' logs hold by now, of all that are JSON. */
  logLines(): readonly Readonly<Record<string, unknown>>[]
  /** What was written down, and how the accepted tasks ended. */
  records(accepted: readonly string[]): Promise<Records>
}

export interface Records {
  readonly ends: ReadonlyMap<string, End>
  readonly completions: ReadonlyMap<string, number>
  readonly handBacks: readonly HandBack[]
  readonly effects: readonly Effect[]
}

interface PrivateRedis {
  readonly url: string
  end(): Promise<void>
}
type TemporaryRedis = (name: string, options: object) => Promise<PrivateRedis>

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }
const LOOK_MS = 20
const NEXT_START_MS = 5_000
const FINDS_AT_ONCE = 100

/** Sets the stage, and clears it whatever happens on it. */
export async function onStage<T>(side: Side, config: WorkerConfig, act: (stage: Stage) => Promise<T>): Promise<T> {
  const redis = await openRedis()
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-ledger-'))
  const [ledger, log] = [join(dir, 'effects.log'), join(dir, 'workers.log')]
  const namespace = `drill-${randomUUID().slice(0, 8)}`
  const broker = openBroker({
    redisUrl: redis.url,
    namespace,
    queues: catalogue.queues,
    sizeLimit: 10_000,
    log: silent,
  })
  const fleet = makeFleet({
    ledger,
    log,
    side,
    config: { redisUrl: redis.url, namespace, port: 0, logLevel: 'warn', ...config },
  })
  const events = followQueue(redis.url, `{${namespace}.${work.queue}}:${work.queue}:events`)
  try {
    await reachable(broker)
    return await act({
      redisUrl: redis.url,
      broker,
      fleet,
      async nextStart(process) {
        const known = existsSync(ledger) ? statSync(ledger).size : 0
        const deadline = performance.now() + NEXT_START_MS
        const begins = new RegExp(`^start \\S+ \\d+ ${process} `, 'm')
        while (performance.now() < deadline) {
          if (existsSync(ledger) && begins.test(readFileSync(ledger).toString('utf8', known))) return
          await sleep(LOOK_MS)
        }
      },
      async quiet(withinMs) {
        const deadline = performance.now() + withinMs
        while (performance.now() < deadline) {
          const busy = await broker.counts(work.queue).catch(() => undefined)
          if (busy !== undefined && busy.waiting + busy.active + busy.scheduled === 0) return
          await sleep(LOOK_MS)
        }
      },
      effects: () => (existsSync(ledger) ? readEffects(wholeLines(ledger)) : []),
      logLines: () =>
        wholeLines(log)
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line)),
      async records(accepted) {
        await events.close()
        return {
          ends: await endsOf(broker, accepted),
          completions: events.completions,
          handBacks: events.handBacks,
          effects: readEffects(readFileSync(ledger, 'utf8')),
        }
      },
    })
  } catch (error) {
    console.error(readFileSync(log, 'utf8'))
    throw error
  } finally {
    await fleet.close()
    await events.close()
    await broker.close()
    await redis.end()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** A line may be on its way. */
function wholeLines(file: string): string {
  const text = readFileSync(file, 'utf8')
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

/** Whatever REDIS_URL names is not ours to load. */
export async function openRedis(): Promise<PrivateRedis> {
  // The scripts are plain JavaScript without types: imported by address, so that the compiler doesn't look for any.
  const script = new URL('../../../scripts/redis/temporary.mjs', import.meta.url).href
  const { temporaryRedis } = (await import(script)) as { temporaryRedis: TemporaryRedis }
  const redis = await temporaryRedis('drill', { env: { ...process.env, REDIS_URL: undefined } })
  const connection = new Redis(redis.url)
  // No drill of these ends Redis, and the disk is not what they measure.
  await connection.config('SET', 'appendonly', 'no')
  connection.disconnect()
  return redis
}

/** A producer's connection refuses commands until it is there. */
async function reachable(broker: BullmqBroker): Promise<void> {
  for (;;) {
    const there = await broker.ping().then(
      () => true,
      () => false,
    )
    if (there) return
    await sleep(LOOK_MS)
  }
}

async function endsOf(broker: BullmqBroker, accepted: readonly string[]): Promise<ReadonlyMap<string, End>> {
  const ends = new Map<string, End>()
  for (let i = 0; i < accepted.length; i += FINDS_AT_ONCE) {
    const records = await Promise.all(accepted.slice(i, i + FINDS_AT_ONCE).map((id) => broker.find(id as TaskId)))
    for (const record of records) {
      if (record !== undefined && isFinal(record.status)) ends.set(record.id, record)
    }
  }
  return ends
}
