// The entry point of a thread. It serves the worker over a port of its own, because handlers may use `parentPort`.
import { type MessagePort, workerData } from 'node:worker_threads'
import { serve } from './serve.ts'

const { port } = workerData as { readonly port: MessagePort }
const end = process.exit

serve({
  send: (message) => port.postMessage(message),
  listen: (listener) => port.on('message', listener),
  end: () => end(0),
})
