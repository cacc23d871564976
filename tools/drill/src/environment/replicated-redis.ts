// Starts a drill's Redis with a replica, behind a proxy that leads to the primary. A delay proxy between both lets the replica lag behind.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { holdsWithin } from '../holds-within.ts'
import type { DrillRedis } from './drill-setup.ts'

export interface RedisProcess {
  readonly url: string
  readonly port: number
  kill(signal: NodeJS.Signals): void
  exited(): Promise<void>
  stop(): Promise<void>
}

interface Script {
  startRedisServer(options: { readonly dir: string; readonly args: readonly string[] }): Promise<RedisProcess>
}

export interface ReplicatedRedis extends DrillRedis {
  /**
   * When `untilAccepted` has resolved, kills the primary with SIGKILL. If the replica lags behind, it lacks everything that was written
   * since the failover began, and what its replication held back. When `untilHit` has resolved, makes the replica a primary as it is, and
   * lets the proxy lead there.
   */
  failOver(untilAccepted: () => Promise<unknown>, untilHit: () => Promise<unknown>): Promise<void>
}

const SYNCED_WITHIN_MS = 60_000
/** A replica begins to copy at once. */
const ARGS = ['--repl-diskless-sync-delay', '0']

export async function startServer(name: string): Promise<RedisProcess> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/server.mjs', import.meta.url).href
  const { startRedisServer } = (await import(script)) as Script
  const dir = mkdtempSync(join(tmpdir(), `bullpen-drill-${name}-`))
  const server = await startRedisServer({ dir, args: ARGS })
  return {
    ...server,
    async stop() {
      server.kill('SIGCONT')
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Sends one command. */
export async function ask(url: string, ...[command, ...words]: readonly [string, ...string[]]): Promise<unknown> {
  const redis = new Redis(url, { retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    return await redis.call(command, ...words)
  } finally {
    redis.disconnect()
  }
}

/** Resolves when the server at `url` has copied its primary, which it reaches at `primaryUrl`. */
export async function replicate(url: string, primaryUrl: string): Promise<void> {
  const { hostname, port } = new URL(primaryUrl)
  await ask(url, 'REPLICAOF', hostname, port)
  const isSynced = async (): Promise<boolean> =>
    String(await ask(url, 'INFO', 'replication')).includes('master_link_status:up')
  if (!(await holdsWithin(SYNCED_WITHIN_MS, isSynced))) throw new Error('the replica has not copied its primary')
}

/** A server to which single commands can be sent. */
export interface Askable {
  readonly port: number
  ask(...command: readonly [string, ...string[]]): Promise<unknown>
}

const PAUSE_MS = 30_000

/**
 * Holds back all writes to this server, and resolves when its replica among the others has copied the ones before. If the server is stopped
 * now, it has acknowledged nothing that is lost when the replica takes over: what replication loses is what the drill `failover` is about.
 */
export async function holdWrites(primary: Askable, others: readonly Askable[]): Promise<void> {
  await primary.ask('CLIENT', 'PAUSE', `${PAUSE_MS}`, 'WRITE')
  const numberIn = (info: unknown, field: string): number =>
    Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(String(info))?.[1])
  const isCopied = async (): Promise<boolean> => {
    const written = numberIn(await primary.ask('INFO', 'replication'), 'master_repl_offset')
    const infos = await Promise.all(others.map((other) => other.ask('INFO', 'replication')))
    return infos.some(
      (info) => numberIn(info, 'master_port') === primary.port && numberIn(info, 'slave_repl_offset') >= written,
    )
  }
  if (!(await holdsWithin(SYNCED_WITHIN_MS, isCopied))) throw new Error('no replica has copied what was written')
}

export async function openReplicatedRedis(queues: readonly string[], lagMs: number): Promise<ReplicatedRedis> {
  await using opened = new AsyncDisposableStack()
  const [primary, replica] = await Promise.all([startServer('primary'), startServer('replica')])
  for (const server of [primary, replica]) opened.defer(() => server.stop())
  const between = opened.adopt(await faultProxy(primary.url), (proxy) => proxy.close())
  const front = opened.adopt(await faultProxy(primary.url), (proxy) => proxy.close())
  await replicate(replica.url, between.url)
  between.delay(lagMs)
  const all = opened.move()
  return {
    url: front.url,
    queues,
    async failOver(untilAccepted, untilHit) {
      // A busy machine may take longer than the lag to notice the accepted call and to kill the primary.
      if (lagMs > 0) between.cut()
      await untilAccepted()
      primary.kill('SIGKILL')
      if (lagMs > 0) between.silence()
      await primary.exited()
      await untilHit()
      await ask(replica.url, 'REPLICAOF', 'NO', 'ONE')
      front.moveTo(replica.url)
      front.reset()
    },
    end: () => all.disposeAsync(),
  }
}
