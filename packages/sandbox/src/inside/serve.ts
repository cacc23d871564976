// Runs inside an isolate: opens the resources, runs one task after another, and sends back how each attempt ended.
//
// An isolate has one attempt at a time, but timers and promises that earlier attempts left behind may still run. Every attempt
// therefore runs in its own async context, and errors, logs and calls are attributed through that context.
import { AsyncLocalStorage } from 'node:async_hooks'
import { writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { Handler } from '@bullpen/contract'
import {
  errorOf,
  fromPortable,
  type IsolatedTask,
  type OpenResources,
  type Outcome,
  packFields,
  toPortable,
} from '@bullpen/engine/isolate'
import { messageIn } from '../protocol/envelope.ts'
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'
import { packOutcome } from '../protocol/portable-outcome.ts'
import { InnerAttempt } from './attempt.ts'
import { callHandler, importHandler } from './call-handler.ts'
import type { Channel } from './channel.ts'
import { createPendingCalls } from './pending-calls.ts'
import { openModuleResources } from './resources.ts'
import { watchTouched } from './touched.ts'
import { watchUncaught } from './uncaught.ts'

/** How often a process reports its memory on platforms where the worker can't read it, in ms. */
const REPORT_INTERVAL_MS = 50

export function serve(channel: Channel): void {
  let ownKey = ''
  const send = (message: FromIsolate): void => channel.send({ isolate: message, key: ownKey })
  const attempts = new AsyncLocalStorage<InnerAttempt>()
  const pendingCalls = createPendingCalls()
  const handlers = new Map<string, Handler>()
  let resources: OpenResources<Record<string, unknown>> | undefined
  let current: InnerAttempt | undefined
  const touched = watchTouched()

  const finish = (attempt: InnerAttempt, outcome: Outcome, broken = false): void => {
    if (attempt.over) return
    attempt.over = true
    try {
      send({ kind: 'outcome', of: attempt.of, outcome: packOutcome(outcome), broken, touched: touched.find() })
    } catch (cause) {
      // The handler has changed too much for the outcome to be sent. The end of the isolate ends the attempt.
      try {
        writeSync(2, `the outcome of ${attempt.of.id} cannot be sent: ${errorOf(cause).stack}\n`)
      } finally {
        channel.end()
      }
    }
  }

  const handlerOf = async (task: IsolatedTask): Promise<Handler> => {
    const key = `${task.task} ${task.module}`
    const known = handlers.get(key)
    if (known !== undefined) return known
    const before = process.memoryUsage.rss()
    const handler = await importHandler(task)
    handlers.set(key, handler)
    // What a module does when it is imported belongs to the isolate.
    touched.remember()
    send({ kind: 'imported', residentBytes: process.memoryUsage.rss() - before })
    channel.imported?.()
    return handler
  }

  const run = async (attempt: InnerAttempt, task: IsolatedTask): Promise<void> => {
    let handler: Handler
    try {
      handler = await handlerOf(task)
    } catch (cause) {
      const error = new Error(`the handler for ${task.task} cannot be imported: ${toPortable(cause).message}`, {
        cause,
      })
      return finish(attempt, { kind: 'panicked', reason: 'unexpected_error', error }, true)
    }
    const outcome = await callHandler(handler, attempt)
    // Wait for one turn of the event loop. Node reports an unhandled rejection only after all promise callbacks have run, and
    // this handler's rejections must be attributed to this attempt.
    await setImmediate()
    finish(attempt, outcome)
  }

  const open = async (module: string | undefined): Promise<void> => {
    try {
      resources = await openModuleResources(module, (err, resource) => {
        const fields = packFields({ err, resource })
        send({ kind: 'log', of: undefined, level: 'error', fields, message: 'resource failed to close' })
      })
      send({ kind: 'ready' })
    } catch (error) {
      send({ kind: 'open_failed', error: toPortable(error) })
    }
  }

  const onMessage = (message: ToIsolate): void => {
    switch (message.kind) {
      case 'open':
        if (ownKey !== '') throw new Error('the isolate is open')
        ownKey = message.key
        if (message.reportMemory) reportMemory(send)
        void open(message.resources)
        return
      case 'run': {
        const { task, aborted } = message
        if (current?.over === false) throw new Error('an attempt is running')
        const attempt = new InnerAttempt(task, { send, pendingCalls, resources: resources?.values ?? {} })
        if (aborted !== undefined) attempt.abort(fromPortable(aborted))
        current = attempt
        void attempts.run(attempt, () => run(attempt, task))
        return
      }
      case 'signal': {
        const attempt = current
        // Abort in the attempt's own context, so that an error thrown by a listener on its signal is attributed to the attempt.
        if (attempt !== undefined) attempts.run(attempt, () => attempt.abort(fromPortable(message.reason)))
        return
      }
      case 'answer':
        pendingCalls.settle(message.call, message.value, message.error && fromPortable(message.error))
        return
      case 'end':
        void Promise.resolve(resources?.close()).then(() => channel.end())
        return
      default:
        throw new Error(`its kind is ${String((message as { readonly kind?: unknown }).kind)}`)
    }
  }

  /** A handler may have emitted what looks like a message of the worker. */
  const receive = (received: unknown): void => {
    const message = messageIn(received)
    if (message === undefined) return
    try {
      onMessage(message as ToIsolate)
    } catch (cause) {
      const error = new Error(`a message to the isolate was forged or is malformed: ${errorOf(cause).message}`, {
        cause,
      })
      if (current === undefined || current.over) send({ kind: 'late', of: current?.of, error: toPortable(error) })
      else finish(current, { kind: 'panicked', reason: 'escaped_error', error })
    }
  }

  watchUncaught(attempts, {
    attributed: (attempt, error) =>
      finish(attempt, { kind: 'panicked', reason: 'escaped_error', error: errorOf(error) }),
    late: (attempt, error) => send({ kind: 'late', of: attempt?.of, error: toPortable(errorOf(error)) }),
  })
  channel.listen(receive)
}

function reportMemory(send: (message: FromIsolate) => void): void {
  const report = (): void => send({ kind: 'memory', residentBytes: process.memoryUsage.rss() })
  setInterval(report, REPORT_INTERVAL_MS).unref()
  report()
}
