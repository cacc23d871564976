// Manages the programs that a drill forks: kills a program or tells it to shut down, and ends all of them when the drill is over.
import type { ChildProcess } from 'node:child_process'
import type { Exit } from '../ledger/ledger.ts'

export interface RunningProgram {
  readonly name: string
  readonly pid: number
  /** Resolves with the exit code when the process has exited, or with null if a signal ended it. */
  readonly exited: Promise<number | null>
  /** Stops the process (SIGSTOP) until it is resumed. */
  pause(): void
  resume(): void
  /** Sends SIGKILL and waits for the exit. Resolves with the unix time of the signal in ms. */
  kill(): Promise<number>
  /** Sends SIGTERM, and SIGKILL after `killAfterMs`. Resolves when the process has exited. */
  end(killAfterMs: number): Promise<Exit>
}

/** Keeps track of all programs of a drill, so that none outlives the drill. */
export class ChildProcesses {
  readonly #exits = new Map<ChildProcess, Promise<number | null>>()

  /**
   * Adds a program, and waits for `ready`, which resolves when the program is ready. @throws Error if the program exits first.
   */
  async add<T>(name: string, child: ChildProcess, ready: Promise<T>): Promise<RunningProgram & { readonly ready: T }> {
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
    this.#exits.set(child, exited)
    const first = await Promise.race([ready.then((value) => ({ value })), exited.then((code) => ({ code }))])
    if ('code' in first) throw new Error(`${name} exited with ${first.code} before it was ready`)
    return {
      name,
      // A child that is ready was started.
      pid: child.pid ?? 0,
      exited,
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
      ready: first.value,
      async kill() {
        const at = Date.now()
        child.kill('SIGKILL')
        await exited
        return at
      },
      async end(killAfterMs) {
        const startedAt = performance.now()
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
        const code = await exited
        clearTimeout(timer)
        return { worker: name, code, at: Date.now(), tookMs: Math.round(performance.now() - startedAt) }
      },
    }
  }

  async killAll(): Promise<void> {
    for (const child of this.#exits.keys()) child.kill('SIGKILL')
    await Promise.all(this.#exits.values())
  }
}
