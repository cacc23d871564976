// Keeps a program's listeners on its process, whatever the handlers of its tasks do.
import { AsyncLocalStorage } from 'node:async_hooks'

type Listeners = Readonly<Record<string, (...args: never[]) => void>>

/**
 * Adds the listeners to the process, and adds them again if a handler removes them. A handler that asks for a drain by a signal to its own
 * process does not end the worker if `isFromHandler` returns true. Otherwise, the task would end every worker that starts it. Returns a
 * function that removes the listeners.
 */
export function ownProcess(listeners: Listeners, isFromHandler: (signal: string) => boolean): () => void {
  // A listener runs in the async context in which it was added, which must not be that of a handler.
  const outside = AsyncLocalStorage.snapshot()
  const add = (event: string): void => {
    const listener = listeners[event] as () => void
    if (isOwned && !process.listeners(event as NodeJS.Signals).includes(listener)) process.on(event, listener)
  }
  const onRemoved = (event: string | symbol, listener: unknown): void => {
    if (typeof event !== 'string' || listeners[event] !== listener) return
    queueMicrotask(() =>
      outside(() => {
        add(event)
        if (isOwned && !process.listeners('removeListener' as never).includes(onRemoved as never))
          process.on('removeListener', onRemoved)
      }),
    )
  }
  let isOwned = true
  for (const event of Object.keys(listeners)) add(event)
  process.on('removeListener', onRemoved)

  const { kill } = process
  process.kill = (pid, signal = 'SIGTERM') => {
    const name = signal === 15 ? 'SIGTERM' : signal === 2 ? 'SIGINT' : `${signal}`
    if ((pid === process.pid || pid === 0) && name in listeners && isFromHandler(name)) return true
    return kill.call(process, pid, signal)
  }

  return () => {
    isOwned = false
    process.kill = kill
    process.off('removeListener', onRemoved)
    for (const [event, listener] of Object.entries(listeners)) process.off(event, listener as () => void)
  }
}
