// The inside of an isolate: opens resources, runs one task after the other, and says how each ended.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import type { Handler } from '@bullpen/contract'
import type { IsolatedTask, Outcome } from '@bullpen/engine/internal'
import type { ToIsolate } from '../protocol/messages.ts'
import { fromPortable, toPortable } from '../protocol/portable-error.ts'
import { packFields } from '../protocol/portable-fields.ts'
import { packOutcome } from '../protocol/portable-outcome.ts'
import { InnerAttempt } from './attempt.ts'
import { callHandler, importHandler, invalidOutput } from './call-handler.ts'
import type { Channel } from './channel.ts'
import { watchEscapes } from './escapes.ts'
import { awaitAnswers } from './pending-calls.ts'
import { type InnerResources, openResources } from './resources.ts'

/** How often a process says how much memory it takes, where its parent can't look it up. */
const REPORT_EVERY_MS = 50

export function serve(channel: Channel): void {
  const attempts = new AsyncLocalStorage<InnerAttempt>()
  const answers = awaitAnswers()
  const handlers = new Map<string, Handler>()
  let resources: InnerResources | undefined
  let current: InnerAttempt | undefined

  const conclude = (attempt: InnerAttempt, outcome: Outcome, broken = false): void => {
    if (attempt.over) return
    attempt.over = true
    sendOutcome(channel, attempt, outcome, broken)
  }

  const handlerOf = async (task: IsolatedTask): Promise<Handler> => {
    const key = `${task.task} ${task.module}`
    const known = handlers.get(key)
    if (known !== undefined) return known
    const before = process.memoryUsage.rss()
    const handler = await importHandler(task)
    handlers.set(key, handler)
    channel.send({ kind: 'imported', residentBytes: process.memoryUsage.rss() - before })
    return handler
  }

  const run = async (attempt: InnerAttempt, task: IsolatedTask): Promise<void> => {
    let handler: Handler
    try {
      handler = await handlerOf(task)
    } catch (cause) {
      const error = new Error(`the handler of ${task.task} can't be imported: ${toPortable(cause).message}`, { cause })
      return conclude(attempt, { kind: 'panicked', reason: 'unexpected_error', error }, true)
    }
    const outcome = await callHandler(handler, attempt)
    // A turn of the event loop: Node tells of a rejection that nobody handles only when all promises have settled, and
    // one that this handler left behind is this attempt's.
    await setImmediate()
    conclude(attempt, outcome)
  }

  const open = async (module: string | undefined): Promise<void> => {
    try {
      resources = await openResources(module, (fields, message) =>
        channel.send({ kind: 'log', of: undefined, level: 'error', fields: packFields(fields), message }),
      )
      channel.send({ kind: 'ready' })
    } catch (error) {
      channel.send({ kind: 'unable', error: toPortable(error) })
    }
  }

  const heard = (message: ToIsolate): void => {
    switch (message.kind) {
      case 'open':
        if (message.reportMemory) reportMemory(channel)
        void open(message.resources)
        return
      case 'run': {
        const { task, aborted } = message
        const attempt = new InnerAttempt(task, { channel, answers, resources: resources?.values ?? {} })
        if (aborted !== undefined) attempt.abort(fromPortable(aborted))
        current = attempt
        void attempts.run(attempt, () => run(attempt, task))
        return
      }
      case 'signal': {
        const attempt = current
        // In the attempt's own context: a listener of its signal that throws is its own escape.
        if (attempt !== undefined) attempts.run(attempt, () => attempt.abort(fromPortable(message.reason)))
        return
      }
      case 'answer':
        answers.answer(message.call, message.value, message.error && fromPortable(message.error))
        return
      case 'end':
        void Promise.resolve(resources?.close()).then(() => channel.end())
    }
  }

  watchEscapes(attempts, {
    charged: (attempt, error) =>
      conclude(attempt, { kind: 'panicked', reason: 'escaped_error', error: fromPortable(toPortable(error)) }),
    late: (attempt, error) => channel.send({ kind: 'late', of: attempt?.of, error: toPortable(error) }),
  })
  channel.listen(heard)
}

function sendOutcome(channel: Channel, { of }: InnerAttempt, outcome: Outcome, broken: boolean): void {
  try {
    channel.send({ kind: 'outcome', of, outcome: packOutcome(outcome), broken })
  } catch (cause) {
    const refused = invalidOutput(`the output of ${of.task} can't be cloned: ${String(cause)}`, cause)
    channel.send({ kind: 'outcome', of, outcome: packOutcome(refused), broken })
  }
}

function reportMemory(channel: Channel): void {
  const report = (): void => channel.send({ kind: 'memory', residentBytes: process.memoryUsage.rss() })
  setInterval(report, REPORT_EVERY_MS).unref()
  report()
}
