// Calls a handler in its isolate with raw input, and returns an outcome that can be sent back.
import { type Handler, TaskError } from '@bullpen/contract'
import { handlerIn } from '@bullpen/contract/isolate'
import { declaredFailure, type IsolatedTask, type Outcome, outcomeOfError, parseOutput } from '@bullpen/engine/isolate'
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
  const { name, input } = handler.task
  try {
    const parsed = input.safeParse(attempt.rawInput)
    if (!parsed.success) {
      const message = `the input does not match the schema of ${name}: ${issuesOf(parsed.error, 'input')}`
      return declaredFailure(new TaskError('invalid_input', message, { retryable: false }))
    }
    return parseOutput(await handler.handle(attempt.contextFor(handler.task, parsed.data)), handler.task)
  } catch (thrown) {
    return classifyRefusedMemory(outcomeOfError(thrown, handler.task))
  }
}

function issuesOf(error: z.ZodError, root: string): string {
  return error.issues.map((issue) => `${[root, ...issue.path].join('.')}: ${issue.message}`).join('; ')
}
