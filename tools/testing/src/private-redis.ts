// Creates a Redis server for a single test. The server can be killed, frozen and started again.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freePort } from './free-port.ts'

interface RedisServer {
  readonly url: string
  readonly port: number
  kill(signal: NodeJS.Signals): void
  exited(): Promise<void>
  stop(): Promise<void>
}

interface Options {
  readonly dir: string
  readonly port?: number
  /** More arguments of the server, which take precedence. */
  readonly args?: readonly string[]
}

interface Script {
  startRedisServer(options: Options): Promise<RedisServer>
  readonly WRITES_BEFORE_IT_REPLIES: readonly string[]
}

/**
 * Creates a server that is not running yet. `start` starts or restarts it on the same port and data. The server and its data are
 * removed after the test.
 */
export async function privateRedis() {
  const { startRedisServer, WRITES_BEFORE_IT_REPLIES } = (await import(script('redis/server.mjs'))) as Script
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-private-redis-'))
  const port = await freePort()
  let server: RedisServer | undefined
  onTestFinished(async () => {
    server?.kill('SIGCONT')
    await server?.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      server = await startRedisServer({ dir, port, args: WRITES_BEFORE_IT_REPLIES })
    },
    /** Kills the server with SIGKILL. Resolves when its process has ended. */
    async crash() {
      server?.kill('SIGKILL')
      await server?.exited()
    },
    /** Stops the server with SIGSTOP, so that it stays alive but does not respond, as in a network partition. */
    freeze: () => server?.kill('SIGSTOP'),
    thaw: () => server?.kill('SIGCONT'),
  }
}

/** The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve. */
function script(name: string): string {
  return new URL(`../../../scripts/${name}`, import.meta.url).href
}
