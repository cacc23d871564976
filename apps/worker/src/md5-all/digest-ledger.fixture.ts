// Counts the digests that run at once, outside of the queue and of the workers, and holds them until a test lets them continue.
import type { FileAccess } from '../resources/file-access.ts'

type Digest = FileAccess['digest']

export interface DigestLedger {
  /** The digests that have started, in order. */
  readonly started: readonly { readonly path: string; readonly worker: string }[]
  /** The number of digests whose signal has aborted while they were held. */
  readonly aborted: number
  readonly running: number
  /** The largest number of digests that were running at once. */
  readonly most: number
  /** Holds digests that start from now on, or only those of files for which `which` returns true. */
  hold(which?: (path: string) => boolean): void
  /** Called with the path of each digest that starts, before it is held. */
  onStart: (path: string) => Promise<void> | void
  /** Lets all held digests continue, and holds no others. */
  release(): void
  /** Forgets everything that has started. */
  reset(): void
  /** Returns the function that a worker calls instead of the digest. */
  of(worker: string): (path: string, signal: AbortSignal, digest: Digest) => ReturnType<Digest>
}

export function digestLedger(): DigestLedger {
  const started: { path: string; worker: string }[] = []
  let [running, most, aborted] = [0, 0, 0]
  let isHeld: (path: string) => boolean = () => false
  let gate = Promise.withResolvers<void>()

  /** Waits for the gate. Rejects if the signal aborts first. */
  async function held(signal: AbortSignal): Promise<void> {
    const stop = Promise.withResolvers<never>()
    const onAbort = () => {
      aborted++
      stop.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([gate.promise, stop.promise])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  const ledger: DigestLedger = {
    started,
    onStart() {},
    get aborted() {
      return aborted
    },
    get running() {
      return running
    },
    get most() {
      return most
    },
    hold(which = () => true) {
      isHeld = which
    },
    release() {
      isHeld = () => false
      gate.resolve()
      gate = Promise.withResolvers()
    },
    reset() {
      ledger.release()
      ledger.onStart = () => {}
      started.length = 0
      most = 0
      aborted = 0
    },
    of: (worker) => async (path, signal, digest) => {
      started.push({ path, worker })
      most = Math.max(most, ++running)
      try {
        const shouldHold = isHeld(path)
        await ledger.onStart(path)
        if (shouldHold) await held(signal)
        return await digest(path, signal)
      } finally {
        running--
      }
    },
  }
  return ledger
}
