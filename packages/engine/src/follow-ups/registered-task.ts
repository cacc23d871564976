// Creates what is stored of a task that a handler registers for the end of its own task: a follow-up, or a compensation of a step that
// may have to be undone.
import { BullpenError, type RegisteredOptions, type TaskDefinition } from '@bullpen/contract'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { type FollowUpOrigin, followUpTask } from './defined.ts'
import { storedTemplate } from './template.ts'

const KEY = /^[A-Za-z0-9._:/@-]{0,64}$/

export interface RegisteredTask {
  /** The definition's name and the key. A registration with the same identity replaces an earlier one. */
  readonly identity: string
  /** The template as JSON. */
  readonly template: string
}

/** @throws BullpenError `invalid_input` or `invalid_request`, which names the place of each invalid value. */
export function registeredTask(
  definition: TaskDefinition,
  input: unknown,
  { key = '', ...call }: RegisteredOptions,
  origin: FollowUpOrigin,
  codec: PayloadCodec | undefined,
): RegisteredTask {
  if (typeof key !== 'string' || !KEY.test(key)) {
    const message = 'expected 1 to 64 of the characters A-Z a-z 0-9 . _ : / @ -'
    throw new BullpenError('invalid_request', `invalid key for ${definition.name}: ${message}`, {
      errors: [{ pointer: '/key', message }],
    })
  }
  const refused = ['runAt', 'unique'].find((option) => option in call)
  if (refused !== undefined) {
    throw new BullpenError('invalid_request', `${definition.name}: ${refused} is not an option here; use delay or key`)
  }
  const template = storedTemplate(followUpTask(definition, input, call, origin), codec)
  return { identity: `${definition.name}:${key}`, template: JSON.stringify(template) }
}

/** Returns the parts of a stored registration. */
export function parseIdentity(identity: string): { readonly task: string; readonly key: string } {
  const at = identity.indexOf(':')
  return { task: identity.slice(0, at), key: identity.slice(at + 1) }
}
