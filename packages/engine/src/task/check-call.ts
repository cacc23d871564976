// Checks tasks that a worker's handler or an in-process producer enqueues. The API checks requests with its own schemas.
import {
  BullpenError,
  type CallOptions,
  type FollowUps,
  type ProducerOptions,
  type TaskDefinition,
} from '@bullpen/contract'
import {
  bodyErrors,
  callOptionsSchema,
  childOptionsSchema,
  describeIssue,
  fieldErrorText,
  producerOptionsSchema,
  refusePrototypeKeys,
} from '@bullpen/contract/internal'

/** Checks a child task. @throws BullpenError `invalid_input` or `invalid_request`, which names the place of each invalid value. */
export function checkChild(definition: TaskDefinition, input: unknown, call: CallOptions & FollowUps): void {
  checkOptions(childOptionsSchema, call, `child task ${definition.name}`)
  checkInput(definition, input)
}

/** Checks a follow-up task, without its own follow-ups. @throws BullpenError as {@link checkChild} does. */
export function checkFollowUp(definition: TaskDefinition, input: unknown, call: CallOptions): void {
  checkOptions(callOptionsSchema, call, `follow-up task ${definition.name}`)
  checkInput(definition, input)
}

/**
 * Checks a producer's task. @throws BullpenError `invalid_input` or `invalid_request`, which names the place of each invalid
 * value.
 */
export function checkProduced(definition: TaskDefinition, input: unknown, call: ProducerOptions): void {
  checkOptions(producerOptionsSchema, call, `task ${definition.name}`)
  checkInput(definition, input)
}

/**
 * Checks the input of a task. @throws BullpenError `invalid_input`, which names the place of each invalid value, or `invalid_request`
 * if the input has a key that could change prototypes.
 */
export function checkInput(definition: TaskDefinition, input: unknown): void {
  refusePrototypeKeys(input, ['input'])
  const parsed = definition.input.safeParse(input, { error: describeIssue })
  if (parsed.success) return
  const errors = bodyErrors(parsed.error, ['input'])
  const places = errors.map(fieldErrorText).join('; ')
  throw new BullpenError('invalid_input', `the input does not match the schema of ${definition.name}: ${places}`, {
    errors,
  })
}

type OptionsSchema = typeof callOptionsSchema | typeof childOptionsSchema | typeof producerOptionsSchema

function checkOptions(schema: OptionsSchema, call: ProducerOptions, what: string): void {
  // Most calls have no options, and checking options costs as much as checking an input.
  if (Object.keys(call).length === 0) return
  refusePrototypeKeys(call)
  // In JSON, a Date is the string that the schema accepts.
  const { runAt } = call
  const checked = schema.safeParse(runAt instanceof Date ? { ...call, runAt: runAt.toJSON() } : call, {
    error: describeIssue,
  })
  if (checked.success) return
  const errors = bodyErrors(checked.error)
  const places = errors.map(fieldErrorText).join('; ')
  throw new BullpenError('invalid_request', `invalid options for ${what}: ${places}`, { errors })
}
