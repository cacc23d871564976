// Checks the requests of clients over Redis with the schemas of the API's bodies, so that both refuse the same.
import { BullpenError } from '@bullpen/contract'
import {
  bodyErrors,
  type cancelGroupSchema,
  type cancelOneSchema,
  type cancelRunSchema,
  describeIssue,
  fieldErrorText,
  type groupSettingsSchema,
  refusePrototypeKeys,
  type startRunSchema,
} from '@bullpen/contract/internal'

type Schema =
  | typeof cancelGroupSchema
  | typeof cancelOneSchema
  | typeof cancelRunSchema
  | typeof groupSettingsSchema
  | typeof startRunSchema

/** @throws BullpenError `invalid_request`, which names the place of each invalid value. */
export function checkRequest(schema: Schema, request: object): void {
  refusePrototypeKeys(request)
  const checked = schema.safeParse(request, { error: describeIssue })
  if (checked.success) return
  const errors = bodyErrors(checked.error)
  throw new BullpenError('invalid_request', errors.map(fieldErrorText).join('; '), { errors })
}
