// Sets up a drill of the example's API and worker as they are shipped: their own Redis, an API key, and a log of their output.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import type { Log } from '@bullpen/contract'
import { catalogue } from '@bullpen/tasks'
import { openRedis } from './drill-setup.ts'
import { countOrphans } from './orphan-count.ts'
import { PATIENT_MS } from './patience.ts'
import { followQueue, type QueueEvents } from './queue-events.ts'
import { openPrograms, type Programs } from './shipped-programs.ts'

/** The programs' default namespace. */
export const NAMESPACE = 'bullpen'

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }
const SIZE_LIMIT = 10_000
/** How much of the programs' output is printed if the drill fails, in characters. */
const PRINTED_LOG = 20_000

export interface ProgramsSetup {
  readonly redisUrl: string
  readonly apiKey: string
  readonly programs: Programs
  /**
   * A broker that is connected to Redis directly, so that the drill sees what is stored while the programs get no replies. Rejects
   * commands until its connection is open.
   */
  readonly broker: BullmqBroker
  /** The events of the drill's queue. */
  readonly events: QueueEvents
}

export interface ProgramsOptions {
  readonly drill: string
  /** The queue that the drill uses. */
  readonly queue: string
  /** Settings of the programs in addition to those of every drill. */
  readonly env?: Readonly<Record<string, string>>
}

/** Closes everything when `act` has ended. If `act` fails, the end of the programs' output is printed. */
export async function withPrograms<T>(
  { drill, queue, env = {} }: ProgramsOptions,
  act: (setup: ProgramsSetup) => Promise<T>,
): Promise<T> {
  await using opened = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), `bullpen-drill-${drill}-`))
  opened.defer(() => rmSync(dir, { recursive: true, force: true }))
  const redis = opened.adopt(await openRedis(), ({ end }) => end())
  const redisUrl = redis.url
  const options = {
    redisUrl,
    namespace: NAMESPACE,
    queues: catalogue.queues,
    sizeLimit: SIZE_LIMIT,
    log: silent,
    commandTimeoutMs: PATIENT_MS,
  }
  const broker = opened.adopt(openBroker({ ...options, leads: false }), (each) => each.close())
  const key = `{${NAMESPACE}.${queue}}:${queue}:events`
  const events = opened.adopt(followQueue(redisUrl, key), (each) => each.close())
  const log = join(dir, 'programs.log')
  const apiKey = randomBytes(16).toString('hex')
  const common = {
    REDIS_URL: redisUrl,
    BULLPEN_API_KEYS: apiKey,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_WORKER_PORT: '0',
  }
  const programs = opened.adopt(openPrograms({ log, env: { ...common, ...env } }), (each) => each.close())
  try {
    const result = await act({ redisUrl, apiKey, programs, broker, events })
    await countOrphans(redisUrl, NAMESPACE)
    return result
  } catch (error) {
    console.error(readFileSync(log, 'utf8').slice(-PRINTED_LOG))
    throw error
  }
}
