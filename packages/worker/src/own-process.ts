// Keeps a program's process and its listeners, whatever the handlers of its tasks do.
import { AsyncLocalStorage } from 'node:async_hooks'
import { constants } from 'node:os'

type Listeners = Readonly<Record<string, (...args: never[]) => void>>

/**
 * Adds the listeners to the process, and adds them again if a handler removes them. A handler that exits or signals its own process does
 * not end the worker, because its task would then end every worker that starts it. The exceptions are SIGKILL and `process.abort`.
 * `isFromHandler` gets what the running code has done, such as `called process.exit(1)`, and returns whether a handler did it. Returns a
 * function that undoes all this.
 */
export function ownProcess(listeners: Listeners, isFromHandler: (act: string) => boolean): () => void {
  // A listener runs in the async context in which it was added, which must not be that of a handler.
  const outside = AsyncLocalStorage.snapshot()
  const onRemoved = (event: string | symbol, listener: unknown): void => {
    if (owned.some((own) => own[0] === event && own[1] === listener)) queueMicrotask(() => outside(restore))
  }
  // Node itself listens to these two events, to start and stop the delivery of signals.
  const ofNode = ['newListener', 'removeListener'].flatMap((event) =>
    process.rawListeners(event as never).map((listener) => [event, listener] as const),
  )
  const ours = [...Object.entries(listeners), ['removeListener', onRemoved] as const]
  const owned: readonly (readonly [string, unknown])[] = [...ofNode, ...ours]
  let isOwned = true
  const restore = (): void => {
    for (const [event, listener] of owned) {
      if (isOwned && !process.rawListeners(event as never).includes(listener as never))
        process.on(event, listener as never)
    }
  }
  restore()

  const { exit, kill } = process
  process.kill = (pid, signal = 'SIGTERM') => {
    const name = typeof signal === 'number' ? nameOf(signal) : signal
    const isOwn = pid === process.pid || pid === 0
    const ends = name !== 'SIGKILL' && (name in listeners || process.listenerCount(name) === 0)
    if (isOwn && signal !== 0 && ends && isFromHandler(`sent ${name} to its own worker`)) return true
    return kill.call(process, pid, signal)
  }
  process.exit = (code) => {
    const act = `called process.exit(${code ?? ''})`
    if (isFromHandler(act)) throw new Error(`the handler ${act}`)
    return exit.call(process, code)
  }

  return () => {
    isOwned = false
    // A handler may have frozen them.
    Reflect.set(process, 'exit', exit)
    Reflect.set(process, 'kill', kill)
    for (const [event, listener] of ours) process.off(event, listener as never)
  }
}

function nameOf(signal: number): string {
  return Object.entries(constants.signals).find(([, number]) => number === signal)?.[0] ?? `signal ${signal}`
}
