// Records from outside which handlers of a run are called, by which process.

export interface Ledger {
  /** The stages of all handlers that were called, with the first item of the source that each of them got, such as `1.17`. */
  readonly calls: ReadonlySet<string>
  /**
   * Called when a handler begins. Returns what to call when it has returned. The process is undefined if it is lost, so that its task may
   * have ended.
   */
  enter(process: string | undefined, stage: number, item: number): () => void
  /** Forgets which handlers of a process have not returned, because their tasks are given to other processes. */
  lost(process: string): void
  /** Resolves once this many further handlers were called. */
  further(calls: number): Promise<void>
  /** What has exceeded the concurrency of its stage, if anything. */
  readonly violations: readonly string[]
}

export function createLedger(concurrency: readonly number[]): Ledger {
  const calls = new Set<string>()
  const violations: string[] = []
  /** By stage and item, the processes whose handlers have not returned. A task may be running in two processes. */
  const open = new Map<string, Set<string>>()
  const waiting: { readonly at: number; readonly resolve: () => void }[] = []
  let entered = 0

  const leave = (process: string, name: string): void => {
    const processes = open.get(name)
    processes?.delete(process)
    if (processes?.size === 0) open.delete(name)
  }

  return {
    calls,
    violations,
    enter(process, stage, item) {
      const name = `${stage}.${item}`
      calls.add(name)
      entered++
      for (const each of waiting) if (each.at <= entered) each.resolve()
      if (process === undefined) return () => {}
      open.set(name, (open.get(name) ?? new Set()).add(process))
      const unfinished = [...open.keys()].filter((each) => each.startsWith(`${stage}.`))
      const most = concurrency[stage - 1] ?? 0
      if (unfinished.length > most) violations.push(`${unfinished.join(' ')} at once, with a concurrency of ${most}`)
      return () => leave(process, name)
    },
    lost(process) {
      for (const name of [...open.keys()]) leave(process, name)
    },
    further: (more) =>
      new Promise((resolve) => {
        if (more === 0) resolve()
        else waiting.push({ at: entered + more, resolve })
      }),
  }
}
