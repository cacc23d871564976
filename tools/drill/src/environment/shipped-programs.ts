// Runs the example's API and worker as they are shipped.
import { fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { ChildProcesses, type RunningProgram } from './child-process.ts'

export interface Program extends RunningProgram {
  /** The address on which the program listens. */
  readonly url: string
  /** The address of an API's metrics. A worker has only one address. */
  readonly metricsUrl: string | undefined
}

export interface Programs {
  /** Starts a program with these settings in addition to the common ones. Resolves when the program is ready. */
  start(program: keyof typeof MAINS, env?: Readonly<Record<string, string>>): Promise<Program>
  /** Kills the remaining programs. */
  close(): Promise<void>
}

const MAINS = { api: '../../../../apps/api/src/main.ts', worker: '../../../../apps/worker/src/main.ts' } as const
/** The log message with which each program reports its addresses. */
const READY = { api: 'API ready', worker: 'worker ready' } as const
const EXIT_WITH_PARENT = new URL('../programs/exit-with-parent.ts', import.meta.url).href

/** Prepares to start programs. `log` is the file for the programs' output. */
export function openPrograms({ log, env: common }: { log: string; env: Readonly<Record<string, string>> }): Programs {
  const out = createWriteStream(log, { flags: 'a' })
  const children = new ChildProcesses()

  return {
    async start(program, env = {}) {
      const { PATH, NODE_COMPILE_CACHE } = process.env
      const child = fork(new URL(MAINS[program], import.meta.url), [], {
        env: { PATH, NODE_COMPILE_CACHE, ...common, ...env },
        execArgv: ['--import', EXIT_WITH_PARENT],
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      child.stderr?.pipe(out, { end: false })
      const listening = new Promise<string>((resolve) => {
        if (child.stdout === null) return
        createInterface({ input: child.stdout }).on('line', (line) => {
          out.write(`${line}\n`)
          if (line.includes(READY[program])) resolve(line)
        })
      })
      const { ready: line, ...running } = await children.add(`${program}-${child.pid}`, child, listening)
      return { ...running, url: addressIn(line, 'url') ?? '', metricsUrl: addressIn(line, 'metricsUrl') }
    },
    async close() {
      await children.killAll()
      out.end()
    },
  }
}

function addressIn(line: string, field: 'url' | 'metricsUrl'): string | undefined {
  return new RegExp(`"${field}":"([^"]+)"`).exec(line)?.[1]
}
