// Starts a Redis server that a drill can kill and start again on the same port and data.
interface Server {
  readonly port: number
  kill(signal: NodeJS.Signals): void
  exited(): Promise<void>
  stop(): Promise<void>
}

type StartServer = (options: { readonly dir: string; readonly port?: number }) => Promise<Server>

export interface RestartableRedis {
  readonly url: string
  /** Kills the server with SIGKILL, and starts it again. Resolves when it accepts commands. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** The server stores every command in its append-only file, so that nothing is lost when its process is killed. */
export async function startRestartableRedis(dir: string): Promise<RestartableRedis> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/server.mjs', import.meta.url).href
  const { startRedisServer } = (await import(script)) as { startRedisServer: StartServer }
  let server = await startRedisServer({ dir })
  const { port } = server
  return {
    url: `redis://127.0.0.1:${port}`,
    async restart() {
      server.kill('SIGKILL')
      await server.exited()
      server = await startRedisServer({ dir, port })
    },
    stop: () => server.stop(),
  }
}
