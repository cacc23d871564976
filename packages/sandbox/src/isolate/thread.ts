// Isolates that are threads: warm, killable in the middle of a loop, without a memory limit of their own.
//
// On node:worker_threads itself rather than on piscina: docs/adr/0010-threads-of-our-own.md.
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { keepWrappersGeneric } from '@bullpen/engine/node'
import { built } from '../built.ts'
import type { Death, IsolateListener, StartIsolate } from './isolate.ts'

const ENTRY = built(new URL('../inside/thread-entry.ts', import.meta.url))

export const startThread: StartIsolate = ({ heard, ended }: IsolateListener) => {
  keepWrappersGeneric()
  const { port1: port, port2 } = new MessageChannel()
  const worker = new Worker(ENTRY, { workerData: { port: port2 }, transferList: [port2] })
  const name = `thread ${worker.threadId}`
  let killed = false
  let failure: Error | undefined

  const kill = (): void => {
    killed = true
    void worker.terminate()
  }
  port.on('message', heard)
  // Nothing that is sent here can't be read; should it happen, waiting for the message would never end.
  port.on('messageerror', (error) => {
    failure = error
    kill()
  })
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  worker.on('exit', (exitCode) => {
    // What it sent before it ended may still be waiting here.
    for (let left = receiveMessageOnPort(port); left !== undefined; left = receiveMessageOnPort(port)) {
      heard(left.message)
    }
    // Open still when the thread has never come to be.
    port.close()
    ended(deathOf(name, exitCode, killed, failure))
  })

  return { name, send: (message) => port.postMessage(message), kill, isFull: () => false }
}

function deathOf(name: string, exitCode: number, killed: boolean, failure: Error | undefined): Death {
  if (failure !== undefined) {
    const outOfMemory = 'code' in failure && failure.code === 'ERR_WORKER_OUT_OF_MEMORY'
    const reason = outOfMemory ? 'out_of_memory' : 'isolate_died'
    return { reason, message: `${name} ended: ${failure.message}`, cause: failure }
  }
  const message = killed ? `${name} was killed` : `${name} exited with code ${exitCode}`
  return { reason: 'isolate_died', message }
}
