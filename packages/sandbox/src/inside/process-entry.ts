// What a child process runs: serves its pool over the IPC channel, and ends with it.
import { serve } from './serve.ts'

const end = process.exit

// The channel closes when the parent dies, however it does. A child in a loop never gets here: see undertaker.ts.
process.on('disconnect', () => end(1))

// Ctrl-C and service managers signal the parent's whole group. The parent drains, so its children must live on until then.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

serve({
  // Without a callback, a message that comes too late for a closed channel would be thrown as an 'error' event.
  send: (message) => void process.send?.(message, undefined, undefined, () => {}),
  listen: (listener) => process.on('message', listener),
  end: () => end(0),
})
