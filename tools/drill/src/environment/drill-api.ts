// Runs an API in a process of its own, which can be killed and replaced, and collects its audit lines.
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { type Client, createClient, http } from '@bullpen/client'
import type { ApiConfig } from '@bullpen/config'
import type { ApiAddresses } from '../programs/api-main.ts'
import { ChildProcesses } from './child-process.ts'

/** What an API logs when it accepts a request for dead tasks. */
export interface AuditLine {
  readonly action: string
  readonly by: string
  readonly matching: number
  readonly deadTaskRequest?: string
}

/** What an API logs when Redis has lost tasks that it had acknowledged. */
export interface LostLine {
  readonly tasks: number
}

export interface DrillApi {
  /** The address, which does not change when the process is replaced. */
  readonly url: string
  /** The address of the first process's metrics. */
  readonly metricsUrl: string
  /** The API key that the API accepts. */
  readonly key: string
  /** Returns a client at another address of the same API. Defaults to `url`. It repeats its calls while a process is replaced. */
  client(url?: string): Client
  pid(): number
  /** Returns the audit lines of all processes so far. */
  audit(): readonly AuditLine[]
  /** Returns the lines about lost tasks of all processes so far. */
  lostLines(): readonly LostLine[]
  /** Kills the process with SIGKILL, and starts another one on the same port. Resolves when the new process is ready. */
  replace(): Promise<void>
  /** Kills the process. */
  close(): Promise<void>
}

const MAIN = new URL('../programs/api-main.ts', import.meta.url)
const RETRY_FOR = '60s'
const AUDITED = 'dead tasks: request accepted'
const LOST = 'redis has lost acknowledged tasks'

export async function startApi(
  config: Pick<ApiConfig, 'redisUrl' | 'namespace' | 'queueMemoryShare'>,
): Promise<DrillApi> {
  const children = new ChildProcesses()
  const key = randomBytes(16).toString('hex')
  const whole: ApiConfig = { ...config, keys: [key], metricsPort: 0, environment: 'production' }
  const audit: AuditLine[] = []
  const lost: LostLine[] = []

  const start = async (port: number) => {
    const child = fork(MAIN, [JSON.stringify({ ...whole, port } satisfies ApiConfig)], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    if (child.stdout !== null) {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line.includes(AUDITED)) audit.push(JSON.parse(line))
        if (line.includes(LOST)) lost.push(JSON.parse(line))
      })
    }
    const addresses = new Promise<ApiAddresses>((resolve) =>
      child.once('message', (message) => resolve(message as ApiAddresses)),
    )
    return children.add('api', child, addresses)
  }

  let running = await start(0)
  const { url, metricsUrl } = running.ready
  let replaced = Promise.resolve()
  return {
    url,
    metricsUrl,
    key,
    client: (at = url) => createClient({ transport: http(at, key), retryFor: RETRY_FOR }),
    pid: () => running.pid,
    audit: () => audit,
    lostLines: () => lost,
    replace() {
      replaced = replaced.then(async () => {
        await running.kill()
        running = await start(Number(new URL(url).port))
      })
      return replaced
    },
    close: () => children.killAll(),
  }
}
