// Starts a drill's Redis with a replica and a Sentinel, behind a proxy that follows the primary by asking the Sentinel.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultProxy, faultProxy } from '@bullpen/testkit'
import { holdsWithin } from '../holds-within.ts'
import type { DrillRedis } from './drill-setup.ts'
import { type Askable, ask, holdWrites, type RedisProcess, replicate, startServer } from './replicated-redis.ts'

interface Scripts {
  freePort(): Promise<number>
  findServerBinary(): string | undefined
}

export interface SentinelRedis extends DrillRedis {
  /** The proxy between the drill's processes and the primary. */
  readonly front: FaultProxy
  /** Stops the primary (SIGSTOP). Resolves when the Sentinel has promoted the replica and the proxy leads there. */
  freezePrimary(): Promise<void>
  /** Replaces the stopped server by a new replica of the primary. */
  replaceFrozen(): Promise<void>
}

const DOWN_AFTER_MS = 1_500
const PROMOTED_WITHIN_MS = 60_000
const ASK_EVERY_MS = 100

export async function openSentinelRedis(queues: readonly string[]): Promise<SentinelRedis> {
  await using opened = new AsyncDisposableStack()
  let [primary, replica] = await Promise.all([startServer('primary'), startServer('replica')])
  let frozen: RedisProcess | undefined
  opened.defer(() => Promise.all([primary, replica, frozen].map((server) => server?.stop())).then(() => {}))
  await replicate(replica.url, primary.url)
  const sentinelUrl = await startSentinel(opened, primary)
  const [front, own] = await Promise.all([faultProxy(primary.url), faultProxy(primary.url)])
  for (const proxy of [front, own]) opened.defer(() => proxy.close())
  const all = opened.move()

  return {
    url: own.url,
    queues,
    front,
    async freezePrimary() {
      await holdWrites(askable(primary), [askable(replica)])
      primary.kill('SIGSTOP')
      const isPromoted = async (): Promise<boolean> => {
        await sleep(ASK_EVERY_MS)
        const [, port] = (await ask(sentinelUrl, 'SENTINEL', 'get-master-addr-by-name', 'drill')) as string[]
        return port === `${replica.port}`
      }
      if (!(await holdsWithin(PROMOTED_WITHIN_MS, isPromoted))) {
        // The drill's own connections could not be closed.
        primary.kill('SIGCONT')
        throw new Error('the Sentinel has not promoted the replica')
      }
      front.moveTo(replica.url)
      // The drill's own connections must not wait for the stopped server.
      own.moveTo(replica.url)
      own.reset()
      ;[primary, replica, frozen] = [replica, primary, primary]
    },
    async replaceFrozen() {
      await frozen?.stop()
      frozen = undefined
      replica = await startServer('replica')
      await replicate(replica.url, primary.url)
      await ask(sentinelUrl, 'SENTINEL', 'RESET', 'drill')
      await untilReplicaKnown(sentinelUrl)
    },
    end: () => all.disposeAsync(),
  }
}

const askable = ({ url, port }: RedisProcess): Askable => ({ port, ask: (...command) => ask(url, ...command) })

/** Resolves with the address of the Sentinel when it watches the primary. */
async function startSentinel(opened: AsyncDisposableStack, primary: RedisProcess): Promise<string> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const scripts = ['redis/server.mjs', 'system/ports.mjs'].map(
    (file) => import(new URL(`../../../../scripts/${file}`, import.meta.url).href),
  )
  const { findServerBinary, freePort } = Object.assign({}, ...(await Promise.all(scripts))) as Scripts
  const [dir, port] = [mkdtempSync(join(tmpdir(), 'bullpen-drill-sentinel-')), await freePort()]
  opened.defer(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'sentinel.conf')
  const settings = [
    ...[`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, `logfile ${join(dir, 'sentinel.log')}`],
    `sentinel monitor drill 127.0.0.1 ${primary.port} 1`,
    `sentinel down-after-milliseconds drill ${DOWN_AFTER_MS}`,
    'sentinel failover-timeout drill 5000',
  ]
  writeFileSync(file, `${settings.join('\n')}\n`)
  const child = spawn(findServerBinary() ?? 'redis-server', [file, '--sentinel'], { stdio: 'ignore' })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  opened.defer(() => {
    kill()
    process.off('exit', kill)
  })
  const url = `redis://127.0.0.1:${port}`
  await untilReplicaKnown(url)
  return url
}

/** A Sentinel asks the primary for its replicas every 10 s. */
async function untilReplicaKnown(url: string): Promise<void> {
  const knowsReplica = async (): Promise<boolean> => {
    const replicas = await ask(url, 'SENTINEL', 'replicas', 'drill').catch(() => [])
    return (replicas as unknown[]).length === 1
  }
  if (!(await holdsWithin(PROMOTED_WITHIN_MS, knowsReplica))) throw new Error('the Sentinel does not know the replica')
}
