// Starts a drill's Redis server, which the drill can kill and start again on the same port and data.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillRedis } from './drill-setup.ts'

interface Server {
  readonly port: number
  kill(signal: NodeJS.Signals): void
  exited(): Promise<void>
  stop(): Promise<void>
}

type StartServer = (options: {
  readonly dir: string
  readonly port?: number
  readonly args: readonly string[]
}) => Promise<Server>

export interface RestartableRedis extends DrillRedis {
  /** Kills the server, or a node of a cluster, with SIGKILL, and starts it again. Resolves when it accepts commands. */
  restart(): Promise<void>
}

/**
 * Redis writes each command to its append-only file before it replies. With `everysec`, it may do so up to 2 s later while the disk is busy,
 * and a killed process would lose what it has replied to. What is written outlives the process without fsync.
 */
const UNDELAYED_WRITES = ['--appendfsync', 'no']

/** The server stores every command in its append-only file, so that nothing is lost when its process is killed. */
export async function openRestartableRedis(queues: readonly string[]): Promise<RestartableRedis> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/server.mjs', import.meta.url).href
  const { startRedisServer } = (await import(script)) as { startRedisServer: StartServer }
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-redis-'))
  let server = await startRedisServer({ dir, args: UNDELAYED_WRITES })
  const { port } = server
  return {
    url: `redis://127.0.0.1:${port}`,
    queues,
    async restart() {
      server.kill('SIGKILL')
      await server.exited()
      server = await startRedisServer({ dir, port, args: UNDELAYED_WRITES })
    },
    async end() {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
