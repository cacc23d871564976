// The entry point of a child process. It serves the worker over the IPC channel.
import { serve } from './serve.ts'

const end = process.exit

// The channel closes no matter how the worker dies. A child that is stuck in a loop never gets here; see orphan-reaper.ts.
process.on('disconnect', () => end(1))

// Ctrl-C and service managers signal the whole process group. The worker drains, so its children must keep running.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

serve({
  // Without a callback, sending to a closed channel would emit an 'error' event.
  send: (message) => void process.send?.(message, undefined, undefined, () => {}),
  listen: (listener) => process.on('message', listener),
  end: () => end(0),
})
