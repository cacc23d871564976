// Sets up a drill: its own Redis, a broker, a fleet of workers, and a ledger outside the system.

import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { WorkerConfig } from '@bullpen/config'
import { isFinal, type Log, type TaskId } from '@bullpen/contract'
import { Redis } from 'ioredis'
import { type Effect, readEffects, wholeLines } from '../ledger/effects.ts'
import type { End } from '../ledger/ledger.ts'
import { type AttemptCounts, readCounts } from '../ledger/worker-metrics.ts'
import { catalogue, work } from '../programs/catalogue.ts'
import { type Fleet, openFleet, type System, type WorkerProcess } from './fleet.ts'
import { countOrphans } from './orphan-count.ts'
import { PATIENT_MS } from './patience.ts'
import { followQueue, type Move, type Requeue } from './queue-events.ts'

export interface DrillSetup {
  readonly redisUrl: string
  readonly broker: BullmqBroker
  readonly fleet: Fleet
  /** Opens a further fleet with the same ledger, whose workers run another program. Their names begin with the program's. */
  fleetOf(program: 'bullmq' | 'attached'): Fleet
  readonly namespace: string
  /** Returns the worker that leads the namespace, or undefined if there is no leader, as with plain BullMQ. */
  leader(): Promise<WorkerProcess | undefined>
  /** Returns whether the process with this id leads the namespace. */
  leads(pid: number): Promise<boolean>
  /** Returns the newest leader's number, which increases with each new leader. */
  fencing(): Promise<number>
  /** Resolves when this worker next starts a task. @throws Error if it does not within a minute, because a fault would then hit nothing. */
  nextStart(worker: string): Promise<void>
  /**
   * Resolves when no task is waiting or running, or after `withinMs`. In the latter case, the figures show which tasks are
   * missing.
   */
  untilIdle(withinMs: number): Promise<void>
  /** Returns the ledger so far. */
  effects(): readonly Effect[]
  /** Returns the JSON lines of the workers' logs so far. */
  logLines(): readonly Readonly<Record<string, unknown>>[]
  /** Tells the workers to shut down, and returns the whole ledger and how the accepted tasks ended. */
  records(accepted: readonly string[]): Promise<Records>
}

export interface Records {
  readonly ends: ReadonlyMap<string, End>
  readonly completions: ReadonlyMap<string, number>
  readonly failures: ReadonlyMap<string, number>
  readonly requeues: readonly Requeue[]
  /** The adds and the starts of all tasks. The order is Redis's within each queue. */
  readonly moves: readonly Move[]
  readonly effects: readonly Effect[]
  /** The counters of each worker that was not killed. Undefined for plain BullMQ. */
  readonly counts: ReadonlyMap<string, AttemptCounts> | undefined
}

export interface DrillRedis {
  readonly url: string
  /** Defaults to a new one. */
  readonly namespace?: string
  /** The queues that the drill uses. Defaults to the queue of `work`. */
  readonly queues?: readonly string[]
  end(): Promise<void>
}
type TemporaryRedis = (name: string, options: object) => Promise<DrillRedis>

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }
const POLL_MS = 20
const METRICS = '.metrics'
/** How long the workers may take to shut down when the drill is over. The counters of a killed worker are missing. */
const END_WITHIN_MS = 120_000
const NEXT_START_MS = 60_000
const CONCURRENT_READS = 100

