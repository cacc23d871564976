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

interface Script {
  startRedisServer(options: {
    readonly dir: string
    readonly port?: number
    readonly args: readonly string[]
  }): Promise<Server>
  readonly WRITES_BEFORE_IT_REPLIES: readonly string[]
}

export interface RestartableRedis extends DrillRedis {
  /** Kills the server, or a node of a cluster, with SIGKILL, and starts it again. Resolves when it accepts commands. */
  restart(): Promise<void>
}

/** The server writes every command to its append-only file before it replies, so that nothing is lost when its process is killed. */
export async function openRestartableRedis(queues: readonly string[]): Promise<RestartableRedis> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/server.mjs', import.meta.url).href
  const { startRedisServer, WRITES_BEFORE_IT_REPLIES: args } = (await import(script)) as Script
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-redis-'))
  let server = await startRedisServer({ dir, args })
  const { port } = server
  return {
    url: `redis://127.0.0.1:${port}`,
    queues,
    async restart() {
      server.kill('SIGKILL')
      await server.exited()
      server = await startRedisServer({ dir, port, args })
    },
    async end() {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
