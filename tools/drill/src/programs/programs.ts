// The platform's own programs, the API and the worker as they are shipped, as processes of a drill.
import { type ChildProcess, fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Exit } from '../ledger/figures.ts'
import type { Member } from './fleet.ts'

export interface Program extends Member {
  /** Where it listens. */
  readonly url: string
}

export interface Programs {
  /** Resolves when it is ready. `env`: its settings, beside those of all. */
  start(program: keyof typeof MAINS, env?: Readonly<Record<string, string>>): Promise<Program>
  /** Kills what is left. */
  close(): Promise<void>
}

const MAINS = { api: '../../../../apps/api/src/main.ts', worker: '../../../../apps/worker/src/main.ts' } as const
/** What each says when it is ready, with its address. */
const READY = { api: 'API ready', worker: 'worker ready' } as const
const KEEPER = new URL('./end-with-parent.ts', import.meta.url).href

/** `log`: a file that takes what they print. */
export function runPrograms({ log, env: common }: { log: string; env: Readonly<Record<string, string>> }): Programs {
  const out = createWriteStream(log, { flags: 'a' })
  const children = new Map<ChildProcess, Promise<number | null>>()

  return {
    async start(program, env = {}) {
      const child = fork(new URL(MAINS[program], import.meta.url), [], {
        env: { PATH: process.env['PATH'], ...common, ...env },
        execArgv: ['--import', KEEPER],
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      const name = `${program}-${child.pid}`
      const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
      children.set(child, exited)
      child.stderr?.pipe(out, { end: false })
      const ready = new Promise<string>((resolve) => {
        if (child.stdout === null) return
        createInterface({ input: child.stdout }).on('line', (line) => {
          out.write(`${line}\n`)
          if (line.includes(READY[program])) resolve(/"url":"([^"]+)"/.exec(line)?.[1] ?? '')
        })
      })
      const url = await Promise.race([ready, exited.then((code) => code ?? -1)])
      if (typeof url !== 'string') throw new Error(`${name} ended before it was ready, with ${url}`)
      return { name, url, ...endings(name, child, exited) }
    },
    async close() {
      for (const child of children.keys()) child.kill('SIGKILL')
      await Promise.all(children.values())
      out.end()
    },
  }
}

function endings(name: string, child: ChildProcess, exited: Promise<number | null>): Pick<Member, 'kill' | 'end'> {
  return {
    async kill() {
      const at = Date.now()
      child.kill('SIGKILL')
      await exited
      return at
    },
    async end(killAfterMs): Promise<Exit> {
      const began = performance.now()
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
      const code = await exited
      clearTimeout(late)
      return { process: name, code, at: Date.now(), tookMs: Math.round(performance.now() - began) }
    },
  }
}
