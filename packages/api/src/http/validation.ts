// Checks requests against their schemas, and says in our own codes what is wrong.
import { BullpenError, type Catalogue, type ErrorCode, type FieldError } from '@bullpen/contract'
import type { FastifySchemaCompiler } from 'fastify'
import { z } from 'zod'
import { faultsOf } from './error-details.ts'

/**
 * Query and parameters are replaced by what the schema makes of them. The body stays as the caller sent it: the worker
 * parses it again, so that defaults and transforms run once, where the handler runs.
 */
export function createValidator(catalogue: Catalogue): FastifySchemaCompiler<z.ZodType> {
  return ({ schema, httpPart }) =>
    (data: unknown) => {
      try {
        const result = schema.safeParse(data)
        if (httpPart === 'body') {
          return result.success ? { value: data } : { error: wrongBody(catalogue, schema, data, result.error) }
        }
        return result.success ? { value: result.data } : { error: refusal('invalid_request', faultsOf(result.error)) }
      } catch (cause) {
        // A task's own transform threw, or is asynchronous: this is no input that its schema accepts.
        const message = `the schema could not read it: ${cause instanceof Error ? cause.message : String(cause)}`
        return { error: refusal('invalid_input', [{ path: 'input', message }]) }
      }
    }
}

function wrongBody(catalogue: Catalogue, schema: z.ZodType, body: unknown, error: z.core.$ZodError): BullpenError {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return new BullpenError('invalid_request', 'the body is a JSON object; /openapi.json has its fields')
  }
  const ofTask = schema instanceof z.ZodDiscriminatedUnion && schema.def.discriminator === 'task'
  return ofTask ? wrongTask(catalogue, body, error) : refusal('invalid_request', faultsOf(error))
}

/** The task's name comes first: without it nobody knows what the input should be. */
function wrongTask(catalogue: Catalogue, body: object, error: z.core.$ZodError): BullpenError {
  const { task } = body as { readonly task?: unknown }
  if (typeof task !== 'string') {
    const known = catalogue.definitions.map(({ name }) => name).join(', ')
    return refusal('invalid_request', [{ path: 'task', message: `the task's name is needed; known are ${known}` }])
  }
  if (!catalogue.has(task)) return unknownTask(catalogue, task)
  const errors = faultsOf(error)
  return refusal(errors.every(({ path }) => /^input([.[]|$)/.test(path)) ? 'invalid_input' : 'invalid_request', errors)
}

function unknownTask(catalogue: Catalogue, name: string): BullpenError {
  try {
    catalogue.get(name.slice(0, 100))
  } catch (error) {
    if (error instanceof BullpenError) return error
  }
  return new BullpenError('unknown_task', 'no task has this name')
}

function refusal(code: ErrorCode, errors: readonly FieldError[]): BullpenError {
  const [first] = errors
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const detail = first === undefined ? 'the request is not right' : `${first.path}: ${first.message}${more}`
  return new BullpenError(code, detail, { errors })
}
