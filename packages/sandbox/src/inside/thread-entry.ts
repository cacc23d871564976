// The entry point of a thread. It serves the worker over a port of its own, because handlers may use `parentPort`.
import { enableCompileCache, flushCompileCache } from 'node:module'
import { type MessagePort, workerData } from 'node:worker_threads'

const { port } = workerData as { readonly port: MessagePort }
const end = process.exit
// A handler that replaced this method would see the key in the envelope.
const post = port.postMessage.bind(port)

// A thread shares its process id with the worker. A handler that signals its own process ends its thread only.
const kill = process.kill
process.kill = (pid, signal) =>
  (pid === process.pid || pid === 0) && signal !== 0 ? end(1) : kill.call(process, pid, signal)

// For the reasons, see process-entry.ts. A cache of the worker's own thread would not apply to this one.
enableCompileCache()
const { serve } = await import('./serve.ts')

serve({
  send: (envelope) => post(envelope),
  listen: (listener) => port.on('message', listener),
  // A thread may be killed as well.
  imported: flushCompileCache,
  end: () => end(0),
})
