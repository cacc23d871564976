// The entry point of a child process. It serves the worker over the IPC channel.
import { enableCompileCache, flushCompileCache } from 'node:module'

const end = process.exit
const send = process.send?.bind(process)

// The channel closes no matter how the worker dies. A child that is stuck in a loop never gets here; see orphan-reaper.ts.
process.on('disconnect', () => end(1))

// A service manager may signal each process of the service. The worker drains, so its children must keep running.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

// The child lives as long as the channel, even if a module that is preloaded into the worker's processes has unreferenced it.
process.channel?.ref()

// Compiling the modules takes most of the time that a child process needs to start. After the death of a worker, the tasks that it
// ran wait for child processes. The cache applies only to modules that are imported after this call. If its directory can't be
// written, every child process compiles its modules.
enableCompileCache()
const { serve } = await import('./serve.ts')

serve({
  // Without a callback, sending to a closed channel would emit an 'error' event.
  send: (envelope) => void send?.(envelope, undefined, undefined, () => {}),
  listen: (listener) => process.on('message', listener),
  // A child process is usually killed, and would then not write what it has compiled.
  imported: flushCompileCache,
  end: () => end(0),
})
