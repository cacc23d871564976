// Calls a handler in its isolate with raw input, and returns an outcome that can be sent back.
import { type Handler, TaskError } from '@bullpen/contract'
import { handlerIn } from '@bullpen/contract/isolate'
import { declaredFailure, type IsolatedTask, type Outcome, outcomeOfThrow } from '@bullpen/engine/isolate'
import type { z } from 'zod'
import type { InnerAttempt } from './attempt.ts'
import { classifyRefusedMemory } from './refused-memory.ts'

/**
 * Imports a task's handler. @throws whatever the module throws, or BullpenError `invalid_handler` if it exports no handler for
 * the task.
 */
export async function importHandler({ module, task }: IsolatedTask): Promise<Handler> {
  return handlerIn(await import(module), task, module)
}

/** Parses the input, calls the handler and checks its output. Never throws or rejects. */
export async function callHandler(handler: Handler, attempt: InnerAttempt): Promise<Outcome> {
  const { name, input, output, classify } = handler.task
  try {
    const parsed = input.safeParse(attempt.rawInput)
    if (!parsed.success) {
      const message = `the input does not match the schema of ${name}: ${issuesOf(parsed.error, 'input')}`
      return declaredFailure(new TaskError('invalid_input', message, { retryable: false }))
    }
    const returned = output.safeParse(await handler.handle(attempt.contextFor(handler.task, parsed.data)))
    if (returned.success) return storable(returned.data, name)
    return invalidOutput(
      `the handler of ${name} returned output that does not match its schema: ${issuesOf(returned.error, 'output')}`,
    )
  } catch (thrown) {
    try {
      return classifyRefusedMemory(outcomeOfThrow(thrown, classify))
    } catch (cause) {
      // If the classifier itself throws, its own bug matters more than the error that was passed to it.
      const error = new Error(`the classifier of ${name} threw: ${String(cause)}`, { cause })
      return { kind: 'panicked', reason: 'unexpected_error', error }
    }
  }
}

export function invalidOutput(message: string, cause?: unknown): Outcome {
  return { kind: 'panicked', reason: 'invalid_output', error: new TypeError(message, { cause }) }
}

/**
 * Checks that the output can be stored as JSON. A BigInt or a cycle could be cloned to the worker, but would then fail there.
 */
function storable(output: unknown, name: string): Outcome {
  try {
    JSON.stringify(output)
    return { kind: 'returned', output }
  } catch (cause) {
    return invalidOutput(`the output of ${name} can't be stored as JSON: ${String(cause)}`, cause)
  }
}

function issuesOf(error: z.ZodError, root: string): string {
  return error.issues.map((issue) => `${[root, ...issue.path].join('.')}: ${issue.message}`).join('; ')
}
