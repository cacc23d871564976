// Implements isolates as threads. A thread can be killed in the middle of a loop, but cannot have its own memory limit.
//
// This file uses node:worker_threads directly instead of piscina. For the reasons, see docs/adr/0010-threads-of-our-own.md.
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { keepWrappersGeneric } from '@bullpen/engine/node'
import { built } from '../built.ts'
import type { EnvelopeToIsolate } from '../protocol/envelope.ts'
import type { IsolateExit, IsolateListener, StartIsolate } from './isolate.ts'

const ENTRY = built(new URL('../inside/thread-entry.ts', import.meta.url))

export const startThread: StartIsolate = ({ read, onMessage, onExit }: IsolateListener) => {
  keepWrappersGeneric()
  const { port1: port, port2 } = new MessageChannel()
  const worker = new Worker(ENTRY, { argv: process.argv.slice(2), workerData: { port: port2 }, transferList: [port2] })
  const name = `thread ${worker.threadId}`
  let killed = false
  let failure: Error | undefined

  const kill = (): void => {
    killed = true
    void worker.terminate()
  }
  const receive = (received: unknown): void => {
    const message = read(received)
    if (message !== undefined) onMessage(message)
  }
  port.on('message', receive)
  // This is not known to happen. If it did, the attempt would wait forever for the lost message.
  port.on('messageerror', (error) => {
    failure = error
    kill()
  })
  // A handler may have closed the port. Without it, nothing else would end the attempt.
  port.once('close', () => void worker.terminate())
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  worker.on('exit', (exitCode) => {
    // Messages that the thread sent before it ended may still be in the port.
    for (let left = receiveMessageOnPort(port); left !== undefined; left = receiveMessageOnPort(port)) {
      receive(left.message)
    }
    // The port is still open if the thread could not be started.
    port.close()
    onExit(exitOf(name, exitCode, killed, failure))
  })

  return {
    name,
    send: (message) => port.postMessage({ isolate: message } satisfies EnvelopeToIsolate),
    kill,
    isFull: () => false,
  }
}

function exitOf(name: string, exitCode: number, killed: boolean, failure: Error | undefined): IsolateExit {
  if (failure !== undefined) {
    const outOfMemory = 'code' in failure && failure.code === 'ERR_WORKER_OUT_OF_MEMORY'
    const reason = outOfMemory ? 'out_of_memory' : 'isolate_died'
    return { reason, message: `${name} ended: ${failure.message}`, cause: failure }
  }
  const message = killed ? `${name} was killed` : `${name} exited with code ${exitCode}`
  return { reason: 'isolate_died', message }
}