/** Opens the setup, on one Redis server unless another Redis is given, and closes it even if the drill fails. */
export async function withDrillSetup<T>(
  system: System,
  config: WorkerConfig,
  act: (setup: DrillSetup) => Promise<T>,
  open: () => Promise<DrillRedis> = openRedis,
): Promise<T> {
  const redis = await open()
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-ledger-'))
  const [ledger, log] = [join(dir, 'effects.log'), join(dir, 'workers.log')]
  const { namespace = newNamespace(), queues = [work.queue] } = redis
  const broker = openBroker({
    redisUrl: redis.url,
    namespace,
    queues: catalogue.queues,
    sizeLimit: 10_000,
    commandTimeoutMs: PATIENT_MS,
    log: silent,
    // A worker must be the leader, because the faults are meant to affect the leader as well.
    leads: false,
  })
  const control = blockingConnection(redis.url, silent)
  const fleetOptions = {
    ledger,
    metricsOf: (worker: string) => join(dir, `${worker}${METRICS}`),
    log,
    config: { redisUrl: redis.url, namespace, port: 0, logLevel: 'warn', ...config },
  } as const
  const fleet = openFleet({ ...fleetOptions, system })
  const fleets = [fleet]
  const events = queues.map((queue) => followQueue(redis.url, `{${namespace}.${queue}}:${queue}:events`))
  const leaseHolder = async () => {
    const holder = await control.get(`{${namespace}}:leader:lease`)
    return (pid: number): boolean => holder?.includes(`:${pid}:`) ?? false
  }
  try {
    await reachable(broker)
    const result = await act({
      redisUrl: redis.url,
      namespace,
      broker,
      fleet,
      fleetOf(program) {
        const opened = openFleet({ ...fleetOptions, system: program, names: `${program}-` })
        fleets.push(opened)
        return opened
      },
      async leader() {
        const holds = await leaseHolder()
        return fleet.workers.find(({ pid }) => holds(pid))
      },
      leads: async (pid) => (await leaseHolder())(pid),
      fencing: async () => Number(await control.get(`{${namespace}}:leader:fencing`)),
      async nextStart(worker) {
        const known = existsSync(ledger) ? statSync(ledger).size : 0
        const deadline = performance.now() + NEXT_START_MS
        const begins = new RegExp(`^start \\S+ \\d+ ${worker} `, 'm')
        while (performance.now() < deadline) {
          if (existsSync(ledger) && begins.test(readFileSync(ledger).toString('utf8', known))) return
          await sleep(POLL_MS)
        }
        throw new Error(`worker ${worker} has started no task for ${NEXT_START_MS} ms`)
      },
      async untilIdle(withinMs) {
        const deadline = performance.now() + withinMs
        while (performance.now() < deadline) {
          const counts = await Promise.all(queues.map((queue) => broker.counts(queue))).catch(() => undefined)
          if (
            counts?.every(({ waiting, active, scheduled, retrying }) => waiting + active + scheduled + retrying === 0)
          )
            return
          await sleep(POLL_MS)
        }
      },
      effects: () => readEffects(wholeLines(ledger)),
      logLines: () =>
        wholeLines(log)
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line)),
      async records(accepted) {
        await Promise.all(fleets.map((each) => each.end(END_WITHIN_MS)))
        await Promise.all(events.map((each) => each.close()))
        const effects = readEffects(readFileSync(ledger, 'utf8'))
        // A task may have been stored although its producer did not get a reply and therefore does not count it as accepted.
        const ids = new Set([...accepted, ...effects.map(({ id }) => id)])
        return {
          ends: await endsOf(broker, [...ids]),
          counts: system === 'bullpen' ? countsIn(dir) : undefined,
          completions: new Map(events.flatMap(({ completions }) => [...completions])),
          failures: new Map(events.flatMap(({ failures }) => [...failures])),
          requeues: events.flatMap(({ requeues }) => requeues),
          moves: events.flatMap(({ moves }) => moves),
          effects,
        }
      },
    })
    if (system === 'bullpen') await countOrphans(redis.url, namespace)
    return result
  } catch (error) {
    console.error(readFileSync(log, 'utf8'))
    throw error
  } finally {
    await Promise.all(fleets.map((each) => each.close()))
    await Promise.all(events.map((each) => each.close()))
    await broker.close()
    control.disconnect()
    await redis.end()
    rmSync(dir, { recursive: true, force: true })
  }
}

export function newNamespace(): string {
  return `drill-${randomUUID().slice(0, 8)}`
}

/** Returns the counters that each worker wrote when it shut down, by the worker's name. */
function countsIn(dir: string): ReadonlyMap<string, AttemptCounts> {
  const files = readdirSync(dir).filter((file) => file.endsWith(METRICS))
  return new Map(
    files.map((file) => [file.slice(0, -METRICS.length), readCounts(readFileSync(join(dir, file), 'utf8'))]),
  )
}

/** Starts a separate Redis, because a drill must not put load on the one that REDIS_URL names. */
export async function openRedis(): Promise<DrillRedis> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/temporary.mjs', import.meta.url).href
  const { temporaryRedis } = (await import(script)) as { temporaryRedis: TemporaryRedis }
  const redis = await temporaryRedis('drill', { env: { ...process.env, REDIS_URL: undefined } })
  const connection = new Redis(redis.url)
  // Persistence is off, because no drill stops Redis and the disk should not affect the figures.
  await connection.config('SET', 'appendonly', 'no')
  connection.disconnect()
  return redis
}

/** Waits until the broker accepts commands, because a producer's connection rejects them until it is open. */
async function reachable(broker: BullmqBroker): Promise<void> {
  for (;;) {
    const isOpen = await broker.ping().then(
      () => true,
      () => false,
    )
    if (isOpen) return
    await sleep(POLL_MS)
  }
}

async function endsOf(broker: BullmqBroker, accepted: readonly string[]): Promise<ReadonlyMap<string, End>> {
  const ends = new Map<string, End>()
  for (let i = 0; i < accepted.length; i += CONCURRENT_READS) {
    const records = await Promise.all(accepted.slice(i, i + CONCURRENT_READS).map((id) => broker.find(id as TaskId)))
    for (const record of records) {
      if (record !== undefined && isFinal(record.status)) ends.set(record.id, record)
    }
  }
  return ends
}
