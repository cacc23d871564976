// Measures the load that idle workers put on Redis: commands and bytes per second, and connections per worker. The workers are idle because
// no task waits, or because none of the tasks that wait may start.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { enqueueBlocked } from './blocked-tasks.ts'
import { type IdleWorkers, nameOf } from './idle-workers.ts'

export interface IdleOptions {
  readonly redisUrl: string
  /** Another checkout to measure as well, with its dependencies installed. */
  readonly checkout: string | undefined
  readonly workers: number
  readonly queues: number
  readonly seconds: number
  /** How many tasks wait that may not start, when the workers of this checkout are measured a second time. */
  readonly blocked: number
}

export interface IdleLoad {
  readonly side: string
  readonly workers: number
  readonly queues: number
  /** How many tasks wait in the first queue and may not start. */
  readonly blocked: number
  /** Commands that clients have sent. Commands that a script runs are not counted. */
  readonly commandsPerSecond: number
  /** Bytes sent to and from Redis. */
  readonly bytesPerSecond: number
  readonly connectionsPerWorker: number
  /** The most frequent commands, with the number per second. Scripts are listed under `evalsha`. */
  readonly commands: Readonly<Record<string, number>>
}

const HERE = join(import.meta.dirname, '../../../..')
const NAMESPACE = 'idle'
const WORKERS_PER_PROCESS = 5
/** How long to wait for every worker to connect, register and find its queues empty, in ms. */
const SETTLE_MS = 15_000
/** How long bytes are counted, in ms. Bytes are counted before commands, because MONITOR itself sends bytes. */
const BYTES_MS = 15_000

/**
 * Yields the load of this checkout, without tasks and with blocked ones, that of the other checkout if there is one, and that
 * of plain BullMQ.
 */
export async function* benchIdle({ checkout, blocked, ...given }: IdleOptions): AsyncGenerator<IdleLoad> {
  const options = { ...given, blocked: 0 }
  yield await measure('this checkout', HERE, options)
  yield await measure('this checkout', HERE, { ...given, blocked })
  if (checkout !== undefined) yield await measure(checkout, resolve(checkout), options)
  yield await measure('plain BullMQ', 'bullmq', options)
}

async function measure(
  name: string,
  side: string,
  { redisUrl, workers, queues, seconds, blocked }: Omit<IdleOptions, 'checkout'>,
): Promise<IdleLoad> {
  const redis = new Redis(redisUrl)
  const before = await connections(redis)
  const children: ChildProcess[] = []
  try {
    for (let first = 0; first < workers; first += WORKERS_PER_PROCESS) {
      const count = Math.min(WORKERS_PER_PROCESS, workers - first)
      const given: IdleWorkers = {
        side,
        redisUrl,
        namespace: NAMESPACE,
        first,
        workers: count,
        queues,
        blocks: blocked > 0,
      }
      const child = fork(join(import.meta.dirname, 'idle-workers.ts'), [JSON.stringify(given)], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      children.push(child)
      const started = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => undefined)])
      if (started === undefined) throw new Error(`a process with ${count} workers of ${name} ended before it was ready`)
    }
    if (blocked > 0) await enqueueBlocked({ redisUrl, namespace: NAMESPACE, queue: nameOf(0) }, blocked)
    await sleep(SETTLE_MS)
    const connectionsPerWorker = ((await connections(redis)) - before) / workers
    const bytesPerSecond = await countBytes(redis)
    const commands = await countCommands(redis, seconds)
    const commandsPerSecond = Object.values(commands).reduce((sum, each) => sum + each, 0)
    return { side: name, workers, queues, blocked, commandsPerSecond, bytesPerSecond, connectionsPerWorker, commands }
  } finally {
    await Promise.all(
      children.map(async (child) => {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await ended
      }),
    )
    await redis.flushdb()
    redis.disconnect()
  }
}

async function connections(redis: Redis): Promise<number> {
  return String(await redis.client('LIST'))
    .trim()
    .split('\n').length
}

async function countBytes(redis: Redis): Promise<number> {
  const read = async (): Promise<number> => {
    const stats = await redis.info('stats')
    return ['input', 'output'].reduce(
      (sum, way) => sum + Number(new RegExp(`total_net_${way}_bytes:(\\d+)`).exec(stats)?.[1]),
      0,
    )
  }
  const first = await read()
  await sleep(BYTES_MS)
  return Math.round(((await read()) - first) / (BYTES_MS / 1_000))
}

/** Returns how many commands of each kind the clients send per second, most frequent first. */
async function countCommands(redis: Redis, seconds: number): Promise<Readonly<Record<string, number>>> {
  const counts = new Map<string, number>()
  const monitor = await redis.monitor()
  monitor.on('monitor', (_time: string, [command = '']: readonly string[], source: string) => {
    if (source !== 'lua') counts.set(command.toLowerCase(), (counts.get(command.toLowerCase()) ?? 0) + 1)
  })
  await sleep(seconds * 1_000)
  monitor.disconnect()
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one)
  return Object.fromEntries(sorted.map(([command, count]) => [command, Number((count / seconds).toFixed(1))]))
}

export function describeIdle({ side, workers, queues, blocked, ...load }: IdleLoad): string {
  const commands = Object.entries(load.commands).map(([command, rate]) => `${command} ${rate}`)
  return [
    `idle ${side}: ${workers} workers with ${queues} queues each${blocked > 0 ? `, and ${blocked} tasks that may not start` : ''}`,
    `  ${load.commandsPerSecond.toFixed(1)} commands a second, ${(load.commandsPerSecond / workers).toFixed(2)} for each worker (${commands.join(', ')})`,
    `  ${load.bytesPerSecond.toLocaleString('en-US')} bytes a second, ${load.connectionsPerWorker} connections for each worker`,
  ].join('\n')
}
