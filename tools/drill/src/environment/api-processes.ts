// Runs several API processes, each connected to Redis through its own fault proxy.
import { type FaultProxy, faultProxy } from '@bullpen/testkit'
import type { Program, Programs } from './shipped-programs.ts'

export interface ApiProcess {
  /** The proxy between this process and Redis. */
  readonly proxy: FaultProxy
  /** Returns the address of the process, or undefined while it is down. */
  url(): string | undefined
  /** Returns the address of the process's metrics, or undefined while it is down. */
  metricsUrl(): string | undefined
  /** Kills the process with SIGKILL, and starts another one in its place. Resolves when the new process is ready. */
  replace(): Promise<void>
}

export interface ApiProcesses {
  readonly all: readonly ApiProcess[]
  /** Closes the proxies. The processes end with the other programs. */
  close(): Promise<void>
}

export async function startApis(programs: Programs, redisUrl: string, count: number): Promise<ApiProcesses> {
  const proxies: FaultProxy[] = []

  async function start(): Promise<ApiProcess> {
    const proxy = await faultProxy(redisUrl)
    proxies.push(proxy)
    const startProgram = () => programs.start('api', { REDIS_URL: proxy.url })
    let running: Program | undefined = await startProgram()
    return {
      proxy,
      url: () => running?.url,
      metricsUrl: () => running?.metricsUrl,
      async replace() {
        const killed = running
        running = undefined
        await killed?.kill()
        proxy.reset()
        running = await startProgram()
      },
    }
  }

  return {
    all: await Promise.all(Array.from({ length: count }, start)),
    async close() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
    },
  }
}
