// A Redis server of a test's own, to be stopped, killed and started again.
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
}

type StartRedisServer = (options: Options) => Promise<RedisServer>

/** `start` starts it (again) on the same port and data. It is ended, and its data removed, with the test. */
export async function privateRedis() {
  const { startRedisServer } = (await import(script('redis/server.mjs'))) as { startRedisServer: StartRedisServer }
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
      server = await startRedisServer({ dir, port })
    },
    /** Ended without a word: on return its process is gone. */
    async crash() {
      server?.kill('SIGKILL')
      await server?.exited()
    },
    /** Alive, and answering nothing: what a cut network looks like. */
    freeze: () => server?.kill('SIGSTOP'),
    thaw: () => server?.kill('SIGCONT'),
  }
}

/** The scripts are plain JavaScript without types: imported by address, so that the compiler doesn't look for any. */
function script(name: string): string {
  return new URL(`../../../scripts/${name}`, import.meta.url).href
}
