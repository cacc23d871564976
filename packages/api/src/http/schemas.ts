// Applies the zod schemas of the routes. Requests are validated, with Bullpen's own error codes, and responses are serialized.
import { BullpenError, type Catalogue, type ErrorCode, type FieldError } from '@bullpen/contract'
import {
  bodyErrors,
  describeIssue,
  errorAt,
  fieldErrorText,
  MAX_ERRORS,
  parameterErrors,
} from '@bullpen/contract/internal'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { z } from 'zod'
import { withAcceptedNames } from './problems/unknown-names.ts'

/**
 * Creates the validator. The query and the parameters are replaced with the schema's output. The body stays as the caller sent
 * it, because the worker parses the input again, and defaults and transforms must be applied only once, in the process that runs
 * the handler.
 */
export function createValidator(catalogue: Catalogue): FastifySchemaCompiler<z.ZodType> {
  return ({ schema, httpPart }) => {
    if (httpPart !== 'body') return parameterValidator(schema)
    return (data: unknown) => {
      const error = bodyError(catalogue, schema, data)
      return error === undefined ? { value: data } : { error }
    }
  }
}

type Validated = { readonly value: unknown } | { readonly error: BullpenError }

/**
 * Returns the validator of a query, of headers or of a path's parameters. Most requests have no query, and all of these get the same
 * result, because parsing nothing takes zod 1 µs.
 */
function parameterValidator(schema: z.ZodType): (data: unknown) => Validated {
  const validate = (data: unknown): Validated => {
    const repeated = repeatedParameters(data)
    if (repeated.length > 0) return { error: validationError('invalid_request', repeated) }
    const result = schema.safeParse(data, { error: describeIssue })
    if (result.success) return { value: Object.freeze(result.data) }
    return { error: validationError('invalid_request', withAcceptedNames(schema, parameterErrors(result.error))) }
  }
  let withoutAny: Validated | undefined
  return (data) => {
    if (Object.keys(data ?? {}).length > 0) return validate(data)
    withoutAny ??= validate(data)
    return withoutAny
  }
}

/** No route accepts a parameter more than once. */
function repeatedParameters(data: unknown): readonly FieldError[] {
  return Object.entries(data ?? {}).flatMap(([parameter, value]) =>
    Array.isArray(value) ? [{ parameter, message: `given ${value.length} times; expected it once` }] : [],
  )
}

/**
 * Returns what is wrong with a body, or undefined if it matches the schema. `unlisted` are fields of the schema that are refused elsewhere,
 * so that the problem of an unknown field does not list them.
 */
export function bodyError(
  catalogue: Catalogue,
  schema: z.ZodType,
  body: unknown,
  unlisted: readonly string[] = [],
): BullpenError | undefined {
  try {
    if (isTaskSchema(schema) && isTaskWithoutOptions(catalogue, body)) return undefined
    const result = schema.safeParse(body, { error: describeIssue })
    return result.success ? undefined : mismatch(catalogue, schema, body, result.error, unlisted)
  } catch (cause) {
    // One of the schema's transforms threw or is asynchronous, so the schema does not accept this input.
    const message = `the task's schema could not parse the input: ${cause instanceof Error ? cause.message : String(cause)}`
    return validationError('invalid_input', [{ pointer: '/input', message }])
  }
}

/** Like {@link bodyError}, but for a task in a body's list of tasks. `index` is its position in the list. */
export function listedTaskError(
  catalogue: Catalogue,
  schema: z.ZodType,
  task: unknown,
  index: number,
  unlisted?: readonly string[],
): BullpenError | undefined {
  const pointer = `/tasks/${index}`
  if (!isObject(task)) {
    const message = 'expected a JSON object such as {"task":"email.welcome","input":{}}'
    return validationError('invalid_request', [{ pointer, message }])
  }
  const error = bodyError(catalogue, schema, task, unlisted)
  return error && errorAt(error, pointer)
}

/** Returns whether the schema is that of an enqueue's body, which differs by task. */
function isTaskSchema(schema: z.ZodType): schema is z.ZodDiscriminatedUnion {
  return schema instanceof z.ZodDiscriminatedUnion && schema.def.discriminator === 'task'
}

/**
 * Returns whether a body consists of the name of a task and an input that the task accepts, as most bodies do. Checking the options
 * that such a body does not have takes zod 1.5 µs, because follow-ups, whose schema contains itself, make zod look for cycles.
 */
function isTaskWithoutOptions(catalogue: Catalogue, body: unknown): boolean {
  if (typeof body !== 'object' || body === null || Object.keys(body).length !== 2) return false
  const { task, input } = body as { readonly task?: unknown; readonly input?: unknown }
  if (typeof task !== 'string' || input === undefined || !catalogue.has(task)) return false
  return catalogue.get(task).input.safeParse(input).success
}

/** Drops all fields that the schema does not contain, and throws if a response does not match the schema. */
export const createSerializer: FastifySerializerCompiler<z.ZodType> = ({ schema }) => {
  return (response) => JSON.stringify(schema.parse(response))
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function mismatch(
  catalogue: Catalogue,
  schema: z.ZodType,
  body: unknown,
  error: z.core.$ZodError,
  unlisted: readonly string[],
): BullpenError {
  if (!isObject(body)) {
    return new BullpenError('invalid_request', 'the body must be a JSON object; /openapi.json lists its fields')
  }
  if (isTaskSchema(schema)) return taskBodyError(catalogue, schema, body, error, unlisted)
  return validationError('invalid_request', withAcceptedNames(schema, bodyErrors(error)))
}

/** Checks the name of the task first, because there is no schema for the input without it. */
function taskBodyError(
  catalogue: Catalogue,
  schema: z.ZodDiscriminatedUnion,
  body: object,
  error: z.core.$ZodError,
  unlisted: readonly string[],
): BullpenError {
  const { task } = body as { readonly task?: unknown }
  if (typeof task !== 'string') {
    const known = catalogue.definitions.map(({ name }) => name).join(', ')
    return validationError('invalid_request', [{ pointer: '/task', message: `expected the name of a task: ${known}` }])
  }
  if (!catalogue.has(task)) return unknownTask(catalogue, task)
  const ofTask = schema.options.find((option) => option instanceof z.ZodObject && isLiteral(option.shape['task'], task))
  const found = bodyErrors(error)
  const errors = ofTask === undefined ? found : withAcceptedNames(ofTask as z.ZodType, found, unlisted)
  const onlyInput = error.issues.every(({ path }) => path[0] === 'input')
  return validationError(onlyInput ? 'invalid_input' : 'invalid_request', errors)
}

function isLiteral(schema: unknown, value: string): boolean {
  return schema instanceof z.ZodLiteral && schema.value === value
}

function unknownTask(catalogue: Catalogue, name: string): BullpenError {
  try {
    catalogue.get(name.slice(0, 100))
  } catch (error) {
    if (error instanceof BullpenError) return error
  }
  return new BullpenError('unknown_task', 'no task has this name')
}

function validationError(code: ErrorCode, errors: readonly FieldError[]): BullpenError {
  const [first] = errors
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const detail = first === undefined ? 'invalid request' : `${fieldErrorText(first)}${more}`
  return new BullpenError(code, detail, { errors: errors.slice(0, MAX_ERRORS) })
}
